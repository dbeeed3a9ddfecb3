//! Both protocols on one machine at once.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::{Net, fill, stated};
use crate::support::{Larder, Origin, Script, Site, at_once, wait_until};

/// How many downloads, and how many at one time.
const DOWNLOADS: u64 = 200;
const AT_ONCE: usize = 8;

#[test]
fn two_hundred_downloads_from_both_kinds_of_peers_are_all_right() {
    let (net, origin, site) = (Net::new(), Origin::start(), Site::new());
    let a = net.larder("a").peers(&site).start();
    let b = net.larder("b").peers(&site).start();
    let plain = Larder::new("c").peers(&site).start();
    let (one, two) = (net.original(), net.original());
    a.meets(&b);
    b.meets(&plain);
    wait_until("b to hear the originals", || b.status()["mormot"]["network"]["peers"].as_u64() >= Some(2));
    let scripts: Vec<Script> = (0..DOWNLOADS).map(|n| Script::new(20_000 + n * 1000).seed(n + 1)).collect();
    let urls: Vec<String> =
        scripts.iter().map(|s| origin.serve(&format!("/{}.bin", s.seed), s.clone())).collect();
    for (n, (script, url)) in scripts.iter().zip(&urls).enumerate() {
        match n % 5 {
            0 => fill(&a, url, script),
            1 => fill(&plain, url, script),
            2 => one.holds(script),
            3 => {
                one.holds(script);
                two.holds(script);
            }
            _ => {}
        }
    }
    let (next, shares) = (Mutex::new(0..scripts.len()), Mutex::new(BTreeMap::<String, u32>::new()));
    at_once(AT_ONCE, |_| {
        loop {
            let Some(n) = next.lock().unwrap().next() else { return };
            let answer = stated(&b, &urls[n], &scripts[n]);
            answer.assert_whole(&scripts[n]);
            let status = answer.cache_status().to_owned();
            let source = match status.split("peer ").nth(1) {
                Some(address) if address.starts_with(&a.ip().to_string()) => "larder a",
                Some(address) if address.starts_with(&plain.ip().to_string()) => "larder c",
                Some(_) => "originals",
                None => "origin",
            };
            *shares.lock().unwrap().entry(source.to_owned()).or_default() += 1;
        }
    });
    let shares = shares.into_inner().unwrap();
    println!("{DOWNLOADS} downloads, all digests right, by source: {shares:?}");
    println!("b among the originals: {}", b.status()["mormot"]);
    assert_eq!(shares.values().sum::<u32>(), 200);
    assert!(shares["originals"] >= 70 && shares["origin"] <= 60, "{shares:?}");
    assert!(shares["larder a"] + shares["larder c"] >= 70, "{shares:?}");
    for peer in [&one, &two] {
        assert!(peer.bans().is_empty(), "{:?}", peer.bans());
    }
    assert!([&a, &b, &plain].iter().all(|node| node.bans().is_empty()));
}
