//! The handle: what other rooms may ask of discovery, and what it shows.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, watch};

use super::{Command, Finding, Seeds, Service};
use crate::clock::SharedClock;
use crate::digest::Digest;
use crate::discovery::engine::{Asking, CLAIMS, Counts, Engine, FindingId, OFFERS, Setup};
use crate::discovery::message::Sender;
use crate::discovery::table::Marks;
use crate::discovery::transport::{InterfaceView, Transport, Udp};
use crate::discovery::{Advertise, Beyond, Config, Endpoint, HEARD_LATELY, Holdings, Peer, Wanted};
use crate::seal::{Grants, Sealer};
use crate::telemetry::Health;
use crate::tls::{NodeId, Pin};

/// How many commands may wait for the task.
const COMMANDS: usize = 1024;

/// Finds neighbours and asks them; a cheap clone.
#[derive(Debug, Clone)]
pub struct Discovery {
    shared: Arc<Shared>,
    commands: mpsc::Sender<Command>,
}

/// What discovery is built from besides its settings.
pub struct Parts {
    /// This node's id.
    pub node: NodeId,
    /// The pins of its keys, the present one first.
    pub pins: Vec<Pin>,
    /// Seals and opens frames.
    pub sealer: Sealer,
    /// The grants that the peer server admits.
    pub grants: Grants,
    /// What this node has.
    pub holdings: Arc<dyn Holdings>,
    /// Time.
    pub clock: SharedClock,
    /// Where troubles are noted.
    pub health: Health,
}

/// Why discovery cannot start: the system has no randomness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system has no random numbers")]
pub struct StartError;

/// What handle and task share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) snapshot: ArcSwap<Snapshot>,
    pub(super) renew: watch::Sender<bool>,
    clock: SharedClock,
    marks: Marks,
    next_finding: AtomicU64,
    started: Instant,
    wait_max: Duration,
}

/// What discovery shows.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) peers: Vec<(Arc<Peer>, Instant)>,
    pub(super) clocks: HashMap<NodeId, i64>,
    pub(super) last_heard: Option<Instant>,
    pub(super) interfaces: Vec<InterfaceView>,
    pub(super) counts: Counts,
}

impl Discovery {
    /// Discovery over UDP: the handle, and the task to run.
    pub fn new(config: Config, parts: Parts) -> Result<(Self, Service<Udp>), StartError> {
        let transport = Udp::new(config.port, "peers.port");
        Self::over(transport, config, parts)
    }

