//! The stage: nodes with an engine each, one network, one clock.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use crate::clock::{Clock as _, ManualClock, Timestamp};
use crate::digest::Digest;
use crate::discovery::*;
use crate::seal::{BootId, Grants, Sealer, Secret, SiteKeys};
use crate::tls::{NodeId, Pin};

pub(super) const WAIT_MAX: Duration = Duration::from_millis(250);
static KEYS: LazyLock<SiteKeys> = LazyLock::new(|| keys("the secret of this site"));
static OTHER_KEYS: LazyLock<SiteKeys> = LazyLock::new(|| keys("the secret of another site"));

fn keys(secret: &str) -> SiteKeys {
    SiteKeys::derive("lab", &[Secret::parse(secret.as_bytes()).unwrap()]).unwrap()
}

/// What a node holds.
#[derive(Default)]
pub(super) struct Held {
    pub(super) things: Mutex<HashMap<Wanted, Holding>>,
    pub(super) doubts: Mutex<Vec<Digest>>,
}

impl Holdings for Held {
    fn lookup(&self, wanted: &Wanted, _: Option<Asker>) -> Option<Holding> {
        self.things.lock().unwrap().get(wanted).cloned()
    }

    fn doubted(&self, digest: &Digest) {
        self.doubts.lock().unwrap().push(*digest);
    }
}

pub(super) struct Node {
    pub(super) engine: Engine,
    pub(super) sealer: Sealer,
    pub(super) memory: Memory,
    pub(super) address: SocketAddr,
    pub(super) held: Arc<Held>,
    pub(super) grants: Grants,
    pub(super) offers: Vec<(FindingId, Offer)>,
    /// Whose claims met which finds.
    pub(super) claims: Vec<(FindingId, Claimant)>,
    /// Which finds were decided, and when.
    pub(super) decided: HashMap<FindingId, Instant>,
    pub(super) events: Vec<Event>,
    pub(super) renew: usize,
}

pub(super) struct World {
    pub(super) network: Network,
    pub(super) clock: Arc<ManualClock>,
    pub(super) nodes: Vec<Node>,
    next_finding: u64,
}

pub(super) fn everybody() -> SocketAddr {
    "10.0.255.255:8096".parse().unwrap()
}

pub(super) fn blob(n: u8) -> Wanted {
    Wanted::Blob(Digest::of(&[n]))
}

pub(super) fn complete() -> Holding {
    Holding { complete: true, size: Some(1), first_hand: true, ..Holding::default() }
}

impl World {
    pub(super) fn new() -> Self {
        let clock = ManualClock::new(Timestamp(0));
        Self { network: Network::new(), clock, nodes: Vec::new(), next_finding: 0 }
    }

    /// A site whose nodes have met.
    pub(super) fn with(count: usize) -> Self {
        let mut world = Self::new();
        for _ in 0..count {
            world.join();
        }
        world.run(Duration::from_secs(2));
        world
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.instant()
    }

    /// A node that has started; its number.
    pub(super) fn join(&mut self) -> usize {
        let number = self.nodes.len();
        self.join_as(number, BootId { counter: 1, random: number as u64 + 100 }, &KEYS)
    }

    pub(super) fn join_stranger(&mut self) -> usize {
        let number = self.nodes.len();
        self.join_as(number, BootId { counter: 1, random: number as u64 + 100 }, &OTHER_KEYS)
    }

    /// A node with the identity of number `who`.
    pub(super) fn join_with_identity(&mut self, who: usize, boot: BootId) -> usize {
        self.join_as(who, boot, &KEYS)
    }

    /// A node on these networks, which are routed to each other; on several it is a gateway.
    pub(super) fn join_on(&mut self, networks: &[u8]) -> usize {
        let number = self.nodes.len();
        self.join_at(number, BootId { counter: 1, random: number as u64 + 100 }, &KEYS, networks)
    }

    fn join_as(&mut self, who: usize, boot: BootId, keys: &SiteKeys) -> usize {
        self.join_at(who, boot, keys, &[0])
    }

