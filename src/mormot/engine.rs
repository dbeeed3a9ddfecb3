//! The protocol itself, without sockets, clocks or tasks: datagrams and times go in, actions come out.
//!
//! *Invariant:* what is not authentic is counted and dropped, whoever it seems to come from; an answer counts
//! only for a question of this node that is open, from the very address that is sealed in it; what is remembered
//! is bounded. Everybody hears all answers, so the peers' table fills by listening.

mod known;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::counts::Counts;
use super::frame::{FRAME, Frame, Keys, Refusal};
use super::marker::Marker;
use super::message::{Hash, Kind, Message, timestamp};
use super::rank::ranked;
use super::seat::Seat;
use crate::discovery::{Limit, RateOf, Wait};
use known::Known;

/// How long a find waits for peers where none is known, as a part of the longest wait: 50 ms of 250 ms.
const LONELY: u32 = 5;
/// How long it waits at least for those that are known: 20 ms of 250 ms. The originals wait 10 ms.
const LEAST: u32 = 12;
/// What silence taught is forgotten after so long without a find.
const HOPE: Duration = Duration::from_secs(5);
/// A ping goes out when none was heard for so long, and up to half as long again.
const PING: Duration = Duration::from_secs(20);
/// How long an answer that came too late is still recognised.
const LATE: Duration = Duration::from_secs(10);
/// How many finds run at one time.
const FINDS: usize = 1024;
/// A mark is believed while the clocks of both nodes are no further apart, in seconds.
const CLOCKS: u32 = 600;
/// How often the same node is nominated, and how many are remembered.
const MEET: (Duration, usize) = (Duration::from_secs(60), 256);

/// What a peer asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Its name.
    pub hash: Hash,
    /// Its size, if the peer knows it.
    pub size: Option<u64>,
}

/// What this node has of it and may share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Nothing.
    Nothing,
    /// It is arriving; how large it will be.
    Part(u64),
    /// All of it; how large it is.
    Whole(u64),
}

/// What this node has; asked on the room's task, so it answers from memory and at once.
pub trait Holdings: Send + Sync {
    /// What this node has of it and may share.
    fn lookup(&self, hash: &Hash) -> Held;
    /// How many peers are being served.
    fn connections(&self) -> u16;
    /// Whether a further one would be sent away.
    fn is_busy(&self) -> bool;
}

/// Who this node says it is.
#[derive(Debug, Clone, Copy)]
pub struct Me {
    /// How Larder nodes know it; its id is the GUID as well.
    pub marker: Marker,
    /// Its system, as the protocol tells it.
    pub os: [u8; 4],
    /// Asks and answers nobody.
    pub is_guest: bool,
}

/// A peer holds a wanted thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// What it said.
    pub told: Message,
    /// Its mark, if it is a Larder node.
    pub larder: Option<Marker>,
}

/// What the service has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Broadcast this.
    Everybody(Box<Frame>),
    /// Send this to one address.
    One(SocketAddrV4, Box<Frame>),
    /// The find of this number has come to these offers, the best first.
    Decided(u32, Vec<Offer>),
    /// A Larder node is there: say hello to it in Larder's own protocol.
    Met(Marker, SocketAddrV4),
}

/// One node's side of the protocol, at one seat.
pub struct Engine {
    keys: Arc<Keys>,
    me: Me,
    seat: Seat,
    filler: [u8; 16],
    /// The first and the last number given to a message.
    first: u32,
    last: u32,
    holdings: Arc<dyn Holdings>,
    finds: BTreeMap<u32, Find>,
    known: Known,
    wait: Wait,
    wait_max: Duration,
    last_find: Option<Instant>,
    ping: Instant,
    answering: Limit,
    met: HashMap<SocketAddrV4, Instant>,
    counts: Counts,
    out: Vec<Action>,
}

struct Find {
    hash: Hash,
    asked: Instant,
    deadline: Instant,
    /// Peers that have not answered.
    awaited: HashSet<Ipv4Addr>,
    alone: bool,
    offers: Vec<Offer>,
    decided: bool,
}

impl Engine {
    /// An engine that has said nothing yet. `chance` is unpredictable.
    pub fn new(
        keys: Arc<Keys>,
        me: Me,
        seat: Seat,
        holdings: Arc<dyn Holdings>,
        wait_max: Duration,
        chance: [u8; 20],
        now: Instant,
    ) -> Self {
        let [a, b, c, d, filler @ ..] = chance;
        // 31 bits, never zero
        let first = (u32::from_le_bytes([a, b, c, d]) >> 1).max(1);
        let rate = |burst, a_minute| RateOf { burst, a_minute };
        Self {
            keys,
            me,
            seat,
            filler,
            first,
            last: first.wrapping_sub(1),
            holdings,
            finds: BTreeMap::new(),
            known: Known::default(),
            wait: Wait::new(wait_max),
            wait_max,
            last_find: None,
            ping: now,
            answering: Limit::new(rate(512, 6000), rate(4096, 60_000), now),
            met: HashMap::new(),
            counts: Counts::default(),
            out: Vec::new(),
        }
    }