    /// Discovery over any transport.
    pub fn over<T: Transport>(
        transport: T,
        config: Config,
        parts: Parts,
    ) -> Result<(Self, Service<T>), StartError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|_no_source| StartError)?;
        let now = parts.clock.instant();
        let setup = Setup {
            sender: config.sender(parts.node, parts.pins),
            boot: parts.sealer.boot(),
            wait_max: config.wait_max,
            gateway: config.gateway,
            holdings: Arc::clone(&parts.holdings),
            grants: parts.grants,
            seed,
        };
        let engine = Engine::new(setup, now);
        let shared = Arc::new(Shared {
            snapshot: ArcSwap::default(),
            renew: watch::Sender::new(false),
            clock: Arc::clone(&parts.clock),
            marks: engine.marks(),
            next_finding: AtomicU64::new(0),
            started: now,
            wait_max: config.wait_max,
        });
        let (to, commands) = mpsc::channel(COMMANDS);
        let service = Service {
            engine,
            holdings: parts.holdings,
            sealer: parts.sealer,
            transport,
            endpoints: config.endpoints,
            seeds: Seeds::new(config.seeds, config.port),
            clock: parts.clock,
            health: parts.health,
            commands,
            shared: Arc::clone(&shared),
            findings: HashMap::new(),
            stale: true,
            shown: now,
            maintain: None,
            foreign_noted: None,
            clocks: HashMap::new(),
        };
        Ok((Self { shared, commands: to }, service))
    }

    /// Asks the site. Where nobody has been heard lately it is decided at once, and still asked: an offer may
    /// come late.
    pub fn find(&self, wanted: Wanted) -> Finding {
        self.ask(Asking::Everybody, wanted)
    }

    /// Says to all, now and not at the next turn, that this node is there, and what it says with that.
    pub fn hello(&self) {
        self.tell(Command::Hello);
    }

    /// Asks the site and says that this node fetches it where nobody else does: claims of others are heard too.
    /// A node that has something of it already says at which depth it stands.
    pub fn claim(&self, wanted: Wanted, depth: Option<u8>) -> Finding {
        self.ask(Asking::Claim(depth), wanted)
    }

    /// Asks one neighbour.
    pub fn find_at(&self, node: NodeId, wanted: Wanted) -> Finding {
        self.ask(Asking::One(node), wanted)
    }

    /// Asks a node that broadcast does not reach; it has to prove itself like any other.
    pub fn find_beyond(&self, holder: Beyond, wanted: Wanted) -> Finding {
        self.ask(Asking::Beyond(holder), wanted)
    }

    fn ask(&self, how: Asking, wanted: Wanted) -> Finding {
        let shared = &self.shared;
        let id = FindingId(shared.next_finding.fetch_add(1, Ordering::Relaxed));
        let (to, updates) = mpsc::channel(OFFERS + CLAIMS + 2);
        let beyond = matches!(how, Asking::Beyond(_));
        let sent = self.tell(Command::Find(id, how, wanted, to));
        let starting = shared.clock.instant().duration_since(shared.started) < shared.wait_max;
        Finding {
            id,
            updates,
            commands: self.commands.clone(),
            early: std::collections::VecDeque::new(),
            claims: std::collections::VecDeque::new(),
            decided: !sent || !(beyond || starting || self.heard_lately()),
            limit: 2 * shared.wait_max + Duration::from_millis(50),
        }
    }

    /// The longest a question waits for its answers.
    pub fn wait_max(&self) -> Duration {
        self.shared.wait_max
    }

    /// Whether any neighbour was heard within a minute.
    pub fn heard_lately(&self) -> bool {
        let now = self.shared.clock.instant();
        self.snapshot().last_heard.is_some_and(|heard| now.duration_since(heard) < HEARD_LATELY)
    }

    /// All neighbours that proved themselves and were heard in the last minutes.
    pub fn peers(&self) -> Vec<Arc<Peer>> {
        let now = self.shared.clock.instant();
        let seen = |(peer, heard): &(Arc<Peer>, Instant)| {
            let last_seen_seconds = now.duration_since(*heard).as_secs_f64();
            Arc::new(Peer { last_seen_seconds, ..Peer::clone(peer) })
        };
        self.snapshot().peers.iter().map(seen).collect()
    }

    /// How many milliseconds this neighbour's clock was ahead of ours when it last said hello.
    pub fn clock_ahead(&self, node: &NodeId) -> Option<i64> {
        self.snapshot().clocks.get(node).copied()
    }

    /// The endpoints as they are.
    pub fn interfaces(&self) -> Vec<InterfaceView> {
        self.snapshot().interfaces.clone()
    }

    /// What was counted since the start.
    pub fn counts(&self) -> Counts {
        self.snapshot().counts
    }

    /// This node gave wrong bytes: its offers are passed over for an hour, doubling to a day.
    pub fn quarantine(&self, node: NodeId) {
        let span = self.shared.marks.quarantine(node, self.shared.clock.instant());
        tracing::warn!(peer.node = %node, seconds = span.as_secs(), "a neighbour gave wrong bytes: quarantined");
    }

    /// Tells a node that its copy is wrong, so that it verifies it.
    pub fn doubt(&self, node: NodeId, digest: Digest) {
        self.tell(Command::Doubt(node, digest));
    }

    /// Somebody says that a node hears at this address: it is greeted, and has to prove itself like any other.
    pub fn nominate(&self, address: SocketAddr) {
        self.tell(Command::Nominate(address));
    }

    /// This node's port could not be reached: its offers are passed over for a while.
    pub fn failed(&self, node: NodeId) {
        self.shared.marks.failed(node, self.shared.clock.instant());
    }

    /// The addresses of this node changed.
    pub async fn set_endpoints(&self, endpoints: Vec<Endpoint>) {
        self.order(Command::Endpoints(endpoints)).await;
    }

    /// Waits until another live node has this node's id and this one must take a new one; then
    /// [`Discovery::renamed`] tells what it is.
    pub async fn must_renew(&self) {
        let mut renew = self.shared.renew.subscribe();
        if renew.wait_for(|renew| *renew).await.is_err() {
            std::future::pending().await
        }
    }

    /// This node has a new identity.
    pub async fn renamed(&self, node: NodeId, pins: Vec<Pin>) {
        self.order(Command::Renamed(node, pins)).await;
    }

    fn snapshot(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.shared.snapshot.load()
    }

    fn tell(&self, command: Command) -> bool {
        let told = self.commands.try_send(command).is_ok();
        if !told {
            tracing::debug!("discovery is too busy or has ended");
        }
        told
    }

    async fn order(&self, command: Command) {
        if self.commands.send(command).await.is_err() {
            tracing::debug!("discovery has ended");
        }
    }
}

impl Config {
    fn sender(&self, node: NodeId, pins: Vec<Pin>) -> Sender {
        Sender {
            node,
            pins,
            tcp_port: self.tcp_port,
            https: self.https,
            http: self.http,
            // what cannot be shown cannot be sent
            name: self.node_name.chars().filter(|c| !c.is_control()).collect(),
            version: self.version.clone(),
            advertise: self.advertise.map(Advertise::address),
            load: 0,
        }
    }
}