    fn join_at(&mut self, who: usize, boot: BootId, keys: &SiteKeys, networks: &[u8]) -> usize {
        let number = self.nodes.len();
        let [high, low] = u16::try_from(number + 1).unwrap().to_be_bytes();
        let endpoint = |network: &u8| Endpoint {
            local: SocketAddr::from(([10, *network, high, low], 8096)),
            broadcast: Some(SocketAddr::from(([10, *network, 255, 255], 8096))),
            index: 0,
        };
        let endpoints: Vec<_> = networks.iter().map(endpoint).collect();
        let address = endpoints[0].local;
        let mut memory = self.network.join();
        memory.set_endpoints(&endpoints, self.now());
        let (held, grants) = (Arc::new(Held::default()), Grants::new(self.clock.clone()));
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&boot.random.to_be_bytes());
        let setup = Setup {
            sender: sender(who),
            boot,
            wait_max: WAIT_MAX,
            gateway: networks.len() > 1,
            holdings: held.clone(),
            grants: grants.clone(),
            seed,
        };
        let engine = Engine::new(setup, self.now());
        let sealer = Sealer::new(keys.clone(), boot).unwrap();
        self.nodes.push(Node {
            engine,
            sealer,
            memory,
            address,
            held,
            grants,
            offers: Vec::new(),
            claims: Vec::new(),
            decided: HashMap::new(),
            events: Vec::new(),
            renew: 0,
        });
        let now = self.now();
        self.act(number, |engine| engine.start(now));
        number
    }

    /// Lets a node do something and carries out what it wants done.
    pub(super) fn act(&mut self, number: usize, what: impl FnOnce(&mut Engine) -> Vec<Action>) {
        let now = self.now();
        let node = &mut self.nodes[number];
        for action in what(&mut node.engine) {
            node.perform(action, now);
        }
    }

    /// Time goes on, and everything that is sent arrives at once.
    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now() + time;
        loop {
            self.pump();
            let next = self.nodes.iter().filter_map(|node| node.engine.next_tick()).min();
            let step = next.map_or(time, |next| next.saturating_duration_since(self.now()));
            let step = step.max(Duration::from_millis(1)).as_micros().div_ceil(1000);
            let step =
                Duration::from_millis(u64::try_from(step).unwrap()).min(end.duration_since(self.now()));
            if step.is_zero() {
                return;
            }
            self.clock.advance(step);
            let now = self.now();
            for number in 0..self.nodes.len() {
                self.act(number, |engine| engine.tick(now));
            }
        }
    }

    /// Delivers until nothing is on the wire.
    pub(super) fn pump(&mut self) {
        let now = self.now();
        loop {
            let mut quiet = true;
            for node in &mut self.nodes {
                while let Some(datagram) = node.memory.try_receive() {
                    quiet = false;
                    node.receive(&datagram, now);
                }
            }
            if quiet {
                return;
            }
        }
    }

    pub(super) fn find(&mut self, number: usize, wanted: Wanted) -> FindingId {
        self.find_as(number, Asking::Everybody, wanted)
    }

    pub(super) fn find_as(&mut self, number: usize, how: Asking, wanted: Wanted) -> FindingId {
        self.next_finding += 1;
        let (finding, now) = (FindingId(self.next_finding), self.now());
        self.act(number, |engine| engine.find(how, &[(finding, wanted)], now));
        finding
    }

    pub(super) fn hold(&self, number: usize, wanted: Wanted, holding: Holding) {
        self.nodes[number].held.things.lock().unwrap().insert(wanted, holding);
    }

    /// How long a find took to be decided; none if it is not.
    pub(super) fn decided(&self, number: usize, finding: FindingId, asked: Instant) -> Option<Duration> {
        self.nodes[number].decided.get(&finding).map(|at| at.duration_since(asked))
    }

    pub(super) fn knows(&self, number: usize, other: usize) -> bool {
        self.peer(number, other).is_some()
    }

    pub(super) fn peer(&self, number: usize, other: usize) -> Option<Arc<Peer>> {
        let id = self.nodes[other].engine.sender().node;
        self.nodes[number].engine.peers().into_iter().map(|(peer, _)| peer).find(|peer| peer.node == id)
    }
}

impl Node {
    fn perform(&mut self, action: Action, now: Instant) {
        match action {
            Action::Send { to, body } => {
                let frame = self.sealer.seal(&body).unwrap();
                match to {
                    Destination::One(address, link) => self.memory.send(address, link, &frame).unwrap(),
                    Destination::Beyond(link) => self.memory.broadcast(&frame, Some(link)),
                    Destination::Everyone(also) => {
                        for (address, link) in also {
                            self.memory.send(address, link, &frame).unwrap();
                        }
                        self.memory.broadcast(&frame, None);
                    }
                }
            }
            Action::Offer(finding, offer) => self.offers.push((finding, *offer)),
            Action::Decided(finding) => assert!(self.decided.insert(finding, now).is_none(), "decided once"),
            Action::Claimed(finding, claimant) => self.claims.push((finding, claimant)),
            Action::Closed(_) => {}
            Action::Renew => self.renew += 1,
            Action::Event(event) => self.events.push(event),
        }
    }

    fn receive(&mut self, datagram: &Datagram, now: Instant) {
        let Ok(checked) = self.sealer.check(&datagram.bytes) else { return };
        if !checked.is_familiar() && !self.engine.may_open(datagram.from.ip(), now) {
            return;
        }
        let Ok(opened) = checked.open() else { return };
        let Datagram { from, link, broadcast, .. } = *datagram;
        for action in self.engine.handle(&opened, Arrival { from, link, broadcast }, now) {
            self.perform(action, now);
        }
    }
}

pub(super) fn sender(who: usize) -> Sender {
    let pin = Pin(*Digest::of(&who.to_be_bytes()).as_bytes());
    Sender {
        node: NodeId::of(&pin),
        pins: vec![pin],
        tcp_port: 9000,
        https: true,
        http: false,
        name: format!("box{who}"),
        version: "0.1.0".into(),
        advertise: None,
        load: 0,
    }
}
