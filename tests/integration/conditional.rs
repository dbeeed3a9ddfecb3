//! Conditional requests and revalidation: 304 in both directions, stale answers when the origin is ill.

use std::time::Duration;

use crate::support::{Larder, Origin, Script, at_once};

fn alone() -> (Origin, Larder) {
    (Origin::start(), Larder::new("a").start())
}

#[test]
fn h18_a_304_to_our_own_question_gives_the_client_the_stored_body() {
    let (origin, a) = alone();
    let script = Script::new(100_000).stale_at_once().not_modified_field("X-Fresh", "1");
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    let again = a.get(&url);
    again.assert_whole(&script);
    assert!(again.cache_status().contains("fwd=stale"), "{}", again.cache_status());
    let seen = origin.gets("/f.bin");
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[1].field("If-None-Match"), script.etag_value().as_deref());
    assert_eq!(origin.bytes_sent("/f.bin"), 100_000, "the body came once");
    // The 304 may renew the freshness for good.
    let renewing = Script::new(1000).seed(2).cache_control("max-age=60").field("Age", "61");
    let url = origin.serve("/renewed.bin", renewing.clone());
    a.get(&url).assert_whole(&renewing);
    a.wait_for_blob(&renewing.digest());
    origin.serve("/renewed.bin", Script::new(1000).seed(2).cache_control("max-age=3600"));
    a.get(&url).assert_whole(&renewing);
    assert!(a.get(&url).assert_whole(&renewing).is_hit());
    assert_eq!(origin.gets("/renewed.bin").len(), 2);
}

#[test]
fn h18_a_changed_file_is_delivered_anew() {
    let (origin, a) = alone();
    let (old, new) = (Script::new(50_000).stale_at_once(), Script::new(60_000).seed(2).stale_at_once());
    let url = origin.serve("/f.bin", old.clone());
    a.get(&url).assert_whole(&old);
    a.wait_for_blob(&old.digest());
    origin.serve("/f.bin", new.clone());
    a.get(&url).assert_whole(&new);
    assert_eq!(origin.gets("/f.bin")[1].field("If-None-Match"), old.etag_value().as_deref());
}

#[test]
fn h19_odd_fields_of_a_304_do_not_become_those_of_the_body() {
    let (origin, a) = alone();
    let script = Script::new(30_000)
        .stale_at_once()
        .not_modified_field("Content-Length", "0")
        .not_modified_field("Content-Encoding", "gzip")
        .not_modified_field("Content-Range", "bytes 0-1/2");
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    for _ in 0..2 {
        let again = a.get(&url);
        again.assert_whole(&script);
        assert_eq!(again.field("Content-Length"), Some("30000"));
        assert_eq!((again.field("Content-Encoding"), again.field("Content-Range")), (None, None));
    }
}

#[test]
fn h21_conditions_are_answered_from_what_is_held() {
    let (origin, a) = alone();
    let date = "Sat, 01 Jan 2022 00:00:00 GMT";
    let script = Script::new(20_000).etag("\"v1\"").last_modified(date);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    let (older, newer) = ("Fri, 01 Jan 2021 00:00:00 GMT", "Sun, 01 Jan 2023 00:00:00 GMT");
    for (name, value, status) in [
        ("If-None-Match", "\"v1\"", 304),
        ("If-None-Match", "W/\"v1\"", 304),
        ("If-None-Match", "\"a\", \"v1\", \"b\"", 304),
        ("If-None-Match", "*", 304),
        ("If-None-Match", "\"v2\"", 200),
        ("If-None-Match", "\"a\", W/\"b\"", 200),
        ("If-Modified-Since", older, 200),
        ("If-Modified-Since", date, 304),
        ("If-Modified-Since", newer, 304),
    ] {
        let answer = a.ask(&url).field(name, value).send();
        assert_eq!(answer.status, status, "{name}: {value}");
        match status {
            200 => drop(answer.assert_whole(&script)),
            304 => assert_eq!((answer.body.len(), answer.field("ETag")), (0, Some("\"v1\""))),
            _ => {}
        }
    }
    let both = a.ask(&url).field("If-None-Match", "\"v2\"").field("If-Modified-Since", newer).send();
    both.assert_whole(&script);
    assert_eq!(origin.gets("/f.bin").len(), 1);
    let part = a.ask(&url).range("0-9").field("If-Range", "\"v1\"").send();
    part.assert_slice(&script, 0, 10);
    a.ask(&url).range("0-9").field("If-Range", "\"v2\"").send().assert_whole(&script);
    a.ask(&url).range("0-9").field("If-Range", "W/\"v1\"").send().assert_whole(&script);
}

