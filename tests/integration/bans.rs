//! Bans guard the peer port: three proven offences, never everyday trouble, never ourselves.

use std::net::IpAddr;

use crate::support::address::OwnAddress;
use crate::support::{Answer, Ask, Larder, Origin, Script, Site, sha256, wait_until};

/// Knocks at the peer port with a bearer that no accepted key opens.
fn forged(node: &Larder, from: IpAddr) -> std::io::Result<Answer> {
    let path = format!("/blob/sha256:{}", sha256(b"anything"));
    let ask = Ask::new(node.peer(), "GET", &path).field("Host", &node.peer().to_string());
    ask.field("Authorization", &format!("Bearer {}", "QUJD".repeat(30))).from(from).try_send()
}

/// A node whose peer port speaks plain HTTP, so that the knocking needs no certificate.
fn plain(site: &Site) -> Larder {
    Larder::new("a").peers(site).set("peers.tls", "off").list("bans.never", &[]).start()
}

#[test]
fn three_forged_tokens_ban_their_address_until_it_is_lifted() {
    let site = Site::new();
    let a = plain(&site);
    let (offender, bystander) = (OwnAddress::claim(), OwnAddress::claim());
    for strike in 0..3 {
        assert_eq!(forged(&a, offender.ip()).unwrap().status, 403, "strike {strike}");
    }
    wait_until("the ban", || a.bans() == [offender.ip().to_string()]);
    assert!(forged(&a, offender.ip()).is_err(), "a banned address gets no answer");
    assert_eq!(forged(&a, bystander.ip()).unwrap().status, 403, "others do");
    let listed = a.cli(&["bans"]).assert_code(0).stdout;
    assert!(listed.contains(&offender.ip().to_string()), "{listed}");
    a.cli(&["bans", "rm", &offender.ip().to_string()]).assert_code(0);
    assert!(a.bans().is_empty());
    assert_eq!(forged(&a, offender.ip()).unwrap().status, 403);
}

#[test]
fn bans_are_added_by_hand_and_outlive_a_restart() {
    let site = Site::new();
    let mut a = plain(&site);
    let offender = OwnAddress::claim();
    let address = offender.ip().to_string();
    a.cli(&["bans", "add", &address, "--for", "1h"]).assert_code(0);
    assert!(forged(&a, offender.ip()).is_err());
    a.restart();
    assert_eq!(a.bans(), [address.as_str()]);
    assert!(forged(&a, offender.ip()).is_err());
    a.cli(&["bans", "rm", &address]).assert_code(0);
    a.restart();
    assert!(a.bans().is_empty());
    assert_ne!(a.cli(&["bans", "add", "not-an-address"]).code, 0);
}

#[test]
fn a_ban_ends_by_itself() {
    let site = Site::new();
    let a = plain(&site);
    let offender = OwnAddress::claim();
    a.cli(&["bans", "add", &offender.ip().to_string(), "--for", "500ms"]).assert_code(0);
    assert!(forged(&a, offender.ip()).is_err());
    wait_until("the ban to end", || a.bans().is_empty());
    assert_eq!(forged(&a, offender.ip()).unwrap().status, 403);
}

#[test]
fn p11_loopback_and_own_addresses_are_never_banned() {
    let site = Site::new();
    let a = Larder::new("a").peers(&site).set("peers.tls", "off").start();
    let local = OwnAddress::claim();
    for _ in 0..10 {
        forged(&a, local.ip()).unwrap();
        forged(&a, a.ip()).unwrap();
    }
    assert!(a.bans().is_empty(), "bans.never holds loopback");
    let origin = Origin::start();
    for n in 0..200 {
        let answer = a.get(&origin.url(&format!("/{n}?status=500")));
        assert_eq!(answer.status, 500);
    }
    assert_eq!(a.door("/nonsense").send().status / 100, 4);
    let script = Script::new(100);
    a.get(&origin.serve("/f", script.clone())).assert_whole(&script);
    let own = Site::new();
    let b = plain(&own);
    for _ in 0..10 {
        drop(forged(&b, b.ip()));
    }
    assert!(b.bans().is_empty(), "the address we listen on is exempt");
}

#[test]
fn bans_guard_the_peer_port_alone() {
    let site = Site::new();
    let origin = Origin::start();
    let a = plain(&site);
    let offender = OwnAddress::claim();
    a.cli(&["bans", "add", &offender.ip().to_string()]).assert_code(0);
    let script = Script::new(100);
    let url = origin.serve("/f", script.clone());
    a.ask(&url).from(offender.ip()).send().assert_whole(&script);
}
