//! What the nodes do about the thing: the real search of each, with a model of its transfers.

use std::time::{Duration, Instant};

use larder::discovery::{Asking, FindingId, Offer};
use larder::swarm::Next;

use crate::invariants;
use crate::node::{Asked, SIZE, State, WAIT_MAX, identity, thing};
use crate::world::{Due, World};

/// How often transfers move on.
pub const TICK: Duration = Duration::from_millis(100);
/// The thin link, and the wire between two nodes, in bytes a second.
const ORIGIN: u64 = 12_500_000;
const WIRE: u64 = 100_000_000;
/// A source that cannot be reached is given up after this time, one that has nothing to give after that.
const STALL: Duration = Duration::from_secs(2);
const STARVED: Duration = Duration::from_secs(30);
/// How long a connection is tried, and how long a holder keeps one that is dead.
const CONNECT: Duration = Duration::from_millis(500);
const DEAD: Duration = Duration::from_secs(20);

impl World {
    /// A client of this node asks for the thing.
    pub fn want(&mut self, who: usize) {
        if self.nodes[who].up && self.nodes[who].state == State::Idle {
            self.claim(who);
        }
    }

    /// A claim, as a node makes it before it goes to the origin.
    fn claim(&mut self, who: usize) {
        let (now, finding) = (self.now(), self.finding());
        self.forget(who);
        let node = &mut self.nodes[who];
        node.search.claim(now, 2 * WAIT_MAX);
        let depth = node.search.depth();
        (node.state, node.finding, node.asked) = (State::Searching(now), Some(finding), None);
        node.step = Some(now);
        self.act(who, |node| node.engine.find(Asking::Claim(depth), &[(finding, thing())], now));
    }

    fn forget(&mut self, who: usize) {
        let now = self.now();
        let node = &mut self.nodes[who];
        let asked = node.asked.take().map(|asked| asked.finding);
        for finding in node.finding.take().into_iter().chain(asked) {
            node.engine.forget(finding, now);
        }
    }

    /// Something was heard of the thing.
    pub fn offered(&mut self, who: usize, finding: FindingId, offer: Offer) {
        let now = self.now();
        let node = &mut self.nodes[who];
        if let Some(asked) = node.asked.as_mut().filter(|asked| asked.finding == finding) {
            asked.answer = Some(offer);
        } else if node.finding == Some(finding) && node.looks() {
            node.search.offered(offer, false, now);
            node.step = Some(now);
        }
    }

    /// A question need not be waited for any longer.
    pub fn was_decided(&mut self, who: usize, finding: FindingId) {
        let now = self.now();
        let node = &mut self.nodes[who];
        if let Some(asked) = node.asked.take_if(|asked| asked.finding == finding) {
            match asked.answer {
                Some(offer) => node.search.offered(offer, true, now),
                None => node.search.silent(asked.node, now),
            }
        } else if node.finding == Some(finding) {
            node.search.decided(now);
        }
        node.step = Some(now);
    }

    /// What a search says is done until it waits.
    pub fn step(&mut self, who: usize) {
        self.nodes[who].step = None;
        for _ in 0..1000 {
            let now = self.now();
            let node = &mut self.nodes[who];
            if !node.looks() || node.asked.is_some() {
                return;
            }
            node.search.note(node.received, Some(SIZE));
            match node.search.next(now) {
                Next::Wait(until) => {
                    node.step = Some(until);
                    return;
                }
                Next::Go => {
                    node.search.fetch(now);
                    let depth = node.search.depth().unwrap();
                    node.seat(|seat| seat.fetch(depth));
                    (node.state, node.fed) = (State::Fetching, now);
                }
                Next::Read(offer) => self.read(who, &offer),
                Next::Ask(other) => {
                    let finding = self.finding();
                    self.nodes[who].asked = Some(Asked { finding, node: other, answer: None });
                    self.act(who, |node| node.engine.find(Asking::One(other), &[(finding, thing())], now));
                }
                Next::Everybody => {
                    let depth = node.search.depth();
                    let is_there = node.state == State::Fetching;
                    let how = if is_there { Asking::Everybody } else { Asking::Claim(depth) };
                    if let Some(finding) = node.finding.take() {
                        node.engine.forget(finding, now);
                    }
                    let finding = self.finding();
                    self.nodes[who].finding = Some(finding);
                    self.act(who, |node| node.engine.find(how, &[(finding, thing())], now));
                }
            }
        }
        unreachable!("a search does not wait");
    }

