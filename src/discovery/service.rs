//! The one task of the room: sockets, timer and commands around the engine.
//!
//! [`Discovery`] is the handle for everybody else; what it shows is a snapshot. The task is [`Service::run`],
//! joined by whoever started it; it ends with a `Bye` when asked to. It never ends by itself: a port that is
//! taken is a trouble in [`Health`] and tried again.

mod finding;
mod handle;
mod log;
mod seeds;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use tokio::sync::{mpsc, oneshot};

pub use finding::{Finding, Heard};
pub use handle::{Discovery, Parts, StartError};

use super::engine::{Action, Arrival, Asking, Claimant, Destination, Engine, FindingId};
use super::message;
use super::transport::{Datagram, Transport};
use super::{Endpoint, Holdings, Offer, Wanted};
use crate::clock::{SharedClock, Timestamp};
use crate::digest::Digest;
use crate::seal::{OpenError, Sealer};
use crate::shutdown::Shutdown;
use crate::telemetry::Health;
use crate::tls::{NodeId, Pin};
use handle::{Shared, Snapshot};
use seeds::Seeds;

/// How many commands are taken at once; finds among them share frames.
const BATCH: usize = 64;
/// How many datagrams that have come already are heard before anything is taken for silent.
const HEARD_FIRST: usize = 64;
/// How long what is shown may lag behind.
const SHOW_EVERY: Duration = Duration::from_millis(250);
/// The length of a mORMot peer's frame; no frame of ours is as long.
const MORMOT_FRAME: usize = 244;
/// Clocks that are noted before their nodes are believed.
const CLOCKS: usize = 4096;
/// How often a foreign secret on the network is worth a line.
const FOREIGN_EVERY: Duration = Duration::from_secs(3600);

/// What the handle asks of the task.
enum Command {
    Find(FindingId, Asking, Wanted, mpsc::Sender<Update>),
    Forget(FindingId),
    /// Say to all that this node is there.
    Hello,
    /// Say when all that has come so far has been heard and answered.
    CatchUp(oneshot::Sender<()>),
    Doubt(NodeId, Digest),
    Nominate(std::net::SocketAddr),
    Endpoints(Vec<Endpoint>),
    Renamed(NodeId, Vec<Pin>),
}

/// What the task tells a finding.
enum Update {
    Offer(Offer),
    /// A neighbour claims it.
    Claimed(Claimant),
    Decided,
}

/// The task, ready to run.
pub struct Service<T> {
    engine: Engine,
    holdings: Arc<dyn Holdings>,
    sealer: Sealer,
    transport: T,
    endpoints: Vec<Endpoint>,
    seeds: Seeds,
    clock: SharedClock,
    health: Health,
    commands: mpsc::Receiver<Command>,
    shared: Arc<Shared>,
    findings: HashMap<FindingId, mpsc::Sender<Update>>,
    /// Something that is shown has changed; at once, or when its time comes.
    stale: bool,
    shown: Instant,
    maintain: Option<Instant>,
    foreign_noted: Option<Instant>,
    /// How many milliseconds the clocks of neighbours are ahead of ours.
    clocks: HashMap<NodeId, i64>,
}

/// What woke the task.
enum Woken {
    Stop,
    Datagram(Option<Datagram>),
    Commands(Vec<Command>),
    Seeds(Vec<std::net::SocketAddr>),
    Timer,
}

impl<T: Transport> Service<T> {
    /// Speaks and hears until it is asked to stop; then says goodbye.
    pub async fn run(mut self, shutdown: Shutdown) {
        let now = self.now();
        self.transport.set_endpoints(&self.endpoints, now);
        self.maintain(now);
        let hello = self.engine.start(now);
        self.perform(hello);
        self.seeds.begin(now);
        self.show(now);
        loop {
            let woken = self.wait(&shutdown).await;
            let now = self.now();
            match woken {
                Woken::Stop => break,
                Woken::Datagram(Some(datagram)) => self.datagram(&datagram, now),
                Woken::Datagram(None) => self.maintain(now),
                Woken::Commands(batch) => self.obey(batch, now),
                Woken::Seeds(seeds) => {
                    let actions = self.engine.set_seeds(seeds);
                    self.perform(actions);
                }
                Woken::Timer => {}
            }
            self.hear_what_came(now);
            self.on_time(now);
        }
        let bye = self.engine.stop(self.now());
        self.perform(bye);
    }

    async fn wait(&mut self, shutdown: &Shutdown) -> Woken {
        let timer = sleep(self.next_wake(), self.now());
        let mut batch = Vec::new();
        tokio::select! {
            () = shutdown.requested() => Woken::Stop,
            datagram = self.transport.receive() => Woken::Datagram(datagram),
            count = self.commands.recv_many(&mut batch, BATCH), if !self.commands.is_closed() => {
                if count == 0 { Woken::Timer } else { Woken::Commands(batch) }
            }
            seeds = self.seeds.resolved() => Woken::Seeds(seeds),
            () = timer => Woken::Timer,
        }
    }

