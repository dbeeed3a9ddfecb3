//! One node: its engine, and what it does about the one thing that everybody wants.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use larder::clock::SharedClock;
use larder::digest::Digest;
use larder::discovery::{Asker, Engine, FindingId, Holding, Holdings, Partial, Sender, Setup, Wanted};
use larder::seal::{BootId, Grants};
use larder::swarm::{Branches, Claim, Place, Rank};
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
pub enum State {
    /// It does not want it yet.
    Idle,
    /// It looks for somebody, or for its turn.
    Searching { claim: Box<Claim>, finding: FindingId, asked: Option<FindingId> },
    /// It reads from this node.
    Reading(usize),
    /// It gets it from the origin.
    Fetching,
    /// It has it.
    Done,
}

/// What the engine may say of this node.
#[derive(Default)]
pub struct Shelf {
    pub holding: Option<Holding>,
    pub branches: Branches,
    pub others: Vec<Wanted>,
    pub now: Option<Instant>,
}

pub struct Held(pub Mutex<Shelf>);

pub struct Node {
    pub engine: Engine,
    pub boot: BootId,
    pub id: NodeId,
    pub address: SocketAddr,
    pub held: Arc<Held>,
    pub state: State,
    pub received: u64,
    pub root: Option<NodeId>,
    pub place: Option<Place>,
    pub up: bool,
    /// Until this time it takes nobody's silence for death.
    pub heard_source: Option<Instant>,
    pub step: Option<Instant>,
    /// When it is next looked at.
    pub alarm: Option<Instant>,
}

impl Holdings for Held {
    fn lookup(&self, wanted: &Wanted, asker: Option<Asker>) -> Option<Holding> {
        let mut shelf = self.0.lock().unwrap();
        if shelf.others.contains(wanted) {
            return Some(Holding { complete: true, size: Some(1), ..Holding::default() });
        }
        let mut holding = shelf.holding.clone().filter(|_| *wanted == thing())?;
        if let (Some(partial), Some(asker), Some(now)) = (&mut holding.partial, asker, shelf.now) {
            let asks_to_read = asker.direct && !shelf.branches.admit(asker.node, now);
            holding.busy = asks_to_read;
            partial.readers = shelf.branches.readers();
        }
        Some(holding)
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
        let held = Arc::new(Held(Mutex::default()));
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
            engine: Engine::new(setup, clock.instant()),
            boot,
            id,
            address: SocketAddr::from(([10, 0, high, low], 8096)),
            held,
            state: State::Idle,
            received: 0,
            root: None,
            place: None,
            up: true,
            heard_source: None,
            step: None,
            alarm: None,
        }
    }

    /// Tells the engine how far this node is.
    pub fn show(&self, now: Instant) {
        let mut shelf = self.held.0.lock().unwrap();
        shelf.now = Some(now);
        let partial = |root, depth| Partial { root, depth, received: self.received, readers: Vec::new() };
        shelf.holding = match self.state {
            State::Done => Some(Holding { complete: true, size: Some(SIZE), ..Holding::default() }),
            State::Fetching | State::Reading(_) => {
                let depth = self.place.map_or(0, |place| place.depth);
                let partial = partial(self.root.unwrap_or(self.id), depth);
                Some(Holding { size: Some(SIZE), partial: Some(partial), ..Holding::default() })
            }
            State::Idle | State::Searching { .. } => None,
        };
    }

    /// Whether it may read from a node that stands there.
    pub fn may_read(&self, node: NodeId, partial: &Partial) -> bool {
        let rank = Rank::of(node, &key());
        partial.root != self.id && self.place.is_none_or(|place| place.reads_from(partial.depth, rank))
    }

    pub fn wants(&self) -> bool {
        !matches!(self.state, State::Idle | State::Done)
    }
}
