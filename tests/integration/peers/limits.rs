//! What neighbours may take from each other, and what is not worth a question.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use super::{fill, two};
use crate::support::{Larder, MIB, Origin, Script, Site, at_once, wait_until};

#[test]
fn p14_more_askers_than_places_go_elsewhere_and_local_clients_come_first() {
    let site = Site::new();
    let origin = Origin::start();
    let giver = Larder::new("giver").peers(&site).set("peers.max_uploads", 2).set("peers.upload_rate", "2MB");
    let giver = giver.start();
    let askers: Vec<_> = (0..5).map(|n| Larder::new(&format!("asker{n}")).peers(&site).start()).collect();
    askers.iter().for_each(|asker| asker.meets(&giver));
    let scripts: Vec<_> = (1..=5).map(|n| Script::new(2 * MIB).seed(n)).collect();
    let urls: Vec<_> = scripts.iter().map(|s| origin.serve(&format!("/{}.bin", s.seed), s.clone())).collect();
    for (url, script) in urls.iter().zip(&scripts) {
        fill(&giver, url, script);
    }
    let answers = at_once(6, |n| match askers.get(n) {
        Some(asker) => asker.ask(&urls[n]).field("Larder-Digest", &scripts[n].digest()).send(),
        None => giver.get(&urls[0]),
    });
    for (n, answer) in answers.iter().take(5).enumerate() {
        answer.assert_whole(&scripts[n]);
    }
    let local = answers[5].assert_whole(&scripts[0]);
    let from_giver = answers.iter().filter(|answer| answer.is_from_peer()).count();
    println!("{from_giver} of 5 were given by the neighbour; its own client waited {:?}", local.took);
    assert!(local.is_hit() && local.took < Duration::from_secs(10));
    assert!(giver.bans().is_empty() && askers.iter().all(|asker| asker.bans().is_empty()));
    let given = giver.count("/traffic/bytes_to_peers");
    assert!(given < 5 * 2 * MIB, "with two places not all five are served at once: {given}");
}

#[test]
fn p18_a_neighbours_partial_never_becomes_a_whole() {
    let (origin, a, b) = two();
    let script = Script::new(6 * MIB).hold_at(3 * MIB).cut_once(3 * MIB).by_reset();
    let url = origin.serve("/f.bin", script.clone());
    let mut first = a.ask(&url).open();
    first.read_to(2 * MIB);
    let asking = std::thread::scope(|scope| {
        let second = scope.spawn(|| b.ask(&url).field("Larder-Digest", &script.digest()).send());
        wait_until("the second node to be at it", || b.transfers() == 1);
        // The origin breaks off; from now on it gives the whole.
        origin.serve("/f.bin", Script::new(6 * MIB));
        origin.release("/f.bin");
        second.join().unwrap()
    });
    asking.assert_whole(&script);
    let first = first.rest();
    assert!(!first.is_success() || first.body == script.body(), "whole and right, or an error");
    for node in [&a, &b] {
        wait_until("nothing left running", || node.transfers() == 0);
        node.verify_all_blobs();
        node.get(&url).assert_whole(&script);
        assert!(node.bans().is_empty());
    }
}

#[test]
fn p21_tiny_files_are_nobody_elses_business() {
    let (origin, a, b) = two();
    let wire: SocketAddr = ([127, 255, 255, 255], a.peer().port()).into();
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&wire.into()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let listener = UdpSocket::from(socket);
    let heard = || {
        let mut frame = [0; 2048];
        std::iter::from_fn(|| listener.recv_from(&mut frame).ok())
            .filter(|(_, from)| from.ip() == a.ip())
            .count()
    };
    // A URL that nobody here knows is asked for while its origin thinks: its size is not known yet. What is known
    // to be tiny is not.
    let scripts: Vec<_> = (1..=100).map(|n| Script::new(1000).seed(n).stale_at_once()).collect();
    let ask_all = || {
        for script in &scripts {
            let url = origin.serve(&format!("/{}.bin", script.seed), script.clone());
            a.get(&url).assert_whole(script);
        }
    };
    ask_all();
    heard();
    ask_all();
    let tiny = heard();
    println!("{tiny} frames for 100 files of 1000 bytes");
    assert!(tiny <= 2, "only what is said every half minute: {tiny}");
    let script = Script::new(50_000).seed(1000);
    let url = origin.serve("/larger.bin", script.clone());
    a.ask(&url).field("Larder-Digest", &script.digest()).send().assert_whole(&script);
    wait_until("a question about something larger", || heard() > 0);
    drop(b);
}
