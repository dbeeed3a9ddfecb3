//! Whose word counts where no digest is known: first hand, confirmed by the origin now, and no more than that.

use crate::support::fake_peer::FakePeer;
use crate::support::{Larder, MIB, Origin, Script, Site, wait_until};

/// A node that is given the word of others.
fn listener(site: &Site, witnesses: i64) -> Larder {
    Larder::new("a").peers(site).set("peers.witnesses", witnesses).start()
}

/// Puts what the origin gives into the store of `node`, first hand.
fn fill(node: &Larder, url: &str, script: &Script) {
    node.get(url).assert_whole(script);
    node.wait_for_blob(&script.digest());
}

#[test]
fn a_witness_whose_tag_is_not_the_origins_is_not_believed() {
    let (site, origin) = (Site::new(), Origin::start());
    let (a, fake) = (listener(&site, 1), FakePeer::join(&site));
    fake.meets(&a);
    for (truth, other) in [
        (Script::new(MIB), Script::new(MIB).etag("\"another\"")),
        (
            Script::new(MIB).no_etag(),
            Script::new(MIB).no_etag().last_modified("Mon, 02 Nov 2026 00:00:00 GMT"),
        ),
        // a weak tag names no bytes
        (Script::new(MIB).etag("W/\"same\""), Script::new(MIB).etag("W/\"same\"")),
        // no validator at all
        (no_validator(), no_validator()),
    ] {
        let path = format!("/{}.bin", a.blobs().len());
        let truth = truth.seed(50 + a.blobs().len() as u64);
        let url = origin.serve(&path, truth.clone());
        let lie = Script::new(MIB).seed(666 + a.blobs().len() as u64);
        fake.witnesses(&url, &other, &lie, lie.clone());
        fill(&a, &url, &truth);
        assert!(fake.asked_for(&lie).is_empty(), "{path}");
    }
}

fn no_validator() -> Script {
    Script { last_modified: None, ..Script::new(MIB).no_etag() }
}

#[test]
fn a_witness_is_held_to_the_digest_it_gave() {
    let (site, origin) = (Site::new(), Origin::start());
    let (a, fake) = (listener(&site, 1), FakePeer::join(&site));
    fake.meets(&a);
    let truth = Script::new(MIB).rate(MIB);
    let url = origin.serve("/f.bin", truth.clone());
    fake.witnesses(&url, &truth, &truth, truth.clone().seed(666));
    a.get(&url).assert_whole(&truth);
    a.wait_for_blob(&truth.digest());
    assert_eq!(a.blobs().len(), 1);
    if !fake.asked_for(&truth).is_empty() {
        wait_until("the liar to be quarantined", || a.log().contains("quarantined"));
    }
}

#[test]
fn one_liar_is_not_enough_where_two_must_speak() {
    let (site, origin) = (Site::new(), Origin::start());
    let (a, fake) = (listener(&site, 2), FakePeer::join(&site));
    fake.meets(&a);
    let (truth, lie) = (Script::new(MIB), Script::new(MIB).seed(666));
    let url = origin.serve("/f.bin", truth.clone());
    fake.witnesses(&url, &truth, &lie, lie.clone());
    let answer = a.get(&url);
    answer.assert_whole(&truth);
    assert!(!answer.is_from_peer(), "{}", answer.cache_status());
    assert!(fake.asked_for(&lie).is_empty());
}

#[test]
fn witnesses_that_contradict_each_other_are_not_believed() {
    let (site, origin) = (Site::new(), Origin::start());
    let a = listener(&site, 2);
    let (one, other) = (FakePeer::join(&site), FakePeer::join(&site));
    let honest = Larder::new("b").peers(&site).start();
    one.meets(&a);
    a.meets(&honest);
    other.meets(&a);
    let (truth, lie) = (Script::new(MIB), Script::new(MIB).seed(666));
    let url = origin.serve("/f.bin", truth.clone());
    fill(&honest, &url, &truth);
    // two liars agree, one honest node does not: it is enough that somebody says otherwise in time
    one.witnesses(&url, &truth, &truth, truth.clone());
    other.witnesses(&url, &truth, &lie, lie.clone());
    let answer = a.get(&url);
    answer.assert_whole(&truth);
    assert!(other.asked_for(&lie).is_empty(), "{}", answer.cache_status());
}

