//! What neighbours may take from each other.

use std::time::Duration;

use super::{fill, two};
use crate::support::{Larder, MIB, Origin, Script, Site, at_once, wait_until};

#[test]
fn p14_more_askers_than_places_go_elsewhere_and_local_clients_come_first() {
    let site = Site::new();
    let origin = Origin::start();
    let giver = Larder::new("giver").peers(&site).set("peers.max_uploads", 2).set("peers.upload_rate", "2MB");
    let giver = giver.start();
    let askers: Vec<_> = (0..5).map(|n| Larder::new(&format!("asker{n}")).peers(&site).start()).collect();
    askers.iter().for_each(|asker| asker.meets(&giver));
    let scripts: Vec<_> = (1..=5).map(|n| Script::new(2 * MIB).seed(n)).collect();
    let urls: Vec<_> = scripts.iter().map(|s| origin.serve(&format!("/{}.bin", s.seed), s.clone())).collect();
    for (url, script) in urls.iter().zip(&scripts) {
        fill(&giver, url, script);
    }
    let answers = at_once(6, |n| match askers.get(n) {
        Some(asker) => asker.ask(&urls[n]).field("Larder-Digest", &scripts[n].digest()).send(),
        None => giver.get(&urls[0]),
    });
    for (n, answer) in answers.iter().take(5).enumerate() {
        answer.assert_whole(&scripts[n]);
    }
    let local = answers[5].assert_whole(&scripts[0]);
    let from_giver = answers.iter().filter(|answer| answer.is_from_peer()).count();
    println!("{from_giver} of 5 were given by the neighbour; its own client waited {:?}", local.took);
    assert!(local.is_hit() && local.took < Duration::from_secs(10));
    assert!(giver.bans().is_empty() && askers.iter().all(|asker| asker.bans().is_empty()));
    let given = giver.count("/traffic/bytes_to_peers");
    assert!(given < 5 * 2 * MIB, "with two places not all five are served at once: {given}");
}

#[test]
fn p18_a_neighbours_partial_never_becomes_a_whole() {
    let (origin, a, b) = two();
    let script = Script::new(6 * MIB).hold_at(3 * MIB).cut_once(3 * MIB).by_reset();
    let url = origin.serve("/f.bin", script.clone());
    let mut first = a.ask(&url).open();
    first.read_to(2 * MIB);
    let asking = std::thread::scope(|scope| {
        let second = scope.spawn(|| b.ask(&url).field("Larder-Digest", &script.digest()).send());
        wait_until("the second node to be at it", || b.transfers() == 1);
        // The origin breaks off; from now on it gives the whole.
        origin.serve("/f.bin", Script::new(6 * MIB));
        origin.release("/f.bin");
        second.join().unwrap()
    });
    asking.assert_whole(&script);
    let first = first.rest();
    assert!(!first.is_success() || first.body == script.body(), "whole and right, or an error");
    for node in [&a, &b] {
        wait_until("nothing left running", || node.transfers() == 0);
        node.verify_all_blobs();
        node.get(&url).assert_whole(&script);
        assert!(node.bans().is_empty());
    }
}
