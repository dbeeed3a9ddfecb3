//! What somebody without the secret, or with recordings, can do: nothing that lasts.

use std::time::Duration;

use super::world::*;
use crate::discovery::*;
use crate::seal::BootId;

#[test]
fn d15_ten_thousand_replays_change_nothing_and_are_hardly_answered() {
    let mut world = World::new();
    world.network.record();
    for _ in 0..3 {
        world.join();
    }
    world.hold(1, blob(1), complete());
    world.run(Duration::from_secs(2));
    world.find(0, blob(1));
    world.run(Duration::from_secs(2));
    let frames = world.network.recorded();
    let before: Vec<_> = world.nodes.iter().map(|node| node.engine.peers()).collect();
    let (offers, everybody) = (world.nodes[0].offers.len(), everybody());
    for n in 0..10_000 {
        let (from, frame) = &frames[n % frames.len()];
        let from = if n % 2 == 0 { *from } else { "10.0.66.6:6666".parse().unwrap() };
        assert!(world.network.inject(from, everybody, frame));
        world.pump();
    }
    let answers = world.network.recorded().len() - 10_000;
    // a frame that went to another node alone is new to the others, once
    assert!(answers <= frames.len(), "{answers} answers to replays of {} frames", frames.len());
    assert_eq!(world.nodes[0].offers.len(), offers);
    for (node, before) in world.nodes.iter().zip(before) {
        let after = node.engine.peers();
        assert!(before.iter().all(|(peer, _)| after.iter().any(|(now, _)| now.address == peer.address)));
        assert_eq!(before.len(), after.len());
    }
}

#[test]
fn d15_the_frames_of_a_node_that_left_do_not_bring_it_back() {
    let mut world = World::new();
    world.network.record();
    world.join();
    world.join();
    world.run(Duration::from_secs(2));
    let now = world.now();
    world.act(1, |engine| engine.stop(now));
    world.pump();
    let gone = world.nodes.pop().unwrap();
    let address = gone.address;
    drop(gone);
    let frames = world.network.recorded();
    let attacker = "10.0.66.6:6666".parse().unwrap();
    for round in 0..50 {
        for (from, frame) in frames.iter().filter(|(from, _)| *from == address) {
            let from = if round % 2 == 0 { *from } else { attacker };
            world.network.inject(from, world.nodes[0].address, frame);
        }
        world.run(Duration::from_millis(100));
    }
    assert!(world.nodes[0].engine.peers().is_empty());
    let sent = world.network.recorded().len() - frames.iter().filter(|(f, _)| *f == address).count() * 50;
    assert!(sent <= 2 * 4 * 2, "{sent} frames in five seconds for {} replays", 50 * frames.len());
}

#[test]
fn a_spoofed_source_earns_a_greeting_and_no_belief() {
    let mut world = World::with(1);
    let mut other = World::new();
    other.network.record();
    other.join_with_identity(5, BootId { counter: 9, random: 9 });
    other.find(0, blob(1));
    let frames = other.network.recorded();
    world.hold(0, blob(1), complete());
    world.network.record();
    let victim = "10.0.66.6:6666".parse().unwrap();
    for (_, frame) in &frames {
        world.network.inject(victim, world.nodes[0].address, frame);
    }
    world.run(Duration::from_secs(2));
    let sent = world.network.recorded();
    let bytes =
        |frames: &[(std::net::SocketAddr, Vec<u8>)]| frames.iter().map(|(_, f)| f.len()).sum::<usize>();
    let answered = bytes(&sent) - bytes(&frames);
    assert!(answered <= bytes(&frames), "{answered} bytes for {}", bytes(&frames));
    assert!(world.nodes[0].engine.peers().is_empty(), "and no grant went out");
}

#[test]
fn an_asker_is_answered_once_per_question() {
    let mut world = World::with(2);
    world.hold(1, blob(1), complete());
    let kind = Kind::Find { query: QueryId([1; 16]), wants: vec![(0, blob(1))] };
    world.network.record();
    for seq in 1000..1100 {
        let message = Message { sender: sender(0), seq, ask: None, echo: None, kind: kind.clone() };
        let frame = world.nodes[0].sealer.seal(&message.encode()).unwrap();
        world.network.inject(world.nodes[0].address, world.nodes[1].address, &frame);
        world.pump();
    }
    assert_eq!(world.network.recorded().len() - 100, 1);
}

#[test]
fn p10_forged_and_broken_frames_do_not_lose_a_good_peer() {
    let mut world = World::with(2);
    world.hold(1, blob(1), complete());
    let (good, target) = (world.nodes[1].address, world.nodes[0].address);
    let mut frame = world.nodes[1].sealer.seal(b"no message at all").unwrap();
    for n in 0..100 {
        world.network.inject(good, target, &frame);
        frame[40 + n % 20] ^= 1;
        world.network.inject(good, target, &frame);
        world.network.inject(good, target, &vec![b'L'; n]);
    }
    world.pump();
    world.find(0, blob(1));
    world.pump();
    assert_eq!(world.nodes[0].offers.len(), 1);
}

#[test]
fn d23_a_flood_of_strangers_in_a_good_peers_name_does_not_delay_it() {
    let mut world = World::with(2);
    let good = world.nodes[1].address;
    let mut strangers = World::new();
    strangers.network.record();
    for random in 0..300 {
        strangers.join_with_identity(9, BootId { counter: 1, random });
    }
    for (_, frame) in strangers.network.recorded() {
        world.network.inject(good, world.nodes[0].address, &frame);
    }
    world.pump();
    assert!(world.nodes[0].engine.counts().limited > 0);
    world.hold(1, blob(1), complete());
    world.find(0, blob(1));
    world.pump();
    assert_eq!(world.nodes[0].offers.len(), 1);
}

#[test]
fn a_message_without_a_matching_key_id_is_nobody() {
    let mut world = World::with(2);
    let mut message = Message { sender: sender(1), seq: 5000, ask: None, echo: None, kind: Kind::Bye };
    message.sender.pins = sender(0).pins;
    let frame = world.nodes[1].sealer.seal(&message.encode()).unwrap();
    world.network.inject(world.nodes[1].address, world.nodes[0].address, &frame);
    world.pump();
    assert_eq!(world.nodes[0].engine.counts().malformed, 1);
    assert!(world.knows(0, 1));
}
