//! Parts of things that are not held (RFC 9111 sections 3.3 and 3.4): kept, given again, joined.

use super::alone;
use crate::support::{Larder, MIB, Origin, Ranges, Script, Site, tools, wait_until};

/// Asks for a range until it comes from the store: what arrived is written down behind the client's back.
fn until_held(a: &Larder, url: &str, range: &str, script: &Script, bytes: std::ops::Range<u64>) {
    wait_until(&format!("{range} to be a hit"), || {
        let part = a.ask(url).range(range).send();
        part.assert_slice(script, bytes.start, bytes.end);
        part.is_hit()
    });
}

#[test]
fn a_part_is_given_again_and_only_what_lies_inside() {
    let (origin, a) = alone();
    let script = Script::new(100_000).cache_control("max-age=600");
    let url = origin.serve("/f.bin", script.clone());
    a.ask(&url).range("40000-59999").send().assert_slice(&script, 40_000, 60_000);
    until_held(&a, &url, "40000-59999", &script, 40_000..60_000);
    let asked = origin.gets("/f.bin").len();
    for (range, from, to) in [("45000-45009", 45_000, 45_010), ("59999-59999", 59_999, 60_000)] {
        let part = a.ask(&url).range(range).send();
        part.assert_slice(&script, from, to);
        assert!(part.is_hit(), "{}", part.cache_status());
        assert!(part.field("Age").is_some());
        assert_eq!(part.field("Content-Range"), Some(&*format!("bytes {from}-{}/100000", to - 1)));
    }
    assert_eq!(origin.gets("/f.bin").len(), asked);
    // one byte more is not here
    let part = a.ask(&url).range("59999-60000").send();
    part.assert_slice(&script, 59_999, 60_001);
    assert!(!part.is_hit());
    // a condition on another version is not met by this one
    a.ask(&url).range("45000-45009").field("If-Range", "\"other\"").send().assert_whole(&script);
}

#[test]
fn whoever_asks_for_a_part_again_at_once_has_it_from_here() {
    let (origin, a) = alone();
    for seed in 0..20 {
        let script = Script::new(100_000).seed(seed).no_etag().cache_control("max-age=600");
        let path = format!("/{seed}.bin");
        let url = origin.serve(&path, script.clone());
        a.ask(&url).range("-50000").send().assert_slice(&script, 50_000, 100_000);
        for (range, from, to) in [("-50000", 50_000, 100_000), ("60000-60009", 60_000, 60_010)] {
            let part = a.ask(&url).range(range).send();
            part.assert_slice(&script, from, to);
            assert!(part.is_hit(), "{}", part.cache_status());
        }
        assert_eq!(origin.gets(&path).len(), 1);
        // and the whole goes on with a beginning
        let (path, script) = (format!("/{seed}.begin"), script);
        let url = origin.serve(&path, script.clone());
        a.ask(&url).range("0-59999").send().assert_slice(&script, 0, 60_000);
        a.get(&url).assert_whole(&script);
        let ranges: Vec<_> =
            origin.gets(&path).iter().map(|seen| seen.field("Range").map(str::to_owned)).collect();
        assert_eq!(ranges[1].as_deref(), Some("bytes=60000-"), "{ranges:?}");
    }
}

#[test]
fn the_last_part_answers_ranges_from_the_end() {
    let (origin, a) = alone();
    let script = Script::new(100_000).cache_control("max-age=600");
    let url = origin.serve("/f.bin", script.clone());
    a.ask(&url).range("-1000").send().assert_slice(&script, 99_000, 100_000);
    until_held(&a, &url, "-1000", &script, 99_000..100_000);
    for (range, from) in [("99500-", 99_500), ("-1", 99_999), ("99000-200000", 99_000)] {
        let part = a.ask(&url).range(range).send();
        part.assert_slice(&script, from, 100_000);
        assert!(part.is_hit(), "{range}: {}", part.cache_status());
    }
}

#[test]
fn a_part_that_is_stale_or_nobody_elses_is_not_given() {
    let (origin, a) = alone();
    let stale = Script::new(50_000).stale_at_once();
    let url = origin.serve("/stale.bin", stale.clone());
    let private = Script::new(50_000).cache_control("private, max-age=600");
    let private_url = origin.serve("/private.bin", private.clone());
    for _ in 0..3 {
        let part = a.ask(&url).range("100-199").send();
        part.assert_slice(&stale, 100, 200);
        assert!(!part.is_hit());
        let part = a.ask(&private_url).range("100-199").field("Cookie", "a=1").send();
        part.assert_slice(&private, 100, 200);
        assert!(!part.is_hit());
    }
    assert_eq!(origin.gets("/stale.bin").len(), 3);
    assert_eq!(origin.gets("/private.bin").len(), 3);
}

