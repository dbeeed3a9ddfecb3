//! Where this node stands among those that receive a thing, and which neighbours read from it.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::offer::{Lender, Offer};
use crate::clock::SharedClock;
use crate::discovery::Asker;
use crate::swarm::Branches;
use crate::tls::NodeId;

/// One flight's stand; shared by the flight, its transfer and those that read from here.
#[derive(Debug)]
pub(super) struct Stand {
    me: NodeId,
    clock: SharedClock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// None while it has no source: then there is nothing to offer.
    at: Option<At>,
    /// The pieces that this node had from the origin itself.
    first_hand: Option<Range<u64>>,
    /// Neighbours may have it.
    shareable: bool,
    branches: Branches,
}

/// A place below a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    /// The node that gets it from outside.
    pub(super) root: NodeId,
    /// How many nodes stand between.
    pub(super) depth: u8,
}

/// Whether an asker may read from here.
pub(super) enum Room {
    Free,
    /// Others do: who.
    Full(Vec<NodeId>),
}

/// A neighbour reads; its place is free when this is dropped.
pub(super) struct Reading(Arc<Stand>, NodeId);

impl Stand {
    /// Nothing is offered yet.
    pub(super) fn new(me: NodeId, clock: SharedClock) -> Arc<Self> {
        let state = State { shareable: true, ..State::default() };
        Arc::new(Self { me, clock, state: Mutex::new(state) })
    }

    /// This node goes to the origin, at this depth: the others may wait for what it gets.
    pub(super) fn fetch(&self, depth: u8) {
        self.state().at = Some(At { root: self.me, depth });
    }

    /// This node reads from one that stands here.
    pub(super) fn read(&self, root: NodeId, depth: u8) {
        self.state().at = Some(At { root, depth });
    }

    /// Another node gets it from outside now; this one stands where it did.
    pub(super) fn set_root(&self, root: NodeId) {
        if let Some(at) = &mut self.state().at {
            at.root = root;
        }
    }

    /// This node reads from one that holds it whole.
    pub(super) fn read_from(&self, offer: &Offer) {
        match offer.lender() {
            Lender::Node(node) => self.read(node, 1),
            // where it stands means nothing to nodes
            Lender::Mormot(_) => self.fetch(1),
        }
    }

    /// It has no source for now.
    pub(super) fn lose(&self) {
        self.state().at = None;
    }

    /// From this piece on it has it from the origin itself.
    pub(super) fn begin_first_hand(&self, piece: u64) {
        self.state().first_hand = Some(piece..u64::MAX);
    }

    /// From this piece on no longer.
    pub(super) fn end_first_hand(&self, piece: u64) {
        let mut state = self.state();
        state.first_hand = state.first_hand.take().map(|range| range.start..range.end.min(piece));
    }

    /// Which pieces it had from the origin itself.
    pub(super) fn first_hand(&self) -> Option<Range<u64>> {
        self.state().first_hand.clone().filter(|range| !range.is_empty())
    }

    /// Whether neighbours may have it.
    pub(super) fn set_shareable(&self, shareable: bool) {
        self.state().shareable = shareable;
    }

    /// Where it stands, if it has anything to offer.
    pub(super) fn at(&self) -> Option<At> {
        let state = self.state();
        state.at.filter(|_| state.shareable)
    }

    /// Whether this asker may read from here. Where it asked this node alone, or everybody and this is the root, it
    /// will: a place is kept for it.
    pub(super) fn room(&self, asker: Option<Asker>) -> Room {
        let now = self.clock.instant();
        let mut state = self.state();
        let is_root = state.at.is_some_and(|at| at.root == self.me);
        match asker {
            Some(asker) if (asker.direct || is_root) && !state.branches.admit(asker.node, now) => {
                Room::Full(state.branches.readers())
            }
            _ => Room::Free,
        }
    }

    /// It begins to read; none if there is no room.
    pub(super) fn enter(self: &Arc<Self>, node: NodeId) -> Option<Reading> {
        let now = self.clock.instant();
        self.state().branches.enter(node, now).then(|| Reading(Arc::clone(self), node))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let now = self.0.clock.instant();
        self.0.state().branches.leave(self.1, now);
    }
}
