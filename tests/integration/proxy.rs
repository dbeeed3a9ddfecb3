//! The doors towards a well-behaved origin: ranges, targets, fields, codings, framing, loops.

mod content;
mod copies;
mod interim;
mod parts;
mod ranges;
mod requests;
mod secrets;

use crate::support::{Connection, Larder, Origin, Script, wait_until};

/// One node without neighbours, and an origin.
fn alone() -> (Origin, Larder) {
    (Origin::start(), Larder::new("a").start())
}

#[test]
fn a_second_download_is_a_hit_and_says_so() {
    let (origin, a) = alone();
    let script = Script::new(300_000);
    let url = origin.serve("/f.bin", script.clone());
    let cold = a.get(&url);
    cold.assert_whole(&script);
    assert!(cold.cache_status().starts_with("larder; fwd=uri-miss"), "{}", cold.cache_status());
    assert!(cold.cache_status().contains("detail=\"origin\""), "{}", cold.cache_status());
    assert!(cold.field("Via").is_some_and(|via| via.contains("1.1 larder-")), "{:?}", cold.fields);
    a.wait_for_blob(&script.digest());
    let hit = a.get(&url);
    hit.assert_whole(&script);
    assert!(hit.is_hit(), "{}", hit.cache_status());
    assert!(hit.field("Age").is_some_and(|age| age.parse::<u64>().is_ok()));
    assert_eq!(hit.field("ETag"), script.etag_value().as_deref());
    assert_eq!(origin.gets("/f.bin").len(), 1);
}

#[test]
fn the_prefix_door_and_the_proxy_door_lead_to_the_same_thing() {
    let (origin, a) = alone();
    let script = Script::new(50_000);
    let url = origin.serve("/f.bin", script.clone());
    a.prefix(&url).send().assert_whole(&script);
    a.wait_for_blob(&script.digest());
    assert!(a.get(&url).assert_whole(&script).is_hit());
    assert_eq!(origin.gets("/f.bin").len(), 1);
    let foreign = a.prefix(&url).field("Sec-Fetch-Site", "cross-site").send();
    assert_eq!(foreign.status, 403, "the prefix door is not for other web sites");
}

#[test]
fn an_https_origin_is_cached_through_the_prefix_door() {
    let origin = Origin::start_tls();
    let a = Larder::new("a").trusts(&origin).start();
    let script = Script::new(200_000);
    let url = origin.serve("/f.bin", script.clone());
    a.prefix(&url).send().assert_whole(&script);
    a.wait_for_blob(&script.digest());
    assert!(a.prefix(&url).send().assert_whole(&script).is_hit());
    assert_eq!(origin.gets("/f.bin").len(), 1);
}

#[test]
fn an_https_origin_nobody_vouches_for_is_refused() {
    let origin = Origin::start_tls();
    let a = Larder::new("a").start();
    let url = origin.serve("/f.bin", Script::new(10));
    let answer = a.prefix(&url).send();
    assert_eq!(answer.status, 502);
    assert_eq!(answer.field("Content-Type"), Some("application/problem+json"));
    assert!(answer.text().contains("origin.ca_file"), "it says what to do: {}", answer.text());
    assert!(origin.gets("/f.bin").is_empty());
}

#[test]
fn a_redirect_through_the_prefix_door_leads_back_into_it() {
    let (origin, a) = alone();
    let url = origin.serve("/here", Script::redirect(&origin.url("/there")));
    let answer = a.prefix(&url).send();
    assert_eq!(answer.status, 302);
    let location = answer.field("Location").unwrap();
    let inside = format!("/http/{}/there", origin.address());
    assert!(location.ends_with(&inside), "{location} should end with {inside}");
}

#[test]
fn what_is_answered_at_once_is_what_the_server_answers() {
    let (origin, a) = alone();
    let script = Script::new(3000).etag("\"x\"");
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    // the second makes it known
    assert!(a.get(&url).assert_whole(&script).is_hit());
    let plain = format!("GET {url} HTTP/1.1\r\nHost: h\r\nUser-Agent: x\r\n\r\n");
    let mut connection = Connection::to(a.proxy()).unwrap();
    connection.write(plain.as_bytes()).unwrap();
    connection.half_close();
    let at_once = without_age(&connection.drain());
    assert!(at_once.starts_with("HTTP/1.1 200 OK\r\n") && at_once.contains("cache-status: larder; hit\r\n"));
    // two together are not plain
    let mut connection = Connection::to(a.proxy()).unwrap();
    let last = format!("HEAD {url} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    connection.write(format!("{plain}{last}").as_bytes()).unwrap();
    let by_the_server = without_age(&connection.drain());
    let (whole, head) = by_the_server.split_at(at_once.len());
    assert!(whole == at_once, "{by_the_server:.600} is not {at_once:.600}");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");

    let mut connection = Connection::to(a.proxy()).unwrap();
    for _ in 0..3 {
        connection.write(plain.as_bytes()).unwrap();
        connection.answer("GET").assert_whole(&script);
    }
    connection
        .write(format!("GET {url} HTTP/1.1\r\nHost: h\r\nRange: bytes=5-9\r\n\r\n").as_bytes())
        .unwrap();
    connection.answer("GET").assert_slice(&script, 5, 10);
    connection.write(plain.as_bytes()).unwrap();
    connection.answer("GET").assert_whole(&script);
    assert_eq!(origin.gets("/f.bin").len(), 1);
    // three on connections of their own, five on the last one, one of which was five bytes
    wait_until("all are counted", || a.count("/traffic/bytes_from_cache") == 7 * 3000 + 5);
}

fn without_age(answer: &[u8]) -> String {
    let text: String = answer.iter().map(|byte| char::from(*byte)).collect();
    text.split_inclusive("\r\n").filter(|line| !line.starts_with("age: ")).collect()
}
