//! Fields and bodies: framing, codings, variants, HEAD, what a 404 leaves behind.

use super::alone;
use crate::support::{Ending, MIB, Script, body, sha256};

#[test]
fn h12_a_chunked_body_is_streamed_and_held_with_a_length() {
    let (origin, a) = alone();
    let script = Script::new(3 * MIB).chunked();
    let url = origin.serve("/f.bin", script.clone());
    let cold = a.get(&url);
    cold.assert_whole(&script);
    assert_eq!(cold.field("Transfer-Encoding"), Some("chunked"));
    a.wait_for_blob(&script.digest());
    let hit = a.get(&url);
    hit.assert_whole(&script);
    assert_eq!(hit.field("Content-Length"), Some((3 * MIB).to_string().as_str()));
    assert_eq!(origin.gets("/f.bin").len(), 1);
}

#[test]
fn h17_a_head_shows_what_a_get_gives_and_makes_no_entry() {
    let (origin, a) = alone();
    let script = Script::new(70_000);
    let url = origin.serve("/f.bin", script.clone());
    let fields = |answer: &crate::support::Answer| {
        let one = |name| answer.field(name).map(str::to_owned);
        (answer.status, one("Content-Length"), one("ETag"))
    };
    let cold = a.ask(&url).method("HEAD").send();
    assert!(cold.body.is_empty());
    assert_eq!(fields(&cold), (200, Some("70000".into()), script.etag_value()));
    let get = a.get(&url);
    get.assert_whole(&script);
    assert_eq!(origin.gets("/f.bin").len(), 1, "the HEAD did not answer the GET");
    a.wait_for_blob(&script.digest());
    let held = a.ask(&url).method("HEAD").send();
    assert_eq!(fields(&held), fields(&get));
    assert!(held.is_hit(), "{}", held.cache_status());
    assert_eq!(origin.requests("/f.bin").iter().filter(|seen| seen.method == "HEAD").count(), 1);
}

#[test]
fn h23_each_client_gets_a_coding_it_accepts() {
    let (origin, a) = alone();
    for (path, order) in
        [("/abc", [Some("gzip"), None, Some("gzip;q=0")]), ("/ba", [None, Some("gzip"), None])]
    {
        let script = Script::new(20_000).negotiates();
        let url = origin.serve(path, script.clone());
        for round in ["cold", "held"] {
            for accepted in order {
                let ask = a.ask(&url);
                let ask = accepted.into_iter().fold(ask, |ask, value| ask.field("Accept-Encoding", value));
                let answer = ask.send();
                let gzip = accepted == Some("gzip");
                assert_eq!(answer.field("Content-Encoding").is_some(), gzip, "{path} {round} {accepted:?}");
                assert_eq!(
                    answer.body,
                    body::slice(1 + u64::from(gzip), 0..20_000),
                    "{path} {round} {accepted:?}"
                );
            }
        }
        assert!(origin.gets(path).len() <= 3, "each variant once: {}", origin.gets(path).len());
    }
    let url = origin.serve("/star", Script::new(100).field("Vary", "*"));
    a.get(&url);
    assert!(!a.get(&url).is_hit());
    assert_eq!(origin.gets("/star").len(), 2, "Vary: * is never reused");
    let url = origin.serve("/odd", Script::new(100).field("Vary", "X-Whatever"));
    a.ask(&url).field("X-Whatever", "1").send();
    a.ask(&url).field("X-Whatever", "2").send();
    assert_eq!(origin.gets("/odd").len(), 2, "another value of a field in Vary is another answer");
}

#[test]
fn h24_codings_go_through_untouched() {
    let (origin, a) = alone();
    for coding in [None, Some("gzip"), Some("x-gzip")] {
        let path = format!("/f-{}.tgz", coding.unwrap_or("none"));
        let script = Script::new(100_000);
        let script =
            coding.into_iter().fold(script, |script, coding| script.field("Content-Encoding", coding));
        let url = origin.serve(&path, script.clone());
        for _ in ["cold", "held"] {
            let answer = a.get(&url);
            answer.assert_whole(&script);
            assert_eq!(answer.field("Content-Encoding"), coding);
        }
        a.wait_for_blob(&format!("sha256:{}", sha256(&script.body())));
        assert!(
            origin.gets(&path)[0].field("Accept-Encoding").is_none(),
            "we ask for nothing the client did not"
        );
    }
}

#[test]
fn h41_an_http_1_0_client_gets_no_chunks() {
    let (origin, a) = alone();
    let script = Script::new(500_000).chunked();
    for connection in ["close", "keep-alive"] {
        let url = origin.serve(&format!("/{connection}"), script.clone());
        for _ in ["cold", "held"] {
            let answer = a.ask(&url).http10().field("Connection", connection).send();
            assert!(answer.field("Transfer-Encoding").is_none());
            assert!(["HTTP/1.0", "HTTP/1.1"].contains(&answer.version.as_str()));
            answer.assert_whole(&script);
        }
    }
}

