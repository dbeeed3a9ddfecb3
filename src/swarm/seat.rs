//! Where a node stands among those that receive a thing, and who reads from it: what it says of itself to others.

use std::time::Instant;

use super::Branches;
use crate::discovery::Asker;
use crate::tls::NodeId;

/// A place below a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    /// The node that gets it from outside.
    pub root: NodeId,
    /// How many nodes stand between.
    pub depth: u8,
}

/// Whether an asker may read from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Room {
    /// It may.
    Free,
    /// Others do: who.
    Full(Vec<NodeId>),
}

/// One node's seat.
#[derive(Debug)]
pub struct Seat {
    me: NodeId,
    /// None: it has nothing to offer.
    at: Option<At>,
    /// It has lost its source: whoever reads from here waits, and nobody else is told to.
    searches: bool,
    branches: Branches,
}

impl Seat {
    /// Of a node that has nothing to offer yet.
    pub fn new(me: NodeId) -> Self {
        Self { me, at: None, searches: false, branches: Branches::default() }
    }

    /// This node goes to the origin, at this depth: the others may wait for what it gets.
    pub fn fetch(&mut self, depth: u8) {
        self.read(self.me, depth);
    }

    /// This node reads, at this depth, what that one gets from outside.
    pub fn read(&mut self, root: NodeId, depth: u8) {
        (self.at, self.searches) = (Some(At { root, depth }), false);
    }

    /// Another node gets it from outside now; this one stands where it did.
    pub fn set_root(&mut self, root: NodeId) {
        if let Some(at) = &mut self.at {
            at.root = root;
        }
    }

    /// It has lost its source and looks for another one.
    pub fn search(&mut self) {
        self.searches = true;
    }

    /// It gives it up.
    pub fn lose(&mut self) {
        self.at = None;
    }

    /// Where it stands, if it receives or is about to.
    pub fn at(&self) -> Option<At> {
        self.at
    }

    /// The same, for others to read from; not while it has no source.
    pub fn offered(&self) -> Option<At> {
        self.at.filter(|_| !self.searches)
    }

    /// Whether this asker may read from here. Where it asked this node alone, or everybody and this is the root, it
    /// will: a place is kept for it.
    pub fn room(&mut self, asker: Option<Asker>, now: Instant) -> Room {
        let is_root = self.at.is_some_and(|at| at.root == self.me);
        match asker {
            Some(asker) if (asker.direct || is_root) && !self.branches.admit(asker.node, now) => {
                Room::Full(self.branches.readers())
            }
            _ => Room::Free,
        }
    }

    /// A neighbour begins to read; false if there is no room.
    pub fn enter(&mut self, node: NodeId, now: Instant) -> bool {
        self.branches.enter(node, now)
    }

    /// It has ended.
    pub fn leave(&mut self, node: NodeId, now: Instant) {
        self.branches.leave(node, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, SystemClock};
    use crate::swarm::BRANCHES;

    fn node(n: usize) -> NodeId {
        NodeId::from_bytes([u8::try_from(n).unwrap(); 16])
    }

    #[test]
    fn who_has_lost_its_source_stands_where_it_did_and_offers_nothing() {
        let mut seat = Seat::new(node(0));
        seat.read(node(1), 3);
        seat.search();
        let at = Some(At { root: node(1), depth: 3 });
        assert_eq!((seat.at(), seat.offered()), (at, None));
        seat.set_root(node(2));
        seat.fetch(3);
        assert_eq!(seat.offered(), Some(At { root: node(0), depth: 3 }));
        seat.lose();
        assert_eq!(seat.at(), None);
    }

    #[test]
    fn the_root_keeps_a_place_for_any_asker_and_others_for_those_who_ask_them_alone() {
        let (mut seat, now) = (Seat::new(node(0)), SystemClock.instant());
        let asker = |n, direct| Some(Asker { node: node(n), direct });
        seat.read(node(9), 1);
        for n in 1..=9 {
            assert_eq!(seat.room(asker(n, false), now), Room::Free);
        }
        seat.fetch(0);
        for n in 1..=BRANCHES {
            assert_eq!(seat.room(asker(n, false), now), Room::Free);
        }
        let readers = (1..=BRANCHES).map(node).collect();
        assert_eq!(seat.room(asker(9, true), now), Room::Full(readers));
        assert_eq!(seat.room(None, now), Room::Free);
    }
}
