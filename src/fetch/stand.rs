//! Where this node stands among those that receive a thing, and which neighbours read from it.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::offer::{Lender, Offer};
use crate::clock::SharedClock;
use crate::discovery::Asker;
use crate::swarm::{At, Room, Seat};
use crate::tls::NodeId;

/// One flight's stand; shared by the flight, its transfer and those that read from here.
#[derive(Debug)]
pub(super) struct Stand {
    clock: SharedClock,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    seat: Seat,
    /// The pieces that this node had from the origin itself.
    first_hand: Option<Range<u64>>,
    /// Neighbours may have it.
    shareable: bool,
}

/// A neighbour reads; its place is free when this is dropped.
pub(super) struct Reading(Arc<Stand>, NodeId);

impl Stand {
    /// Nothing is offered yet.
    pub(super) fn new(me: NodeId, clock: SharedClock) -> Arc<Self> {
        let state = State { seat: Seat::new(me), first_hand: None, shareable: true };
        Arc::new(Self { clock, state: Mutex::new(state) })
    }

    /// This node goes to the origin, at this depth: the others may wait for what it gets.
    pub(super) fn fetch(&self, depth: u8) {
        self.state().seat.fetch(depth);
    }

    /// This node reads, at this depth, what that one gets from outside.
    pub(super) fn read(&self, root: NodeId, depth: u8) {
        self.state().seat.read(root, depth);
    }

    /// Another node gets it from outside now; this one stands where it did.
    pub(super) fn set_root(&self, root: NodeId) {
        self.state().seat.set_root(root);
    }

    /// This node reads from one that holds it whole.
    pub(super) fn read_from(&self, offer: &Offer) {
        match offer.lender() {
            Lender::Node(node) => self.read(node, 1),
            // where it stands means nothing to nodes
            Lender::Mormot(_) => self.fetch(1),
        }
    }

    /// It has lost its source and looks for another one: whoever reads from here waits.
    pub(super) fn search(&self) {
        self.state().seat.search();
    }

    /// It has nothing to offer.
    pub(super) fn lose(&self) {
        self.state().seat.lose();
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

    /// Where it stands, if those that read from here may go on.
    pub(super) fn at(&self) -> Option<At> {
        let state = self.state();
        state.seat.at().filter(|_| state.shareable)
    }

    /// Where it stands, if it has anything to offer.
    pub(super) fn offered(&self) -> Option<At> {
        let state = self.state();
        state.seat.offered().filter(|_| state.shareable)
    }

    /// Whether this asker may read from here.
    pub(super) fn room(&self, asker: Option<Asker>) -> Room {
        let now = self.clock.instant();
        self.state().seat.room(asker, now)
    }

    /// It begins to read; none if there is no room.
    pub(super) fn enter(self: &Arc<Self>, node: NodeId) -> Option<Reading> {
        let now = self.clock.instant();
        self.state().seat.enter(node, now).then(|| Reading(Arc::clone(self), node))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let now = self.0.clock.instant();
        self.0.state().seat.leave(self.1, now);
    }
}