#[test]
fn k24_a_404_is_forgotten_at_once() {
    let (origin, a) = alone();
    let url = origin.serve("/f.bin", Script::new(10).status(404).cache_control("no-cache"));
    assert_eq!(a.get(&url).status, 404);
    let script = Script::new(100);
    origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    // Also when the origin said nothing about how long its 404 holds.
    let url = origin.url("/never.bin");
    assert_eq!(a.get(&url).status, 404);
    origin.serve("/never.bin", script.clone());
    a.get(&url).assert_whole(&script);
}

#[test]
fn a_digest_the_client_states_is_the_judge() {
    let (origin, a) = alone();
    let script = Script::new(300_000);
    let url = origin.serve("/f.bin", script.clone());
    let right = a.ask(&url).field("Larder-Digest", &script.digest()).send();
    right.assert_whole(&script);
    assert!(origin.gets("/f.bin")[0].field("Larder-Digest").is_none(), "the field is ours alone");
    let wrong = format!("sha256:{}", sha256(b"something else"));
    let other = origin.serve("/other.bin", Script::new(300_000).seed(2));
    let refused = a.ask(&other).field("Larder-Digest", &wrong).send();
    assert!(!refused.is_success(), "a wrong digest never ends well: {}", refused.status);
    // By the digest alone, whatever the URL.
    let path = format!("/@{}/http/{}/elsewhere.bin", script.digest(), origin.address());
    a.wait_for_blob(&script.digest());
    a.door(&path).send().assert_whole(&script);
    assert!(origin.gets("/elsewhere.bin").is_empty());
}

#[test]
fn a_stated_digest_judges_what_is_held_as_well() {
    let (origin, a) = alone();
    let script = Script::new(300_000).cache_control("max-age=600");
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    let wrong = format!("sha256:{}", sha256(b"something else"));
    for refused in [
        a.ask(&url).field("Larder-Digest", &wrong).send(),
        a.door(&format!("/@{wrong}/http/{}/f.bin", origin.address())).send(),
        a.ask(&url).field("Larder-Digest", &wrong).range("0-").send(),
    ] {
        assert!(!refused.is_success(), "held bytes of another digest were given: {}", refused.status);
    }
    a.get(&url).assert_whole(&script);
}

#[test]
fn the_digest_door_keeps_its_digest_over_a_redirect() {
    let (origin, a) = alone();
    let script = Script::new(100_000);
    let target = origin.serve("/elsewhere.bin", script.clone());
    origin.serve("/here", Script::redirect(&target));
    for (digest, right) in [(script.digest(), true), (format!("sha256:{}", sha256(b"other")), false)] {
        let moved = a.door(&format!("/@{digest}/http/{}/here", origin.address())).send();
        let location = moved.field("Location").unwrap().to_owned();
        assert!(location.starts_with(&format!("/@{digest}/http/")), "{location}");
        assert_eq!(a.door(&location).send().is_success(), right);
    }
}

#[test]
fn a_retry_after_a_digest_cut_is_told_to_start_anew() {
    let (origin, a) = alone();
    let script = Script::new(2 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    let wrong = format!("sha256:{}", sha256(b"something else"));
    let cut = a.ask(&url).field("Larder-Digest", &wrong).send();
    assert!(!cut.is_success());
    assert_eq!(cut.ending, Ending::Truncated, "the body was begun and is cut");
    assert!((1..2 * MIB).contains(&(cut.body.len() as u64)), "{} bytes went out", cut.body.len());
    let retry = a.ask(&url).range(&format!("{}-", cut.body.len())).send();
    assert_eq!(retry.status, 409, "the rest of a wrong prefix is not given");
    assert!(retry.text().contains("delete"), "{}", retry.text());
    a.get(&url).assert_whole(&script);
}

#[test]
fn a_stated_digest_judges_what_only_passes_through() {
    let (origin, a) = alone();
    let wrong = format!("sha256:{}", sha256(b"something else"));
    for (path, script) in [
        ("/no-store", Script::new(300_000).cache_control("no-store")),
        ("/large", Script::new(5_000_000).cache_control("no-store")),
        ("/star", Script::new(300_000).field("Vary", "*")),
    ] {
        let url = origin.serve(path, script.clone());
        for _ in 0..10 {
            let answer = a.ask(&url).field("Larder-Digest", &wrong).send();
            assert!(!answer.is_success(), "{path}: {} wrong bytes ended well", answer.body.len());
        }
        a.ask(&url).field("Larder-Digest", &script.digest()).send().assert_whole(&script);
    }
}
