//! Among the originals: peers written from the protocol's page find and read what Larder holds, Larder finds and
//! reads what they hold, and neither strangers nor liars on that wire harm anybody.

mod crowd;
mod hostile;

use std::net::IpAddr;
use std::time::Duration;

use crate::support::address::{OwnAddress, OwnPort};
use crate::support::daemon::LarderBuilder;
use crate::support::lan::{Lan, SWITCH};
use crate::support::mormot::{File, Original};
use crate::support::{GUARD, Larder, MIB, Origin, Script, Site, body, wait_until};

const BROADCAST: &str = "127.255.255.255";

/// A network of mORMot peers on loopback: a secret and a port.
struct Net {
    secret: String,
    port: OwnPort,
}

/// A peer and the address it stands on.
struct Peer {
    original: Original,
    _address: OwnAddress,
}

impl std::ops::Deref for Peer {
    type Target = Original;

    fn deref(&self) -> &Original {
        &self.original
    }
}

impl Net {
    fn new() -> Self {
        Self { secret: "secret of the originals".into(), port: OwnPort::claim() }
    }

    fn larder(&self, name: &str) -> LarderBuilder {
        // under load even a neighbour takes its time
        Larder::new(name).mormot(&self.secret, self.port.number()).set("peers.wait_max", "2500ms")
    }

    fn original(&self) -> Peer {
        self.peer(&self.secret, false)
    }

    fn peer(&self, secret: &str, windows: bool) -> Peer {
        let address = OwnAddress::claim();
        let original = Original::start(address.ip(), BROADCAST, self.port.number(), secret, windows);
        Peer { original, _address: address }
    }
}

/// A download with its digest stated, as `DIGEST@URL` does.
fn stated(node: &Larder, url: &str, script: &Script) -> crate::support::Answer {
    node.ask(url).field("Larder-Digest", &script.digest()).send()
}

/// Fills a node's store from the origin.
fn fill(node: &Larder, url: &str, script: &Script) {
    node.get(url).assert_whole(script);
    node.wait_for_blob(&script.digest());
}

/// The answer of the node at this address, asked for until it comes.
#[track_caller]
fn answer_of(
    peer: &Original,
    node: IpAddr,
    script: &Script,
    kind: u8,
) -> crate::support::mormot::wire::Message {
    let mut found = None;
    wait_until(&format!("answer {kind} of {node}"), || {
        let answers = peer.ask(&script.digest(), 0, 1, Duration::from_secs(1));
        found = answers
            .into_iter()
            .find(|answer| IpAddr::from(answer.address()) == node && answer.kind() == kind);
        found.is_some()
    });
    found.unwrap()
}

#[track_caller]
fn assert_from(answer: &crate::support::Answer, peer: IpAddr) {
    let from = format!("detail=\"peer {peer}");
    assert!(answer.cache_status().contains(&from), "{} instead of {from}", answer.cache_status());
}

#[test]
fn an_original_reads_what_larder_holds_whole_and_in_parts() {
    let (net, origin) = (Net::new(), Origin::start());
    let node = net.larder("a").start();
    let script = Script::new(300_000);
    fill(&node, &origin.serve("/f.bin", script.clone()), &script);
    let whole = body::slice(script.seed, 0..script.size);
    for windows in [false, true] {
        let peer = net.peer(&net.secret, windows);
        wait_until("a pong", || !peer.ping(1, Duration::from_secs(1)).is_empty());
        let answer = answer_of(&peer, node.ip(), &script, 6);
        assert_eq!(answer.size(), script.size);
        let got = peer.get(&answer, None);
        assert_eq!((got.answer.status, got.answer.body == whole), (200, true), "{}", got.head);
        for (name, value) in
            [("Accept-Ranges", "bytes"), ("Content-Length", "300000"), ("Server", "larder/0.1.0")]
        {
            assert_eq!(got.answer.field(name), Some(value));
        }
        assert!(got.answer.field("Repr-Digest").unwrap().starts_with("sha-256=:"));
        assert!(got.answer.field("Last-Modified").is_some() || script.last_modified.is_none());
        for (range, bytes, content_range) in [
            ("1000-1999", 1000..2000, "bytes 1000-1999/300000"),
            ("299000-", 299_000..300_000, "bytes 299000-299999/300000"),
            ("-5", 299_995..300_000, "bytes 299995-299999/300000"),
            ("299000-999999", 299_000..300_000, "bytes 299000-299999/300000"),
        ] {
            let part = peer.get(&answer, Some(range)).answer;
            assert!(part.status == 206 && part.body == whole[bytes], "{range}");
            assert_eq!(part.field("Content-Range"), Some(content_range));
        }
        assert_eq!(peer.get(&answer, Some("1-2,4-5")).answer.body.len(), 300_000);
        let past = peer.get(&answer, Some("300000-")).answer;
        assert_eq!((past.status, past.field("Content-Range")), (416, Some("bytes */300000")));
        let head = peer.request("HEAD", &answer, None, |_| ()).answer;
        assert_eq!((head.status, head.field("Content-Length"), head.body.len()), (200, Some("300000"), 0));
        // what is not here, or of another size, is no offence, whether the token has a GUID or not
        for uuid in [answer.uuid(), [0; 16]] {
            let other = peer.request("GET", &answer, None, |token| {
                token.set_uuid(uuid);
                token.set_hash(2, &[1; 32]);
            });
            let size = peer.request("GET", &answer, None, |token| {
                token.set_uuid(uuid);
                token.set_size(1);
            });
            assert_eq!((other.answer.status, size.answer.status), (204, 204));
        }
        assert!(peer.bans().is_empty(), "{:?}", peer.bans());
        // a wrong size is "none" on the wire too
        let none = peer.ask(&script.digest(), 1, 1, Duration::from_secs(1));
        assert!(none.iter().all(|answer| answer.kind() == 3));
    }
    assert_eq!(origin.gets("/f.bin").len(), 1);
    assert!(node.count("/traffic/bytes_to_peers") >= 600_000);
}