    /// Whoever was held up itself must not take for silence what it has not looked at.
    fn hear_what_came(&mut self, now: Instant) {
        for _ in 0..HEARD_FIRST {
            match self.transport.receive().now_or_never() {
                Some(Some(datagram)) => self.datagram(&datagram, now),
                Some(None) => self.maintain(now),
                None => return,
            }
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        let show = self.stale.then(|| self.shown + SHOW_EVERY);
        [self.engine.next_tick(), self.maintain, self.seeds.next(), show].into_iter().flatten().min()
    }

    /// Whatever is due.
    fn on_time(&mut self, now: Instant) {
        if self.engine.next_tick().is_some_and(|time| time <= now) {
            let actions = self.engine.tick(now);
            self.perform(actions);
        }
        if self.maintain.is_some_and(|time| time <= now) {
            self.maintain(now);
        }
        self.seeds.begin(now);
        if self.stale && now.duration_since(self.shown) >= SHOW_EVERY {
            self.show(now);
        }
    }

    fn datagram(&mut self, datagram: &Datagram, now: Instant) {
        self.engine.counts().received += 1;
        let checked = match self.sealer.check(&datagram.bytes) {
            Ok(checked) => checked,
            Err(error) => return self.not_ours(error, datagram, now),
        };
        if !checked.is_familiar() && !self.engine.may_open(datagram.from.ip(), now) {
            return;
        }
        match checked.open() {
            Ok(opened) => {
                let Datagram { from, link, broadcast, .. } = *datagram;
                let actions = self.engine.handle(&opened, Arrival { from, link, broadcast }, now);
                self.note_stamp(&opened.body);
                self.stale = true;
                self.perform(actions);
            }
            Err(error) => self.not_ours(error, datagram, now),
        }
    }

    fn note_stamp(&mut self, body: &[u8]) {
        let Some((node, stamp)) = message::stamped(body) else { return };
        if let Some(theirs) = stamp.clock {
            self.note_clock(node, theirs);
        }
        if let Some(list) = stamp.orders.filter(|_| node != self.engine.sender().node) {
            self.holdings.orders_heard(node, list);
        }
    }

    /// How far a neighbour's clock is from ours: for people alone, nothing is decided by it.
    fn note_clock(&mut self, node: NodeId, theirs: Timestamp) {
        if self.clocks.len() < CLOCKS || self.clocks.contains_key(&node) {
            let (theirs, ours) = (theirs.0, self.clock.now().0);
            let ahead = i64::try_from(theirs.abs_diff(ours)).unwrap_or(i64::MAX);
            self.clocks.insert(node, if theirs < ours { -ahead } else { ahead });
        }
    }

    /// Counted, and never held against the address it seems to come from.
    fn not_ours(&mut self, error: OpenError, datagram: &Datagram, now: Instant) {
        self.stale = true;
        let counts = self.engine.counts();
        match error {
            OpenError::Noise => {
                counts.noise += 1;
                counts.mormot += u64::from(datagram.bytes.len() == MORMOT_FRAME);
            }
            OpenError::Forged => counts.forged += 1,
            OpenError::UnknownKey => {
                counts.unknown_key += 1;
                if self.foreign_noted.is_none_or(|noted| now.duration_since(noted) >= FOREIGN_EVERY) {
                    self.foreign_noted = Some(now);
                    tracing::info!(
                        peer.address = %datagram.from,
                        "nodes with another secret or site are on this network; they are left alone"
                    );
                }
            }
            OpenError::Newer(version) => {
                tracing::trace!(version, "a frame of a later version");
                let actions = self.engine.newer(datagram.from, datagram.link, now);
                self.perform(actions);
            }
        }
    }

    fn obey(&mut self, batch: Vec<Command>, now: Instant) {
        let mut wants = Vec::new();
        for command in batch {
            match command {
                Command::Find(finding, how, wanted, updates) => {
                    self.findings.insert(finding, updates);
                    wants.push((how, (finding, wanted)));
                }
                Command::Forget(finding) => {
                    // it may stand in this very batch
                    wants.retain(|(_, (wanted, _))| *wanted != finding);
                    self.forget(finding);
                }
                Command::Hello => {
                    let actions = self.engine.hello_again(now);
                    self.perform(actions);
                }
                Command::CatchUp(done) => {
                    self.hear_what_came(now);
                    if done.send(()).is_err() {
                        tracing::trace!("nobody waits for what was heard");
                    }
                }
                Command::Doubt(node, digest) => {
                    let actions = self.engine.doubt(&node, digest, now);
                    self.perform(actions);
                }
                Command::Nominate(address) => {
                    let actions = self.engine.nominate(address, now);
                    self.perform(actions);
                }
                Command::Endpoints(endpoints) => {
                    self.endpoints = endpoints;
                    self.transport.set_endpoints(&self.endpoints, now);
                    self.maintain(now);
                    let actions = self.engine.moved(now);
                    self.perform(actions);
                }
                Command::Renamed(node, pins) => {
                    let mut sender = self.engine.sender().clone();
                    (sender.node, sender.pins) = (node, pins);
                    let actions = self.engine.renamed(sender, now);
                    self.shared.renew.send_replace(false);
                    self.perform(actions);
                }
            }
        }
        self.ask(wants, now);
    }

    /// Questions of one kind share frames.
    fn ask(&mut self, mut wants: Vec<(Asking, (FindingId, Wanted))>, now: Instant) {
        while let Some((how, _)) = wants.first().copied() {
            let alike: Vec<_> =
                wants.extract_if(.., |(other, _)| *other == how).map(|(_, want)| want).collect();
            let actions = self.engine.find(how, &alike, now);
            self.perform(actions);
        }
    }

    fn perform(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Send { to, mut body } => {
                    let (clock, orders) = (Some(self.clock.now()), self.holdings.orders());
                    message::stamp(&mut body, &message::Stamp { clock, orders });
                    self.send(&to, &body);
                }
                Action::Offer(finding, offer) => self.tell(finding, Update::Offer(*offer)),
                Action::Claimed(finding, claimant) => self.tell(finding, Update::Claimed(claimant)),
                Action::Decided(finding) => self.tell(finding, Update::Decided),
                Action::Closed(finding) => {
                    self.findings.remove(&finding);
                }
                Action::Renew => {
                    tracing::warn!(
                        "another live node has this node's id, as clones do: this one takes a new id"
                    );
                    self.shared.renew.send_replace(true);
                }
                Action::Event(event) => {
                    log::note(&event);
                    self.show(self.now());
                }
            }
        }
    }

    fn send(&mut self, to: &Destination, body: &[u8]) {
        let frame = match self.sealer.seal(body) {
            Ok(frame) => frame,
            Err(error) => return tracing::error!(%error, "a discovery frame could not be sealed"),
        };
        let mut one = |to, link| {
            if let Err(error) = self.transport.send(to, link, &frame) {
                tracing::trace!(%error, "a frame did not leave");
            }
        };
        match to {
            Destination::One(address, link) => one(*address, *link),
            Destination::Beyond(link) => self.transport.broadcast(&frame, Some(*link)),
            Destination::Everyone(also) => {
                for (address, link) in also {
                    one(*address, *link);
                }
                self.transport.broadcast(&frame, None);
            }
        }
    }

    /// A finding has room for every offer the engine gives it; a closed one is gone.
    fn tell(&mut self, finding: FindingId, update: Update) {
        let Some(updates) = self.findings.get(&finding) else { return };
        if updates.try_send(update).is_err() {
            self.forget(finding);
        }
    }

    fn forget(&mut self, finding: FindingId) {
        self.findings.remove(&finding);
        let now = self.now();
        self.engine.forget(finding, now);
    }

    fn maintain(&mut self, now: Instant) {
        self.maintain = self.transport.maintain(now);
        let taken = self.transport.view().into_iter().find(|view| view.taken);
        match taken.and_then(|view| view.error) {
            Some(why) => {
                self.health.raise("discovery-port", why);
            }
            None => {
                self.health.clear("discovery-port");
            }
        }
        self.stale = true;
    }

    fn show(&mut self, now: Instant) {
        self.stale = false;
        self.shown = now;
        let peers = self.engine.peers();
        self.clocks.retain(|node, _| peers.iter().any(|(peer, _)| peer.node == *node));
        self.shared.snapshot.store(Arc::new(Snapshot {
            peers,
            clocks: self.clocks.clone(),
            last_heard: self.engine.last_heard(),
            interfaces: self.transport.view(),
            counts: *self.engine.counts(),
        }));
    }

    fn now(&self) -> Instant {
        self.clock.instant()
    }
}

impl<T> std::fmt::Debug for Service<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("engine", &self.engine).finish_non_exhaustive()
    }
}

/// Until the time, or for ever.
fn sleep(until: Option<Instant>, now: Instant) -> impl Future<Output = ()> {
    let pause = until.map(|time| time.saturating_duration_since(now));
    async move {
        match pause {
            Some(pause) => tokio::time::sleep(pause).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests;
