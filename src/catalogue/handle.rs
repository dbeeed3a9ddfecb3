//! The handle: who holds a digest, asked within a given time, and how the catalogue stands.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use serde::Serialize;
use tokio::sync::{Notify, Semaphore};

use super::desk;
use crate::clock::{SharedClock, Timestamp};
use crate::digest::Digest;
use crate::orm::{DbError, Postgres};
use crate::seal::BootId;
use crate::tls::NodeId;

/// How many questions are asked at one time; who comes then goes without.
const AT_ONCE: usize = 8;
/// How long nobody asks after a question was not answered in time.
const PAUSE: Duration = Duration::from_secs(5);
/// How long an answer counts: one download asks more than once.
const RECENT: Duration = Duration::from_secs(1);
/// How many answers are remembered.
const REMEMBERED: usize = 1024;

/// The catalogue, for who looks something up; a cheap clone.
#[derive(Debug, Clone)]
pub struct Catalogue(pub(super) Arc<Inner>);

/// A node that is said to hold something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Its id.
    pub node: NodeId,
    /// Its run.
    pub boot: BootId,
    /// Where it says it hears.
    pub addresses: Vec<SocketAddr>,
}

/// How the catalogue stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct CatalogueView {
    /// Whether there is a session with the database.
    pub connected: bool,
    /// Rows written since the start.
    pub told: u64,
    /// Digests that were looked up.
    pub asked: u64,
    /// For so many of them somebody was named.
    pub found: u64,
    /// So many were not answered in time, or by an error.
    pub unanswered: u64,
}

#[derive(Debug)]
pub(super) struct Inner {
    node: NodeId,
    site: String,
    clock: SharedClock,
    open: ArcSwapOption<Open>,
    permits: Arc<Semaphore>,
    state: Mutex<State>,
    /// Somebody found the session broken.
    pub(super) broken: Notify,
    pub(super) told: AtomicU64,
    asked: AtomicU64,
    found: AtomicU64,
    unanswered: AtomicU64,
}

/// A session, and what time it is there.
#[derive(Debug)]
struct Open {
    engine: Arc<Postgres>,
    time: (Timestamp, Instant),
}

#[derive(Debug, Default)]
struct State {
    /// Nobody asks until then.
    paused: Option<Instant>,
    recent: HashMap<Digest, (Instant, Vec<Known>)>,
}

impl Known {
    pub(super) fn has_address(&self) -> bool {
        !self.addresses.is_empty()
    }
}

impl Catalogue {
    pub(super) fn new(node: NodeId, site: String, clock: SharedClock) -> Self {
        Self(Arc::new(Inner {
            node,
            site,
            clock,
            open: ArcSwapOption::empty(),
            permits: Arc::new(Semaphore::new(AT_ONCE)),
            state: Mutex::default(),
            broken: Notify::new(),
            told: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            found: AtomicU64::new(0),
            unanswered: AtomicU64::new(0),
        }))
    }

    /// Whether anything can be looked up now.
    pub fn is_open(&self) -> bool {
        self.0.open.load().is_some() && !self.is_paused()
    }

    /// Other nodes of the site that are said to hold a blob, within this time; none if nobody does, or nothing is
    /// known in time.
    pub async fn holders(&self, digest: &Digest, patience: Duration) -> Vec<Known> {
        let Some(open) = self.0.open.load_full().filter(|_| !self.is_paused()) else { return Vec::new() };
        if let Some(recent) = self.recent(digest) {
            return recent;
        }
        let Ok(permit) = Arc::clone(&self.0.permits).try_acquire_owned() else { return Vec::new() };
        self.0.asked.fetch_add(1, Ordering::Relaxed);
        let (inner, wanted) = (Arc::clone(&self.0), *digest);
        let asked = tokio::task::spawn_blocking(move || {
            let mut lot = [0; 16];
            // without randomness everybody begins with the same one
            getrandom::fill(&mut lot).unwrap_or_default();
            let now = open.time.0.plus(inner.clock.instant().saturating_duration_since(open.time.1));
            let found = desk::holders(open.engine.as_ref(), (inner.node, &inner.site), &wanted, lot, now);
            drop(permit);
            found
        });
        match tokio::time::timeout(patience, asked).await {
            Ok(Ok(Ok(known))) => {
                self.0.found.fetch_add(u64::from(!known.is_empty()), Ordering::Relaxed);
                self.remember(*digest, known.clone());
                known
            }
            Ok(Ok(Err(error))) => self.unanswered(&error),
            Ok(Err(_)) | Err(_) => self.unanswered(&DbError::Silent),
        }
    }

    /// How it stands.
    pub fn view(&self) -> CatalogueView {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let inner = &self.0;
        CatalogueView {
            connected: inner.open.load().is_some(),
            told: of(&inner.told),
            asked: of(&inner.asked),
            found: of(&inner.found),
            unanswered: of(&inner.unanswered),
        }
    }

    /// There is a session, in which it is this time now.
    pub(super) fn open(&self, engine: &Arc<Postgres>, now: Timestamp) {
        let time = (now, self.0.clock.instant());
        self.0.open.store(Some(Arc::new(Open { engine: Arc::clone(engine), time })));
        self.state().paused = None;
    }

    pub(super) fn close(&self) {
        self.0.open.store(None);
    }

    /// The database is left alone for a while, and the task looks after the session.
    fn unanswered(&self, error: &DbError) -> Vec<Known> {
        tracing::debug!(%error, "the catalogue did not say who holds a blob");
        self.0.unanswered.fetch_add(1, Ordering::Relaxed);
        self.state().paused = Some(self.0.clock.instant() + PAUSE);
        self.0.broken.notify_one();
        Vec::new()
    }

    fn is_paused(&self) -> bool {
        let now = self.0.clock.instant();
        self.state().paused.is_some_and(|until| now < until)
    }

    fn recent(&self, digest: &Digest) -> Option<Vec<Known>> {
        let now = self.0.clock.instant();
        let state = self.state();
        let (then, known) = state.recent.get(digest)?;
        (now.saturating_duration_since(*then) < RECENT).then(|| known.clone())
    }

    fn remember(&self, digest: Digest, known: Vec<Known>) {
        let now = self.0.clock.instant();
        let mut state = self.state();
        if state.recent.len() >= REMEMBERED {
            state.recent.clear();
        }
        state.recent.insert(digest, (now, known));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