    /// A datagram came; `seconds` is the time since 1970.
    pub fn handle(&mut self, datagram: &[u8], from: SocketAddrV4, seconds: u64, now: Instant) -> Vec<Action> {
        if *from.ip() == self.seat.address {
            return Vec::new();
        }
        self.counts.received += 1;
        match self.keys.open(datagram) {
            Ok(message) => self.receive(&message, from, timestamp(seconds), now),
            Err(Refusal::Length) => self.counts.length += 1,
            Err(Refusal::Checksum) => self.counts.checksum += 1,
            Err(Refusal::Forged) => self.counts.forged += 1,
            Err(Refusal::Unknown) => self.counts.unknown += 1,
        }
        std::mem::take(&mut self.out)
    }

    /// Asks who holds a thing; the number is that of the find.
    pub fn find(&mut self, hash: Hash, size: Option<u64>, seconds: u64, now: Instant) -> (u32, Vec<Action>) {
        let seq = self.next();
        if self.finds.len() >= FINDS {
            return (seq, vec![Action::Decided(seq, Vec::new())]);
        }
        if self.last_find.is_none_or(|last| now.saturating_duration_since(last) > HOPE) {
            self.wait.hope();
        }
        self.last_find = Some(now);
        let awaited = self.known.awaited(now);
        let alone = awaited.is_empty();
        let learned = self.wait.deadline();
        let most = self.wait_max;
        let wait = if alone { learned.min(most / LONELY) } else { learned.max(most / LEAST) };
        let deadline = now + wait;
        self.finds.insert(
            seq,
            Find { hash, asked: now, deadline, awaited, alone, offers: Vec::new(), decided: false },
        );
        self.counts.asked += 1;
        let size = size.and_then(|size| i64::try_from(size).ok()).unwrap_or(0);
        let message = Message { hash, size, ..self.say(Kind::Request, seq, self.seat.broadcast, seconds) };
        self.everybody(&message);
        (seq, std::mem::take(&mut self.out))
    }

    /// Time has passed.
    pub fn tick(&mut self, seconds: u64, now: Instant) -> Vec<Action> {
        let due: Vec<u32> = self
            .finds
            .iter()
            .filter(|(_, find)| !find.decided && find.deadline <= now)
            .map(|(s, _)| *s)
            .collect();
        for seq in due {
            self.decide(seq);
        }
        self.finds.retain(|_, find| !find.decided || now.saturating_duration_since(find.asked) < LATE);
        if self.ping <= now && !self.me.is_guest {
            let seq = self.next();
            let ping = self.say(Kind::Ping, seq, self.seat.broadcast, seconds);
            self.everybody(&ping);
            self.next_ping(now);
            self.known.sweep(now);
            self.met.retain(|_, met| now.saturating_duration_since(*met) < MEET.0);
        }
        std::mem::take(&mut self.out)
    }

    /// When [`Engine::tick`] has something to do.
    pub fn next_tick(&self) -> Option<Instant> {
        let ping = (!self.me.is_guest).then_some(self.ping);
        let finds = self.finds.values().map(|f| if f.decided { f.asked + LATE } else { f.deadline });
        finds.chain(ping).min()
    }

    /// Peers heard lately.
    pub fn peers(&self, now: Instant) -> usize {
        self.known.count(now)
    }

    /// What was counted.
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    fn receive(&mut self, message: &Message, from: SocketAddrV4, time: u32, now: Instant) {
        let marker = Marker::decode(&message.padding.1);
        if let Some(marker) = marker {
            self.meet(marker, from, message.timestamp.abs_diff(time), now);
        }
        match message.kind {
            Kind::Ping => {
                self.counts.pings += 1;
                self.next_ping(now);
                self.answer(message, Kind::Pong, 0, from, time, now);
            }
            Kind::Request => {
                self.counts.requests += 1;
                let (kind, size) = self.held(message);
                self.answer(message, kind, size, from, time, now);
            }
            Kind::Pong
            | Kind::ResponseNone
            | Kind::ResponseOverloaded
            | Kind::ResponsePartial
            | Kind::ResponseFull => self.answered(message, marker, from, now),
            // tokens have no business here
            Kind::Bearer | Kind::BearerDirect | Kind::BearerDirectPermanent => self.counts.stray += 1,
        }
    }

    /// What this node says to a question.
    fn held(&self, message: &Message) -> (Kind, u64) {
        if self.holdings.is_busy() {
            return (Kind::ResponseOverloaded, 0);
        }
        let fits = |size: u64| message.known_size().is_none_or(|wanted| wanted == size);
        match self.holdings.lookup(&message.hash) {
            Held::Whole(size) if fits(size) => (Kind::ResponseFull, size),
            Held::Part(size) if fits(size) => (Kind::ResponsePartial, size),
            Held::Nothing | Held::Part(_) | Held::Whole(_) => (Kind::ResponseNone, 0),
        }
    }

