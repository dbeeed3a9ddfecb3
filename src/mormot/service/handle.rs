//! The handle: what other rooms may ask of mORMot peers, and what the room shows.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};

use super::{Listening, Question, Service};
use crate::clock::SharedClock;
use crate::discovery::{Marks, Transport, Udp};
use crate::mormot::client::{Client, PullError, Pulled};
use crate::mormot::counts::Counts;
use crate::mormot::engine::{Holdings, Me, Offer};
use crate::mormot::frame::Keys;
use crate::mormot::message::Hash;
use crate::mormot::seat::Seat;
use crate::mormot::server::{Served, Server};
use crate::mormot::{Config, Marker};
use crate::net::interface::Interface;
use crate::telemetry::Health;

/// How many questions may wait for the task.
const QUESTIONS: usize = 1024;

/// Finds mORMot peers and reads from them; a cheap clone.
#[derive(Debug, Clone)]
pub struct Mormot {
    shared: Arc<Shared>,
    questions: mpsc::Sender<Question>,
    client: Client,
}

/// What the room is built from besides its settings.
pub struct Parts {
    /// Opens and seals.
    pub keys: Arc<Keys>,
    /// Who this node is.
    pub me: Me,
    /// What this node has.
    pub holdings: Arc<dyn Holdings>,
    /// Who gives it; none where this node only asks.
    pub server: Option<Server>,
    /// The socket for it, where it was bound already.
    pub listener: Option<TcpListener>,
    /// Where it sits at the start, if there is such a place already.
    pub seat: Option<Seat>,
    /// The longest wait for answers.
    pub wait_max: Duration,
    /// The interfaces as they are.
    pub interfaces: watch::Receiver<Vec<Interface>>,
    /// Told of Larder nodes among the peers, and where they hear Larder's own protocol.
    pub met: Box<dyn Fn(Marker, SocketAddr) + Send + Sync>,
    /// Reads from peers.
    pub client: Client,
    /// Time.
    pub clock: SharedClock,
    /// Where troubles are noted.
    pub health: Health,
}

/// What handle and task share.
#[derive(Debug)]
pub(super) struct Shared {
    snapshot: ArcSwap<Snapshot>,
    marks: Marks<Ipv4Addr>,
    server: Option<Server>,
    clock: SharedClock,
    wait_max: Duration,
}

#[derive(Debug, Clone, Copy, Default)]
struct Snapshot {
    seat: Option<Seat>,
    peers: usize,
    counts: Counts,
    listening: bool,
}

/// The room as status shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct View {
    /// Where it serves; none while there is no interface.
    pub address: Option<String>,
    /// Where it asks.
    pub broadcast: Option<String>,
    /// Whether it serves there.
    pub listening: bool,
    /// Peers heard lately.
    pub peers: usize,
    /// Frames since the start.
    pub frames: Counts,
    /// Requests answered since the start.
    pub served: Served,
    /// Bytes read from peers since the start.
    pub bytes_received: u64,
}

impl Shared {
    pub(super) fn sat(&self, seat: Seat, peers: usize, counts: Counts, listening: bool) {
        self.snapshot.store(Arc::new(Snapshot { seat: Some(seat), peers, counts, listening }));
    }

    pub(super) fn stood(&self) {
        let counts = self.snapshot.load().counts;
        self.snapshot.store(Arc::new(Snapshot { counts, ..Snapshot::default() }));
    }

    fn seat(&self) -> Option<Seat> {
        self.snapshot.load().seat
    }

    fn now(&self) -> Instant {
        self.clock.instant()
    }
}

impl Mormot {
    /// The room over UDP: the handle, and the task to run.
    pub fn new(config: &Config, parts: Parts) -> (Self, Service<Udp>) {
        Self::over(Udp::new(config.port, "mormot.port"), config, parts)
    }

    /// The room over any transport.
    pub fn over<T: Transport>(transport: T, config: &Config, parts: Parts) -> (Self, Service<T>) {
        let now = parts.clock.instant();
        let shared = Arc::new(Shared {
            // questions may come before the task has begun
            snapshot: ArcSwap::from_pointee(Snapshot { seat: parts.seat, ..Snapshot::default() }),
            marks: Marks::default(),
            server: parts.server.clone(),
            clock: Arc::clone(&parts.clock),
            wait_max: parts.wait_max,
        });
        let (to, questions) = mpsc::channel(QUESTIONS);
        let service = Service {
            config: config.clone(),
            keys: parts.keys,
            me: parts.me,
            holdings: parts.holdings,
            wait_max: parts.wait_max,
            transport,
            interfaces: parts.interfaces,
            listening: Listening::new(parts.server, parts.listener),
            met: parts.met,
            clock: parts.clock,
            health: parts.health,
            questions,
            shared: Arc::clone(&shared),
            open: std::collections::HashMap::new(),
            maintain: None,
            shown: now.checked_sub(super::SHOW_EVERY).unwrap_or(now),
            stale: true,
        };
        (Self { shared, questions: to, client: parts.client }, service)
    }

    /// Whether there is a network of such peers to ask.
    pub fn is_seated(&self) -> bool {
        self.shared.seat().is_some()
    }

    /// Who holds a thing, the best first; waits as long as the peers' answers take, and hardly where none come.
    pub async fn find(&self, hash: Hash, size: Option<u64>) -> Vec<Offer> {
        let (answer, answered) = oneshot::channel();
        if self.questions.try_send(Question { hash, size, answer }).is_err() {
            tracing::debug!("the task among mORMot peers is too busy or has ended");
            return Vec::new();
        }
        // the task decides in time; this guards against a task that is gone
        let limit = 2 * self.shared.wait_max + Duration::from_millis(50);
        let mut offers = match tokio::time::timeout(limit, answered).await {
            Ok(Ok(offers)) => offers,
            Ok(Err(_)) | Err(_) => Vec::new(),
        };
        let now = self.shared.now();
        offers.retain(|offer| !self.shared.marks.skips(&offer.told.address, now));
        offers
    }

    /// Reads what was offered from the byte `from` to its end.
    pub async fn pull(&self, offer: &Offer, from: u64) -> Result<Pulled, PullError> {
        let seat = self.shared.seat().ok_or_else(|| PullError::Own("no interface".to_owned()))?;
        let pulled = self.client.pull(seat.address, seat.port, offer, from).await;
        if let Err(PullError::Unreachable(_) | PullError::Timeout) = &pulled {
            self.shared.marks.failed(offer.told.address, self.shared.now());
        }
        pulled
    }

    /// This peer gave wrong bytes: its offers are passed over for an hour, doubling to a day. In this room only.
    pub fn quarantine(&self, address: Ipv4Addr) {
        self.shared.marks.quarantine(address, self.shared.now());
    }

    /// What the room shows.
    pub fn view(&self) -> View {
        let Snapshot { seat, peers, counts, listening } = **self.shared.snapshot.load();
        View {
            address: seat.map(|seat| seat.peer(seat.address).to_string()),
            broadcast: seat.map(|seat| seat.everybody().to_string()),
            listening,
            peers,
            frames: counts,
            served: self.shared.server.as_ref().map(Server::served).unwrap_or_default(),
            bytes_received: self.client.received(),
        }
    }
}
