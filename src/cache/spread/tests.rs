//! What is told arrives, whatever else is said.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

const ME: NodeId = NodeId::from_bytes([5; 16]);
const LOW: NodeId = NodeId::from_bytes([1; 16]);
const HIGH: NodeId = NodeId::from_bytes([9; 16]);

fn digest(name: u32, last: u8) -> Digest {
    let mut bytes = [0; 32];
    bytes[..3].copy_from_slice(&name.to_be_bytes()[1..]);
    bytes[31] = last;
    Digest::from_bytes(bytes)
}

fn spread() -> Spread {
    let spread = Spread::default();
    spread.begin(ME);
    spread
}

/// All of it, told from beginning to end.
fn tell(to: &Spread, node: NodeId, names: impl IntoIterator<Item = u32>) -> usize {
    let held: Vec<Digest> = names.into_iter().map(|name| digest(name, 0)).collect();
    let mut roll = Roll::default();
    roll.call(held.iter());
    let mut parts = 0;
    loop {
        let part = roll.next();
        assert!(part.len() <= 600, "{}", part.len());
        assert!(to.hear(node, &part));
        parts += 1;
        if part[3..6] == [255, 255, 255] {
            return parts;
        }
    }
}

#[test]
fn what_nobody_else_holds_is_the_last_copy_and_one_of_two_holders_keeps_it() {
    let spread = spread();
    let (even, odd) = (digest(7, 0), digest(7, 1));
    assert_eq!(spread.copies(&even), Copies::Last);
    tell(&spread, LOW, [7, 8]);
    assert_eq!((spread.copies(&even), spread.copies(&odd)), (Copies::Spare, Copies::Kept));
    tell(&spread, HIGH, [7]);
    assert_eq!((spread.copies(&even), spread.copies(&odd)), (Copies::Spare, Copies::Spare));
    spread.forget(&LOW);
    assert_eq!((spread.copies(&even), spread.copies(&odd)), (Copies::Kept, Copies::Spare));
    assert_eq!(spread.copies(&digest(8, 0)), Copies::Last);
    tell(&spread, HIGH, []);
    assert_eq!(spread.copies(&odd), Copies::Last);
}

#[test]
fn nothing_is_heard_of_oneself_and_a_new_name_begins_anew() {
    let spread = spread();
    tell(&spread, ME, [7]);
    assert_eq!(spread.copies(&digest(7, 0)), Copies::Last);
    tell(&spread, LOW, [7]);
    let before = spread.changes();
    tell(&spread, LOW, [7]);
    assert_eq!(spread.changes(), before, "the same again changes nothing");
    spread.begin(LOW);
    assert_eq!(spread.copies(&digest(7, 0)), Copies::Last);
    assert!(spread.changes() > before);
}

#[test]
fn who_tells_too_much_is_heard_as_far_as_there_is_room() {
    let spread = spread();
    let parts = tell(&spread, LOW, (0..0x00ff_ffff).step_by(600).take(3 * NAMES));
    println!("{} names took {parts} parts", 3 * NAMES);
    for node in 10..200 {
        tell(&spread, NodeId::from_bytes([node; 16]), (0..0x00ff_ffff).step_by(2000).take(NAMES));
    }
    let heard = spread.0.read().unwrap();
    assert_eq!(heard.nodes[&LOW].len(), NAMES);
    assert!(heard.told <= ALL, "{}", heard.told);
    assert_eq!(heard.told, heard.nodes.values().map(BTreeSet::len).sum::<usize>());
}

#[test]
fn what_makes_no_sense_changes_nothing() {
    let spread = spread();
    tell(&spread, LOW, [7]);
    // too short, a range backwards, a gap without an end, a name beyond the range
    for part in [&[0; 5][..], &[0, 0, 2, 0, 0, 1], &[0, 0, 0, 0, 0, 9, 0x80], &[0, 0, 0, 0, 0, 9, 10]] {
        assert!(!spread.hear(LOW, part), "{part:?}");
    }
    assert_eq!(spread.copies(&digest(7, 0)), Copies::Spare);
    assert!(spread.hear(LOW, &[0, 0, 0, 0, 0, 9]));
    assert_eq!(spread.copies(&digest(7, 0)), Copies::Last);
}

proptest! {
    #[test]
    fn what_was_told_last_is_what_is_known(
        rolls in prop::collection::vec((1_u8..9, prop::collection::btree_set(0_u32..0x0100_0000, 0..700)), 1..6),
        gone: u8,
    ) {
        let spread = spread();
        let mut known: HashMap<u8, HashSet<u32>> = HashMap::new();
        for (node, names) in rolls {
            tell(&spread, NodeId::from_bytes([node; 16]), names.iter().copied());
            known.insert(node, names.into_iter().collect());
        }
        known.remove(&(gone % 9));
        spread.forget(&NodeId::from_bytes([gone % 9; 16]));
        known.remove(&5);
        let all: HashSet<u32> = known.values().flatten().copied().collect();
        for name in all.iter().copied().chain((0..100).map(|n| n * 167_000)) {
            let holds = |below: bool| known.iter().any(|(n, names)| (*n < 5) == below && names.contains(&name));
            for (last, keeper) in [(0, true), (1, false)] {
                let wanted = match (holds(keeper), holds(!keeper)) {
                    (true, _) => Copies::Spare,
                    (false, true) => Copies::Kept,
                    (false, false) => Copies::Last,
                };
                prop_assert_eq!(spread.copies(&digest(name, last)), wanted);
            }
        }
        let heard = spread.0.read().unwrap();
        prop_assert_eq!(heard.names.len(), all.len());
    }

    #[test]
    fn no_part_panics(part in prop::collection::vec(any::<u8>(), 0..700)) {
        spread().hear(LOW, &part);
    }
}
