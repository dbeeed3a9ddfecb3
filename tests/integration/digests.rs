//! Digests in every algorithm: they find what is held, here and at the neighbour, and judge what comes.

use larder::digest::{Algorithm, Stated, StatedHasher};

use crate::support::fake_peer::FakePeer;
use crate::support::{Larder, MIB, Origin, Script, Site, wait_until};

const STRONG: [&str; 10] = [
    "sha256",
    "sha384",
    "sha512",
    "sha512-256",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "blake2b",
    "blake2b-256",
    "blake3",
];
const WEAK: [&str; 4] = ["crc32", "crc32c", "md5", "sha1"];

/// What `script` gives, in an algorithm.
fn stated(script: &Script, algorithm: &str) -> Stated {
    let mut hasher = StatedHasher::new(Algorithm::named(algorithm).unwrap());
    hasher.update(&script.body());
    hasher.finish()
}

fn two() -> (Origin, Larder, Larder) {
    let site = Site::new();
    let (a, b) = (Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start());
    a.meets(&b);
    (Origin::start(), a, b)
}

/// The second node asks the first by its digest door. False if the first answered after the deadline of the find, as
/// it may on a busy machine: then the origin was asked, which is no fault.
fn is_met_by_neighbour(origin: &Origin, a: &Larder, b: &Larder, algorithm: &str, script: &Script) -> bool {
    let path = format!("/{algorithm}-{}.bin", script.seed);
    let url = origin.serve(&path, script.clone());
    let digest = stated(script, algorithm);
    a.ask(&url).field("Larder-Digest", &digest.to_string()).send().assert_whole(script);
    a.wait_for_blob(&script.digest());
    let answer = b.door(&format!("/@{digest}/http/{}{path}", origin.address())).send();
    answer.assert_whole(script);
    // what was proved is known here too: from now on it is a hit, under any URL
    let elsewhere = origin.url("/elsewhere.bin");
    let again = b.ask(&elsewhere).field("Larder-Digest", &digest.to_string()).send();
    again.assert_whole(script);
    assert!(again.is_hit(), "{algorithm}: {}", again.cache_status());
    origin.gets(&path).len() == 1 && answer.is_from_peer()
}

#[test]
fn a_digest_in_any_strong_algorithm_is_met_by_a_neighbour() {
    let (origin, a, b) = two();
    for (number, algorithm) in (0..).zip(STRONG) {
        let script = |try_: u64| Script::new(200_000).seed(1 + number * 10 + try_);
        let met = (0..5).position(|try_| is_met_by_neighbour(&origin, &a, &b, algorithm, &script(try_)));
        println!("{algorithm}: the origin stood still at try {met:?}");
        assert!(met.is_some(), "{algorithm}");
    }
    assert!(origin.gets("/elsewhere.bin").is_empty());
}

