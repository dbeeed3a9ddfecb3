//! Gateways: questions go one network further, and no further.

use std::time::Duration;

use super::world::*;
use crate::discovery::*;

const MOMENT: Duration = Duration::from_secs(1);

/// An asker, a gateway or several, and a holder on the other side.
fn two_networks(gateways: usize) -> (World, usize, Vec<usize>, usize) {
    let mut world = World::new();
    let asker = world.join_on(&[0]);
    let between = (0..gateways).map(|_| world.join_on(&[0, 1])).collect();
    let holder = world.join_on(&[1]);
    world.run(Duration::from_secs(2));
    assert!(!world.knows(asker, holder), "broadcast does not cross");
    (world, asker, between, holder)
}

fn holders(world: &World, asker: usize, finding: FindingId) -> Vec<String> {
    let offers = world.nodes[asker].offers.iter().filter(|(found, _)| *found == finding);
    offers.map(|(_, offer)| offer.peer.name.clone()).collect()
}

#[test]
fn a_gateway_lets_a_holder_beyond_answer_in_time() {
    let (mut world, asker, _, holder) = two_networks(1);
    world.hold(holder, blob(1), complete());
    for _ in 0..2 {
        let (finding, asked) = (world.find(asker, blob(1)), world.now());
        world.run(MOMENT);
        assert_eq!(holders(&world, asker, finding), [format!("box{holder}")]);
        let took = world.decided(asker, finding, asked).unwrap();
        assert!(took <= Duration::from_millis(5), "{took:?}");
    }
    let peer = world.peer(asker, holder).unwrap();
    assert_eq!(peer.address, "10.1.0.3:9000".parse().unwrap());
}

#[test]
fn nobody_beyond_costs_a_moment_and_no_meeting() {
    let (mut world, asker, gateways, holder) = two_networks(1);
    let (finding, asked) = (world.find(asker, blob(1)), world.now());
    world.run(MOMENT);
    let took = world.decided(asker, finding, asked).unwrap();
    assert!((Duration::from_millis(30)..Duration::from_millis(60)).contains(&took), "{took:?}");
    assert!(!world.knows(asker, holder) && !world.knows(holder, asker));
    assert_eq!(world.nodes[gateways[0]].engine.counts().relayed, 1);
}

#[test]
fn a_ring_of_gateways_relays_each_question_once() {
    let mut world = World::new();
    let asker = world.join_on(&[0]);
    let gateways: Vec<_> = [[0, 1], [1, 2], [2, 0]].iter().map(|nets| world.join_on(nets)).collect();
    let far = world.join_on(&[1]);
    world.run(Duration::from_secs(2));
    world.hold(far, blob(1), complete());
    let sent = |world: &mut World| -> u64 {
        gateways.iter().map(|gateway| world.nodes[*gateway].engine.counts().relayed).sum()
    };
    let before = sent(&mut world);
    let finding = world.find(asker, blob(1));
    world.run(MOMENT);
    assert_eq!(sent(&mut world) - before, 2, "only those on the asker's network");
    assert_eq!(holders(&world, asker, finding), [format!("box{far}")], "and it answers once");
}

#[test]
fn those_who_met_through_a_gateway_are_told_nothing_twice() {
    let (mut world, asker, _, holder) = two_networks(2);
    world.hold(holder, blob(1), complete());
    world.find(asker, blob(1));
    world.run(MOMENT);
    assert!(world.knows(asker, holder) && world.knows(holder, asker));
    world.network.record();
    let finding = world.find(asker, blob(1));
    world.pump();
    let frames = world.network.recorded();
    let of_asker = frames.iter().filter(|(from, _)| *from == world.nodes[asker].address).count();
    assert_eq!(of_asker, 1, "one broadcast, no copy by unicast");
    assert_eq!(holders(&world, asker, finding).len(), 1);
}

#[test]
fn a_flood_of_questions_is_relayed_up_to_a_limit() {
    let (mut world, asker, gateways, _) = two_networks(1);
    for n in 0..200 {
        world.find(asker, blob(n));
    }
    world.pump();
    let relayed = world.nodes[gateways[0]].engine.counts().relayed;
    assert!((64..80).contains(&relayed), "{relayed}");
}

#[test]
fn who_is_no_gateway_passes_nothing_on_and_strangers_have_nothing_passed_on() {
    let (mut world, asker, gateways, _) = two_networks(1);
    let stranger = world.join_stranger();
    world.run(MOMENT);
    world.find(stranger, blob(1));
    world.run(MOMENT);
    assert_eq!(world.nodes[gateways[0]].engine.counts().relayed, 0);
    world.find(gateways[0], blob(1));
    world.run(MOMENT);
    assert_eq!(world.nodes[asker].engine.counts().relayed, 0);
}
