//! The table of running transfers: who leads, who follows.
//!
//! A flight is entered before anything is known of the answer. Its leader resolves it exactly once: followers
//! then read from the transfer, from the store, or leave for the origin on their own. A leader that disappears
//! fails its followers; none ever hangs.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::error::FetchError;
use super::running::Running;
use super::stand::Stand;
use crate::clock::SharedClock;
use crate::digest::Stated;
use crate::index::ResourceRecord;
use crate::peer::ResourceHead;
use crate::policy::UrlKey;

/// How long a URL whose answer could not be shared is neither joined nor claimed.
const ALONE: Duration = Duration::from_secs(120);
/// How many such URLs are remembered.
const REMEMBERED: usize = 10_000;

/// How long, and of how many, it is still told what a finished transfer's pieces were.
const TOLD: Duration = Duration::from_secs(60);
const FINISHED: usize = 64;

/// What a flight is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FlightKey {
    /// Whatever the URL leads to.
    Url(UrlKey),
    /// This very thing.
    Stated(Stated),
}

impl FlightKey {
    /// Its name among neighbours: what they ask for.
    pub(super) fn name(self) -> [u8; 32] {
        match self {
            Self::Url(url) => *url.as_bytes(),
            Self::Stated(stated) => {
                stated.sha256().map_or_else(|| *stated.key().as_bytes(), |digest| *digest.as_bytes())
            }
        }
    }
}

/// What the leader found.
#[derive(Debug, Clone)]
pub(super) enum Found {
    /// A transfer to read from.
    Running(Arc<Running>),
    /// A stored answer that the origin confirmed.
    Confirmed(Arc<ResourceRecord>),
    /// A stored answer that is stale: why it goes out all the same.
    Stale(Arc<ResourceRecord>, &'static str),
    /// Nothing that can be shared.
    Leave,
    /// Nothing at all.
    Failed(Arc<FetchError>),
}

/// All flights.
#[derive(Debug)]
pub(super) struct Flights {
    clock: SharedClock,
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    flights: HashMap<FlightKey, Flight>,
    /// What was told last of transfers that ended well, by the names under which they were known.
    finished: VecDeque<Finished>,
    alone: HashMap<UrlKey, Instant>,
}

#[derive(Debug)]
struct Flight {
    /// Its name among neighbours.
    name: [u8; 32],
    found: watch::Receiver<Option<Found>>,
    /// Where this node stands with it; none: it is not shared.
    stand: Option<Arc<Stand>>,
}

#[derive(Debug)]
struct Finished {
    keys: [[u8; 32]; 2],
    until: Instant,
    head: ResourceHead,
}

/// A flight that neighbours may take part in.
pub(super) struct Shared {
    pub(super) watcher: Watcher,
    pub(super) stand: Arc<Stand>,
}

/// One's part in a flight.
pub(super) enum Part {
    /// Goes first.
    Lead(Permit),
    /// Waits for the leader.
    Follow(Watcher),
}

/// The leader's duty to resolve the flight.
#[derive(Debug)]
pub(super) struct Permit {
    key: FlightKey,
    sender: watch::Sender<Option<Found>>,
    table: Arc<Mutex<Table>>,
}

/// A follower's view of a flight.
#[derive(Debug)]
pub(super) struct Watcher(watch::Receiver<Option<Found>>);

impl Flights {
    pub(super) fn new(clock: SharedClock) -> Self {
        Self { clock, table: Arc::default() }
    }

    /// Leads the flight if nobody does, else follows.
    pub(super) fn enter(&self, key: FlightKey) -> Part {
        let mut table = lock(&self.table);
        if let Some(flight) = table.flights.get(&key) {
            return Part::Follow(Watcher(flight.found.clone()));
        }
        let (sender, receiver) = watch::channel(None);
        table.flights.insert(key, Flight { name: key.name(), found: receiver, stand: None });
        Part::Lead(Permit { key, sender, table: Arc::clone(&self.table) })
    }

    /// What runs for this key is of the past: whoever comes now does not join it.
    pub(super) fn part_from(&self, key: FlightKey) {
        lock(&self.table).flights.remove(&key);
    }

    /// Whether somebody went first for this key and has no answer yet.
    pub(super) fn is_pending(&self, key: FlightKey) -> bool {
        lock(&self.table).flights.get(&key).is_some_and(|flight| flight.found.borrow().is_none())
    }

    /// The transfer that runs for this key now, if its head is known.
    pub(super) fn running(&self, key: FlightKey) -> Option<Arc<Running>> {
        match &*lock(&self.table).flights.get(&key)?.found.borrow() {
            Some(Found::Running(running)) => Some(Arc::clone(running)),
            Some(Found::Confirmed(_) | Found::Stale(..) | Found::Leave | Found::Failed(_)) | None => None,
        }
    }