#[test]
fn get_with_a_digest_in_another_algorithm_reads_from_a_neighbour() {
    let (origin, a, b) = two();
    let script = Script::new(3 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    let digest = stated(&script, "sha512").to_string();
    for node in [&a, &b] {
        let out = node.home().join("out.bin");
        let ran = node.cli(&["get", &url, "--digest", &digest, "-o", out.to_str().unwrap(), "--json"]);
        ran.assert_code(0);
        assert!(std::fs::read(&out).unwrap() == script.body());
        node.wait_for_blob(&script.digest());
    }
    assert_eq!(origin.gets("/f.bin").len(), 1);
    let out = b.home().join("wrong.bin");
    let wrong = format!("sha512:{}", "00".repeat(64));
    b.cli(&["get", &url, "--digest", &wrong, "-o", out.to_str().unwrap()]).assert_code(4);
    assert!(!out.exists());
}

#[test]
fn what_is_held_is_reckoned_once_and_then_found() {
    let (origin, a, b) = two();
    let script = Script::new(MIB).cache_control("max-age=1000");
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    for algorithm in STRONG.iter().chain(&WEAK) {
        let digest = stated(&script, algorithm).to_string();
        let answer = a.ask(&url).field("Larder-Digest", &digest).send();
        answer.assert_whole(&script);
        assert!(answer.is_hit(), "{algorithm}: {}", answer.cache_status());
    }
    let blake = stated(&script, "blake3").to_string();
    let answer = b.ask(&origin.url("/nowhere")).field("Larder-Digest", &blake).send();
    answer.assert_whole(&script);
    assert!(answer.is_from_peer(), "{}", answer.cache_status());
    assert_eq!(origin.all_requests().len(), 1);
}

#[test]
fn digests_are_known_again_after_a_restart() {
    let origin = Origin::start();
    let mut a = Larder::new("a").start();
    let script = Script::new(MIB);
    let url = origin.serve("/f.bin", script.clone());
    let digest = stated(&script, "sha3-512").to_string();
    a.ask(&url).field("Larder-Digest", &digest).send().assert_whole(&script);
    a.wait_for_blob(&script.digest());
    a.restart();
    let answer = a.ask(&origin.url("/other")).field("Larder-Digest", &digest).send();
    answer.assert_whole(&script);
    assert!(answer.is_hit(), "{}", answer.cache_status());
}

#[test]
fn a_wrong_digest_in_any_algorithm_refuses_the_origin() {
    let origin = Origin::start();
    let a = Larder::new("a").start();
    let (script, other) = (Script::new(300_000), Script::new(300_000).seed(2));
    let url = origin.serve("/f.bin", script);
    for algorithm in STRONG.iter().chain(&WEAK) {
        let wrong = stated(&other, algorithm).to_string();
        let answer = a.ask(&url).field("Larder-Digest", &wrong).send();
        assert!(!answer.is_success(), "{algorithm}: {}", answer.cache_status());
        assert_eq!(answer.status, 502, "{algorithm}");
        assert!(a.blobs().is_empty(), "{algorithm}");
    }
}

#[test]
fn a_weak_digest_is_compared_and_never_asked_for() {
    let (origin, a, b) = two();
    let script = Script::new(200_000).no_etag();
    let url = origin.serve("/f.bin", script.clone());
    let md5 = stated(&script, "md5").to_string();
    a.ask(&url).field("Larder-Digest", &md5).send().assert_whole(&script);
    a.wait_for_blob(&script.digest());
    let answer = b.ask(&origin.url("/nowhere?status=404")).field("Larder-Digest", &md5).send();
    assert_eq!(answer.status, 404, "its MD5 alone is no name for it: {}", answer.cache_status());
    // what a URL led to is given out while it is fresh and has the value
    let fresh = Script::new(100_000).seed(3).cache_control("max-age=1000");
    let url = origin.serve("/fresh.bin", fresh.clone());
    let sha1 = stated(&fresh, "sha1").to_string();
    for hit in [false, true] {
        let answer = a.ask(&url).field("Larder-Digest", &sha1).send();
        answer.assert_whole(&fresh);
        assert_eq!(answer.is_hit(), hit);
        a.wait_for_blob(&fresh.digest());
    }
}

#[test]
fn a_neighbour_that_lies_about_another_algorithm_is_found_out() {
    let site = Site::new();
    let a = Larder::new("a").peers(&site).start();
    let (origin, fake) = (Origin::start(), FakePeer::join(&site));
    fake.meets(&a);
    let (script, lie) = (Script::new(MIB), Script::new(MIB).seed(666));
    let url = origin.serve("/f.bin", script.clone());
    // it has what it says it has, and says that this is the thing
    fake.offers(&lie, lie.clone());
    let digest = stated(&script, "sha384");
    fake.claims_to_be(&digest, &lie);
    let answer = a.ask(&url).field("Larder-Digest", &digest.to_string()).send();
    answer.assert_whole(&script);
    assert_eq!(fake.asked_for(&lie).len(), 1, "it was believed as far as asking");
    assert!(!a.blob_path(&lie.digest()).exists());
    wait_until("the liar to be named in the log", || a.log().contains("quarantined"));
    assert!(a.bans().is_empty());
}

#[test]
fn digests_that_cannot_be_read_are_refused_with_the_list() {
    let origin = Origin::start();
    let a = Larder::new("a").start();
    let url = origin.serve("/f.bin", Script::new(10));
    for wrong in ["sha224:00", "sha512:00", "blake3", "md5:zz", ""] {
        let answer = a.ask(&url).field("Larder-Digest", wrong).send();
        assert_eq!(answer.status, 400, "{wrong}");
        assert!(answer.text().contains("bad-digest"), "{}", answer.text());
        let door = a.door(&format!("/@{wrong}/http/{}/f.bin", origin.address())).send();
        assert_eq!(door.status, 400, "{wrong}");
    }
    let answer = a.ask(&url).field("Larder-Digest", "sha224:00").send();
    assert!(answer.text().contains("blake3"), "{}", answer.text());
    assert!(origin.gets("/f.bin").is_empty());
}

#[test]
fn k02_an_index_by_its_sha_512_is_judged_by_it_and_shared() {
    let (origin, a, b) = two();
    let script = Script::new(200_000);
    let hex = stated(&script, "sha512").to_string().replace("sha512:", "");
    let path = format!("/debian/dists/s/main/binary-amd64/by-hash/SHA512/{hex}");
    let url = origin.serve(&path, script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    wait_until("the neighbour to give it", || {
        // its answer may come after the deadline of a question, on a busy machine
        let (other, sent) = (url.replace("/debian/", "/mirror/"), origin.all_requests().len());
        origin.serve(&path.replace("/debian/", "/mirror/"), script.clone());
        b.get(&other).assert_whole(&script);
        origin.all_requests().len() == sent
    });
    // the origin itself cannot pass another thing off under that name
    let wrong = path.replace("/debian/", "/wrong/");
    let url = origin.serve(&wrong, Script::new(200_000).seed(2));
    let cut = a.ask(&url).field("Larder-Peers", "no").send();
    assert!(cut.body != Script::new(200_000).seed(2).body(), "{}", cut.cache_status());
    assert_eq!(a.blobs().len(), 1);
}
