//! `larder block --site`: what one administrator blocks, no node of the site gives out, until it is lifted on any.

use crate::support::{Ask, Larder, MIB, Origin, Script, Site, wait_until};

fn is_blocked(node: &Larder, thing: &str) -> bool {
    node.cli(&["block", "--json"]).assert_code(0).said().contains(thing)
}

fn wait_blocked(nodes: &[&Larder], thing: &str, blocked: bool) {
    for node in nodes {
        wait_until(&format!("{thing} to be blocked: {blocked}"), || is_blocked(node, thing) == blocked);
    }
}

#[test]
fn what_one_node_blocks_for_the_site_is_had_from_none_until_any_lifts_it() {
    let site = Site::new();
    let origin = Origin::start();
    let (a, b) = (Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start());
    let mut c = Larder::new("c").peers(&site).start();
    let apart = Larder::new("d").peers(&site).set("peers.site_orders", false).start();
    for other in [&b, &c, &apart] {
        a.meets(other);
    }
    let script = Script::new(2 * MIB).cache_control("max-age=600");
    let url = origin.serve("/bad.bin", script.clone());
    for node in [&b, &c, &apart] {
        node.get(&url).assert_whole(&script);
        node.wait_for_blob(&script.digest());
    }
    c.stop();
    let said = a.cli(&["block", &script.digest(), "--site", "--reason", "malware"]).assert_code(0).said();
    assert!(said.contains("is blocked on every node of the site"), "{said}");
    wait_blocked(&[&a, &b], &script.digest(), true);
    wait_until("the blob to be gone", || !b.blob_path(&script.digest()).exists());
    let refused = b.ask(&url).field("Larder-Digest", &script.digest()).send();
    assert!(refused.status == 403 && refused.text().contains("malware"), "{}", refused.text());
    let audit = b.cli(&["events", "--json"]).said();
    assert!(audit.contains("\"site\"") && audit.contains("a ("), "the audit names who ordered it: {audit}");
    let table = b.cli(&["block"]).said();
    assert!(table.contains("site: a ("), "{table}");
    // who was off hears of it, and so does who forgets nothing over a restart
    c.start_again();
    wait_blocked(&[&c], &script.digest(), true);
    wait_until("the blob to be gone", || !c.blob_path(&script.digest()).exists());
    assert!(!is_blocked(&apart, &script.digest()) && apart.get(&url).is_hit());
    apart.cli(&["block", &script.digest(), "--site"]).assert_code(1);
    // not by accident
    let kept = c.cli(&["unblock", &script.digest()]).assert_code(1).said();
    assert!(kept.contains("larder unblock --site"), "{kept}");
    // what b blocks for itself alone stays when the site lets it go
    b.cli(&["block", &script.digest(), "--reason", "ours"]).assert_code(0);
    c.cli(&["unblock", &script.digest(), "--site"]).assert_code(0);
    wait_blocked(&[&a, &c], &script.digest(), false);
    wait_until("b to hear of it", || b.cli(&["events", "--json"]).said().contains("\"DELETE\""));
    assert!(is_blocked(&b, &script.digest()));
    b.cli(&["unblock", &script.digest()]).assert_code(0);
    for node in [&a, &b, &c] {
        node.get(&url).assert_whole(&script);
    }
}

#[test]
fn a_url_is_blocked_for_the_site_and_a_later_order_holds_over_a_restart() {
    let site = Site::new();
    let origin = Origin::start();
    let mut a = Larder::new("a").peers(&site).start();
    let b = Larder::new("b").peers(&site).start();
    a.meets(&b);
    let script = Script::new(50_000).cache_control("max-age=600");
    let url = format!("{}?token=hush", origin.serve("/bad.bin", script.clone()));
    b.get(&url).assert_whole(&script);
    a.cli(&["block", &url, "--site"]).assert_code(0);
    wait_until("b to refuse it", || b.get(&url).status == 403);
    assert!(!b.cli(&["block", "--json"]).said().contains("hush"));
    // lifted where it was not ordered, while the other is off, and not brought back by it
    a.stop();
    b.cli(&["unblock", &url, "--site"]).assert_code(0);
    b.get(&url).assert_whole(&script);
    a.start_again();
    assert_eq!(a.get(&url).status, 403, "it knows no better yet");
    a.meets(&b);
    wait_until("a to hear that it is lifted", || a.get(&url).is_success());
    b.get(&url).assert_whole(&script);
}

#[test]
fn who_has_not_the_secret_orders_nothing_and_reads_no_orders() {
    let site = Site::new();
    let a = Larder::new("a").peers(&site).set("peers.tls", "off").set("bans.enabled", false).start();
    let stranger = Larder::new("s").peers(&site.strangers()).start();
    let lonely = Larder::new("l").start();
    lonely.cli(&["block", "http://example.org/x", "--site"]).assert_code(1);
    let thing = Script::new(10).digest();
    wait_until("the stranger to have joined its own site", || {
        stranger.cli(&["block", &thing, "--site"]).code == 0
    });
    let ask = |path: &str| Ask::new(a.peer(), "GET", path).field("Host", &a.peer().to_string());
    assert_eq!(ask("/orders").send().status, 403);
    assert_eq!(ask("/orders").field("Authorization", "Bearer AAAA").send().status, 403);
    // what is ordered among strangers is heard by none of us, though their frames were
    wait_until("frames of the stranger", || a.log().contains("nodes with another secret"));
    assert!(!is_blocked(&a, &thing));
}
