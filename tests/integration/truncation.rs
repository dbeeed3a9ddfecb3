//! Bodies that break: a truncated body is resumed or reported, never stored, never passed off as whole.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{
    Answer, Ending, Framing, Larder, MIB, Origin, Ranges, RawOrigin, Reply, Script, Site, wait_until,
};

fn alone() -> (Origin, Larder) {
    (Origin::start(), Larder::new("a").set("origin.stall_timeout", "5s").start())
}

/// Either the right bytes or an error the client sees, and nothing wrong kept.
#[track_caller]
fn right_or_error(answer: &Answer, script: &Script) {
    if answer.is_success() {
        answer.assert_whole(script);
    } else {
        assert!(answer.status >= 500 || answer.ending == Ending::Truncated, "{}", answer.status);
        assert!(script.body().starts_with(&answer.body) || answer.status >= 500);
    }
}

#[test]
fn h04_an_origin_that_dislikes_if_range_costs_one_request_more() {
    let (origin, a) = alone();
    let script = Script::new(2 * MIB).ranges(Ranges::WithoutIfRange).cut_once(MIB);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    assert!(origin.gets("/f.bin").len() <= 3, "{} requests", origin.gets("/f.bin").len());
}

#[test]
fn h05_a_file_replaced_between_cut_and_resume_is_never_spliced() {
    let (origin, a) = alone();
    let (old, new) = (Script::new(2 * MIB).seed(1).hold_at(MIB), Script::new(2 * MIB).seed(2));
    let url = origin.serve("/f.bin", old.clone());
    let mut reading = a.ask(&url).open();
    reading.read_to(MIB / 2);
    // The new version is there before the old answer breaks.
    origin.serve("/f.bin", new.clone());
    let mut broken = origin;
    let address = broken.address();
    broken.stop();
    let origin = Origin::start_at(address);
    origin.serve("/f.bin", new.clone());
    let answer = reading.rest();
    assert!(answer.ending == Ending::Truncated || answer.body == new.body(), "{} bytes", answer.body.len());
    assert!(old.body().starts_with(&answer.body) || answer.body == new.body(), "spliced");
    a.get(&url).assert_whole(&new);
    a.wait_for_blob(&new.digest());
    assert!(!a.blob_path(&old.digest()).exists());
}

#[test]
fn h05_a_resume_asks_with_if_range_and_continues() {
    let (origin, a) = alone();
    let script = Script::new(2 * MIB).cut_once(MIB);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    let seen = origin.gets("/f.bin");
    assert_eq!(seen.len(), 2);
    let range = seen[1].field("Range").unwrap();
    assert!(range.starts_with("bytes=") && range.ends_with('-') && range != "bytes=0-", "{range}");
    assert_eq!(seen[1].field("If-Range"), script.etag_value().as_deref());
    assert!(origin.bytes_sent("/f.bin") < 3 * MIB);
    a.wait_for_blob(&script.digest());
}

#[test]
fn h13_chunks_without_the_last_one_are_not_a_whole_body() {
    let (origin, a) = alone();
    let whole = Script::new(500_000);
    for (path, script) in [
        ("/nolast", whole.clone().framing(Framing::Chunked { finished: false })),
        ("/cut", whole.clone().chunked().cut_always(200_000)),
        ("/rst", whole.clone().chunked().cut_always(200_000).by_reset()),
    ] {
        let url = origin.serve(path, script.clone().ranges(Ranges::Ignored));
        let answer = a.get(&url);
        assert!(!answer.is_success(), "{path} looked whole after {} bytes", answer.body.len());
        right_or_error(&answer, &script);
        let before = origin.gets(path).len();
        assert!(!a.get(&url).is_success());
        assert!(origin.gets(path).len() > before, "{path}: the next GET reaches the origin");
        origin.serve(path, whole.clone());
        a.get(&url).assert_whole(&whole);
    }
}

