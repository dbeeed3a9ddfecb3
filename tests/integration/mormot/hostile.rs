//! Strangers, recordings, noise and lies on the originals' wire; and settings that would bring harm.

use std::net::UdpSocket;
use std::time::Duration;

use super::{BROADCAST, Net, answer_of, assert_from, fill, stated};
use crate::support::address::OwnAddress;
use crate::support::mormot::{File, Original};
use crate::support::{Larder, Origin, Rng, Script, Site, body, wait_until};

/// A socket that speaks from this address, whoever it belongs to.
fn mouth(from: std::net::IpAddr) -> UdpSocket {
    let mouth = UdpSocket::bind((from, 0)).unwrap();
    mouth.set_broadcast(true).unwrap();
    mouth
}

#[test]
fn noise_recordings_and_spoofed_sources_ban_no_good_peer_and_stop_nothing() {
    let (net, origin, mut rng) = (Net::new(), Origin::start(), Rng::new("mormot noise"));
    let site = Site::new();
    let node = net.larder("a").peers(&site).start();
    let neighbour = Larder::new("b").peers(&site).start();
    node.meets(&neighbour);
    let (good, stranger) = (net.original(), net.peer("another secret", false));
    let script = Script::new(200_000);
    fill(&node, &origin.serve("/f.bin", script.clone()), &script);
    let answer = answer_of(&good, node.ip(), &script, 6);
    let recorded = good.keys().seal(&good.heard().last().unwrap().0);
    let elsewhere = OwnAddress::claim();
    // in the good peer's name, in the neighbour's, and from elsewhere
    for from in [good.ip(), neighbour.ip(), elsewhere.ip(), stranger.ip()] {
        let mouth = mouth(from);
        for round in 0..400_u64 {
            let length = if round % 2 == 0 { 244 } else { rng.below(600) as usize };
            let noise: Vec<u8> = (0..length).map(|_| rng.below(256) as u8).collect();
            let frame = if round % 5 == 0 { &recorded } else { &noise };
            for to in [BROADCAST.to_owned(), node.ip().to_string()] {
                mouth.send_to(frame, (to, net.port.number())).unwrap();
            }
        }
    }
    stranger.ask(&script.digest(), 0, 1, Duration::from_millis(100));
    for bad in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\x16\x03\x01\x02\x00\x01", b"POST / HTTP/1.0\r\n\r\n"] {
        let mut stream = std::net::TcpStream::connect((node.ip(), net.port.number())).unwrap();
        std::io::Write::write_all(&mut stream, bad).unwrap();
    }
    let refused = [
        stranger.get(&answer, None),
        good.request("POST", &answer, None, |_| ()),
        good.request("GET", &answer, None, |token| token.set_address(elsewhere_v4(&elsewhere))),
        good.request("GET", &answer, None, |token| token.set_kind(6)),
        good.request("GET", &answer, None, |token| token.set_uuid([1; 16])),
    ];
    assert!(refused.iter().all(|got| got.answer.status == 403), "{refused:?}");
    assert_eq!(node.bans(), Vec::<String>::new());
    // whoever was blamed in vain is served as before, with a token as old as the protocol
    let again = answer_of(&good, node.ip(), &script, 6);
    let got = good.request("GET", &again, None, |token| token.set_timestamp(1));
    assert!(got.answer.body == body::slice(script.seed, 0..script.size), "{}", got.head);
    assert!(node.peers().contains(&"b".to_owned()) && neighbour.bans().is_empty());
    let held = Script::new(150_000).seed(3);
    good.holds(&held);
    assert_from(stated(&node, &origin.serve("/g.bin", held.clone()), &held).assert_whole(&held), good.ip());
    let frames = || node.status()["mormot"]["network"]["frames"].clone();
    wait_until("the noise to be counted", || {
        frames()["checksum"].as_u64() > Some(100) && frames()["length"].as_u64() > Some(100)
    });
    println!("frames: {}", frames());
}

fn elsewhere_v4(address: &OwnAddress) -> std::net::Ipv4Addr {
    match address.ip() {
        std::net::IpAddr::V4(v4) => v4,
        std::net::IpAddr::V6(_) => unreachable!("loopback addresses are IPv4"),
    }
}

