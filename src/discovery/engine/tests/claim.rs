//! Claims: who hears of whom, and who answers at once.

use std::time::Duration;

use super::world::*;
use crate::discovery::*;
use crate::policy::UrlKey;
use crate::tls::NodeId;

fn url() -> Wanted {
    Wanted::Url(UrlKey::from_bytes([6; 32]))
}

fn claims(world: &World, number: usize, finding: FindingId) -> Vec<NodeId> {
    world.nodes[number]
        .claims
        .iter()
        .filter(|(of, _)| *of == finding)
        .map(|(_, claimant)| claimant.node)
        .collect()
}

fn receiving(world: &World, number: usize, busy: bool) -> Holding {
    let root = world.nodes[number].engine.sender().node;
    let partial = Partial { root, depth: 0, received: 5, readers: Vec::new() };
    Holding { busy, partial: Some(partial), ..Holding::default() }
}

#[test]
fn claims_that_cross_are_heard_on_both_sides_and_an_old_one_is_not() {
    let mut world = World::with(3);
    let (a, b) =
        (world.find_as(0, Asking::Claim(None), url()), world.find_as(1, Asking::Claim(Some(3)), url()));
    world.pump();
    let heard = world.nodes[0].claims.iter().find(|(of, _)| *of == a).map(|(_, claimant)| claimant.depth);
    assert_eq!(heard, Some(Some(3)), "where it stands is told");
    let ids: Vec<NodeId> = world.nodes.iter().map(|node| node.engine.sender().node).collect();
    assert_eq!((claims(&world, 0, a), claims(&world, 1, b)), (vec![ids[1]], vec![ids[0]]));
    world.run(Duration::from_millis(50));
    let late = world.find_as(2, Asking::Claim(None), url());
    let mut heard = claims(&world, 2, late);
    heard.sort();
    let mut both = vec![ids[0], ids[1]];
    both.sort();
    assert_eq!(heard, both);
    world.pump();
    assert!(claims(&world, 0, a).contains(&ids[2]));
    let now = world.now();
    world.nodes[0].engine.forget(a, now);
    world.run(Duration::from_millis(101));
    let other = world.find_as(0, Asking::Claim(None), url());
    assert!(claims(&world, 0, other).is_empty());
}

#[test]
fn who_serves_nobody_claims_nothing() {
    let mut world = World::with(2);
    let guest = world.join();
    let (mut asking, now) = (sender(guest), world.now());
    asking.tcp_port = 0;
    world.act(guest, |engine| engine.renamed(asking, now));
    world.run(Duration::from_secs(1));
    let own = world.find_as(0, Asking::Claim(None), url());
    world.find_as(guest, Asking::Claim(None), url());
    world.pump();
    assert!(claims(&world, 0, own).is_empty());
}

#[test]
fn on_a_large_site_the_root_answers_a_claim_at_once_and_stops_the_others() {
    let mut world = World::with(1);
    for _ in 0..29 {
        world.join();
        world.run(Duration::from_millis(100));
    }
    world.run(Duration::from_secs(60));
    world.hold(7, url(), receiving(&world, 7, false));
    let root = world.nodes[7].engine.sender().node;
    for other in 8..30 {
        let partial = Partial { root, depth: 1, received: 3, readers: Vec::new() };
        world.hold(other, url(), Holding { partial: Some(partial), ..Holding::default() });
    }
    let finding = world.find_as(0, Asking::Claim(None), url());
    world.pump();
    let first = &world.nodes[0].offers[0];
    assert_eq!((first.0, first.1.peer.node), (finding, root));
    world.run(Duration::from_millis(100));
    assert!(world.nodes[0].offers.len() <= 8, "{} answered", world.nodes[0].offers.len());
}

#[test]
fn one_neighbour_is_asked_alone_and_its_silence_says_nothing_of_the_site() {
    let mut world = World::with(12);
    world.hold(3, url(), receiving(&world, 3, true));
    let node = world.nodes[3].engine.sender().node;
    let before = world.nodes[5].engine.counts().asked;
    let (asked, finding) = (world.now(), world.find_as(0, Asking::One(node), url()));
    world.pump();
    assert_eq!(world.nodes[5].engine.counts().asked, before);
    assert!(world.nodes[0].offers[0].1.holding.busy);
    assert_eq!(world.decided(0, finding, asked), Some(Duration::ZERO));
    let nothing = world.nodes[4].engine.sender().node;
    let (asked, finding) = (world.now(), world.find_as(0, Asking::One(nothing), url()));
    world.pump();
    assert_eq!(world.decided(0, finding, asked), Some(Duration::ZERO), "nothing is an answer");
    let now = world.now();
    world.nodes[4].memory.set_endpoints(&[], now);
    let (asked, finding) = (world.now(), world.find_as(0, Asking::One(nothing), url()));
    world.run(Duration::from_secs(1));
    assert_eq!(world.decided(0, finding, asked), Some(WAIT_MAX));
    let stranger = NodeId::from_bytes([9; 16]);
    let (asked, finding) = (world.now(), world.find_as(0, Asking::One(stranger), url()));
    assert_eq!(world.decided(0, finding, asked), Some(Duration::ZERO));
}
