//! Neighbours that hold the secret and lie, stall, shrink, boast or die: the client never gets wrong bytes.

use std::time::Duration;

use crate::support::fake_peer::{FakePeer, Stranger};
use crate::support::{Ending, Larder, MIB, Origin, Ranges, Script, Site, sha256, tools, wait_until};

/// An origin, a node and a false neighbour that have met.
fn stage(release: &str) -> (Site, Origin, Larder, FakePeer) {
    let site = Site::new();
    let node = Larder::new("a").peers(&site).set("peers.release", release).start();
    let fake = FakePeer::join(&site);
    fake.meets(&node);
    (site, Origin::start(), node, fake)
}

#[test]
fn the_fake_neighbour_is_believed_while_it_is_honest() {
    let (_site, origin, a, fake) = stage("auto");
    let script = Script::new(MIB);
    let url = origin.serve("/f.bin", script.clone());
    fake.offers(&script, script.clone());
    let answer = a.ask(&url).field("Larder-Digest", &script.digest()).send();
    answer.assert_whole(&script);
    assert!(answer.cache_status().contains(&format!("peer {}", fake.ip())), "{}", answer.cache_status());
    assert!(origin.bytes_sent("/f.bin") <= 64 << 10);
}

#[test]
fn p01_other_bytes_of_the_same_size_are_found_and_the_origin_steps_in() {
    let (site, origin, a, fake) = stage("auto");
    let b = Larder::new("b").peers(&site).start();
    a.meets(&b);
    let script = Script::new(2 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    fake.offers(&script, script.clone().seed(666));
    let answer = a.ask(&url).field("Larder-Digest", &script.digest()).send();
    answer.assert_whole(&script);
    a.wait_for_blob(&script.digest());
    assert_eq!(a.blobs().len(), 1, "the lie is not stored");
    // The node next to it gets the truth, from whomever; the liar is not asked by us again.
    b.ask(&url).field("Larder-Digest", &script.digest()).send().assert_whole(&script);
    let second = Script::new(MIB).seed(2);
    let url = origin.serve("/second.bin", second.clone());
    fake.offers(&second, second.clone());
    a.ask(&url).field("Larder-Digest", &second.digest()).send().assert_whole(&second);
    assert!(
        fake.asked_for(&second).iter().all(|seen| seen.field("Range").is_some())
            || fake.asked_for(&second).is_empty()
    );
    assert!(a.bans().is_empty(), "a lie quarantines a node, it bans no address");
}

#[test]
fn p01_a_lie_that_is_streamed_is_cut_before_its_end() {
    let (_site, origin, a, fake) = stage("stream");
    let script = Script::new(2 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    let lie = script.clone().seed(666);
    fake.offers(&script, lie.clone());
    let answer = a.ask(&url).field("Larder-Digest", &script.digest()).send();
    if answer.is_success() {
        answer.assert_whole(&script);
    } else {
        assert_eq!(answer.ending, Ending::Truncated);
        assert!(answer.body.len() as u64 <= 2 * MIB - (64 << 10), "the last 64 KiB wait for the proof");
        let rest = a.ask(&url).range(&format!("{}-", answer.body.len())).send();
        assert_eq!(rest.status, 409);
    }
    assert!(!a.blob_path(&lie.digest()).exists());
    a.get(&url).assert_whole(&script);
}

#[test]
fn retries_after_a_digest_cut_end_with_an_error_or_the_truth() {
    let (_site, origin, a, fake) = stage("stream");
    let script = Script::new(3 * MIB);
    let stated = format!("Larder-Digest: {}", script.digest());
    for (program, arguments) in [
        ("wget", vec!["-q", "-t", "3", "--waitretry=0", "--header", &stated, "-O", "wget.bin"]),
        ("aria2c", vec!["-q", "--no-conf", "-m3", "--retry-wait=0", "--header", &stated, "-o", "aria2c.bin"]),
        ("curl", vec!["-sS", "-f", "-H", &stated, "-C", "-", "-o", "curl.bin"]),
    ] {
        if !tools::installed(program) {
            continue;
        }
        // A liar of its own for each: the last one is in quarantine.
        let path = format!("/{program}.bin");
        let url = origin.serve(&path, script.clone());
        fake.offers(&script, script.clone().seed(666));
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..3 {
            let ran = tools::with_proxy(
                a.proxy(),
                folder.path(),
                program,
                &[arguments.as_slice(), &[&url]].concat(),
            );
            let file = std::fs::read(folder.path().join(format!("{program}.bin"))).unwrap_or_default();
            assert!(ran.code != 0 || file == script.body(), "{program} believed wrong bytes");
        }
        a.cli(&["rm", &script.digest()]);
    }
}

#[test]
fn p02_sizes_out_of_this_world_cost_nothing() {
    for size in [1 << 40, 1, 0, u64::MAX] {
        let (_site, origin, a, fake) = stage("auto");
        let script = Script::new(300_000);
        let url = origin.serve("/f.bin", script.clone());
        let rss = a.rss();
        fake.offers_as(&script, size, script.clone());
        a.ask(&url).field("Larder-Digest", &script.digest()).send().assert_whole(&script);
        assert!(a.rss() < rss + (64 << 20), "size {size}: {} MiB more", (a.rss() - rss) >> 20);
        assert!(
            crate::support::chaos::disk_usage(a.cache_dir()) < 2 * MIB,
            "nothing is set aside for a boast"
        );
    }
}

#[test]
fn p04_a_neighbour_that_breaks_off_is_continued_by_the_origin() {
    for reset in [false, true] {
        let (_site, origin, a, fake) = stage("stream");
        let script = Script::new(2 * MIB);
        let url = origin.serve("/f.bin", script.clone());
        let cut = script.clone().cut_always(MIB);
        fake.offers(&script, if reset { cut.by_reset() } else { cut });
        a.ask(&url).field("Larder-Digest", &script.digest()).send().assert_whole(&script);
    }
}

#[test]
fn p05_a_neighbour_that_falls_silent_is_left_after_its_deadline() {
    let (_site, origin, a, fake) = stage("stream");
    let script = Script::new(2 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    fake.offers(&script, script.clone().hold_at(MIB));
    let answer = a.ask(&url).field("Larder-Digest", &script.digest()).send();
    answer.assert_whole(&script);
    println!("a neighbour silent at half: {:?}", answer.took);
    assert!(answer.took < Duration::from_secs(20));
    let silent = Script::new(MIB).seed(2);
    let url = origin.serve("/silent.bin", silent.clone());
    fake.offers(&silent, silent.clone().delay(Duration::from_secs(20)));
    let answer = a.ask(&url).field("Larder-Digest", &silent.digest()).send();
    answer.assert_whole(&silent);
    assert!(answer.took < Duration::from_secs(15), "no first byte: {:?}", answer.took);
}

#[test]
fn p08_a_refusal_after_an_offer_is_everyday_and_forgiven() {
    let (_site, origin, a, fake) = stage("auto");
    for (n, status) in [404, 410, 416, 429, 500, 503].into_iter().enumerate() {
        let script = Script::new(100_000).seed(n as u64 + 1);
        let url = origin.serve(&format!("/{status}.bin"), script.clone());
        fake.offers(&script, Script::new(5).status(status));
        a.ask(&url).field("Larder-Digest", &script.digest()).send().assert_whole(&script);
    }
    let script = Script::new(MIB).seed(99);
    let url = origin.serve("/well.bin", script.clone());
    fake.offers(&script, script.clone());
    let answer = a.ask(&url).field("Larder-Digest", &script.digest()).send();
    answer.assert_whole(&script);
    assert!(answer.is_from_peer(), "no quarantine for refusals: {}", answer.cache_status());
    assert!(a.bans().is_empty());
}

#[test]
fn a_neighbour_that_ignores_ranges_is_not_spliced() {
    let (_site, origin, a, fake) = stage("stream");
    let script = Script::new(2 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    fake.offers(&script, script.clone().ranges(Ranges::Ignored).cut_once(MIB));
    a.ask(&url).field("Larder-Digest", &script.digest()).send().assert_whole(&script);
    a.wait_for_blob(&script.digest());
}

#[test]
fn a_dead_neighbour_is_remembered_and_skipped() {
    let (_site, origin, a, mut fake) = stage("auto");
    let scripts: Vec<_> = (1..=5).map(|n| Script::new(50_000).seed(n)).collect();
    scripts.iter().for_each(|script| fake.offers(script, script.clone()));
    fake.die();
    for script in &scripts {
        let url = origin.serve(&format!("/{}.bin", script.seed), script.clone());
        let answer = a.ask(&url).field("Larder-Digest", &script.digest()).send();
        assert!(!answer.assert_whole(script).is_from_peer());
    }
}

#[test]
fn p16_the_peer_port_tells_strangers_nothing_over_tls() {
    let site = Site::new();
    let origin = Origin::start();
    let a = Larder::new("a").peers(&site).start();
    let script = Script::new(10_000);
    a.get(&origin.serve("/f.bin", script.clone())).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    let stranger = Stranger::before(&a);
    let have_not = format!("sha256:{}", sha256(b"nobody has this"));
    let of =
        |digest: &str, bearer: Option<&str>| stranger.ask("GET", &format!("/blob/{digest}"), bearer).unwrap();
    for bearer in [None, Some("AAAA"), Some("not a token at all")] {
        let (have, have_not) = (of(&script.digest(), bearer), of(&have_not, bearer));
        assert_eq!((have.status, have_not.status), (403, 403), "{bearer:?}");
        assert_eq!((&have.body, &have.fields), (&have_not.body, &have_not.fields), "{bearer:?}");
    }
    let foreign = stranger.made_up_bearer(&site.strangers(), &script.digest(), 1);
    assert_eq!(of(&script.digest(), Some(&foreign)).status, 403);
    let member = stranger.made_up_bearer(&site, &script.digest(), 1);
    assert_eq!(of(&script.digest(), Some(&member)).status, 403, "a grant that nobody gave");
    for (method, path) in [("POST", "/blob/sha256:00"), ("GET", "/../../etc/passwd"), ("GET", "/status")] {
        let answer = stranger.ask(method, path, None).unwrap();
        assert!([400, 403, 404, 405].contains(&answer.status), "{method} {path}: {}", answer.status);
    }
}

#[test]
fn forged_tokens_over_tls_ban_and_spent_grants_do_not() {
    let site = Site::new();
    let a = Larder::new("a").peers(&site).list("bans.never", &[]).start();
    let (member, forger) = (Stranger::before(&a), Stranger::before(&a));
    let digest = format!("sha256:{}", sha256(b"anything"));
    let path = format!("/blob/{digest}");
    for counter in 0..10 {
        let bearer = member.made_up_bearer(&site, &digest, counter);
        assert_eq!(member.ask("GET", &path, Some(&bearer)).unwrap().status, 403);
    }
    assert!(a.bans().is_empty(), "an unknown grant means: ask again");
    for counter in 0..3 {
        let bearer = forger.made_up_bearer(&site.strangers(), &digest, counter);
        assert_eq!(forger.ask("GET", &path, Some(&bearer)).unwrap().status, 403);
    }
    wait_until("the ban", || a.bans() == [forger.ip().to_string()]);
    assert!(forger.ask("GET", &path, None).is_err());
    assert!(member.ask("GET", &path, None).is_ok());
}

#[test]
fn a_lie_that_breaks_off_is_not_given_out_when_the_origin_goes_on() {
    for release in ["auto", "proven"] {
        let (_site, origin, a, fake) = stage(release);
        let script = Script::new(10 * MIB);
        let url = origin.serve("/f.bin", script.clone());
        fake.offers(&script, script.clone().seed(666).cut_always(MIB));
        let answer = a.ask(&url).field("Larder-Digest", &script.digest()).send();
        answer.assert_whole(&script);
        a.wait_for_blob(&script.digest());
    }
}

#[test]
fn who_leaves_with_unproven_bytes_is_not_given_the_rest_of_something_else() {
    let (_site, origin, a, fake) = stage("stream");
    let script = Script::new(4 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    fake.offers(&script, script.clone().seed(666).hold_at(2 * MIB));
    let mut reading = a.ask(&url).field("Larder-Digest", &script.digest()).open();
    reading.read_to(MIB);
    drop(reading);
    // Whatever became of the lie, what this client holds is no beginning of the truth.
    let rest = a.ask(&url).range(&format!("{MIB}-")).send();
    assert_eq!(rest.status, 409, "{}", rest.cache_status());
    a.get(&url).assert_whole(&script);
}

#[test]
fn neighbours_that_redirect_boast_or_never_end_are_left() {
    let long = "x".repeat(200_000);
    let truth = Script::new(300_000);
    let conducts = [
        ("redirects elsewhere", Script::redirect("http://127.0.0.1:8097/status")),
        ("sends endless fields", truth.clone().field("X-Long", &long)),
        ("sends more than it offered", Script::new(64 * MIB)),
        ("never says where it ends", Script::new(64 * MIB).chunked()),
        ("packs what it sends", truth.clone().field("Content-Encoding", "gzip").seed(77)),
        ("answers with an error page", Script::new(300_000).status(500)),
    ];
    for (what, conduct) in conducts {
        let (_site, origin, a, fake) = stage("auto");
        let url = origin.serve("/f.bin", truth.clone());
        let rss = a.rss();
        fake.offers(&truth, conduct);
        a.ask(&url).field("Larder-Digest", &truth.digest()).send().assert_whole(&truth);
        assert!(a.rss() < rss + (64 << 20), "{what}: {} MiB more", (a.rss() - rss) >> 20);
        assert!(crate::support::chaos::disk_usage(a.cache_dir()) < 2 * MIB, "{what}");
        a.get(&url).assert_whole(&truth);
    }
}