#[test]
fn a_lying_peer_gives_nobody_wrong_bytes_and_is_not_asked_again() {
    let (net, origin) = (Net::new(), Origin::start());
    let (node, liar) = (net.larder("a").start(), net.original());
    for seed in 1..=3 {
        let script = Script::new(400_000).seed(seed);
        let url = origin.serve(&format!("/{seed}.bin"), script.clone());
        let lies = body::slice(seed + 100, 0..script.size);
        liar.holds_as(&script, File { bytes: lies, arriving: None, status: None, cut: None });
        let answer = stated(&node, &url, &script);
        assert!(!answer.assert_whole(&script).is_from_peer(), "{}", answer.cache_status());
    }
    assert_eq!(liar.requests().len(), 1, "one lie is enough");
    assert!(node.bans().is_empty());
}

#[test]
fn larder_never_earns_a_ban_by_an_answer_it_asked_for() {
    let (net, origin) = (Net::new(), Origin::start());
    let (node, peer) = (net.larder("a").start(), net.original());
    // offered and gone a moment later; offered at one size and given at another
    let gone = Script::new(100_000).seed(5);
    let empty = File { bytes: Vec::new(), arriving: None, status: Some(204), cut: None };
    peer.holds_as(&gone, File { bytes: body::slice(gone.seed, 0..gone.size), ..empty });
    stated(&node, &origin.serve("/gone", gone.clone()), &gone).assert_whole(&gone);
    let short = Script::new(100_000).seed(6);
    let bytes = body::slice(short.seed, 0..99_999);
    peer.holds_as(&short, File { bytes, arriving: None, status: None, cut: None });
    stated(&node, &origin.serve("/short", short.clone()), &short).assert_whole(&short);
    assert!(peer.requests().len() >= 2);
    assert!(peer.bans().is_empty(), "{:?}", peer.bans());
}

#[test]
fn settings_that_would_get_us_banned_or_give_secrets_away_are_refused() {
    let (net, site) = (Net::new(), Site::new());
    let same_port = net.larder("a").peers(&site).set("mormot.port", i64::from(site.port())).ready_to_start();
    let said = same_port.cli(&["run"]).assert_code(78).said();
    assert!(said.contains("peers.port") && said.contains("mormot.port"), "{said}");
    let no_secret = Larder::new("b").set("mormot.enabled", true).ready_to_start();
    let said = no_secret.cli(&["run"]).assert_code(78).said();
    assert!(said.contains("mormot.secret_file"), "{said}");
    let lost =
        Larder::new("c").set("mormot.enabled", true).set("mormot.secret_file", "/nowhere").ready_to_start();
    assert!(lost.cli(&["config", "check"]).assert_code(78).said().contains("/nowhere"));
    let own = Larder::new("d").mormot(site.secret(), 8099).peers(&site).ready_to_start();
    assert!(own.cli(&["run"]).assert_code(78).said().contains("own secret"));
    let odd = net.larder("e").set("mormot.interface", "two words").ready_to_start();
    assert!(odd.cli(&["config", "check"]).assert_code(78).said().contains("mormot.interface"));
    let odd = net.larder("f").set("mormot.broadcast", "everywhere").ready_to_start();
    assert!(odd.cli(&["config", "check"]).assert_code(78).said().contains("everywhere"));
    // a weak secret is theirs to choose, and ours to warn of
    let weak = Larder::new("g").mormot("secret", 8099).ready_to_start();
    let said = weak.cli(&["config", "check"]).assert_code(0).said();
    assert!(said.contains("mormot.secret_file") && !said.contains("secret\n\n"), "{said}");
    // somebody else has the port
    let mut taken = net.larder("h").ready_to_start();
    let holder = std::net::TcpListener::bind((taken.ip(), net.port.number())).unwrap();
    let said = taken.cli(&["run"]).assert_code(69).said();
    assert!(said.contains("mormot.port") && said.contains(&net.port.number().to_string()), "{said}");
    drop(holder);
    taken.start_again();
}

#[test]
fn doctor_recognises_originals_on_larders_own_port() {
    let site = Site::new();
    let node = Larder::new("a").peers(&site).start();
    assert!(!node.cli(&["doctor"]).said().contains("mORMot"));
    let address = OwnAddress::claim();
    // somebody has set mget to Larder's port
    let lost = Original::start(address.ip(), BROADCAST, site.port(), "whatever", false);
    wait_until("its frames to be noticed", || {
        lost.ping(1, Duration::from_millis(10));
        node.cli(&["doctor"]).said().contains("mORMot")
    });
    let said = node.cli(&["doctor"]).said();
    assert!(said.contains("244") && said.contains(&site.port().to_string()), "{said}");
}
