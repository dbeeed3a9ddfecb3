//! Looking for somebody to read a thing from: a claim, what is heard while it is open, and what comes of it.
//!
//! A search ends with somebody who holds the thing, with somebody who receives it and has room for a reader, or with
//! this node going to the origin while the others wait for it. It ends in any case: when in doubt this node goes. But
//! one that is at the origin goes on looking: claims cross, frames are lost and networks part, and of all those that
//! are there, each leaves as soon as it finds one that goes first.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::{CROWDED, Claim, Place, Rank, Step, Turn};
use crate::digest::Digest;
use crate::discovery::{Claimant, Offer, Partial};
use crate::tls::NodeId;

/// How long a node looks for somebody to read from.
const LONGEST: Duration = Duration::from_millis(1500);
/// The same where it has heard within [`FRESH`] that the thing is on its way, as long as it goes on hearing so.
const LONGEST_RUNNING: Duration = Duration::from_secs(5);
const FRESH: Duration = Duration::from_millis(1500);
/// The pause before a node that has nothing to give yet is asked again; it doubles with each try, of which there are so
/// many between two questions to everybody.
const AGAIN: Duration = Duration::from_millis(20);
const TRIES: u8 = 6;
/// How long a node is left alone that was given up.
const SHUNNED: Duration = Duration::from_secs(5);
/// How many nodes are waiting to be asked.
const QUEUED: usize = 32;
/// The pause before everybody is asked again, who may not have heard; it doubles.
const ROUND: Duration = Duration::from_millis(400);
/// The same at the origin, where it doubles up to the last.
const ROUND_AT_ORIGIN: Duration = Duration::from_secs(1);
const LAST_ROUND: Duration = Duration::from_secs(8);

/// What a search does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Go to the origin: nobody else does, or nobody can be found.
    Go,
    /// Read from this one: it holds the thing whole, or receives it and has room.
    Read(Box<Offer>),
    /// Ask this node alone.
    Ask(NodeId),
    /// Ask everybody once more: with a claim, unless this node is at the origin.
    Everybody,
    /// Nothing before this time, unless something is heard.
    Wait(Instant),
}

/// One node's part in the crowd around one thing, for as long as it receives it.
#[derive(Debug)]
pub struct Search {
    me: NodeId,
    key: [u8; 32],
    /// This node's own order of others: not everybody tries the same one first.
    order: [u8; 32],
    /// Where this node stands; it reads from lower places only.
    place: Option<Place>,
    /// Those that failed this node, and until when each is left alone; none: for good.
    avoided: BTreeMap<NodeId, Option<Instant>>,
    /// None: this node is at the origin.
    claim: Option<Claim>,
    began: Instant,
    found: Option<Box<Offer>>,
    /// When it was last heard that somebody receives it, whom this node may read from.
    runs: Option<Instant>,
    /// Nodes to be asked by name, and from when on; the last that is due comes first.
    queue: Vec<(NodeId, Instant)>,
    tries: BTreeMap<NodeId, u8>,
    /// When everybody is asked again, and the pause after that.
    round: Instant,
    pause: Duration,
    /// The claimant that goes first, of those heard at the origin.
    rival: Option<Turn>,
    /// How much of how much is here.
    here: (u64, Option<u64>),
}

impl Search {
    /// Of a node for the thing with this key; it has nothing to do until it claims.
    pub fn new(me: NodeId, key: [u8; 32], now: Instant) -> Self {
        Self {
            me,
            key,
            order: *Digest::of(me.as_bytes()).as_bytes(),
            place: None,
            avoided: BTreeMap::new(),
            claim: None,
            began: now,
            found: None,
            runs: None,
            queue: Vec::new(),
            tries: BTreeMap::new(),
            round: now + ROUND_AT_ORIGIN,
            pause: ROUND_AT_ORIGIN,
            rival: None,
            here: (0, None),
        }
    }

