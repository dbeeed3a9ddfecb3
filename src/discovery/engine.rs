//! The protocol itself, without sockets, clocks or tasks: frames and times go in, actions come out.
//!
//! *Invariant:* no frame moves an address, revives a run or earns an answer with content before its sender gave
//! back a nonce from the address it seems to come from; no frame is acted on twice; nothing a stranger sends is
//! answered with more than it sent. All memory is bounded.

mod action;
mod answer;
mod claim;
mod contact;
mod query;
mod relay;
mod schedule;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use action::{Action, Arrival, Counts, Destination, Event, FindingId, Setup};
use answer::Answering;
use claim::Claims;
pub use claim::{CLAIMS, Claimant};
use contact::Contacts;
use query::Queries;
pub use query::{Asking, OFFERS};
use schedule::{Schedule, Task};

use super::limit::{Limit, Rate};
use super::message::{Kind, Message, Nonce, Sender};
use super::random::Random;
use super::table::{Marks, Path, Table};
use super::transport::Link;
use super::wait::Wait;
use super::{Holdings, Peer};
use crate::seal::{BootId, Grants, Opened};

/// How often a node says that it is there.
const HELLO_EVERY: Duration = Duration::from_secs(30);
/// When it says so a second time after the start, should the first have been lost.
const HELLO_AGAIN: Duration = Duration::from_secs(1);
/// How often the silent are forgotten.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
/// Sites above this size are spared answers that say nothing, and are not asked to answer all at once.
const SMALL_SITE: usize = 8;

/// One node's side of the protocol.
pub struct Engine {
    me: Sender,
    boot: BootId,
    seq: u64,
    started: Instant,
    wait_max: Duration,
    holdings: Arc<dyn Holdings>,
    grants: Grants,
    random: Random,
    table: Table,
    marks: Marks,
    contacts: Contacts,
    answering: Answering,
    claims: Claims,
    queries: Queries,
    wait: Wait,
    schedule: Schedule,
    seeds: Vec<SocketAddr>,
    /// Opening frames of runs not met before.
    strangers: Limit,
    /// Sending to addresses not proved yet.
    greetings: Limit,
    /// Answering nodes of later versions.
    newer: Limit,
    /// Whether questions are passed on between this node's networks.
    gateway: bool,
    relays: Limit,
    hellos: u64,
    renewing: bool,
    counts: Counts,
    out: Vec<Action>,
}

impl Engine {
    /// An engine that has not said anything yet.
    pub fn new(setup: Setup, now: Instant) -> Self {
        let limit = |each, all| Limit::new(each, all, now);
        let rate = |burst, a_minute| Rate { burst, a_minute };
        Self {
            me: setup.sender,
            boot: setup.boot,
            seq: 0,
            started: now,
            wait_max: setup.wait_max,
            holdings: setup.holdings,
            grants: setup.grants,
            random: Random::new(setup.seed),
            table: Table::default(),
            marks: Marks::default(),
            contacts: Contacts::default(),
            answering: Answering::default(),
            claims: Claims::default(),
            queries: Queries::default(),
            wait: Wait::new(setup.wait_max),
            schedule: Schedule::default(),
            seeds: Vec::new(),
            strangers: limit(rate(100, 3000), rate(2000, 120_000)),
            greetings: limit(rate(32, 960), rate(512, 15_360)),
            newer: limit(rate(1, 1), rate(16, 60)),
            gateway: setup.gateway,
            relays: limit(relay::EACH, relay::ALL),
            hellos: 0,
            renewing: false,
            counts: Counts::default(),
            out: Vec::new(),
        }
    }

    /// Says hello for the first time.
    pub fn start(&mut self, now: Instant) -> Vec<Action> {
        self.started = now;
        self.schedule.at(now + SWEEP_EVERY, Task::Sweep);
        self.hello(false, now);
        self.take()
    }

    /// Says goodbye.
    pub fn stop(&mut self, now: Instant) -> Vec<Action> {
        self.broadcast(Kind::Bye, now);
        self.take()
    }

