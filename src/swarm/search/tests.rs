//! What a search does with what it hears, and that it ends.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::clock::{Clock as _, SystemClock};
use crate::discovery::{Holding, Peer};
use crate::seal::{BootId, GrantId};

const KEY: [u8; 32] = [7; 32];
const WINDOW: Duration = Duration::from_millis(500);

fn node(n: u8) -> NodeId {
    NodeId::from_bytes([n; 16])
}

/// The nodes 1 to 9 in the order of their ranks.
fn in_order() -> Vec<NodeId> {
    let mut all: Vec<NodeId> = (1..=9).map(node).collect();
    all.sort_by_key(|node| Rank::of(*node, &KEY));
    all
}

fn offer(from: NodeId, holding: Holding) -> Offer {
    let peer = Peer {
        node: from,
        name: String::new(),
        address: ([10, 0, 0, 1], 8096).into(),
        pins: Vec::new(),
        boot: BootId { counter: 1, random: 1 },
        https: true,
        http: false,
        version: String::new(),
        load: 0,
        last_seen_seconds: 0.0,
    };
    Offer { peer: Arc::new(peer), holding, grant: GrantId([0; 16]) }
}

fn receives(from: NodeId, depth: u8, received: u64) -> Offer {
    let partial = Partial { root: from, depth, received, readers: Vec::new() };
    offer(from, Holding { partial: Some(partial), ..Holding::default() })
}

fn full(mut offer: Offer, readers: &[NodeId]) -> Offer {
    offer.holding.busy = true;
    if let Some(partial) = &mut offer.holding.partial {
        partial.readers = readers.to_vec();
    }
    offer
}

fn claiming(me: NodeId, now: Instant) -> Search {
    let mut search = Search::new(me, KEY, now);
    search.claim(now, WINDOW);
    search
}

#[test]
fn who_is_alone_goes_when_all_were_heard() {
    let now = SystemClock.instant();
    let mut search = claiming(node(1), now);
    assert!(matches!(search.next(now), Next::Wait(_)));
    search.decided(now);
    assert_eq!(search.next(now), Next::Go);
    assert_eq!(search.next(now), Next::Go, "asked again it says the same");
}

#[test]
fn the_readers_of_a_full_one_are_asked_and_one_with_room_is_read_from() {
    let now = SystemClock.instant();
    let mut search = claiming(node(1), now);
    search.offered(full(receives(node(2), 0, 5), &[node(3), node(4)]), false, now);
    let Next::Ask(first) = search.next(now) else { panic!("a reader is asked") };
    search.silent(first, now);
    let Next::Ask(second) = search.next(now) else { panic!("the other one is") };
    assert!(first != second && [first, second].iter().all(|asked| [node(3), node(4)].contains(asked)));
    let mut below = receives(second, 1, 4);
    if let Some(partial) = &mut below.holding.partial {
        partial.root = node(2);
    }
    search.offered(below.clone(), true, now);
    assert_eq!(search.next(now), Next::Read(Box::new(below)));
}

#[test]
fn who_stands_somewhere_is_let_in_where_newcomers_are_not_and_reads_from_lower_places_alone() {
    let (now, order) = (SystemClock.instant(), in_order());
    let mut search = Search::new(order[4], KEY, now);
    assert!(search.settle(0));
    search.claim(now, WINDOW);
    search.offered(receives(order[0], 2, 9), true, now);
    search.offered(receives(order[5], 1, 9), true, now);
    assert!(matches!(search.next(now), Next::Wait(_)), "they stand above it");
    let source = full(receives(order[3], 1, 9), &[node(1), node(2)]);
    search.offered(source.clone(), true, now);
    assert_eq!(search.next(now), Next::Read(Box::new(source)));
}

#[test]
fn one_at_the_origin_leaves_it_to_whoever_goes_first_unless_that_costs_more() {
    let (now, order) = (SystemClock.instant(), in_order());
    let mut search = claiming(order[4], now);
    search.decided(now);
    assert_eq!(search.next(now), Next::Go);
    search.fetch(now);
    search.note(90, Some(100));
    search.offered(receives(order[5], 0, 95), true, now);
    search.offered(receives(order[0], 0, 10), true, now);
    assert!(matches!(search.next(now), Next::Wait(_)));
    search.offered(receives(order[0], 0, 85), true, now);
    assert!(matches!(search.next(now), Next::Read(_)));
    let held = Holding { complete: true, ..Holding::default() };
    search.offered(offer(order[8], held), false, now);
    assert!(matches!(search.next(now), Next::Read(_)), "who holds it whole stands nowhere");
}

#[test]
fn one_at_the_origin_asks_everybody_again_and_the_first_of_the_claimants_that_did_not_hear_of_it() {
    let (now, order) = (SystemClock.instant(), in_order());
    let mut search = claiming(order[4], now);
    search.fetch(now);
    for claimant in [order[2], order[3], order[6]] {
        search.hear(Claimant { node: claimant, depth: None }, now);
    }
    assert_eq!(search.next(now + AGAIN), Next::Ask(order[2]));
    assert!(matches!(search.next(now + AGAIN), Next::Wait(_)));
    let mut at = now;
    for _ in 0..5 {
        at += LAST_ROUND;
        assert_eq!(search.next(at), Next::Everybody);
    }
}

#[test]
fn who_failed_is_not_tried_again() {
    let now = SystemClock.instant();
    let mut search = claiming(node(1), now);
    search.offered(receives(node(2), 0, 5), true, now);
    assert!(matches!(search.next(now), Next::Read(_)));
    search.avoid(node(2));
    search.offered(receives(node(2), 0, 5), true, now);
    search.hear(Claimant { node: node(2), depth: Some(0) }, now);
    search.decided(now);
    assert_eq!(search.next(now), Next::Go);
}

proptest! {
    /// Whatever is heard, a claim comes to its end, and no node is asked without end meanwhile.
    #[test]
    fn every_search_ends(
        heard in prop::collection::vec((0_u8..6, 2_u8..20, any::<u8>(), any::<bool>(), 0_u64..400), 0..60),
        place in prop::option::of(0_u8..4),
    ) {
        let now = SystemClock.instant();
        let mut search = Search::new(node(1), KEY, now);
        if let Some(depth) = place {
            search.settle(depth);
        }
        search.claim(now, WINDOW);
        let (mut at, mut asked, mut heard) = (now, 0, heard.into_iter());
        loop {
            if let Some((what, from, depth, direct, later)) = heard.next() {
                at += Duration::from_millis(later);
                let readers = [node(depth), node(from.wrapping_add(1))];
                match what {
                    0 => search.hear(Claimant { node: node(from), depth: direct.then_some(depth) }, at),
                    1 => search.offered(receives(node(from), depth, 5), direct, at),
                    2 => search.offered(full(receives(node(from), depth, 5), &readers), direct, at),
                    3 => search.refused(node(from), at),
                    4 => search.silent(node(from), at),
                    _ => search.decided(at),
                }
            }
            match search.next(at) {
                Next::Go => break,
                // it had no room after all
                Next::Read(offer) => search.refused(offer.peer.node, at),
                Next::Ask(other) => {
                    asked += 1;
                    search.silent(other, at);
                }
                Next::Everybody => {}
                Next::Wait(until) => {
                    prop_assert!(until > at);
                    at = until;
                }
            }
        }
        prop_assert!(at <= now + LONGEST_RUNNING + Duration::from_millis(400 * 60));
        prop_assert!(asked <= 2000, "{asked}");
    }
}
