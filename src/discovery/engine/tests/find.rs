//! Finds: who decides them, how long they wait, what they cost.

use std::time::Duration;

use super::world::*;
use crate::clock::Clock as _;
use crate::digest::Digest;
use crate::discovery::*;
use crate::policy::{ResourceKey, UrlKey};
use crate::seal::{Bearer, Thing};

#[test]
fn the_first_complete_holder_decides() {
    let mut world = World::with(4);
    world.hold(2, blob(1), complete());
    let asked = world.now();
    let finding = world.find(0, blob(1));
    world.pump();
    assert_eq!(world.decided(0, finding, asked), Some(Duration::ZERO));
    let (of, offer) = &world.nodes[0].offers[0];
    assert_eq!((*of, offer.peer.name.as_str(), offer.holding.first_hand), (finding, "box2", true));
}

#[test]
fn partial_and_busy_holders_do_not_decide_alone() {
    let mut world = World::with(3);
    world.hold(1, blob(1), Holding { busy: true, ..complete() });
    world.hold(2, blob(1), Holding { complete: false, ..complete() });
    world.nodes[1].memory.set_endpoints(&[], world.clock.instant());
    let (asked, finding) = (world.now(), world.find(0, blob(1)));
    world.run(Duration::from_secs(1));
    assert_eq!(world.nodes[0].offers.len(), 1);
    assert_eq!(world.decided(0, finding, asked), Some(WAIT_MAX), "one known node did not answer");
}

#[test]
fn all_known_answers_decide_where_nobody_has_it() {
    let mut world = World::with(5);
    let (asked, finding) = (world.now(), world.find(0, blob(1)));
    world.pump();
    assert_eq!(world.decided(0, finding, asked), Some(Duration::ZERO));
    assert!(world.nodes[0].offers.is_empty());
    assert_eq!(world.nodes[0].engine.counts().answers, 4);
}

#[test]
fn d08_nobody_there_costs_nothing_after_the_first_round() {
    let mut world = World::new();
    world.join();
    let (asked, first) = (world.now(), world.find(0, blob(1)));
    world.run(Duration::from_secs(1));
    assert_eq!(world.decided(0, first, asked), Some(WAIT_MAX), "a starting node waits once");
    for _ in 0..500 {
        let (asked, finding) = (world.now(), world.find(0, blob(2)));
        assert_eq!(world.decided(0, finding, asked), Some(Duration::ZERO));
    }
}

#[test]
fn a_find_that_ends_for_want_of_room_is_not_decided_again() {
    let mut world = World::new();
    world.join();
    world.run(Duration::from_secs(1));
    let (now, first) = (world.now(), FindingId(10_000));
    let mut told = Vec::new();
    for number in 0..5000 {
        let finding = FindingId(first.0 + number);
        told.extend(world.nodes[0].engine.find(Asking::Everybody, &[(finding, blob(1))], now));
        if told.contains(&Action::Closed(first)) {
            break;
        }
    }
    assert_eq!(told.last(), Some(&Action::Decided(FindingId(first.0 + 1024))));
    assert!(told.contains(&Action::Closed(first)));
    assert_eq!(told.iter().filter(|action| **action == Action::Decided(first)).count(), 1);
}

#[test]
fn d07_waits_vanish_where_broadcasts_are_swallowed() {
    let mut world = World::with(3);
    world.network.cut_broadcast(true);
    for other in [1, 2] {
        world.nodes[other].memory.set_endpoints(&[], world.clock.instant());
    }
    let mut waited = Vec::new();
    for _ in 0..10 {
        let (asked, finding) = (world.now(), world.find(0, blob(1)));
        world.run(Duration::from_millis(300));
        waited.push(world.decided(0, finding, asked).unwrap().as_millis());
    }
    assert!(waited.iter().sum::<u128>() <= 3 * 250 + 3 * 2, "{waited:?}");
    assert_eq!(waited[9], 0);
}

#[test]
fn a_late_answer_is_an_offer_until_the_find_is_forgotten() {
    let mut world = World::with(2);
    let holder = world.join();
    world.hold(holder, blob(1), complete());
    let finding = world.find(0, blob(1));
    world.pump();
    assert_eq!(world.nodes[0].offers.len(), 1, "a holder that was not known yet proves itself first");
    assert!(world.nodes[0].decided.contains_key(&finding));
    let now = world.now();
    world.nodes[0].engine.forget(finding, now);
    let again = world.find(0, blob(1));
    world.nodes[0].engine.forget(again, now);
    world.pump();
    assert_eq!(world.nodes[0].offers.len(), 1);
}