    /// A claim goes out now. Others are heard for `window` unless [`Search::decided`] says sooner that all were, and
    /// each that goes first has so long to say that it has begun.
    pub fn claim(&mut self, now: Instant, window: Duration) {
        let me = (self.me, self.depth());
        self.claim = Some(Claim::new(me, self.key, now, window, window));
        (self.began, self.found, self.runs, self.rival) = (now, None, None, None);
        self.queue.clear();
        self.tries.clear();
        (self.round, self.pause) = (now + ROUND, ROUND);
    }

    /// This node goes to the origin, and looks on for one that it can leave that to.
    pub fn fetch(&mut self, now: Instant) {
        self.claim = None;
        self.tries.clear();
        self.place.get_or_insert(Place::root(self.me, &self.key));
        (self.round, self.pause) = (now + ROUND_AT_ORIGIN, ROUND_AT_ORIGIN);
    }

    /// So much of so much is here.
    pub fn note(&mut self, received: u64, total: Option<u64>) {
        self.here = (received, total);
    }

    /// Where this node stands.
    pub fn place(&self) -> Option<Place> {
        self.place
    }

    /// At which depth; none: nowhere yet.
    pub fn depth(&self) -> Option<u8> {
        self.place.map(|place| place.depth)
    }

    /// Whether this node, where it stands, may read from one at this depth.
    pub fn reads_from(&self, node: NodeId, depth: u8) -> bool {
        let rank = Rank::of(node, &self.key);
        self.place.is_none_or(|place| place.reads_from(depth, rank))
    }

    /// This node begins to read from one at this depth; false where the tree is too deep. Its place stays.
    pub fn settle(&mut self, depth: u8) -> bool {
        if self.place.is_none() {
            self.place = Place::below(depth, self.me, &self.key);
        }
        self.place.is_some()
    }

    /// This node has no part in it any more: it stands nowhere.
    pub fn leave(&mut self) {
        self.place = None;
    }

    /// This node is not read from again.
    pub fn avoid(&mut self, node: NodeId) {
        self.leave_alone(node, None);
    }

    /// This node is gone or silent, for all that is known: it is left alone for a while.
    pub fn shun(&mut self, node: NodeId, now: Instant) {
        self.leave_alone(node, Some(now + SHUNNED));
    }

    fn leave_alone(&mut self, node: NodeId, until: Option<Instant>) {
        self.avoided.insert(node, until);
        // what it said, and what was said of it, counts no more
        self.runs = None;
        self.queue.retain(|(other, _)| *other != node);
        if let Some(claim) = &mut self.claim {
            claim.lose(node);
        }
    }

    /// Another node claims it.
    pub fn hear(&mut self, claimant: Claimant, now: Instant) {
        let Claimant { node, depth } = claimant;
        if self.avoids(node, now) {
            return;
        }
        if let Some(claim) = &mut self.claim {
            return claim.hear(node, depth);
        }
        // of those who did not hear of this node one goes to the origin too: the first
        let turn = Turn::of(node, depth, &self.key);
        if self.reads_from(node, depth.unwrap_or(0)) && self.rival.is_none_or(|rival| turn < rival) {
            self.rival = Some(turn);
            self.queue_up(node, now + AGAIN);
        }
    }

    /// Everybody has been heard.
    pub fn decided(&mut self, now: Instant) {
        if let Some(claim) = &mut self.claim {
            claim.close(now);
        }
    }

    /// A node says what it has: `direct` where it was asked alone, and so keeps a place if it has one.
    pub fn offered(&mut self, offer: Offer, direct: bool, now: Instant) {
        let node = offer.peer.node;
        if node == self.me || self.avoids(node, now) {
            return;
        }
        let Some(partial) = &offer.holding.partial else {
            if offer.holding.complete && !offer.holding.busy {
                self.found.get_or_insert(Box::new(offer));
            }
            return;
        };
        if partial.root == self.me || !self.reads_from(node, partial.depth) {
            if let Some(claim) = &mut self.claim {
                claim.lose(node);
            }
            return;
        }
        if !self.is_worth(partial) {
            return;
        }
        self.runs = Some(now);
        // who has something of it cannot go deeper: it is let in where newcomers are not
        let room = self.place.is_some() && partial.readers.len() < CROWDED;
        if offer.holding.busy && !room {
            let mut readers = partial.readers.clone();
            readers.sort_by_key(|reader| Rank::of(*reader, &self.order));
            self.later(node, now);
            readers.into_iter().for_each(|reader| self.queue_up(reader, now));
        } else if (direct || partial.root == node) && self.found.is_none() {
            self.found = Some(Box::new(offer));
        } else {
            // it keeps a place for whoever asks it alone
            self.queue_up(node, now);
        }
    }