#[test]
fn h14_a_close_before_the_length_is_an_error_like_a_reset() {
    let (origin, a) = alone();
    for ranges in [Ranges::Honoured, Ranges::Ignored] {
        for reset in [false, true] {
            let path = format!("/{ranges:?}-{reset}");
            let once = Script::new(MIB).ranges(ranges).cut_once(MIB / 2);
            let once = if reset { once.by_reset() } else { once };
            let url = origin.serve(&path, once.clone());
            right_or_error(&a.get(&url), &once);
            let always = Script::new(MIB).seed(2).ranges(Ranges::Ignored).cut_always(MIB / 2);
            let always = if reset { always.by_reset() } else { always };
            let path = format!("/always{path}");
            let url = origin.serve(&path, always.clone());
            assert!(!a.get(&url).is_success());
            assert!(!a.get(&url).is_success());
            assert!(!a.blob_path(&always.digest()).exists());
        }
    }
    let lie = Script::new(100_000).framing(Framing::Length(1000)).ranges(Ranges::Ignored);
    let url = origin.serve("/lie", lie);
    assert!(!a.get(&url).is_success());
    let short = Script::new(100_000).framing(Framing::Length(-1000)).ranges(Ranges::Ignored);
    let url = origin.serve("/short", short.clone());
    let answer = a.get(&url);
    assert!(short.body().starts_with(&answer.body), "no more than was promised");
    assert!(a.get(&url).status > 0, "the connection's leftover bytes answer nothing else");
}

#[test]
fn h16_a_promised_length_that_cannot_be_kept_breaks_the_connection() {
    let (mut origin, a) = alone();
    let script = Script::new(2 * MIB).hold_at(MIB);
    let url = origin.serve("/f.bin", script.clone());
    let mut reading = a.ask(&url).open();
    assert_eq!(reading.field("Content-Length"), Some((2 * MIB).to_string().as_str()));
    reading.read_to(MIB / 2);
    origin.stop();
    let answer = reading.rest();
    assert_eq!(answer.ending, Ending::Truncated);
    assert!(script.body().starts_with(&answer.body));
}

