//! Who reads from whom: a tree, so that no node sends the thing to all.

use std::time::{Duration, Instant};

use super::Rank;
use crate::tls::NodeId;

/// How many neighbours read what is arriving from one node.
pub const BRANCHES: usize = 2;
/// How many in all, where some lost whom they read from, or came to the origin at the same moment: they cannot go deeper.
pub const CROWDED: usize = 2 * BRANCHES;
/// How long a place is kept for somebody who was told that it is free.
const KEPT: Duration = Duration::from_secs(2);

/// Where a node stands among those that receive a thing. It keeps its place as long as it receives it, and reads
/// only from those in lower places: that alone makes rings impossible, whatever each believes of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// How many nodes stood between it and the origin when it began.
    pub depth: u8,
    /// Its turn among those of the same depth.
    pub rank: Rank,
}

impl Place {
    /// Of the node that goes to the origin.
    pub fn root(node: NodeId, key: &[u8; 32]) -> Self {
        Self { depth: 0, rank: Rank::of(node, key) }
    }

    /// Of a node that begins to read from one at this depth; none where the tree is too deep.
    pub fn below(depth: u8, node: NodeId, key: &[u8; 32]) -> Option<Self> {
        Some(Self { depth: depth.checked_add(1)?, rank: Rank::of(node, key) })
    }

    /// Whether a node in this place may read from one at `depth` with this rank.
    pub fn reads_from(&self, depth: u8, rank: Rank) -> bool {
        (Self { depth, rank }) < *self
    }
}

/// A node's turn among those that claim a thing: those that have something of it come first, in the order of their
/// places, so that the others can read from whoever goes; then the newcomers, who can read from anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    is_newcomer: bool,
    place: Place,
}

impl Turn {
    /// Of a node that stands at this depth; none: it has nothing yet.
    pub fn of(node: NodeId, depth: Option<u8>, key: &[u8; 32]) -> Self {
        let place = Place { depth: depth.unwrap_or(0), rank: Rank::of(node, key) };
        Self { is_newcomer: depth.is_none(), place }
    }
}

/// The neighbours that read from this node.
#[derive(Debug, Default)]
pub struct Branches(Vec<Branch>);

#[derive(Debug)]
struct Branch {
    node: NodeId,
    /// The number of its running requests.
    reading: usize,
    until: Instant,
}

impl Branches {
    /// Whether this node may read from here; a free place is kept for it for a moment.
    pub fn admit(&mut self, node: NodeId, now: Instant) -> bool {
        self.0.retain(|branch| branch.reading > 0 || branch.until > now);
        if let Some(branch) = self.0.iter_mut().find(|branch| branch.node == node) {
            branch.until = now + KEPT;
            return true;
        }
        if self.0.len() >= BRANCHES {
            return false;
        }
        self.0.push(Branch { node, reading: 0, until: now + KEPT });
        true
    }

    /// It begins to read. Newcomers are told where to go before they come; who comes all the same is let in as long
    /// as that does no harm.
    pub fn enter(&mut self, node: NodeId, now: Instant) -> bool {
        let mut admitted = self.admit(node, now);
        if !admitted && self.0.len() < CROWDED {
            self.0.push(Branch { node, reading: 0, until: now });
            admitted = true;
        }
        if let Some(branch) = self.0.iter_mut().find(|branch| branch.node == node).filter(|_| admitted) {
            branch.reading += 1;
        }
        admitted
    }

    /// It has ended; its place is free.
    pub fn leave(&mut self, node: NodeId, now: Instant) {
        for branch in self.0.iter_mut().filter(|branch| branch.node == node) {
            branch.reading = branch.reading.saturating_sub(1);
            branch.until = now;
        }
    }

    /// Who reads from here, or is about to: others may read from them.
    pub fn readers(&self) -> Vec<NodeId> {
        self.0.iter().map(|branch| branch.node).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, SystemClock};
    use proptest::prelude::*;

    fn node(n: u8) -> NodeId {
        NodeId::from_bytes([n; 16])
    }

    #[test]
    fn two_read_and_the_third_is_sent_to_them() {
        let (mut branches, now) = (Branches::default(), SystemClock.instant());
        assert!(branches.admit(node(1), now) && branches.enter(node(2), now));
        assert!(!branches.admit(node(3), now));
        assert_eq!(branches.readers(), [node(1), node(2)]);
        let later = now + KEPT;
        assert!(branches.admit(node(3), later), "the first never came");
        assert!(!branches.admit(node(1), later));
        branches.leave(node(2), later);
        assert!(branches.admit(node(1), later));
    }

    #[test]
    fn who_lost_its_source_finds_room_where_newcomers_do_not() {
        let (mut branches, now) = (Branches::default(), SystemClock.instant());
        for n in 1..=2 {
            assert!(branches.enter(node(n), now));
        }
        for n in 3..=4 {
            assert!(branches.enter(node(n), now), "{n}");
        }
        assert!(!branches.enter(node(5), now));
        branches.leave(node(1), now);
        assert!(!branches.admit(node(5), now), "still as many as newcomers may be, and one more");
        branches.leave(node(2), now);
        branches.leave(node(3), now);
        assert!(branches.admit(node(5), now));
    }

    proptest! {
        /// However late each learns of the others' places, edges lead down, so they form no ring.
        #[test]
        fn no_ring(depths in prop::collection::vec(any::<u8>(), 2..20), tries in prop::collection::vec((0_usize..20, 0_usize..20), 0..200)) {
            let count = depths.len();
            let places: Vec<Place> = depths.iter().enumerate()
                .map(|(n, depth)| Place { depth: depth % 4, rank: Rank::of(node(u8::try_from(n).unwrap()), &[0; 32]) })
                .collect();
            let mut source: Vec<Option<usize>> = vec![None; count];
            for (reader, holder) in tries.into_iter().map(|(a, b)| (a % count, b % count)) {
                if places[reader].reads_from(places[holder].depth, places[holder].rank) {
                    source[reader] = Some(holder);
                }
                let mut at = reader;
                for _ in 0..count {
                    let Some(next) = source[at] else { break };
                    at = next;
                    prop_assert_ne!(at, reader);
                }
            }
        }
    }
}
