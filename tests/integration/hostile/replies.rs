//! Answers that somebody could read otherwise: none is stored wrong, none is given out as complete and wrong, and
//! none answers somebody else's question.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Ending, Larder, MIB, Origin, RawOrigin, Reply, Script, at_once};

/// What a client may see of an answer.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// 502 with a sentence.
    Refused,
    /// An error that the client sees: 502, or a body that ends visibly before its end.
    Broken,
    /// This body, complete.
    Body(&'static str),
}
use Fate::{Body, Broken, Refused};

/// Answers, and what becomes of them. `EVIL` stands in what must reach nobody.
const REPLIES: &[(&str, Fate)] = &[
    // framing
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", Body("hello")),
    ("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5 5\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhello", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", Broken),
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        Body("hello"),
    ),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        Body("hello"),
    ),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n8\r\n5\r\nEVIL\r\n0\r\n\r\n", Refused),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nEVIL\r\n0\r\n\r\n",
        Refused,
    ),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n4\r\nEVIL\r\n0\r\n\r\n", Refused),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n4\r\nEVIL\r\n0\r\n\r\n", Refused),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 4\r\n\r\nEVIL", Refused),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n4\r\nEVIL\r\n0\r\n\r\n", Refused),
    ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nEVIL\r\n0\r\n\r\n", Refused),
    // chunks
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n", Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n", Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n", Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n", Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhello\r\n0\r\n\r\n", Broken),
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n", Broken),
    (
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX-EVIL: 1\r\nSet-Cookie: EVIL\r\nContent-Length: 9\r\n\r\n",
        Body("hello"),
    ),
    // heads
    ("HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 4\r\n\r\nEVIL", Refused),
    ("HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 4\r\n\r\nEVIL", Refused),
    ("HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 4\r\n\r\nEVIL", Refused),
    ("HTTP/1.1 200 OK\r\nX Y: a\r\nContent-Length: 4\r\n\r\nEVIL", Refused),
    ("HTTP/1.1 200 OK\r\nno colon\r\nContent-Length: 4\r\n\r\nEVIL", Refused),
    ("HTTP/1.1 20 OK\r\nContent-Length: 4\r\n\r\nEVIL", Refused),
    ("HTTP/1.1 2000 OK\r\nContent-Length: 4\r\n\r\nEVIL", Refused),
    ("HTTP/9.9 200 OK\r\nContent-Length: 4\r\n\r\nEVIL", Refused),
    ("ICY 200 OK\r\nContent-Length: 4\r\n\r\nEVIL", Refused),
    ("EVIL", Refused),
    ("", Refused),
    ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nEVIL", Refused),
    ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", Refused),
    // more than was asked for
    (
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL",
        Body("hello"),
    ),
    ("HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nEVIL", Body("")),
    ("HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\nEVIL", Body("")),
    (
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <EVIL>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        Body("hello"),
    ),
];

#[test]
fn h42_an_answer_in_doubt_is_neither_believed_nor_kept() {
    let seen = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&seen);
    let origin = RawOrigin::start(move |target| {
        counted.fetch_add(1, Ordering::SeqCst);
        let mut parts = target.split('/').skip(1);
        match (parts.next(), parts.next().and_then(|number| number.parse::<usize>().ok())) {
            (Some(how), Some(number)) => {
                let bytes = REPLIES[number].0.replacen("\r\n", "\r\nCache-Control: max-age=600\r\n", 1);
                Reply { bytes: bytes.into_bytes(), closes: how == "closed" }
            }
            _ => Reply::kept("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nCache-Control: no-store\r\n\r\ngood"),
        }
    });
    let a = Larder::new("a").set("origin.stall_timeout", "2s").start();
    for (number, (reply, fate)) in REPLIES.iter().enumerate() {
        let url = origin.url(&format!("/closed/{number}"));
        let answer = a.get(&url);
        let text = answer.text();
        let told = format!("{:?}{text}", answer.fields);
        assert!(!told.contains("EVIL"), "{reply:?}: {told}");
        match fate {
            Refused => assert_eq!(answer.status, 502, "{reply:?}: {text}"),
            Broken => assert!(!answer.is_success(), "{reply:?} passed for whole: {text}"),
            Body(body) => {
                assert_eq!((text.as_str(), answer.ending), (*body, Ending::Complete), "{reply:?}");
                let both =
                    answer.field("Content-Length").is_some() && answer.field("Transfer-Encoding").is_some();
                assert!(!both, "{reply:?}: {:?}", answer.fields);
            }
        }
        if answer.status == 502 {
            assert_eq!(answer.field("Content-Type"), Some("application/problem+json"), "{reply:?}");
        }
        if matches!(fate, Refused | Broken) {
            let before = seen.load(Ordering::SeqCst);
            assert!(!a.get(&url).is_success(), "{reply:?}");
            assert!(seen.load(Ordering::SeqCst) > before, "{reply:?}: the second answer came from a store");
        }
        assert_eq!(a.get(&origin.url("/good")).text(), "good", "after {reply:?}");
    }
    for path in a.blobs() {
        let held = std::fs::read(&path).unwrap();
        assert!(held == b"hello" || held.is_empty(), "{:?} is held", String::from_utf8_lossy(&held));
    }
    println!(
        "{} answers, {} of them in doubt: 0 stored wrong, 0 given as complete",
        REPLIES.len(),
        REPLIES.iter().filter(|(_, fate)| !matches!(fate, Body(_))).count()
    );
}