    fn answer(&mut self, to: &Message, kind: Kind, size: u64, from: SocketAddrV4, time: u32, now: Instant) {
        if self.me.is_guest {
            return;
        }
        if !self.answering.admits((*from.ip()).into(), now) {
            self.counts.limited += 1;
            return;
        }
        let size = i64::try_from(size).unwrap_or(0);
        let message =
            Message { hash: to.hash, size, timestamp: time, ..self.say(kind, to.seq, *from.ip(), 0) };
        if to.is_from_windows() {
            self.one(SocketAddrV4::new(*from.ip(), self.seat.port), &message);
        } else {
            self.everybody(&message);
        }
    }

    fn answered(&mut self, message: &Message, larder: Option<Marker>, from: SocketAddrV4, now: Instant) {
        if message.address != *from.ip() {
            self.counts.stray += 1;
            return;
        }
        self.known.answered(message.address, now);
        if message.to != self.seat.address {
            return;
        }
        let own = message.seq.wrapping_sub(self.first) <= self.last.wrapping_sub(self.first);
        let find = self.finds.get_mut(&message.seq).filter(|find| find.hash == message.hash && own);
        let Some(find) = find else {
            self.counts.stray += u64::from(message.kind != Kind::Pong || !own);
            return;
        };
        self.wait.answered(now.saturating_duration_since(find.asked));
        if find.decided {
            self.counts.late += 1;
            return;
        }
        self.counts.answers += 1;
        // one that was not expected says nothing for a second time either
        let expected = find.awaited.remove(&message.address) || find.alone;
        let repeated = find.offers.iter().any(|offer| offer.told.address == message.address);
        let is_full = message.kind == Kind::ResponseFull;
        if !repeated && (is_full || message.kind == Kind::ResponsePartial) {
            find.offers.push(Offer { told: *message, larder });
        }
        if (find.alone && is_full) || (!find.alone && expected && find.awaited.is_empty()) {
            self.decide(message.seq);
        }
    }

    fn decide(&mut self, seq: u32) {
        let Some(find) = self.finds.get_mut(&seq) else { return };
        find.decided = true;
        let offers = std::mem::take(&mut find.offers);
        for silent in find.awaited.drain() {
            self.known.missed(silent);
        }
        if offers.is_empty() && find.alone {
            self.wait.empty();
        }
        self.out.push(Action::Decided(seq, ranked(offers)));
    }

    /// A mark nominates a node, unless it is this one, or too old a recording.
    fn meet(&mut self, marker: Marker, from: SocketAddrV4, apart: u32, now: Instant) {
        if marker.node == self.me.marker.node || marker.port == 0 || apart > CLOCKS {
            return;
        }
        let address = SocketAddrV4::new(*from.ip(), marker.port);
        let fresh = self.met.get(&address).is_none_or(|met| now.saturating_duration_since(*met) >= MEET.0);
        if fresh && (self.met.len() < MEET.1 || self.met.contains_key(&address)) {
            self.met.insert(address, now);
            self.out.push(Action::Met(marker, address));
        }
    }

    fn say(&self, kind: Kind, seq: u32, to: Ipv4Addr, seconds: u64) -> Message {
        let marker = self.me.marker;
        Message {
            kind,
            seq,
            uuid: guid(marker.node.as_bytes()),
            os: self.me.os,
            address: self.seat.address,
            to,
            mask: self.seat.mask,
            broadcast: self.seat.broadcast,
            speed: self.seat.speed,
            hardware: self.seat.hardware,
            timestamp: timestamp(seconds),
            connections: self.holdings.connections(),
            hash: Hash::NONE,
            size: 0,
            start: 0,
            end: 0,
            opaque: 0,
            padding: (0, marker.encode(self.filler)),
        }
    }

    fn everybody(&mut self, message: &Message) {
        let mut frame = Box::new([0; FRAME]);
        if self.keys.seal_into(message, &mut frame).is_ok() {
            self.counts.sent += 1;
            self.out.push(Action::Everybody(frame));
        }
    }

    fn one(&mut self, to: SocketAddrV4, message: &Message) {
        let mut frame = Box::new([0; FRAME]);
        if self.keys.seal_into(message, &mut frame).is_ok() {
            self.counts.sent += 1;
            self.out.push(Action::One(to, frame));
        }
    }

    fn next(&mut self) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.last
    }

    /// Somebody pinged: everybody hears the answers, so that one ping serves all. Nodes wait differently long.
    fn next_ping(&mut self, now: Instant) {
        let [spread, ..] = self.filler;
        self.ping = now + PING + PING / 2 * u32::from(spread) / 256;
    }
}

/// A GUID in the order of bytes that Windows gives it.
pub(super) fn guid(id: &[u8; 16]) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h, rest @ ..] = *id;
    let [i, j, k, l, m, n, o, p] = rest;
    [d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p]
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("seat", &self.seat)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(super) mod tests;