#[test]
fn h21_a_condition_on_something_cold_is_the_clients_own_business() {
    let (origin, a) = alone();
    let script = Script::new(20_000).etag("\"v1\"");
    let url = origin.serve("/f.bin", script.clone());
    let answer = a.ask(&url).field("If-None-Match", "\"v1\"").send();
    assert_eq!((answer.status, answer.body.len()), (304, 0));
    a.get(&url).assert_whole(&script);
}

#[test]
fn h44_a_stale_copy_serves_while_the_origin_is_ill() {
    let (mut origin, a) = alone();
    let script = Script::new(50_000).stale_at_once();
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    for status in [503, 502, 504] {
        origin.serve("/f.bin", Script::new(10).status(status).cache_control("no-cache"));
        let stale = a.get(&url);
        stale.assert_whole(&script);
        assert!(stale.cache_status().contains("fwd=stale"), "{}", stale.cache_status());
    }
    let by_digest = format!("/@{}/http/{}/f.bin", script.digest(), origin.address());
    a.door(&by_digest).send().assert_whole(&script);
    let strict = Script::new(500).seed(2).cache_control("max-age=60, must-revalidate").field("Age", "61");
    let strict_url = origin.serve("/strict.bin", strict.clone());
    a.get(&strict_url).assert_whole(&strict);
    a.wait_for_blob(&strict.digest());
    origin.stop();
    a.get(&url).assert_whole(&script);
    assert!(a.get(&strict_url).status >= 500, "must-revalidate forbids it");
}

#[test]
fn h45_a_429_is_passed_on_and_not_hammered() {
    let (origin, a) = alone();
    let busy = Script::new(10).status(429).cache_control("no-cache").field("Retry-After", "3");
    let url = origin.serve("/f.bin", busy.delay(Duration::from_millis(100)));
    let answers = at_once(40, |_| a.get(&url));
    for answer in &answers {
        assert_eq!((answer.status, answer.field("Retry-After")), (429, Some("3")));
    }
    let asked = origin.gets("/f.bin").len();
    println!("40 clients, {asked} requests at the origin");
    assert!(asked <= 40, "no request is tried again: {asked}");
    let script = Script::new(1000);
    origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
}

#[test]
fn what_was_evicted_is_fetched_anew_when_the_origin_confirms_it() {
    let (origin, a) = alone();
    let script = Script::new(200_000).stale_at_once();
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    std::fs::remove_file(a.blob_path(&script.digest())).unwrap();
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    assert_eq!(a.cli(&["rm", &script.digest()]).code, 0);
    a.get(&url).assert_whole(&script);
}

#[test]
fn h23_a_confirmed_answer_is_given_only_to_those_it_was_selected_for() {
    let (origin, a) = alone();
    let script = Script::new(100_000).negotiates().stale_at_once();
    let url = origin.serve("/f", script);
    let codings = ["gzip", "identity"];
    for coding in codings {
        a.ask(&url).field("Accept-Encoding", coding).send();
    }
    // Both are held and stale: whoever leads, nobody gets the other's coding.
    for _ in 0..5 {
        let answers: Vec<_> = std::thread::scope(|scope| {
            let ask = |coding: &'static str| a.ask(&url).field("Accept-Encoding", coding).send();
            let both: Vec<_> = codings
                .iter()
                .cycle()
                .take(8)
                .map(|coding| scope.spawn(move || (*coding, ask(coding))))
                .collect();
            both.into_iter().map(|answer| answer.join().unwrap()).collect()
        });
        for (coding, answer) in answers {
            let got = answer.field("Content-Encoding").unwrap_or("identity");
            assert_eq!(got, coding, "{}", answer.cache_status());
        }
    }
}

#[test]
fn what_must_be_confirmed_is_never_the_answer_before() {
    let (origin, a) = alone();
    for (path, control, asked) in [
        ("/no-cache", "no-cache", None),
        ("/must", "max-age=0, must-revalidate", None),
        ("/asked", "max-age=600", Some("no-cache")),
    ] {
        let url = origin.url(path);
        for version in 1..40 {
            let script = Script::new(2000).seed(version).cache_control(control).no_etag();
            origin.serve(path, script.clone());
            let ask = asked.into_iter().fold(a.ask(&url), |ask, value| ask.field("Cache-Control", value));
            ask.send().assert_whole(&script);
        }
    }
}

#[test]
fn h30_a_304_that_says_private_is_for_him_alone_who_asked() {
    let (origin, a) = alone();
    let script = Script::new(100_000).stale_at_once();
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    let from_now_on = script.clone().not_modified_field("Cache-Control", "private");
    origin.serve("/f.bin", from_now_on.delay(Duration::from_millis(300)));
    at_once(4, |_| {
        a.get(&url).assert_whole(&script);
    });
    assert_eq!(origin.gets("/f.bin").len(), 5, "each has the origin's own word");
}