#[test]
fn h42_what_follows_an_answer_on_a_kept_connection_answers_nobody() {
    let origin = RawOrigin::start(|target| match target.strip_prefix("/split/") {
        Some(_) => Reply::kept(
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nCache-Control: no-store\r\n\r\nhello\
             HTTP/1.1 200 OK\r\nContent-Length: 4\r\nCache-Control: max-age=600\r\n\r\nEVIL",
        ),
        None => Reply::kept(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\r\n{target}",
            target.len()
        )),
    });
    let a = Larder::new("a").start();
    for round in 0..50 {
        assert_eq!(a.get(&origin.url(&format!("/split/{round}"))).text(), "hello");
        let path = format!("/mine/{round}");
        assert_eq!(a.get(&origin.url(&path)).text(), path, "round {round}");
    }
    let wrong = at_once(16, |worker| {
        (0..20)
            .filter(|round| {
                let path = format!("/mine/{worker}/{round}");
                a.get(&origin.url(&format!("/split/{worker}/{round}"))).text() != "hello"
                    || a.get(&origin.url(&path)).text() != path
            })
            .count()
    });
    assert_eq!(wrong.iter().sum::<usize>(), 0);
    assert!(a.blobs().is_empty());
}

#[test]
fn interim_answers_without_end_are_given_up() {
    let flood = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(20_000);
    let origin = RawOrigin::start(move |target| match target {
        "/flood" => Reply::kept(&flood),
        _ => Reply::kept(super::OK),
    });
    let a = Larder::new("a").start();
    let answer = a.get(&origin.url("/flood"));
    assert_eq!(answer.status, 502, "{}", answer.text());
    assert!(answer.text().contains("interim"), "{}", answer.text());
    assert!(answer.took < std::time::Duration::from_secs(10), "{:?}", answer.took);
    assert_eq!(a.get(&origin.url("/after")).text(), "ok");
}

#[test]
fn an_early_answer_reaches_the_client_and_spoils_nothing() {
    let origin = Origin::start();
    let a = Larder::new("a").start();
    let url = origin
        .serve("/early", Script::raw(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nno!"));
    let body = crate::support::body::slice(1, 0..4 * MIB);
    let answer = a.ask(&url).method("POST").body(&body).try_send();
    // whoever still sends may lose the answer, but never gets a wrong one
    assert!(answer.is_err() || answer.is_ok_and(|answer| [413, 502].contains(&answer.status)));
    let fine = Script::new(1000);
    a.get(&origin.serve("/fine", fine.clone())).assert_whole(&fine);
}

#[test]
fn h40_large_heads_of_an_origin_pass_and_larger_ones_are_told() {
    let (origin, a) = (Origin::start(), Larder::new("a").start());
    for (size, status) in [(16 << 10, 200), (64 << 10, 200), (300 << 10, 200), (700 << 10, 502)] {
        let script = Script::new(10).field("X-Bulk", &"b".repeat(size)).cache_control("no-store");
        let answer = a.get(&origin.serve(&format!("/{size}"), script));
        assert_eq!(answer.status, status, "{size}");
        assert!(status == 200 || answer.text().contains("too large"), "{}", answer.text());
    }
}