#[test]
fn the_whole_goes_on_where_a_part_ends() {
    let (origin, a) = alone();
    let script = Script::new(100_000).cache_control("max-age=600");
    let url = origin.serve("/f.bin", script.clone());
    a.ask(&url).range("0-59999").send().assert_slice(&script, 0, 60_000);
    until_held(&a, &url, "0-59999", &script, 0..60_000);
    let before = origin.bytes_sent("/f.bin");
    wait_until("the whole to go on with the part", || {
        // a moment passes before the part is known as a beginning
        let whole = a.get(&url);
        whole.assert_whole(&script);
        origin.gets("/f.bin").iter().any(|seen| seen.field("Range") == Some("bytes=60000-")) || whole.is_hit()
    });
    assert!(origin.bytes_sent("/f.bin") - before <= 100_000);
    a.wait_for_blob(&script.digest());
    assert!(a.get(&url).is_hit());
}

#[test]
fn c09_parts_that_cover_a_thing_are_the_thing_and_the_neighbours_have_it() {
    let site = Site::new();
    let origin = Origin::start();
    let (a, b) = (Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start());
    a.meets(&b);
    let script = Script::new(3 * MIB).cache_control("max-age=600");
    let url = origin.serve("/f.bin", script.clone());
    for at in [2, 0, 1] {
        let (from, to) = (at * MIB, (at + 1) * MIB);
        a.ask(&url).range(&format!("{from}-{}", to - 1)).send().assert_slice(&script, from, to);
    }
    a.wait_for_blob(&script.digest());
    assert_eq!(origin.bytes_sent("/f.bin"), 3 * MIB);
    wait_until("the whole to be a hit", || a.get(&url).is_hit());
    a.get(&url).assert_whole(&script);
    let there = a.blob_path(&script.digest());
    assert!(there.exists());
    b.ask(&url).field("Larder-Digest", &script.digest()).send().assert_whole(&script);
    assert_eq!(origin.bytes_sent("/f.bin"), 3 * MIB);
}

#[test]
fn parts_of_two_versions_never_meet() {
    let (origin, a) = alone();
    let old = Script::new(100_000).cache_control("max-age=600");
    let url = origin.serve("/f.bin", old.clone());
    a.ask(&url).range("0-49999").send().assert_slice(&old, 0, 50_000);
    until_held(&a, &url, "0-49999", &old, 0..50_000);
    let new = Script::new(100_000).seed(7).cache_control("max-age=600");
    origin.serve("/f.bin", new.clone());
    a.ask(&url).range("50000-99999").send().assert_slice(&new, 50_000, 100_000);
    a.get(&url).assert_whole(&new);
    // without any tag nothing is joined either, and the whole is asked for anew
    let bare = Script::new(100_000).seed(8).no_etag().cache_control("max-age=600");
    let url = origin.serve("/bare.bin", bare.clone());
    a.ask(&url).range("0-49999").send().assert_slice(&bare, 0, 50_000);
    until_held(&a, &url, "0-49999", &bare, 0..50_000);
    let other = Script::new(100_000).seed(9).no_etag().cache_control("max-age=600");
    origin.serve("/bare.bin", other.clone());
    a.get(&url).assert_whole(&other);
}

#[test]
fn a_part_that_was_cut_is_not_kept() {
    let (origin, a) = alone();
    let script = Script::new(100_000).cache_control("max-age=600").ranges(Ranges::Honoured).cut_once(20_000);
    let url = origin.serve("/f.bin", script.clone());
    // or the connection ends before the head went out: an error in any case
    let cut = a.ask(&url).range("10000-59999").try_send();
    assert!(cut.is_err() || cut.is_ok_and(|cut| !cut.is_success() || cut.body.len() < 50_000));
    let part = a.ask(&url).range("10000-59999").send();
    part.assert_slice(&script, 10_000, 60_000);
    assert!(!part.is_hit());
}

#[test]
fn a_resumed_download_goes_on_with_what_the_first_one_left() {
    let (origin, a) = alone();
    if !tools::installed("wget") {
        println!("no wget here");
        return;
    }
    let script = Script::new(24 * MIB).hold_at(8 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    let mut first = a.ask(&url).open();
    first.read_to(MIB);
    let had = first.abort();
    assert!(had.len() as u64 >= MIB);
    // the client is gone: what came of it is kept
    wait_until("nothing to run any more", || a.status()["transfers"].as_array().unwrap().is_empty());
    origin.release("/f.bin");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.bin"), &had).unwrap();
    tools::with_proxy(a.proxy(), folder.path(), "wget", &["-q", "-c", &url]).assert_code(0);
    assert_eq!(std::fs::read(folder.path().join("f.bin")).unwrap(), script.body());
    a.wait_for_blob(&script.digest());
    let asked = origin.gets("/f.bin");
    let own = format!("bytes={}-", had.len());
    // not the client's own range, but what was still missing of the whole
    assert!(asked.iter().any(|seen| seen.field("Range").is_some_and(|range| range != own)), "{asked:?}");
}
