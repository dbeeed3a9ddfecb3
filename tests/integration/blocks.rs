//! `larder block`: what nobody gets from a node, by URL and by digest, until it is let go again.

use serde_json::Value;

use crate::support::{Larder, MIB, Origin, Script, Site};

fn listed(node: &Larder) -> Vec<Value> {
    serde_json::from_str(&node.cli(&["block", "--json"]).assert_code(0).said()).unwrap()
}

#[test]
fn a_blocked_url_is_refused_and_what_it_led_to_is_gone() {
    let origin = Origin::start();
    let mut a = Larder::new("a").start();
    let script = Script::new(50_000).cache_control("max-age=600");
    let url = format!("{}?token=hush", origin.serve("/bad.bin", script.clone()));
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    // three times: what is served out of memory is refused too
    (0..3).for_each(|_| assert!(a.get(&url).assert_whole(&script).is_hit()));
    let said = a.cli(&["block", &url, "--reason", "malware, ticket 12"]).assert_code(0).said();
    assert!(said.contains("is blocked; what was held of it is gone") && !said.contains("hush"), "{said}");
    let asked = origin.gets("/bad.bin").len();
    for _ in 0..2 {
        let refused = a.get(&url);
        assert_eq!(refused.status, 403);
        assert!(refused.text().contains("malware, ticket 12"), "{}", refused.text());
        assert!(a.blobs().is_empty());
        // a block outlives a restart
        a.restart();
    }
    assert_eq!(origin.gets("/bad.bin").len(), asked, "nobody is asked");
    let why = a.cli(&["info", &url]).said();
    assert!(why.contains("blocked here: malware, ticket 12"), "{why}");
    assert!(!format!("{:?}", listed(&a)).contains("hush"));
    // another URL of the same bytes is not blocked
    let other = origin.serve("/good.bin", script.clone());
    a.get(&other).assert_whole(&script);
    let lifted = a.cli(&["unblock", &url]).assert_code(0).said();
    assert!(lifted.contains("may be had again"), "{lifted}");
    a.get(&url).assert_whole(&script);
    let again = a.cli(&["unblock", &url]);
    assert!(again.assert_code(3).said().contains("is not blocked"));
    let audit = a.cli(&["events", "--json"]).said();
    assert!(audit.contains("/api/v1/blocks"), "{audit}");
}

#[test]
fn a_blocked_blob_is_had_from_nobody_and_its_urls_are_found_out() {
    let site = Site::new();
    let origin = Origin::start();
    let (a, b) = (Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start());
    a.meets(&b);
    let script = Script::new(3 * MIB).cache_control("max-age=600");
    let url = origin.serve("/f.bin", script.clone());
    b.get(&url).assert_whole(&script);
    b.wait_for_blob(&script.digest());
    let digest = format!("sha256:{}", script.digest().trim_start_matches("sha256:"));
    a.cli(&["block", &digest]).assert_code(0);
    // the client says what it wants: nobody is asked
    let asked = origin.all_requests().len();
    let refused = a.ask(&url).field("Larder-Digest", &digest).send();
    assert_eq!(refused.status, 403);
    assert_eq!(origin.all_requests().len(), asked);
    // where only the end shows what it is, the end does not come, and the next one is told at once
    let cut = a.ask(&url).try_send();
    assert!(cut.is_err() || cut.is_ok_and(|answer| answer.status == 403));
    assert_eq!(a.get(&url).status, 403);
    let small = Script::new(1000).seed(9);
    a.cli(&["block", &format!("sha256:{}", small.digest().trim_start_matches("sha256:"))]).assert_code(0);
    let tiny = origin.serve("/tiny", small);
    assert_eq!(a.get(&tiny).status, 403, "a small one is told at once");
    assert!(a.blobs().is_empty());
    assert_eq!(listed(&a).len(), 4, "two blobs, and the two URLs that led to them: {:?}", listed(&a));
    // what is not blocked comes as before, from the origin and from the neighbour
    let good = Script::new(2 * MIB).seed(3).cache_control("max-age=600");
    let fine = origin.serve("/good.bin", good.clone());
    a.get(&fine).assert_whole(&good);
    a.wait_for_blob(&good.digest());
    b.get(&url).assert_whole(&script);
    a.cli(&["unblock", &digest]).assert_code(0);
    assert_eq!(listed(&a).len(), 2);
    a.get(&url).assert_whole(&script);
}

#[test]
fn what_is_no_thing_is_not_blocked() {
    let a = Larder::new("a").start();
    for thing in ["here", "sha256:12", "ftp://example.org/x", ""] {
        assert_ne!(a.cli(&["block", thing]).code, 0, "{thing}");
    }
    let long = "x".repeat(201);
    a.cli(&["block", "http://example.org/x", "--reason", &long]).assert_code(1);
    a.cli(&["block", "--reason", "why"]).assert_code(2);
    assert_eq!(a.cli(&["block"]).assert_code(0).said().trim(), "nothing is blocked");
}