#[test]
fn the_grant_of_an_offer_admits_the_asker_under_both_names() {
    let mut world = World::with(2);
    let url = Wanted::Url(UrlKey::from_bytes([4; 32]));
    let (digest, resource) = (Digest::of(b"x"), [5; 32]);
    let holding = Holding {
        digest: Some(digest),
        resource: Some(ResourceKey::from_bytes(resource)),
        etag: Some("\"v1\"".into()),
        ..complete()
    };
    world.hold(1, url, holding.clone());
    world.find(0, url);
    world.pump();
    let (_, offer) = world.nodes[0].offers.pop().unwrap();
    assert_eq!(offer.holding, holding);
    let (asker, holder) = (sender(0).node, sender(1).node);
    for (counter, thing) in [(1, Thing::Blob(digest)), (2, Thing::Resource(resource))] {
        let bearer = Bearer { grant: offer.grant, thing, asker, holder, counter };
        assert_eq!(world.nodes[1].grants.admit(&bearer, holder), Ok(()));
    }
}

#[test]
fn many_wants_share_a_question_and_long_answers_are_split() {
    let mut world = World::with(2);
    let wants: Vec<(FindingId, Wanted)> =
        (0..40).map(|n| (FindingId(1000 + u64::from(n)), blob(n))).collect();
    for (_, wanted) in &wants {
        let holding = Holding { etag: Some("e".repeat(150)), ..complete() };
        world.hold(1, *wanted, holding);
    }
    let now = world.now();
    world.act(0, |engine| engine.find(Asking::Everybody, &wants, now));
    world.pump();
    assert_eq!(world.nodes[0].engine.counts().finds, 3);
    assert_eq!(world.nodes[0].offers.len(), 40);
    assert_eq!(world.nodes[0].decided.len(), 40);
}

#[test]
fn quarantined_and_unreachable_nodes_are_passed_over() {
    let mut world = World::with(3);
    for other in [1, 2] {
        world.hold(other, blob(1), complete());
    }
    let now = world.now();
    let marks = world.nodes[0].engine.marks();
    marks.quarantine(sender(1).node, now);
    marks.failed(sender(2).node, now);
    world.find(0, blob(1));
    world.pump();
    assert!(world.nodes[0].offers.is_empty());
    world.run(Duration::from_secs(31));
    world.find(0, blob(1));
    world.pump();
    assert_eq!(world.nodes[0].offers.len(), 1);
    assert_eq!(world.nodes[0].offers[0].1.peer.name, "box2");
}

#[test]
fn a_doubted_copy_is_verified_once() {
    let mut world = World::with(2);
    for _ in 0..5 {
        let now = world.now();
        world.act(0, |engine| engine.doubt(&sender(1).node, Digest::of(b"x"), now));
        world.pump();
    }
    assert_eq!(*world.nodes[1].held.doubts.lock().unwrap(), [Digest::of(b"x")]);
}

#[test]
fn on_a_large_site_a_find_costs_the_same_whatever_its_size() {
    let mut world = World::with(1);
    for _ in 0..59 {
        world.join();
        world.run(Duration::from_millis(100));
    }
    world.run(Duration::from_secs(60));
    world.network.record();
    let (asked, nothing) = (world.now(), world.find(0, blob(1)));
    world.pump();
    assert_eq!(world.network.recorded().len(), 1, "nothing to say is silence");
    world.run(Duration::from_millis(251));
    assert!(world.decided(0, nothing, asked).is_some());
    for other in 1..60 {
        world.hold(other, blob(2), complete());
    }
    let finding = world.find(0, blob(2));
    world.run(Duration::from_millis(100));
    let offers = world.nodes[0].offers.iter().filter(|(of, _)| *of == finding).count();
    assert!((3..=25).contains(&offers), "{offers} of 59 holders answered");
}

#[test]
fn a_node_that_only_asks_is_answered_and_nobodys_source() {
    let mut world = World::with(2);
    let guest = world.join();
    let (mut asking, now) = (sender(guest), world.now());
    asking.tcp_port = 0;
    world.act(guest, |engine| engine.renamed(asking, now));
    world.run(Duration::from_secs(1));
    world.hold(1, blob(1), complete());
    world.hold(guest, blob(2), complete());
    world.find(guest, blob(1));
    world.pump();
    assert_eq!(world.nodes[guest].offers.len(), 1);
    let (asked, finding) = (world.now(), world.find(0, blob(2)));
    world.pump();
    assert_eq!(world.decided(0, finding, asked), Some(Duration::ZERO));
    assert!(world.nodes[0].offers.is_empty() && !world.knows(0, guest));
}
