//! One node: its engine, its search, its seat, and how much it has of the one thing that everybody wants.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use larder::clock::SharedClock;
use larder::digest::Digest;
use larder::discovery::{Asker, Engine, FindingId, Holding, Holdings, Offer, Partial, Sender, Setup, Wanted};
use larder::seal::{BootId, Grants};
use larder::swarm::{Room, Search, Seat};
use larder::tls::{NodeId, Pin};

pub const WAIT_MAX: Duration = Duration::from_millis(250);
/// The size of the thing.
pub const SIZE: u64 = 256 << 20;

/// What everybody wants.
pub fn thing() -> Wanted {
    Wanted::Blob(Digest::of(b"the new release"))
}

pub fn key() -> [u8; 32] {
    *Digest::of(b"the new release").as_bytes()
}

/// Where a node stands with the thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It does not want it yet.
    Idle,
    /// It looks for somebody, or for its turn, since then.
    Searching(Instant),
    /// It reads from this node, in this run of it.
    Reading(usize, BootId),
    /// It gets it from the origin.
    Fetching,
    /// It has it.
    Done,
}

/// A node that is asked alone, or tried in vain.
pub struct Asked {
    pub finding: FindingId,
    pub node: NodeId,
    pub answer: Option<Offer>,
}

/// What the engine may say of this node.
pub struct Shelf {
    pub seat: Seat,
    pub holding: Option<Holding>,
    pub received: u64,
    pub others: Vec<Wanted>,
    pub now: Instant,
}

pub struct Held(pub Mutex<Shelf>);

pub struct Node {
    pub engine: Engine,
    pub boot: BootId,
    pub id: NodeId,
    pub address: SocketAddr,
    pub held: Arc<Held>,
    pub search: Search,
    /// The question to everybody that is open.
    pub finding: Option<FindingId>,
    pub asked: Option<Asked>,
    pub state: State,
    pub received: u64,
    pub up: bool,
    /// When its source last gave bytes.
    pub fed: Instant,
    /// When its search is to be looked at.
    pub step: Option<Instant>,
    /// When it is next looked at.
    pub alarm: Option<Instant>,
    /// When it had the whole.
    pub done: Option<Instant>,
}

impl Holdings for Held {
    fn lookup(&self, wanted: &Wanted, asker: Option<Asker>) -> Option<Holding> {
        let mut shelf = self.0.lock().unwrap();
        if shelf.others.contains(wanted) {
            return Some(Holding { complete: true, size: Some(1), ..Holding::default() });
        }
        let holding = shelf.holding.clone().filter(|_| *wanted == thing())?;
        if holding.complete {
            return Some(holding);
        }
        let at = shelf.seat.offered().filter(|at| asker.is_none_or(|asker| asker.node != at.root))?;
        let now = shelf.now;
        let (busy, readers) = match shelf.seat.room(asker, now) {
            Room::Free => (false, Vec::new()),
            Room::Full(readers) => (true, readers),
        };
        let partial = Partial { root: at.root, depth: at.depth, received: shelf.received, readers };
        Some(Holding { busy, partial: Some(partial), ..holding })
    }
}

pub fn identity(who: usize) -> (Pin, NodeId) {
    let pin = Pin(*Digest::of(&who.to_be_bytes()).as_bytes());
    (pin, NodeId::of(&pin))
}

impl Node {
    pub fn new(who: usize, counter: u64, seed: u64, clock: &SharedClock) -> Self {
        let (pin, id) = identity(who);
        let [high, low] = (who as u16 + 1).to_be_bytes();
        let boot = BootId { counter, random: seed ^ (who as u64 * 7919 + counter) };
        let now = clock.instant();
        let shelf = Shelf { seat: Seat::new(id), holding: None, received: 0, others: Vec::new(), now };
        let held = Arc::new(Held(Mutex::new(shelf)));
        let sender = Sender {
            node: id,
            pins: vec![pin],
            tcp_port: 8096,
            https: true,
            http: false,
            name: format!("box{who}"),
            version: "0.1.0".into(),
            advertise: None,
            load: 0,
        };
        let mut random = [0; 32];
        random[..8].copy_from_slice(&seed.to_be_bytes());
        random[8..16].copy_from_slice(&(who as u64).to_be_bytes());
        random[16..24].copy_from_slice(&counter.to_be_bytes());
        let setup = Setup {
            sender,
            boot,
            wait_max: WAIT_MAX,
            holdings: held.clone(),
            grants: Grants::new(Arc::clone(clock)),
            gateway: false,
            seed: random,
        };
        Self {
            engine: Engine::new(setup, now),
            boot,
            id,
            address: SocketAddr::from(([10, 0, high, low], 8096)),
            held,
            search: Search::new(id, key(), now),
            finding: None,
            asked: None,
            state: State::Idle,
            received: 0,
            up: true,
            fed: now,
            step: None,
            alarm: None,
            done: None,
        }
    }

    /// Works on what this node says of itself.
    pub fn seat<R>(&self, work: impl FnOnce(&mut Seat) -> R) -> R {
        work(&mut self.held.0.lock().unwrap().seat)
    }

    /// Tells the engine how far this node is.
    pub fn show(&self, now: Instant) {
        let mut shelf = self.held.0.lock().unwrap();
        (shelf.now, shelf.received) = (now, self.received);
        let holding = Holding { size: Some(SIZE), ..Holding::default() };
        shelf.holding = match self.state {
            State::Done => Some(Holding { complete: true, ..holding }),
            State::Fetching | State::Reading(..) => Some(holding),
            State::Idle | State::Searching(_) => None,
        };
    }

    /// Whether it looks for somebody to read from.
    pub fn looks(&self) -> bool {
        matches!(self.state, State::Searching(_) | State::Fetching)
    }

    pub fn wants(&self) -> bool {
        !matches!(self.state, State::Idle | State::Done)
    }
}
