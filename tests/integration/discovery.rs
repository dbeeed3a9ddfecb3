//! Finding neighbours on one machine's loopback: nobody there, oneself, strangers.

use std::net::UdpSocket;
use std::time::Instant;

use crate::support::{Larder, Origin, Script, Site, wait_until};

/// Sends garbage of every size to a node's UDP port, from `from`.
fn garbage(from: std::net::IpAddr, to: &Larder, count: u32) {
    let socket = UdpSocket::bind((from, 0)).unwrap();
    for n in 0..count {
        let mut frame = crate::support::body::slice(u64::from(n), 0..u64::from(64 + n % 1100));
        if n % 2 == 0 {
            frame[..2].copy_from_slice(b"LD");
        }
        drop(socket.send_to(&frame, to.peer()));
    }
}

#[test]
fn d08_nobody_there_costs_next_to_nothing() {
    let origin = Origin::start();
    let count = 200;
    let mut times = Vec::new();
    for peers in [false, true] {
        let site = Site::new();
        let node = Larder::new("a").peers(&site).set("peers.enabled", peers).start();
        let start = Instant::now();
        for n in 0..count {
            let script = Script::new(10_000).seed(n + 1);
            let path = format!("/{peers}/{n}.bin");
            node.get(&origin.serve(&path, script.clone())).assert_whole(&script);
        }
        times.push(start.elapsed());
    }
    let added = times[1].saturating_sub(times[0]);
    println!(
        "{count} files of 10 kB: {:?} without, {:?} with discovery and nobody there",
        times[0], times[1]
    );
    assert!(added.as_secs() < 20, "{added:?} added");
}

#[test]
fn d10_a_node_does_not_find_itself() {
    let site = Site::new();
    let origin = Origin::start();
    let a = Larder::new("a").peers(&site).start();
    let b = Larder::new("b").peers(&site).start();
    a.meets(&b);
    assert_eq!((a.peers(), b.peers()), (vec!["b".to_owned()], vec!["a".to_owned()]));
    let script = Script::new(50_000).stale_at_once();
    let url = origin.serve("/f.bin", script.clone());
    for _ in 0..3 {
        a.get(&url).assert_whole(&script);
    }
    assert_eq!(a.count("/traffic/bytes_to_peers"), 0);
    assert!(a.bans().is_empty());
}

#[test]
fn d17_two_secrets_on_one_wire_are_two_silent_worlds() {
    let site = Site::new();
    let strangers = site.strangers();
    let origin = Origin::start();
    let (a, b) = (Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start());
    let (c, d) = (Larder::new("c").peers(&strangers).start(), Larder::new("d").peers(&strangers).start());
    a.meets(&b);
    c.meets(&d);
    let script = Script::new(100_000);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    let answer = c.ask(&url).field("Larder-Digest", &script.digest()).send();
    answer.assert_whole(&script);
    assert!(!answer.is_from_peer(), "{}", answer.cache_status());
    let answer = b.ask(&url).field("Larder-Digest", &script.digest()).send();
    assert!(answer.assert_whole(&script).is_from_peer(), "{}", answer.cache_status());
    for node in [&a, &b, &c, &d] {
        assert_eq!(node.peers().len(), 1);
        assert!(node.bans().is_empty());
        let loud = node.log().lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).count();
        assert!(loud <= 4, "{loud} loud lines:\n{}", node.log());
    }
}

#[test]
fn p10_garbage_with_a_neighbours_address_bans_nobody() {
    let site = Site::new();
    let origin = Origin::start();
    let a = Larder::new("a").peers(&site).list("bans.never", &[]).start();
    let b = Larder::new("b").peers(&site).list("bans.never", &[]).start();
    a.meets(&b);
    let script = Script::new(200_000);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    // On loopback everybody can send from any 127.x.y.z: this is a's own address, in front of b.
    garbage(a.ip(), &b, 300);
    let answer = b.ask(&url).field("Larder-Digest", &script.digest()).send();
    assert!(answer.assert_whole(&script).is_from_peer(), "{}", answer.cache_status());
    assert!(b.bans().is_empty() && a.bans().is_empty());
}

#[test]
fn a_node_that_stops_says_goodbye() {
    let site = Site::new();
    let a = Larder::new("a").peers(&site).start();
    let mut b = Larder::new("b").peers(&site).start();
    a.meets(&b);
    b.stop();
    wait_until("a to forget b", || a.peers().is_empty());
    b.start_again();
    a.meets(&b);
}

#[test]
fn neighbours_are_also_met_through_a_seed() {
    let site = Site::new();
    let a = Larder::new("a")
        .peers(&site)
        .list("peers.broadcast", &[&format!("127.255.255.254:{}", site.port())])
        .start();
    let seed = a.peer().to_string();
    let b = Larder::new("b").peers(&site);
    let b = b
        .list("peers.broadcast", &[&format!("127.255.255.253:{}", site.port())])
        .list("peers.seeds", &[&seed]);
    let b = b.start();
    a.meets(&b);
}