    /// Tries to read from a node that was found.
    fn read(&mut self, who: usize, offer: &Offer) {
        let (now, id) = (self.now(), self.nodes[who].id);
        let source = (0..self.nodes.len()).find(|other| identity(*other).1 == offer.peer.node).unwrap();
        if !self.reaches(source, who) {
            // it is tried for a while
            let finding = self.finding();
            self.nodes[who].asked = Some(Asked { finding, node: offer.peer.node, answer: None });
            self.later(CONNECT, Due::Refused(who, finding));
            return;
        }
        let boot = self.nodes[source].boot;
        if self.nodes[source].state != State::Done {
            let at = self.nodes[source].seat(|seat| seat.offered());
            let at = at.filter(|at| at.root != id && self.nodes[source].wants());
            let node = &mut self.nodes[who];
            let Some(at) = at else { return node.search.shun(offer.peer.node, now) };
            if !node.search.reads_from(offer.peer.node, at.depth) {
                return node.search.avoid(offer.peer.node);
            }
            if !self.nodes[source].seat(|seat| seat.enter(id, now)) {
                return self.nodes[who].search.refused(offer.peer.node, now);
            }
            let node = &mut self.nodes[who];
            assert!(node.search.settle(at.depth));
            let depth = node.search.depth().unwrap();
            node.seat(|seat| seat.read(at.root, depth));
        } else {
            self.nodes[who].seat(|seat| seat.read(offer.peer.node, 1));
        }
        self.forget(who);
        let node = &mut self.nodes[who];
        (node.state, node.step, node.fed) = (State::Reading(source, boot), None, now);
        invariants::no_ring(self, who);
    }

    /// A node could not be connected to.
    pub fn refused(&mut self, who: usize, finding: FindingId) {
        let now = self.now();
        let node = &mut self.nodes[who];
        if let Some(asked) = node.asked.take_if(|asked| asked.finding == finding) {
            node.search.shun(asked.node, now);
            node.step = Some(now);
        }
    }

    /// Transfers go on by one tick.
    pub fn move_on(&mut self) {
        let now = self.now();
        let before: Vec<u64> = self.nodes.iter().map(|node| node.received).collect();
        let fetching = self.nodes.iter().filter(|node| node.up && node.state == State::Fetching).count();
        let ticks = |rate: u64| rate * TICK.as_millis() as u64 / 1000;
        for who in 0..self.nodes.len() {
            if !self.nodes[who].up {
                continue;
            }
            match self.nodes[who].state {
                State::Fetching => {
                    let after = (before[who] + ticks(ORIGIN) / fetching.max(1) as u64).min(SIZE);
                    self.from_origin += after - before[who];
                    self.feed(who, after, now);
                }
                State::Reading(source, boot) => {
                    let reached = self.reaches(source, who);
                    let is_broken = reached && self.nodes[source].boot != boot;
                    let there = if reached && !is_broken { before[source] } else { 0 };
                    self.feed(who, (before[who] + ticks(WIRE)).min(there).max(before[who]), now);
                    let silent = now.duration_since(self.nodes[who].fed);
                    let is_gone = is_broken || (!reached && silent > STALL) || silent > STARVED;
                    if is_gone && self.nodes[who].state != State::Done {
                        self.lose(who, source);
                    }
                }
                State::Searching(since) => invariants::ends(now.duration_since(since)),
                State::Idle | State::Done => {}
            }
        }
    }

    fn feed(&mut self, who: usize, after: u64, now: Instant) {
        let node = &mut self.nodes[who];
        if after > node.received {
            (node.received, node.fed) = (after, now);
        }
        if after == SIZE {
            self.leave_source(who);
            self.forget(who);
            let node = &mut self.nodes[who];
            (node.state, node.done) = (State::Done, Some(now));
        }
    }

    /// The source is gone: this node looks for another one at the byte reached.
    fn lose(&mut self, who: usize, source: usize) {
        let now = self.now();
        self.leave_source(who);
        let node = &mut self.nodes[who];
        node.search.shun(identity(source).1, now);
        node.seat(|seat| seat.search());
        self.claim(who);
    }

    /// Its place at its source is free: at once, or when the source finds that the connection is dead.
    pub fn leave_source(&mut self, who: usize) {
        if let State::Reading(source, _) = self.nodes[who].state {
            match self.reaches(who, source) && self.nodes[who].up {
                true => self.free(source, who),
                false => self.later(DEAD, Due::Free(source, who)),
            }
        }
    }

    pub fn free(&mut self, source: usize, who: usize) {
        let (id, now) = (self.nodes[who].id, self.now());
        self.nodes[source].seat(|seat| seat.leave(id, now));
    }
}
