//! The one task of the room: sockets, timer and questions around the engine.
//!
//! [`Mormot`] is the handle for everybody else; what it shows is a snapshot. The task is [`Service::run`], joined
//! by whoever started it. It never ends by itself: while there is no interface, or a port is taken, that is a
//! trouble in [`Health`] and tried again; when the interface changes, it takes another seat.

mod handle;
mod listen;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};

pub use handle::{Mormot, Parts, View};

use super::engine::{Action, Engine, Holdings, Me, Offer};
use super::frame::Keys;
use super::message::Hash;
use super::seat::{Seat, seat};
use super::{Config, Marker};
use crate::clock::SharedClock;
use crate::discovery::{Datagram, Transport};
use crate::net::interface::{self, Interface};
use crate::shutdown::{Drain, Shutdown};
use crate::telemetry::Health;
use handle::Shared;
use listen::Listening;

/// How many questions are taken at once.
const BATCH: usize = 64;
/// How long what is shown may lag behind.
const SHOW_EVERY: Duration = Duration::from_millis(250);

/// What the handle asks of the task.
struct Question {
    hash: Hash,
    size: Option<u64>,
    answer: oneshot::Sender<Vec<Offer>>,
}

/// The task, ready to run.
pub struct Service<T> {
    config: Config,
    keys: Arc<Keys>,
    me: Me,
    holdings: Arc<dyn Holdings>,
    wait_max: Duration,
    transport: T,
    interfaces: watch::Receiver<Vec<Interface>>,
    listening: Listening,
    met: Box<dyn Fn(Marker, SocketAddr) + Send + Sync>,
    clock: SharedClock,
    health: Health,
    questions: mpsc::Receiver<Question>,
    shared: Arc<Shared>,
    open: HashMap<u32, oneshot::Sender<Vec<Offer>>>,
    maintain: Option<Instant>,
    shown: Instant,
    stale: bool,
}

/// What woke the task.
enum Woken {
    Stop,
    Moved,
    Datagram(Option<Datagram>),
    Questions(Vec<Question>),
    Timer,
}

impl<T: Transport> Service<T> {
    /// Speaks, hears and serves until it is asked to stop. Connections run on `drain`.
    pub async fn run(mut self, stop: Shutdown, drain: Drain) {
        let mut now = self.seat().await;
        while !stop.is_requested() {
            let next = match now {
                Some(seat) => self.sit(seat, &stop, &drain).await,
                None => self.stand(&stop).await,
            };
            if next != now && !stop.is_requested() {
                tracing::info!("the place among mORMot peers changed");
            }
            now = next;
        }
        self.listening.close().await;
    }

    /// Where it would sit now. Reads sysfs.
    async fn seat(&mut self) -> Option<Seat> {
        let (config, list) = (self.config.clone(), self.interfaces.borrow_and_update().clone());
        let found = tokio::task::spawn_blocking(move || seat(&config, &list, interface::link)).await;
        found.ok().flatten()
    }

    /// Waits for an interface.
    async fn stand(&mut self, stop: &Shutdown) -> Option<Seat> {
        let what = if self.config.interface.is_empty() {
            "there is no interface with broadcast for mORMot peers: name one in mormot.interface".to_owned()
        } else {
            format!("there is no interface {} with IPv4 (mormot.interface)", self.config.interface)
        };
        if self.health.raise("mormot-interface", what.clone()) {
            tracing::warn!("{what}");
        }
        self.shared.stood();
        let mut interfaces = self.interfaces.clone();
        loop {
            tokio::select! {
                () = stop.requested() => return None,
                Some(question) = self.questions.recv() => answer(question.answer, Vec::new()),
                Ok(()) = interfaces.changed() => {
                    let seat = self.seat().await;
                    if seat.is_some() {
                        self.health.clear("mormot-interface");
                        return seat;
                    }
                }
            }
        }
    }

