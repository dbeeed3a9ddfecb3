//! What must hold whatever happens.

use std::time::Duration;

use larder::swarm::CROWDED;

use crate::node::{SIZE, State};
use crate::world::World;

/// Nobody reads from himself by way of others, and nobody serves more than the tree allows.
pub fn no_ring(world: &World, who: usize) {
    let mut at = who;
    for _ in 0..=world.nodes.len() {
        let State::Reading(source, _) = world.nodes[at].state else { break };
        assert_ne!(source, who, "a ring of readers");
        at = source;
    }
    if let State::Reading(source, _) = world.nodes[who].state {
        let reads = |state| matches!(state, State::Reading(from, _) if from == source);
        let readers = world.nodes.iter().filter(|node| node.up && reads(node.state)).count();
        // whoever reads what is there whole takes a place of another kind
        let is_whole = world.nodes[source].state == State::Done;
        assert!(is_whole || readers <= CROWDED, "{readers} readers of one node");
    }
}

/// A search comes to its end: a client waits behind it.
pub fn ends(after: Duration) {
    assert!(after < Duration::from_secs(7), "a node has looked for somebody for {after:?}");
}

/// Every want came to its end, with all bytes.
pub fn all_are_served(world: &World) {
    for (who, node) in world.nodes.iter().enumerate().filter(|(_, node)| node.up) {
        assert!(!node.wants(), "node {who} still waits, with {} of {SIZE} bytes", node.received);
        assert!(node.state == State::Done && node.received == SIZE, "node {who}");
    }
    for (finding, times) in &world.decided {
        assert_eq!(*times, 1, "{finding:?}");
    }
}

/// When nobody wants anything, nothing is sent but hellos.
pub fn silence(world: &mut World) {
    let before = (world.questions, world.answers);
    world.run(Duration::from_secs(60));
    assert_eq!((world.questions, world.answers), before, "frames although nobody wants anything");
}