#[test]
fn two_independent_witnesses_are_enough_for_two() {
    let (site, origin) = (Site::new(), Origin::start());
    let a = listener(&site, 2);
    let digest_only = |name: &str| Larder::new(name).peers(&site).set("peers.trust", "digest").start();
    let (b, c) = (digest_only("b"), digest_only("c"));
    let met = (1..=5).any(|seed| {
        a.meets(&b);
        a.meets(&c);
        let script = Script::new(4 * MIB).seed(seed).rate(4 * MIB);
        let path = format!("/{seed}.bin");
        let url = origin.serve(&path, script.clone());
        fill(&b, &url, &script);
        fill(&c, &url, &script);
        let sent = origin.bytes_sent(&path);
        let answer = a.get(&url);
        answer.assert_whole(&script);
        println!(
            "two first-hand: {}; the origin sent {} more",
            answer.cache_status(),
            origin.bytes_sent(&path) - sent
        );
        answer.is_from_peer()
    });
    assert!(met, "two witnesses were never heard in time");
}

#[test]
fn second_hand_word_does_not_count() {
    let (site, origin) = (Site::new(), Origin::start());
    let (mut first, second) =
        (Larder::new("first").peers(&site).start(), Larder::new("second").peers(&site).start());
    first.meets(&second);
    let script = Script::new(MIB);
    let url = origin.serve("/f.bin", script.clone());
    fill(&first, &url, &script);
    let from_first = (0..5).any(|_| {
        let answer = second.ask(&url).field("Larder-Digest", &script.digest()).send();
        answer.assert_whole(&script);
        answer.is_from_peer()
    });
    assert!(from_first, "the second node got it from the first");
    second.wait_for_blob(&script.digest());
    first.stop();
    let a = listener(&site, 1);
    a.meets(&second);
    let before = origin.bytes_sent("/f.bin");
    let answer = a.get(&url);
    answer.assert_whole(&script);
    assert!(!answer.is_from_peer(), "{}", answer.cache_status());
    assert_eq!(origin.bytes_sent("/f.bin") - before, MIB);
}

#[test]
fn what_must_not_be_shared_is_taken_from_nobody() {
    let (site, origin) = (Site::new(), Origin::start());
    let (a, fake) = (listener(&site, 1), FakePeer::join(&site));
    fake.meets(&a);
    for (seed, truth) in (1..).zip([
        Script::new(MIB).cookie(),
        Script::new(MIB).cache_control("private, max-age=60"),
        Script::new(MIB).cache_control("no-store"),
        Script::new(MIB).field("Vary", "*"),
    ]) {
        let (truth, lie) = (truth.seed(seed), Script::new(MIB).seed(600 + seed));
        let url = origin.serve(&format!("/{seed}.bin"), truth.clone());
        fake.witnesses(&url, &truth, &lie, lie.clone());
        let answer = a.get(&url);
        answer.assert_whole(&truth);
        assert!(fake.asked_for(&lie).is_empty(), "{}", answer.cache_status());
    }
    let truth = Script::new(MIB).seed(9);
    let url = origin.serve("/9.bin", truth.clone());
    let lie = Script::new(MIB).seed(609);
    fake.witnesses(&url, &truth, &lie, lie.clone());
    for (name, value) in [("Cookie", "sid=1"), ("Authorization", "Bearer x"), ("Larder-Peers", "no")] {
        a.ask(&url).field(name, value).send().assert_whole(&truth);
        assert!(fake.asked_for(&lie).is_empty(), "{name}");
    }
}