    /// A frame opened.
    pub fn handle(&mut self, opened: &Opened, arrival: Arrival, now: Instant) -> Vec<Action> {
        match Message::decode(&opened.body) {
            Ok(message) => self.receive(message, opened.boot, arrival, now),
            Err(_malformed) => self.counts.malformed += 1,
        }
        self.take()
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Instant) -> Vec<Action> {
        while let Some(task) = self.schedule.due(now) {
            match task {
                Task::Hello => self.hello(false, now),
                Task::Greet(key) => self.greet(&key, None, now),
                Task::Answer(key) => self.answer_late(&key, now),
                Task::Deadline(query) => self.deadline(query, now),
                Task::Judge(query) => self.judge(query),
                Task::Sweep => self.sweep(now),
            }
        }
        self.take()
    }

    /// When [`Engine::tick`] has something to do.
    pub fn next_tick(&self) -> Option<Instant> {
        self.schedule.next()
    }

    /// Whether a frame of a run not met before may be opened for this address: opening it costs more.
    pub fn may_open(&mut self, from: IpAddr, now: Instant) -> bool {
        let admitted = self.strangers.admits(from, now);
        self.counts.limited += u64::from(!admitted);
        admitted
    }

    /// A frame of a later wire version: it learns ours, once a minute.
    pub fn newer(&mut self, from: SocketAddr, link: Link, now: Instant) -> Vec<Action> {
        self.counts.newer += 1;
        if self.newer.admits(from.ip(), now) {
            self.send(from, link, None, None, Kind::greeting(false, false));
        }
        self.take()
    }

    /// The addresses of this node changed: everybody should know at once.
    pub fn moved(&mut self, now: Instant) -> Vec<Action> {
        self.table.forget_deafness();
        self.hello(true, now);
        self.take()
    }

    /// Says hello before its time: what it says has changed.
    pub fn hello_again(&mut self, now: Instant) -> Vec<Action> {
        self.hello(false, now);
        self.take()
    }

    /// The seeds' addresses; new ones are greeted at once.
    pub fn set_seeds(&mut self, seeds: Vec<SocketAddr>) -> Vec<Action> {
        let fresh: Vec<_> = seeds.iter().filter(|s| !self.seeds.contains(s)).copied().collect();
        self.seeds = seeds;
        for seed in fresh {
            let body = self.body(None, None, Kind::greeting(true, false));
            self.out.push(Action::Send { to: Destination::Everyone(vec![(seed, None)]), body });
        }
        self.take()
    }

    /// Somebody says that a node hears at this address: it is greeted, unless it is known.
    pub fn nominate(&mut self, address: SocketAddr, now: Instant) -> Vec<Action> {
        if self.table.is_reached(address, now) {
            return Vec::new();
        }
        if !self.greetings.admits(address.ip(), now) {
            self.counts.limited += 1;
            return Vec::new();
        }
        let body = self.body(None, None, Kind::greeting(true, false));
        self.out.push(Action::Send { to: Destination::Everyone(vec![(address, None)]), body });
        self.take()
    }

    /// This node took a new identity.
    pub fn renamed(&mut self, sender: Sender, now: Instant) -> Vec<Action> {
        self.me = sender;
        self.renewing = false;
        self.hellos = 0;
        self.hello(false, now);
        self.take()
    }

    /// What this node says of itself.
    pub const fn sender(&self) -> &Sender {
        &self.me
    }

    /// Everybody who serves, proved an address and was not forgotten, with the time it was last heard. A node
    /// that only asks, for the length of one download, is nobody's source.
    pub fn peers(&self) -> Vec<(Arc<Peer>, Instant)> {
        let seen = self.table.iter().map(|neighbour| (neighbour.view(), neighbour.last_heard));
        seen.filter(|(peer, _)| peer.serves()).collect()
    }

    /// When any neighbour was last heard.
    pub const fn last_heard(&self) -> Option<Instant> {
        self.table.last_heard()
    }

    /// What was counted.
    pub const fn counts(&mut self) -> &mut Counts {
        &mut self.counts
    }

    /// The marks against nodes, shared.
    pub(super) fn marks(&self) -> Marks {
        self.marks.clone()
    }

    fn receive(&mut self, message: Message, boot: BootId, arrival: Arrival, now: Instant) {
        let node = message.sender.node;
        if node == self.me.node && boot == self.boot {
            self.counts.own += 1;
            return;
        }
        let proved = match self.table.get_mut(&node) {
            Some(known) if known.boot == boot => {
                if !known.window.admit(message.seq) {
                    self.counts.replayed += 1;
                    return;
                }
                known.reads(arrival.from)
            }
            _ => false,
        };
        if proved {
            self.accept(message, arrival, now);
        } else {
            self.stranger(message, boot, arrival, now);
        }
    }

