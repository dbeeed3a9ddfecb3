//! Range answers: exact from everywhere, and an origin that knows no ranges does no harm.

use super::alone;
use crate::support::{Larder, MIB, Ranges, Rng, Script, Site, tools};

#[test]
fn h01_a_200_to_a_ranged_request_is_the_whole_file() {
    let (origin, a) = alone();
    let script = Script::new(3 * MIB).ranges(Ranges::Ignored);
    let url = origin.serve("/f.bin", script.clone());
    let part = a.ask(&url).range("1000000-1000999").send();
    match part.status {
        206 => drop(part.assert_slice(&script, 1_000_000, 1_001_000)),
        _ => drop(part.assert_whole(&script)),
    }
    a.get(&url).assert_whole(&script);
    // The same in the middle of a resume: what was there is not written twice.
    let broken = script.cut_once(MIB);
    let url = origin.serve("/resumed.bin", broken.clone());
    let first = a.get(&url);
    if first.is_success() {
        first.assert_whole(&broken);
    }
    a.get(&url).assert_whole(&broken);
}

#[test]
fn h02_a_range_of_what_is_held_is_206_with_exact_fields() {
    let site = Site::new();
    let (origin, a) = (crate::support::Origin::start(), Larder::new("a").peers(&site).start());
    let b = Larder::new("b").peers(&site).start();
    a.meets(&b);
    let script = Script::new(100_001);
    let url = origin.serve("/f.bin", script.clone());
    a.ask(&url).range("100-199").send().assert_slice(&script, 100, 200);
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    for node in [&a, &b] {
        for (from, to) in [(100, 200), (0, 1), (100_000, 100_001), (0, 100_001)] {
            let part = node.ask(&url).range(&format!("{from}-{}", to - 1)).send();
            part.assert_slice(&script, from, to);
            assert_eq!(part.field("ETag"), script.etag_value().as_deref());
        }
        node.ask(&url).range("-1").send().assert_slice(&script, 100_000, 100_001);
    }
}

#[test]
fn h07_a_range_nobody_understands_is_ignored() {
    let (origin, a) = alone();
    for (path, size) in [("/empty", 0), ("/ten", 10)] {
        let script = Script::new(size);
        let url = origin.serve(path, script.clone());
        for field in ["bytes=0--1", "bytes=abc", "items=0-1", "bytes=5-2"] {
            for _ in ["cold", "held"] {
                a.ask(&url).field("Range", field).send().assert_whole(&script);
            }
        }
    }
}

#[test]
fn h08_a_range_past_the_end_is_416_with_the_size() {
    let site = Site::new();
    let origin = crate::support::Origin::start();
    let (a, b) = (Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start());
    a.meets(&b);
    let script = Script::new(5000);
    let url = origin.serve("/f.bin", script.clone());
    let past = |node: &Larder| {
        let answer = node.ask(&url).range("5000-").send();
        assert_eq!((answer.status, answer.field("Content-Range")), (416, Some("bytes */5000")));
        assert!(answer.body.len() < 2000);
    };
    past(&a);
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    past(&a);
    past(&b);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f.bin");
    std::fs::write(&file, script.body()).unwrap();
    for (program, arguments) in
        [("wget", vec!["-q", "-c", &url]), ("aria2c", vec!["-q", "--no-conf", "-c", &url])]
    {
        if tools::installed(program) {
            tools::with_proxy(a.proxy(), folder.path(), program, &arguments).assert_code(0);
            assert_eq!(std::fs::read(&file).unwrap(), script.body(), "{program}");
        }
    }
    if tools::installed("curl") {
        // curl before 8 calls the 416 an error; what matters is that the file is whole.
        tools::curl(a.proxy(), folder.path(), &["-C", "-", "-o", "f.bin", &url]);
        assert_eq!(std::fs::read(&file).unwrap(), script.body());
    }
}

#[test]
fn h10_any_range_is_exactly_that_slice_cold_held_and_while_filling() {
    let (origin, a) = alone();
    let size = 9 * MIB / 2 + 3;
    let script = Script::new(size).hold_at(2 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    let mut rng = Rng::new("h10");
    let mut filling = a.ask(&url).open();
    filling.read_to(MIB);
    for _ in 0..20 {
        let from = rng.below(MIB);
        let to = from + 1 + rng.below(MIB - from);
        a.ask(&url).range(&format!("{from}-{}", to - 1)).send().assert_slice(&script, from, to);
    }
    origin.release("/f.bin");
    filling.rest().assert_whole(&script);
    a.wait_for_blob(&script.digest());
    let edges = (1..=4).flat_map(|piece| [piece * MIB - 1, piece * MIB, piece * MIB + 1]);
    let edges = edges.map(|from| (from, (from + 2).min(size)));
    let anywhere: Vec<_> = (0..60)
        .map(|_| {
            let from = rng.below(size);
            (from, from + 1 + rng.below(size - from))
        })
        .collect();
    for (from, to) in edges.chain(anywhere).chain([(size - 1, size), (0, size)]) {
        a.ask(&url).range(&format!("{from}-{}", to - 1)).send().assert_slice(&script, from, to);
    }
    let cold = Script::new(size).seed(9);
    let url = origin.serve("/cold.bin", cold.clone());
    let from = rng.below(size - 10);
    a.ask(&url).range(&format!("{from}-{}", from + 9)).send().assert_slice(&cold, from, from + 10);
    a.get(&url).assert_whole(&cold);
}

#[test]
fn h53_an_open_range_from_zero_gives_the_whole_body() {
    let (origin, a) = alone();
    let script = Script::new(400_000);
    let url = origin.serve("/f.bin", script.clone());
    for _ in ["cold", "held"] {
        let answer = a.ask(&url).range("0-").send();
        match answer.status {
            206 => drop(answer.assert_slice(&script, 0, 400_000)),
            _ => drop(answer.assert_whole(&script)),
        }
    }
    let chunked = Script::new(400_000).seed(2).chunked();
    let url = origin.serve("/chunked.bin", chunked.clone());
    assert_eq!(a.ask(&url).range("0-").send().body, chunked.body());
}