#[test]
fn where_digests_alone_count_the_head_comes_from_the_origin() {
    let (site, origin) = (Site::new(), Origin::start());
    let a = Larder::new("a").peers(&site).start();
    let b = Larder::new("b").peers(&site).set("peers.trust", "digest").start();
    a.meets(&b);
    let script = Script::new(MIB).field("X-Age", "old").field("Link", "<old>; rel=x");
    let url = origin.serve("/f.bin", script.clone());
    fill(&a, &url, &script);
    origin.serve("/f.bin", script.clone().field("Link", "<new>; rel=x"));
    let answer = b.ask(&url).field("Larder-Digest", &script.digest()).send();
    answer.assert_whole(&script);
    println!("digest mode: {} Link: {:?}", answer.cache_status(), answer.field("Link"));
    if answer.is_from_peer() {
        let all: Vec<_> = answer.fields.iter().filter(|(name, _)| name == "link").collect();
        assert!(all.iter().any(|(_, value)| value.contains("new")), "{all:?}");
        assert_eq!(origin.requests("/f.bin").last().unwrap().method, "HEAD");
        assert_eq!(origin.gets("/f.bin").len(), 1);
    }
    // nothing without a digest
    let other = Script::new(MIB).seed(2);
    let url = origin.serve("/g.bin", other.clone());
    fill(&a, &url, &other);
    let answer = b.get(&url);
    answer.assert_whole(&other);
    assert!(!answer.is_from_peer());
}

/// Two nodes, of which the first has the file from the origin.
fn one_has(path: &str, script: &Script) -> (Origin, Larder, Larder, String) {
    let (site, origin) = (Site::new(), Origin::start());
    let (a, b) = (Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start());
    a.meets(&b);
    let url = origin.serve(path, script.clone());
    fill(&a, &url, script);
    (origin, a, b, url)
}

#[test]
fn what_a_neighbour_holds_costs_the_origin_no_byte_of_body() {
    for script in [
        Script::new(100_000),
        Script::new(MIB).no_etag().last_modified("Mon, 02 Nov 2026 00:00:00 GMT"),
        Script::new(3 * MIB).cache_control("no-cache"),
    ] {
        let (origin, _a, b, url) = one_has("/f.bin", &script);
        let sent = origin.bytes_sent("/f.bin");
        let answer = b.get(&url);
        answer.assert_whole(&script);
        assert!(answer.is_from_peer(), "{}", answer.cache_status());
        assert_eq!(origin.bytes_sent("/f.bin"), sent, "{}", answer.cache_status());
        let asked = origin.requests("/f.bin");
        assert_eq!(asked.len(), 2, "asked once, and once is enough");
        let condition = asked[1].field("If-None-Match").or(asked[1].field("If-Modified-Since"));
        assert!(condition.is_some(), "{:?}", asked[1]);
    }
}

#[test]
fn a_range_of_what_a_neighbour_holds_costs_the_origin_nothing_either() {
    let script = Script::new(8 * MIB);
    let (origin, _a, b, url) = one_has("/f.bin", &script);
    let sent = origin.bytes_sent("/f.bin");
    // as a download is gone on with that another program began
    let answer = b.ask(&url).range("5000000-").send();
    answer.assert_slice(&script, 5_000_000, script.size);
    assert!(answer.is_from_peer(), "{}", answer.cache_status());
    assert_eq!(origin.bytes_sent("/f.bin"), sent);
    b.wait_for_blob(&script.digest());
}

#[test]
fn a_version_that_the_origin_has_no_more_is_given_by_nobody() {
    let old = Script::new(MIB);
    for new in [
        Script::new(MIB).seed(2),
        // it is the same, and no longer for everybody
        Script::new(MIB).cache_control("private"),
        Script::new(MIB).cache_control("no-store"),
        Script::new(0).status(404),
        Script::redirect("/elsewhere"),
    ] {
        let (origin, _a, b, url) = one_has("/f.bin", &old);
        origin.serve("/f.bin", new.clone());
        let answer = b.get(&url);
        assert!(!answer.is_from_peer(), "{}", answer.cache_status());
        assert_eq!(answer.status, new.status);
        if new.status == 200 {
            answer.assert_whole(&new);
        }
    }
}

#[test]
fn a_neighbour_that_says_it_has_it_and_gives_nothing_costs_one_more_question() {
    let (site, origin) = (Site::new(), Origin::start());
    let a = Larder::new("a").peers(&site).start();
    let mut b = Larder::new("b").peers(&site).start();
    a.meets(&b);
    let script = Script::new(MIB);
    let url = origin.serve("/f.bin", script.clone());
    fill(&b, &url, &script);
    // the blob goes away behind the node's back: it says what it had
    std::fs::remove_file(b.blob_path(&script.digest())).unwrap();
    b.expect_damage();
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    // the origin's own condition is the client's affair
    let conditional = a.ask(&url).field("If-None-Match", "\"other\"").send();
    conditional.assert_whole(&script);
}