    /// Takes part from one place, until that is another one.
    async fn sit(&mut self, seat: Seat, stop: &Shutdown, drain: &Drain) -> Option<Seat> {
        let mut chance = [0; 20];
        if let Err(error) = getrandom::fill(&mut chance) {
            tracing::warn!(%error, "no random numbers: the numbers of mORMot frames can be guessed");
        }
        let (holdings, now) = (Arc::clone(&self.holdings), self.now());
        let mut engine =
            Engine::new(Arc::clone(&self.keys), self.me, seat, holdings, self.wait_max, chance, now);
        self.transport.set_endpoints(&[seat.endpoint(self.me.is_guest)], now);
        self.maintain(now);
        tracing::info!(address = %seat.peer(seat.address), broadcast = %seat.everybody(), "among mORMot peers");
        self.listening.open(seat, stop, drain, &self.health, now);
        self.shared.sat(seat, 0, *engine.counts(), self.listening.is_open());
        let next = loop {
            self.listening.open(seat, stop, drain, &self.health, self.now());
            let woken = self.wait(&engine, stop).await;
            let now = self.now();
            match woken {
                Woken::Stop => break None,
                Woken::Moved => {
                    let next = self.seat().await;
                    if next != Some(seat) {
                        break next;
                    }
                }
                Woken::Datagram(Some(datagram)) => self.datagram(&mut engine, &datagram, now),
                Woken::Datagram(None) => self.maintain(now),
                Woken::Questions(batch) => self.ask(&mut engine, batch, now),
                Woken::Timer => {}
            }
            self.on_time(&mut engine, seat, now);
        };
        self.listening.close().await;
        self.open.clear();
        next
    }

    async fn wait(&mut self, engine: &Engine, stop: &Shutdown) -> Woken {
        let now = self.now();
        let show = self.stale.then(|| self.shown + SHOW_EVERY);
        let wake =
            [engine.next_tick(), self.maintain, self.listening.retry(), show].into_iter().flatten().min();
        let timer = async {
            match wake {
                Some(wake) => tokio::time::sleep(wake.saturating_duration_since(now)).await,
                None => std::future::pending().await,
            }
        };
        let mut batch = Vec::new();
        tokio::select! {
            () = stop.requested() => Woken::Stop,
            datagram = self.transport.receive() => Woken::Datagram(datagram),
            count = self.questions.recv_many(&mut batch, BATCH), if !self.questions.is_closed() => {
                if count == 0 { Woken::Timer } else { Woken::Questions(batch) }
            }
            Ok(()) = self.interfaces.changed() => Woken::Moved,
            () = timer => Woken::Timer,
        }
    }

    fn datagram(&mut self, engine: &mut Engine, datagram: &Datagram, now: Instant) {
        let SocketAddr::V4(from) = datagram.from else { return };
        self.stale = true;
        let actions = engine.handle(&datagram.bytes, from, self.clock.now().seconds(), now);
        self.perform(actions);
    }

    fn ask(&mut self, engine: &mut Engine, batch: Vec<Question>, now: Instant) {
        for question in batch {
            let (seq, actions) = engine.find(question.hash, question.size, self.clock.now().seconds(), now);
            self.open.insert(seq, question.answer);
            self.perform(actions);
        }
    }

    /// Whatever is due.
    fn on_time(&mut self, engine: &mut Engine, seat: Seat, now: Instant) {
        if engine.next_tick().is_some_and(|time| time <= now) {
            let actions = engine.tick(self.clock.now().seconds(), now);
            self.perform(actions);
        }
        if self.maintain.is_some_and(|time| time <= now) {
            self.maintain(now);
        }
        if now.saturating_duration_since(self.shown) >= SHOW_EVERY {
            self.shared.sat(seat, engine.peers(now), *engine.counts(), self.listening.is_open());
            (self.stale, self.shown) = (false, now);
        }
    }

    fn perform(&mut self, actions: Vec<Action>) {
        self.stale = true;
        for action in actions {
            match action {
                Action::Everybody(frame) => self.transport.broadcast(frame.as_slice(), None),
                Action::One(to, frame) => {
                    if let Err(error) = self.transport.send(to.into(), None, frame.as_slice()) {
                        tracing::trace!(%error, "a frame did not leave");
                    }
                }
                Action::Decided(seq, offers) => {
                    if let Some(open) = self.open.remove(&seq) {
                        answer(open, offers);
                    }
                }
                Action::Met(marker, address) => (self.met)(marker, address.into()),
            }
        }
    }

    fn maintain(&mut self, now: Instant) {
        self.maintain = self.transport.maintain(now);
        match self.transport.view().into_iter().find_map(|view| view.error) {
            Some(why) => {
                self.health.raise("mormot-frames", why);
            }
            None => {
                self.health.clear("mormot-frames");
            }
        }
    }

    fn now(&self) -> Instant {
        self.clock.instant()
    }
}

/// Whoever asked may have left.
fn answer(to: oneshot::Sender<Vec<Offer>>, offers: Vec<Offer>) {
    if to.send(offers).is_err() {
        tracing::trace!("nobody waits for an answer of mORMot peers any more");
    }
}

impl<T> std::fmt::Debug for Service<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("config", &self.config).finish_non_exhaustive()
    }
}