#[test]
fn an_original_reads_along_while_larder_downloads() {
    let (net, origin) = (Net::new(), Origin::start());
    let (node, peer) = (net.larder("a").start(), net.original());
    let script = Script::new(3 * MIB).rate(2 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    std::thread::scope(|scope| {
        let client = scope.spawn(|| stated(&node, &url, &script));
        let answer = answer_of(&peer, node.ip(), &script, 5);
        assert_eq!(answer.size(), script.size);
        let got = peer.get(&answer, None);
        assert_eq!(got.answer.status, 200, "{}", got.head);
        assert!(got.answer.body == body::slice(script.seed, 0..script.size));
        let part = peer.get(&answer, Some("100-199")).answer;
        assert_eq!((part.status, part.body), (206, body::slice(script.seed, 100..200)));
        client.join().unwrap().assert_whole(&script);
    });
    assert_eq!(origin.gets("/f.bin").len(), 1);
    assert!(peer.bans().is_empty());
}

#[test]
fn larder_reads_from_an_original_whole_and_nothing_from_the_origin() {
    let (net, origin) = (Net::new(), Origin::start());
    let node = net.larder("a").start();
    for windows in [false, true] {
        let peer = net.peer(&net.secret, windows);
        let script = Script::new(2 * MIB + 17).seed(7 + u64::from(windows));
        let url = origin.serve(&format!("/{windows}.bin"), script.clone());
        peer.holds(&script);
        let answer = stated(&node, &url, &script);
        assert_from(answer.assert_whole(&script), peer.ip());
        let request = peer.requests().pop().unwrap();
        assert_eq!(
            (request.status, request.field("User-Agent"), request.field("Range")),
            (200, Some(""), None)
        );
        assert!(request.line.starts_with("GET /?"), "{}", request.line);
        assert!(peer.bans().is_empty(), "{:?}", peer.bans());
        assert!(origin.requests(&format!("/{windows}.bin")).is_empty());
        node.wait_for_blob(&script.digest());
    }
    let status = node.status();
    assert_eq!(status["mormot"]["network"]["bytes_received"], 2 * (2 * MIB + 17));
    let without = Script::new(50_000).seed(77);
    assert!(!node.get(&origin.serve("/u.bin", without.clone())).assert_whole(&without).is_from_peer());
}

#[test]
fn larder_reads_along_while_an_original_downloads() {
    let (net, origin) = (Net::new(), Origin::start());
    let (node, peer) = (net.larder("a").start(), net.original());
    let script = Script::new(2 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    let arriving = Some((64 * 1024, Duration::from_millis(10)));
    let bytes = body::slice(script.seed, 0..script.size);
    peer.holds_as(&script, File { bytes, arriving, status: None, cut: None });
    assert_from(stated(&node, &url, &script).assert_whole(&script), peer.ip());
    assert!(origin.requests("/f.bin").is_empty() && peer.bans().is_empty());
}

#[test]
fn a_peer_that_breaks_off_is_followed_at_the_same_byte_by_a_closed_range() {
    let (net, origin) = (Net::new(), Origin::start());
    let node = net.larder("a").start();
    let (first, second) = (net.original(), net.original());
    let script = Script::new(2 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    let bytes = body::slice(script.seed, 0..script.size);
    // the one that breaks off is full and so comes first, the other is still receiving
    first.holds_as(&script, File { bytes: bytes.clone(), arriving: None, status: None, cut: Some(700_000) });
    let slowly = Some((256 * 1024, Duration::from_millis(1)));
    second.holds_as(&script, File { bytes, arriving: slowly, status: None, cut: None });
    wait_until("both to be known", || node.status()["mormot"]["network"]["peers"] == 2);
    stated(&node, &url, &script).assert_whole(&script);
    let request = second.requests().pop().expect("the second is asked for the rest");
    let range = request.field("Range").unwrap();
    assert_eq!((request.status, range), (206, format!("bytes=700000-{}", script.size - 1).as_str()));
    assert!(origin.requests("/f.bin").is_empty());
    assert!(first.bans().is_empty() && second.bans().is_empty());
}

#[test]
fn without_another_peer_the_origin_goes_on() {
    let (net, origin) = (Net::new(), Origin::start());
    let (node, peer) = (net.larder("a").start(), net.original());
    let script = Script::new(MIB);
    let url = origin.serve("/f.bin", script.clone());
    let bytes = body::slice(script.seed, 0..script.size);
    for file in [
        File { bytes: bytes.clone(), arriving: None, status: None, cut: Some(600_000) },
        File { bytes: bytes.clone(), arriving: None, status: Some(503), cut: None },
        File { bytes, arriving: Some((1000, GUARD)), status: None, cut: None },
    ] {
        peer.holds_as(&script, file);
        stated(&node, &url, &script).assert_whole(&script);
        node.wait_for_blob(&script.digest());
        node.cli(&["rm", &script.digest()]).assert_code(0);
    }
    assert_eq!(origin.gets("/f.bin").len(), 3);
}

#[test]
fn two_larder_nodes_that_meet_there_go_on_with_their_own_protocol() {
    let (net, origin, site) = (Net::new(), Origin::start(), Site::new());
    // no broadcast of the site reaches anybody
    let node = |name: &str| net.larder(name).peers(&site).list("peers.broadcast", &["127.255.255.255:9"]);
    let (a, b) = (node("a").start(), node("b").start());
    a.meets(&b);
    let script = Script::new(500_000);
    let url = origin.serve("/f.bin", script.clone());
    fill(&a, &url, &script);
    assert_from(stated(&b, &url, &script).assert_whole(&script), a.ip());
    assert_eq!(a.status()["mormot"]["network"]["served"]["given"], 0);
    assert_eq!(b.status()["mormot"]["network"]["bytes_received"], 0);
}

#[test]
fn nodes_of_different_sites_share_what_both_may_over_the_originals_protocol() {
    let (net, origin, site) = (Net::new(), Origin::start(), Site::new());
    let (a, b) = (net.larder("a").peers(&site).start(), net.larder("b").peers(&site.strangers()).start());
    let script = Script::new(500_000);
    let url = origin.serve("/f.bin", script.clone());
    fill(&a, &url, &script);
    wait_until("b to hear a", || b.status()["mormot"]["network"]["peers"] == 1);
    assert_from(stated(&b, &url, &script).assert_whole(&script), a.ip());
    assert_eq!(a.status()["mormot"]["network"]["served"]["given"], 1);
    let private = Script::new(400_000).seed(9).cache_control("private");
    stated(&a, &origin.serve("/p.bin", private.clone()), &private).assert_whole(&private);
    let peer = net.original();
    assert!(
        peer.ask(&private.digest(), 0, 2, Duration::from_secs(2)).iter().all(|answer| answer.kind() == 3)
    );
}

#[test]
fn get_without_a_daemon_asks_originals_and_serves_nobody() {
    let (net, origin) = (Net::new(), Origin::start());
    let node = net.larder("a").ready_to_start();
    let peer = net.original();
    let script = Script::new(600_000);
    let url = origin.serve("/f.bin", script.clone());
    peer.holds(&script);
    let file = node.home().join("got");
    let got = node.cli(&["get", &format!("{}@{url}", script.digest()), "-o", file.to_str().unwrap()]);
    let got = got.assert_code(0);
    assert!(got.said().contains(&format!("from peer {}", peer.ip())), "{}", got.said());
    assert_eq!(std::fs::read(file).unwrap(), body::slice(script.seed, 0..script.size));
    assert!(origin.requests("/f.bin").is_empty() && peer.bans().is_empty());
    assert_eq!(peer.heard().iter().filter(|(message, _)| message.kind() != 2).count(), 0);
}

#[test]
fn get_understands_the_options_of_mget() {
    let (net, origin) = (Net::new(), Origin::start());
    let plain = Larder::new("a").set("peers.wait_max", "2500ms");
    let port = i64::from(net.port.number());
    let plain = plain.set("mormot.port", port).set("mormot.broadcast", BROADCAST);
    let address = OwnAddress::claim();
    let node = plain.set("mormot.interface", address.ip().to_string()).ready_to_start();
    let peer = net.original();
    let script = Script::new(300_000);
    let (url, hex) = (origin.serve("/f.bin", script.clone()), script.digest().replace("sha256:", ""));
    peer.holds(&script);
    let (file, secret, kept) = (node.home().join("got"), node.home().join("peers"), node.home().join("kept"));
    std::fs::write(&secret, &net.secret).unwrap();
    let [file, secret, kept] = [file, secret, kept].map(|path| path.display().to_string());
    let get = ["get", &url, "--hashAlgo", "sha256", "--hashValue", &hex, "--limitBandwidthMB", "100"];
    let here = ["-o", &file, "--peerSecret", &secret, "--cachePath", &kept];
    let said = node.cli(&[&get[..], &here[..]].concat()).assert_code(0).said();
    assert!(said.contains(&format!("from peer {}", peer.ip())), "{said}");
    assert_eq!(std::fs::read(&file).unwrap(), body::slice(script.seed, 0..script.size));
    // a second time from the folder that was kept, without the peer
    drop(peer);
    std::fs::remove_file(&file).unwrap();
    let again = node.cli(&[&get[..], &["-o", &file, "--cachePath", &kept]].concat()).assert_code(0).said();
    assert!(again.contains("from cache"), "{again}");
    assert!(origin.requests("/f.bin").is_empty());
    // a secret on the command line is refused, and not printed
    let said = node.cli(&[&get[..], &["--peerSecret", &net.secret]].concat()).assert_code(2).said();
    assert!(said.contains("--peerSecret") && !said.contains(&net.secret), "{said}");
    let short = node.cli(&["get", "-h"]).assert_code(0).said();
    assert!(!short.contains("hashAlgo") && short.contains("--digest"), "{short}");
    let pages = node.home().join("man").display().to_string();
    node.cli(&["man", &pages]).assert_code(0);
    let page = std::fs::read_to_string(format!("{pages}/larder-get.1")).unwrap().replace("\\-", "-");
    for option in ["hashAlgo", "hashValue", "limitBandwidthMB", "prompt", "peerSecret", "cachePath"] {
        assert!(page.contains(&format!("--{option}")), "{option} is not in the manual page");
    }
}

#[test]
fn three_namespaces_originals_and_larder_read_from_each_other() {
    let test = "mormot::three_namespaces_originals_and_larder_read_from_each_other";
    let Some(lan) = Lan::enter(test, 2) else { return };
    let (site, origin, secret) = (Site::new(), Origin::start_at((SWITCH, 0).into()), "of the lan");
    let original = Original::start(SWITCH.into(), "10.99.0.255", 8099, secret, false);
    let node = |number, name| {
        lan.node(number, name, &site).mormot(secret, 8099).set("peers.wait_max", "2500ms").start()
    };
    let (a, b) = (node(1, "a"), node(2, "b"));
    a.meets(&b);
    let (ours, theirs) = (Script::new(3 * MIB), Script::new(3 * MIB).seed(2));
    let (our_url, their_url) = (origin.serve("/ours", ours.clone()), origin.serve("/theirs", theirs.clone()));
    fill(&a, &our_url, &ours);
    original.holds(&theirs);
    // whole, ranged
    let answer = answer_of(&original, a.ip(), &ours, 6);
    assert!(original.get(&answer, None).answer.body == body::slice(ours.seed, 0..ours.size));
    let part = original.get(&answer, Some("1000000-1999999")).answer;
    assert!(part.status == 206 && part.body == body::slice(ours.seed, 1_000_000..2_000_000));
    assert_from(stated(&b, &their_url, &theirs).assert_whole(&theirs), SWITCH.into());
    assert_from(stated(&b, &our_url, &ours).assert_whole(&ours), a.ip());
    // growing, both ways
    let slow = Script::new(3 * MIB).seed(3).rate(3 * MIB);
    let slow_url = origin.serve("/slow", slow.clone());
    std::thread::scope(|scope| {
        let client = scope.spawn(|| stated(&a, &slow_url, &slow));
        let answer = answer_of(&original, a.ip(), &slow, 5);
        assert!(original.get(&answer, None).answer.body == body::slice(slow.seed, 0..slow.size));
        client.join().unwrap().assert_whole(&slow);
    });
    let growing = Script::new(2 * MIB).seed(4);
    let bytes = body::slice(growing.seed, 0..growing.size);
    let arriving = Some((128 * 1024, Duration::from_millis(5)));
    original.holds_as(&growing, File { bytes, arriving, status: None, cut: None });
    let growing_url = origin.serve("/growing", growing.clone());
    assert_from(stated(&a, &growing_url, &growing).assert_whole(&growing), SWITCH.into());
    println!("bans of the original: {:?}", original.bans());
    assert!(original.bans().is_empty() && a.bans().is_empty() && b.bans().is_empty());
    assert!(origin.requests("/theirs").is_empty() && origin.requests("/growing").is_empty());
    assert_eq!(a.status()["mormot"]["network"]["address"], "10.99.0.1:8099");
}