    /// A fresh message from a proved address.
    fn accept(&mut self, message: Message, arrival: Arrival, now: Instant) {
        let node = message.sender.node;
        let path = Path::new(arrival.from, arrival.link, now);
        self.table.touch(&node, message.sender, path, arrival.broadcast);
        if let Some(nonce) = message.ask {
            let kind = Kind::greeting(false, false);
            self.send(arrival.from, arrival.link, None, Some(nonce), kind);
        }
        match message.kind {
            Kind::Hello { relayed, told, .. } => {
                self.table.note_relayed(&node, relayed);
                // copies that cannot be read, or were wrong, are none
                if let Some(part) = told.filter(|_| !self.marks.skips(&node, now)) {
                    self.holdings.told(node, &part);
                }
            }
            Kind::Unknown(_) => {}
            Kind::Bye => {
                if let Some(gone) = self.table.remove(&node) {
                    self.holdings.left(&node);
                    self.out.push(Action::Event(Event::Left(node, gone.sender.name)));
                }
            }
            Kind::Find { query, wants } => {
                let passed_on = self.relay((node, query), &wants, arrival, now);
                self.asked_of_gateway(passed_on, (node, query), wants, arrival, now);
            }
            Kind::Claim { query, depth, wants } => {
                self.claimed(Claimant { node, depth }, &wants, now);
                let passed_on = self.relay((node, query), &wants, arrival, now);
                self.asked_of_gateway(passed_on, (node, query), wants, arrival, now);
            }
            Kind::Relay { query, asker, wants } => self.relayed(asker, query, wants, arrival, now),
            Kind::Have { query, answers, done } => self.told(node, query, answers, done, now),
            Kind::Enough { query } => self.answering.enough(&(node, query)),
            Kind::Doubt { digest } => self.doubted(&digest, now),
        }
    }

    fn hello(&mut self, moved: bool, now: Instant) {
        // who is alone, or serves nobody, tells nothing; neighbours are heard after the first
        let tells = self.me.tcp_port != 0 && (self.hellos < 2 || self.table.live(now) > 0);
        let told = if tells { self.holdings.tell() } else { None };
        self.broadcast(Kind::Hello { first: self.hellos < 2, moved, relayed: false, told }, now);
        let next = match self.hellos {
            0 => HELLO_AGAIN,
            _ => HELLO_EVERY * 9 / 10 + self.random.within(HELLO_EVERY / 5),
        };
        self.hellos += 1;
        self.schedule.instead(now + next, Task::Hello);
    }

    fn sweep(&mut self, now: Instant) {
        for gone in self.table.sweep(now) {
            self.holdings.left(&gone);
            self.out.push(Action::Event(Event::Lost(gone)));
        }
        self.contacts.sweep(now);
        self.answering.sweep(now);
        self.schedule.at(now + SWEEP_EVERY, Task::Sweep);
    }

    /// Sends to everybody: by broadcast, and by unicast where that does not reach.
    fn broadcast(&mut self, kind: Kind, now: Instant) {
        let mut also: Vec<(SocketAddr, Option<Link>)> =
            self.table.unreached(now).map(|path| (path.address, Some(path.link))).collect();
        for seed in &self.seeds {
            if !self.table.is_reached(*seed, now) && !also.iter().any(|(address, _)| address == seed) {
                also.push((*seed, None));
            }
        }
        let body = self.body(None, None, kind);
        self.out.push(Action::Send { to: Destination::Everyone(also), body });
    }

    fn send(
        &mut self,
        to: SocketAddr,
        link: impl Into<Option<Link>>,
        ask: Option<Nonce>,
        echo: Option<Nonce>,
        kind: Kind,
    ) {
        let body = self.body(ask, echo, kind);
        self.out.push(Action::Send { to: Destination::One(to, link.into()), body });
    }

    fn body(&mut self, ask: Option<Nonce>, echo: Option<Nonce>, kind: Kind) -> Vec<u8> {
        self.seq += 1;
        self.counts.sent += 1;
        self.me.load = self.holdings.load();
        Message { sender: self.me.clone(), seq: self.seq, ask, echo, kind }.encode()
    }

    fn take(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.out)
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("node", &self.me.node)
            .field("boot", &self.boot)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