    /// All transfers whose head is known.
    pub(super) fn all(&self) -> Vec<Arc<Running>> {
        let table = lock(&self.table);
        let found = table.flights.values().filter_map(|flight| match &*flight.found.borrow() {
            Some(Found::Running(running)) => Some(Arc::clone(running)),
            Some(Found::Confirmed(_) | Found::Stale(..) | Found::Leave | Found::Failed(_)) | None => None,
        });
        found.collect()
    }

    /// The flight of this name, if neighbours may take part in it.
    pub(super) fn shared(&self, name: &[u8; 32]) -> Option<Shared> {
        lock(&self.table).flights.values().find(|flight| flight.name == *name)?.share()
    }

    /// The first flight whose transfer is such a one.
    pub(super) fn shared_where(&self, is_it: impl Fn(&Running) -> bool) -> Option<Shared> {
        let table = lock(&self.table);
        let mut flights = table.flights.values().filter(|flight| flight.stand.is_some());
        flights
            .find(|flight| match &*flight.found.borrow() {
                Some(Found::Running(running)) => is_it(running),
                Some(_) | None => false,
            })?
            .share()
    }

    /// What is told of a transfer that ended well stays to be told for a while.
    pub(super) fn finish(&self, keys: [[u8; 32]; 2], head: ResourceHead) {
        let (mut table, now) = (lock(&self.table), self.clock.instant());
        table.finished.retain(|finished| finished.until > now && finished.keys != keys);
        if table.finished.len() >= FINISHED {
            table.finished.pop_front();
        }
        table.finished.push_back(Finished { keys, until: now + TOLD, head });
    }

    /// What is told of a transfer that ended well a moment ago.
    pub(super) fn finished(&self, key: &[u8; 32]) -> Option<ResourceHead> {
        let (table, now) = (lock(&self.table), self.clock.instant());
        let told = table.finished.iter().rfind(|one| one.until > now && one.keys.contains(key));
        told.map(|finished| finished.head.clone())
    }

    /// Everybody goes alone for this URL for a while.
    pub(super) fn set_alone(&self, url: UrlKey) {
        let (mut table, now) = (lock(&self.table), self.clock.instant());
        if table.alone.len() >= REMEMBERED {
            table.alone.retain(|_, until| *until > now);
        }
        if table.alone.len() < REMEMBERED
            && let Some(until) = now.checked_add(ALONE)
        {
            table.alone.insert(url, until);
        }
    }

    /// Whether everybody goes alone for this URL.
    pub(super) fn is_alone(&self, url: &UrlKey) -> bool {
        let now = self.clock.instant();
        lock(&self.table).alone.get(url).is_some_and(|until| *until > now)
    }
}

impl Flight {
    fn share(&self) -> Option<Shared> {
        let stand = Arc::clone(self.stand.as_ref()?);
        Some(Shared { watcher: Watcher(self.found.clone()), stand })
    }
}

impl Permit {
    /// Neighbours may take part, where this node stands.
    pub(super) fn stand(&self, stand: &Arc<Stand>) {
        if let Some(flight) = lock(&self.table).flights.get_mut(&self.key) {
            flight.stand = Some(Arc::clone(stand));
        }
    }

    /// Waits until nobody follows.
    pub(super) async fn unwatched(&self) {
        // one receiver is the table's own
        while self.sender.receiver_count() > 1 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Tells the followers. What runs stays in the table until the permit is dropped.
    pub(super) fn resolve(&self, found: Found) {
        self.sender.send_replace(Some(found));
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        {
            let mut table = lock(&self.table);
            // another flight may have this key by now
            let ours = table
                .flights
                .get(&self.key)
                .is_some_and(|other| other.found.same_channel(&self.sender.subscribe()));
            if ours {
                table.flights.remove(&self.key);
            }
        }
        self.sender.send_if_modified(|found| {
            let lost = found.is_none();
            if lost {
                let error = FetchError::Source("the request that led this download was given up".to_owned());
                *found = Some(Found::Failed(Arc::new(error)));
            }
            lost
        });
    }
}

impl Watcher {
    /// Whether the origin has still to answer.
    pub(super) fn is_pending(&self) -> bool {
        self.0.borrow().is_none()
    }

    /// What the leader found, if it has found anything yet.
    pub(super) fn now(&self) -> Option<Found> {
        self.0.borrow().clone()
    }

    /// What the leader found; waits for it. The leader's own deadlines bound the wait.
    pub(super) async fn found(mut self) -> Found {
        match self.0.wait_for(Option::is_some).await.map(|found| found.clone()) {
            Ok(Some(found)) => found,
            Ok(None) | Err(_) => Found::Leave,
        }
    }
}

fn lock(table: &Mutex<Table>) -> std::sync::MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