    /// A node that was asked alone said nothing, or that it has nothing.
    pub fn silent(&mut self, node: NodeId, now: Instant) {
        // a claimant is asked again by the claim's own rule
        if self.tries.contains_key(&node) {
            self.later(node, now);
        }
    }

    /// A node that was to be read from had no room after all, or could not be reached.
    pub fn refused(&mut self, node: NodeId, now: Instant) {
        self.later(node, now);
    }

    /// What to do now.
    pub fn next(&mut self, now: Instant) -> Next {
        if let Some(found) = self.found.take() {
            return Next::Read(found);
        }
        let last = self.last(now);
        if last.is_some_and(|last| now >= last) {
            return Next::Go;
        }
        if let Some(at) = self.queue.iter().rposition(|(_, time)| *time <= now) {
            return Next::Ask(self.queue.remove(at).0);
        }
        if now >= self.round {
            self.pause = (self.pause * 2).min(LAST_ROUND);
            self.round = now + self.pause;
            self.tries.clear();
            return Next::Everybody;
        }
        let queued = self.queue.iter().map(|(_, time)| *time);
        let until = queued.chain(last).fold(self.round, Instant::min);
        match (&mut self.claim, last) {
            // whoever receives it outranks any claim
            (Some(_), Some(last)) if last > self.began + LONGEST || !self.queue.is_empty() => {
                Next::Wait(until)
            }
            (Some(claim), _) => match claim.step(now) {
                Step::Go => Next::Go,
                Step::Ask(node) => Next::Ask(node),
                Step::Wait(time) => Next::Wait(time.min(until)),
            },
            (None, _) => Next::Wait(until),
        }
    }

    /// When this node goes to the origin whatever is heard.
    fn last(&self, now: Instant) -> Option<Instant> {
        self.claim.as_ref()?;
        let is_fresh = self.runs.is_some_and(|heard| now.saturating_duration_since(heard) < FRESH);
        Some(self.began + if is_fresh { LONGEST_RUNNING } else { LONGEST })
    }

    /// At the origin: whether waiting until that one has what is here costs less than going on to the end, when that
    /// one can read from here.
    fn is_worth(&self, partial: &Partial) -> bool {
        let (received, Some(total)) = self.here else { return true };
        let behind = received.saturating_sub(partial.received);
        self.claim.is_some() || behind <= total.saturating_sub(received)
    }

    fn avoids(&mut self, node: NodeId, now: Instant) -> bool {
        self.avoided.retain(|_, until| until.is_none_or(|until| until > now));
        self.avoided.contains_key(&node)
    }

    fn later(&mut self, node: NodeId, now: Instant) {
        let tries = self.tries.get(&node).copied().unwrap_or(0);
        self.queue_up(node, now + AGAIN * 2_u32.saturating_pow(tries.into()));
    }

    fn queue_up(&mut self, node: NodeId, from: Instant) {
        let waits = self.queue.iter().any(|(other, _)| *other == node);
        let tries = self.tries.entry(node).or_default();
        let is_avoided = self.avoided.contains_key(&node);
        if waits || is_avoided || node == self.me || *tries >= TRIES {
            return;
        }
        *tries += 1;
        if self.queue.len() >= QUEUED {
            self.queue.remove(0);
        }
        self.queue.push((node, from));
    }
}

#[cfg(test)]
mod tests;
