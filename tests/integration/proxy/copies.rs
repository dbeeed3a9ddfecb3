//! Many ranges of one thing that nobody holds cost its origin about one copy, and end in one that neighbours can have.

use std::time::Duration;

use super::alone;
use crate::support::{Larder, MIB, Origin, Script, Site, at_once, wait_until};

#[test]
fn c09_sixteen_ranges_of_a_cold_file_cost_one_copy_however_fast_the_origin_is() {
    let (origin, a) = alone();
    for (seed, rate) in [(1, 1_000_000_000), (2, 40_000_000), (3, 4_000_000)] {
        let script = Script::new(16 * MIB).seed(seed).rate(rate);
        let (path, size) = (format!("/{seed}.bin"), script.size);
        let url = origin.serve(&path, script.clone());
        let mut first = a.ask(&url).open();
        assert_eq!(first.status(), 200);
        // as programs with many connections do: the first one is left where the second one began
        let rest = std::thread::scope(|scope| {
            let rest = scope.spawn(|| {
                at_once(15, |part| {
                    let from = (part as u64 + 1) * MIB;
                    let range = format!("{from}-{}", from + MIB - 1);
                    a.ask(&url).range(&range).send().assert_slice(&script, from, from + MIB);
                });
            });
            first.read_to(MIB);
            rest.join()
        });
        first.abort();
        rest.unwrap();
        a.wait_for_blob(&script.digest());
        let sent = origin.bytes_sent(&path);
        println!("at {rate} bytes a second and connection: {:.3} of the file", sent as f64 / size as f64);
        assert!(sent <= size + size / 10, "{sent} of {size}");
        assert!(a.get(&url).assert_whole(&script).is_hit());
    }
}

#[test]
fn a_cold_download_that_is_resumed_ends_in_one_copy_for_the_neighbours() {
    let site = Site::new();
    let origin = Origin::start();
    let (a, b) = (Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start());
    a.meets(&b);
    for (seed, rate) in [(1, 1_000_000_000), (2, 2_000_000)] {
        let script = Script::new(4 * MIB).seed(seed).rate(rate);
        let path = format!("/{seed}.bin");
        let url = origin.serve(&path, script.clone());
        a.ask(&url).range("1000000-").send().assert_slice(&script, 1_000_000, script.size);
        // what was missing of it comes by itself
        a.wait_for_blob(&script.digest());
        let sent = origin.bytes_sent(&path);
        println!("at {rate} bytes a second: {:.3} of the file", sent as f64 / script.size as f64);
        assert!(sent <= script.size + script.size / 10, "{sent}");
        let resumed = b.ask(&url).range("1000000-").send();
        resumed.assert_slice(&script, 1_000_000, script.size);
        assert!(resumed.is_from_peer(), "{}", resumed.cache_status());
        assert_eq!(origin.bytes_sent(&path), sent);
    }
}

#[test]
fn a_download_of_the_whole_asks_for_what_is_not_here_in_parts() {
    let origin = Origin::start();
    let a = Larder::new("a").set("origin.complete_parts", false).start();
    let script = Script::new(4 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    for at in [1, 3] {
        let (from, to) = (at * MIB, at * MIB + MIB / 2);
        wait_until("the part to be held", || {
            let part = a.ask(&url).range(&format!("{from}-{}", to - 1)).send();
            part.assert_slice(&script, from, to).is_hit()
        });
    }
    let before = origin.bytes_sent("/f.bin");
    a.get(&url).assert_whole(&script);
    assert_eq!(origin.bytes_sent("/f.bin") - before, 3 * MIB, "{:?}", origin.gets("/f.bin"));
    a.wait_for_blob(&script.digest());
    assert!(a.get(&url).assert_whole(&script).is_hit());
    wait_until("the parts to be gone", || a.blobs().len() == 1);
    a.verify_all_blobs();
}

#[test]
fn parts_of_an_older_version_are_not_read_into_the_new_one() {
    let origin = Origin::start();
    let a = Larder::new("a").set("origin.complete_parts", false).start();
    let (old, new) = (Script::new(2 * MIB), Script::new(2 * MIB).seed(2));
    let url = origin.serve("/f.bin", old);
    wait_until("the part to be held", || a.ask(&url).range("1048576-2097151").send().is_hit());
    origin.serve("/f.bin", new.clone());
    a.get(&url).assert_whole(&new);
}

#[test]
fn what_a_client_broke_off_is_kept_as_far_as_it_came() {
    let origin = Origin::start();
    let a = Larder::new("a").set("origin.complete_parts", false).start();
    let script = Script::new(8 * MIB).hold_at(5 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    let mut part = a.ask(&url).range("3145728-7340031").open();
    part.read_to(MIB);
    part.abort();
    wait_until("what came of it to be held", || {
        let held = a.ask(&url).range("3145728-3407871").field("Cache-Control", "only-if-cached").send();
        held.status == 206 && held.assert_slice(&script, 3 * MIB, 3 * MIB + MIB / 4).is_hit()
    });
    origin.release("/f.bin");
}

#[test]
fn a_client_that_reads_its_part_slowly_holds_up_nobody_who_wants_the_whole() {
    let (origin, a) = alone();
    let script = Script::new(16 * MIB).rate(20_000_000);
    let url = origin.serve("/f.bin", script.clone());
    let mut whole = a.ask(&url).open();
    whole.read_to(1000);
    let mut slow = a.ask(&url).range("14680064-").open();
    slow.read_to(1000);
    let began = std::time::Instant::now();
    whole.rest().assert_whole(&script);
    println!("the whole took {:?} beside a part that nobody reads", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(15));
    slow.rest().assert_slice(&script, 14_680_064, script.size);
}
