//! The doors towards a well-behaved origin: ranges, targets, fields, codings, framing, loops.

mod content;
mod copies;
mod interim;
mod parts;
mod ranges;
mod requests;
mod secrets;

use crate::support::{Larder, Origin, Script};

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
