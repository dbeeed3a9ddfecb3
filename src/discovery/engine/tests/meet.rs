//! How nodes come to believe in each other, and when they stop.

use std::time::Duration;

use super::world::*;
use crate::discovery::*;
use crate::seal::BootId;

#[test]
fn first_contact_goes_both_ways_within_50_ms() {
    let mut world = World::new();
    world.join();
    world.run(Duration::from_secs(5));
    let late = world.join();
    world.run(Duration::from_millis(51));
    assert!(world.knows(0, late) && world.knows(late, 0));
    let peer = world.peer(0, late).unwrap();
    assert_eq!((peer.name.as_str(), peer.address), ("box1", "10.0.0.2:9000".parse().unwrap()));
    assert!(matches!(world.nodes[0].events[..], [Event::Joined(..)]));
}

#[test]
fn the_world_is_silent_but_for_hello() {
    let mut world = World::with(4);
    world.network.record();
    world.run(Duration::from_secs(300));
    let frames = world.network.recorded().len();
    assert!((4 * 8..=4 * 14).contains(&frames), "{frames} frames");
    assert!((0..4).all(|a| (0..4).all(|b| a == b || world.knows(a, b))));
}

#[test]
fn bye_is_believed_at_once_and_silence_in_the_end() {
    let mut world = World::with(3);
    let now = world.now();
    world.act(1, |engine| engine.stop(now));
    world.nodes.swap(1, 2);
    let mut gone = world.nodes.pop().unwrap();
    gone.memory.set_endpoints(&[], now);
    world.pump();
    assert_eq!(world.nodes[0].engine.peers().len(), 1);
    world.nodes.pop();
    world.run(Duration::from_secs(200));
    assert!(world.nodes[0].engine.peers().is_empty());
    let events = &world.nodes[0].events;
    assert!(matches!(events[2..], [Event::Left(..), Event::Lost(_)]), "{events:?}");
}

#[test]
fn a_restarted_node_replaces_its_former_run() {
    let mut world = World::with(2);
    let id = world.nodes[1].engine.sender().node;
    let old = world.nodes.pop().unwrap();
    drop(old);
    let again = world.join_with_identity(1, BootId { counter: 2, random: 1 });
    world.run(Duration::from_millis(60));
    assert_eq!(world.peer(0, again).unwrap().boot.counter, 2);
    assert!(world.nodes[0].events.contains(&Event::Restarted(id, "box1".into())));
}

#[test]
fn d05_a_new_address_is_used_at_once() {
    let mut world = World::with(3);
    let moved = Endpoint {
        local: "10.0.7.7:8096".parse().unwrap(),
        broadcast: Some("10.0.255.255:8096".parse().unwrap()),
        index: 0,
    };
    let now = world.now();
    world.nodes[1].memory.set_endpoints(&[moved], now);
    world.act(1, |engine| engine.moved(now));
    world.pump();
    for other in [0, 2] {
        assert_eq!(world.peer(other, 1).unwrap().address, "10.0.7.7:9000".parse().unwrap());
    }
    world.hold(1, blob(1), complete());
    world.find(0, blob(1));
    world.pump();
    assert_eq!(world.nodes[0].offers[0].1.peer.address.ip(), moved.local.ip());
}

#[test]
fn d10_own_frames_that_come_back_are_known() {
    let mut world = World::new();
    let number = world.join();
    let second = Endpoint { local: "10.0.9.9:8096".parse().unwrap(), broadcast: Some(everybody()), index: 0 };
    let first = Endpoint { local: world.nodes[0].address, ..second };
    let now = world.now();
    world.nodes[0].memory.set_endpoints(&[first, second], now);
    world.hold(number, blob(1), complete());
    world.find(number, blob(1));
    world.run(Duration::from_secs(90));
    let node = &mut world.nodes[0];
    assert!(node.engine.peers().is_empty() && node.offers.is_empty() && node.events.is_empty());
    assert!(node.engine.counts().own > 0 && node.renew == 0);
}

#[test]
fn d11_of_two_clones_one_takes_a_new_id() {
    let mut world = World::with(2);
    let low = world.join_with_identity(7, BootId { counter: 5, random: 10 });
    world.run(Duration::from_secs(1));
    let high = world.join_with_identity(7, BootId { counter: 5, random: 20 });
    world.run(Duration::from_secs(40));
    assert_eq!((world.nodes[low].renew, world.nodes[high].renew), (0, 1));
    assert!(world.nodes[low].events.contains(&Event::CloneOfUs));
    let now = world.now();
    world.act(high, |engine| engine.renamed(sender(8), now));
    world.run(Duration::from_secs(90));
    for other in [0, 1] {
        assert!(world.knows(other, low) && world.knows(other, high));
    }
    assert!(world.knows(low, high) && world.knows(high, low));
    assert_eq!(world.nodes[high].renew, 1);
}

#[test]
fn d17_another_secret_is_left_alone() {
    let mut world = World::with(2);
    let stranger = world.join_stranger();
    world.network.record();
    world.find(stranger, blob(1));
    world.find(0, blob(1));
    world.run(Duration::from_secs(1));
    assert!(world.nodes[stranger].engine.peers().is_empty());
    assert_eq!(world.nodes[0].engine.peers().len(), 1);
    assert!(world.nodes[0].events.len() == 1);
}

#[test]
fn on_a_large_site_about_eight_greet_at_once_and_all_in_the_end() {
    let mut world = World::with(1);
    for _ in 0..39 {
        world.join();
        world.run(Duration::from_millis(200));
    }
    world.run(Duration::from_secs(60));
    assert!((0..40).all(|a| world.nodes[a].engine.peers().len() == 39));
    let late = world.join();
    world.run(Duration::from_millis(60));
    let met = world.nodes[late].engine.peers().len();
    assert!((2..=18).contains(&met), "{met} met at once");
    world.run(Duration::from_secs(60));
    assert_eq!(world.nodes[late].engine.peers().len(), 40);
}

#[test]
fn d07_seeds_meet_without_broadcast() {
    let mut world = World::new();
    world.network.cut_broadcast(true);
    let (a, b) = (world.join(), world.join());
    world.run(Duration::from_secs(3));
    assert!(!world.knows(a, b));
    let seed = world.nodes[b].address;
    world.act(a, |engine| engine.set_seeds(vec![seed]));
    world.run(Duration::from_millis(60));
    assert!(world.knows(a, b) && world.knows(b, a));
    world.hold(a, blob(1), complete());
    world.find(b, blob(1));
    world.pump();
    assert_eq!(world.nodes[b].offers.len(), 1, "the seed asks back by unicast");
}