#[test]
fn h16_neighbour_and_origin_both_dying_break_the_connection() {
    let site = Site::new();
    let mut origin = Origin::start();
    let slow = Larder::new("a").peers(&site).set("peers.upload_rate", "500KiB");
    let mut a = slow.start();
    let b = Larder::new("b").peers(&site).set("peers.release", "stream").start();
    a.meets(&b);
    let script = Script::new(3 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    origin.stop();
    let mut reading = b.ask(&url).field("Larder-Digest", &script.digest()).open();
    assert_eq!(reading.status(), 200);
    reading.read_to(MIB / 2);
    a.kill();
    let answer = reading.rest();
    assert_eq!(answer.ending, Ending::Truncated, "{} bytes", answer.body.len());
    assert!(b.blobs().is_empty());
}

#[test]
fn h25_an_expired_link_is_not_used_again() {
    let (origin, a) = alone();
    let script = Script::new(2 * MIB).signed().hold_at(MIB).ranges(Ranges::Honoured);
    let start = origin.serve("/rel", Script::redirect_signed("/blob"));
    origin.serve("/blob", script.clone());
    let follow = |answer: Answer| origin.url(answer.field("Location").unwrap());
    let link = follow(a.get(&start));
    let mut reading = a.ask(&link).open();
    reading.read_to(MIB / 2);
    reading.abort();
    origin.expire_links();
    origin.serve("/blob", Script::new(2 * MIB).signed());
    let fresh = follow(a.get(&start));
    assert_ne!(link, fresh, "the redirect is not cached");
    a.get(&fresh).assert_whole(&script);
    assert_eq!(origin.gets("/rel").len(), 2);
}

#[test]
fn h25_get_goes_back_to_the_first_url_for_a_new_link() {
    let origin = Origin::start();
    let a = Larder::new("a").start();
    let script = Script::new(MIB).signed().cut_once(MIB / 2);
    let start = origin.serve("/rel", Script::redirect_signed("/blob"));
    origin.serve("/blob", script.clone());
    let out = a.home().join("out.bin");
    let out = out.to_str().unwrap();
    if a.cli(&["get", &start, "-o", out]).code != 0 {
        origin.expire_links();
        a.cli(&["get", &start, "-o", out]).assert_code(0);
    }
    assert!(std::fs::read(out).unwrap() == script.body());
}

#[test]
fn h50_an_etag_that_changes_every_time_does_not_loop() {
    let (origin, a) = alone();
    let script = Script::new(3 * MIB).random_etag();
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    assert_eq!(origin.gets("/f.bin").len(), 1);
    let cut = Script::new(MIB).seed(2).random_etag().cut_once(MIB / 2);
    let url = origin.serve("/cut.bin", cut.clone());
    right_or_error(&a.get(&url), &cut);
    a.get(&url).assert_whole(&cut);
    assert!(origin.gets("/cut.bin").len() <= 4);
    wait_until("both to be kept", || a.blobs().len() == 2);
}

#[test]
fn a_stalled_origin_is_given_up_after_its_deadline() {
    let origin = Origin::start();
    let a = Larder::new("a").set("origin.stall_timeout", "500ms").start();
    let url = origin.serve("/f.bin", Script::new(MIB).hold_at(MIB / 2).ranges(Ranges::Ignored));
    assert!(!a.get(&url).is_success());
    wait_until("no transfer left", || a.transfers() == 0);
    assert!(a.blobs().is_empty());
}

#[test]
fn h05_an_answer_that_changes_after_its_head_went_out_never_ends_cleanly() {
    let (origin, a) = alone();
    let (old, new) = (
        Script::new(100_000).seed(1).etag("\"a\"").cut_always(0),
        Script::new(120_000).seed(2).etag("\"b\""),
    );
    let url = origin.serve("/f.bin", old);
    let asked = a.ask(&url).open();
    origin.serve("/f.bin", new.clone());
    let answer = asked.rest();
    assert!(!answer.is_success() || answer.body == new.body(), "{} bytes of another file", answer.body.len());
    a.get(&url).assert_whole(&new);
}

#[test]
fn h01_a_part_that_ends_before_the_end_is_not_the_rest() {
    let (origin, a) = alone();
    // No length is known, the answer breaks off, and the rest is answered by a part of it.
    let broken = Script::new(1_000_000).etag("\"a\"").chunked().cut_once(300_000);
    let url = origin.serve("/f.bin", broken.clone());
    let asked = a.ask(&url).open();
    let part = "HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nContent-Length: 4\r\n\
                Content-Range: bytes 300000-300003/1000000\r\n\r\nabcd";
    origin.serve("/f.bin", Script::raw(part.as_bytes()));
    let answer = asked.rest();
    right_or_error(&answer, &broken);
}

/// A partial of 8 MiB and more of this file, left by a client that went away.
fn leave_partial(origin: &Origin, a: &Larder, path: &str, script: &Script) -> String {
    let url = origin.serve(path, script.clone().hold_at(9 * MIB));
    let mut first = a.ask(&url).open();
    first.read_to(8 * MIB);
    first.abort();
    wait_until("nothing runs any more", || a.transfers() == 0);
    origin.release(path);
    url
}

#[test]
fn h30_h32_a_rest_that_may_not_be_kept_does_not_become_everybodys() {
    let (origin, a) = alone();
    for (path, said) in [("/private", "private, max-age=600"), ("/no-store", "no-store")] {
        let script = Script::new(24 * MIB).seed(path.len() as u64);
        let url = leave_partial(&origin, &a, path, &script);
        origin.serve(path, script.clone().cache_control(said));
        a.get(&url).assert_whole(&script);
        assert!(origin.gets(path).iter().any(|seen| seen.field("If-Range").is_some()), "{path} was resumed");
        let before = origin.gets(path).len();
        let other = a.get(&url);
        other.assert_whole(&script);
        assert!(!other.is_hit() && origin.gets(path).len() > before, "{path}: {}", other.cache_status());
        assert!(!a.blob_path(&script.digest()).exists(), "{path}");
    }
}

#[test]
fn h30_h32_a_rest_in_mid_transfer_that_may_not_be_kept_does_not_become_everybodys() {
    let script = Script::new(2 * MIB);
    let body = script.body();
    for said in ["private", "no-store"] {
        let (whole, asked) = (body.clone(), AtomicUsize::new(0));
        let origin = RawOrigin::start(move |_| {
            let (first, rest) = whole.split_at(MIB as usize);
            let (head, sent) = match asked.fetch_add(1, Ordering::Relaxed) {
                0 => ("200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 2097152".to_owned(), first),
                1 => (
                    format!(
                        "206 Partial Content\r\nCache-Control: {said}\r\nContent-Length: 1048576\r\n\
                         Content-Range: bytes 1048576-2097151/2097152"
                    ),
                    rest,
                ),
                _ => (format!("200 OK\r\nCache-Control: {said}\r\nContent-Length: 2097152"), &whole[..]),
            };
            let head = format!("HTTP/1.1 {head}\r\nETag: \"v1\"\r\n\r\n");
            Reply { bytes: [head.as_bytes(), sent].concat(), closes: true }
        });
        let a = Larder::new("a").start();
        a.get(&origin.url("/f.bin")).assert_whole(&script);
        let other = a.get(&origin.url("/f.bin"));
        other.assert_whole(&script);
        assert!(!other.is_hit(), "{said}: {}", other.cache_status());
        assert_eq!(origin.requests().len(), 3, "{said}");
        assert!(a.blobs().is_empty(), "{said}");
    }
}

#[test]
fn h23_what_selects_the_rest_selects_the_whole() {
    let (origin, a) = alone();
    let script = Script::new(24 * MIB);
    let url = leave_partial(&origin, &a, "/f.bin", &script);
    origin.serve("/f.bin", script.clone().field("Vary", "Accept-Language"));
    a.ask(&url).field("Accept-Language", "de").send().assert_whole(&script);
    a.wait_for_blob(&script.digest());
    let other = a.ask(&url).field("Accept-Language", "fr").send();
    other.assert_whole(&script);
    assert!(!other.is_hit(), "{}", other.cache_status());
    assert!(a.ask(&url).field("Accept-Language", "de").send().assert_whole(&script).is_hit());
}

#[test]
fn h44_a_503_costs_nobody_what_came_before_it() {
    let (origin, a) = alone();
    let script = Script::new(24 * MIB);
    let url = leave_partial(&origin, &a, "/f.bin", &script);
    origin.serve("/f.bin", Script::new(10).status(503).cache_control("no-store"));
    assert_eq!(a.get(&url).status, 503);
    assert_eq!(origin.gets("/f.bin").len(), 2, "asked once");
    origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    assert!(origin.gets("/f.bin")[2].field("Range").is_some());
}

#[test]
fn h05_another_version_is_never_given_under_the_validator_of_the_first() {
    let (old, new) = (Script::new(500_000).seed(1).body(), Script::new(500_000).seed(2).body());
    let dates = ["Mon, 01 Jan 2024 00:00:00 GMT", "Tue, 02 Jan 2024 00:00:00 GMT"];
    for [first, second] in [
        ["ETag: W/\"v1\"".to_owned(), "ETag: W/\"v2\"".to_owned()],
        dates.map(|date| format!("Last-Modified: {date}")),
    ] {
        // the first answer breaks off before any of its bytes, or within them
        for at in [0, 200_000] {
            let (asked, bodies) = (AtomicUsize::new(0), [old[..at].to_vec(), new.clone()]);
            let validators = [first.clone(), second.clone()];
            let origin = RawOrigin::start(move |_| {
                let turn = asked.fetch_add(1, Ordering::Relaxed).min(1);
                let head = format!(
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 500000\r\n{}\r\n\r\n",
                    validators[turn]
                );
                Reply { bytes: [head.as_bytes(), &bodies[turn]].concat(), closes: true }
            });
            let a = Larder::new("a").start();
            for _ in 0..2 {
                // or the connection ends before the head went out
                let Ok(answer) = a.ask(&origin.url("/f.bin")).try_send() else { continue };
                let (name, value) = second.split_once(": ").unwrap();
                let is_new = answer.field(name) == Some(value);
                assert!(!answer.is_success() || (is_new && answer.body == new), "{first} at {at}");
                assert!(is_new || old.starts_with(&answer.body), "{first} at {at}");
            }
        }
    }
}
