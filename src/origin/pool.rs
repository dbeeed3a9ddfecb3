//! The connections to origins: how many lead to one authority, which are idle, who gets the next.
//!
//! A request over HTTP/1.1 holds a *place* of its authority from before its connection is chosen until its
//! body ended. Idle connections hold none, but a new one is made only by a holder who finds none idle, and a
//! used one is idle again before its place is free: so places bound the connections. All state is in memory
//! under one lock that is never held while waiting; an authority without connections and requests is
//! forgotten.

mod connection;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::dial::Dialer;
use super::{OriginError, Reach};
use crate::clock::SharedClock;
use crate::http::{Scheme, Target};
use crate::shutdown::Drain;

pub(super) use connection::{Connection, Wire};
use connection::{Shared, Single};

/// How long a connection waits for its next request; origins mostly close sooner themselves.
const IDLE: Duration = Duration::from_secs(60);
/// How often idle connections are looked through.
const SWEEP: Duration = Duration::from_secs(15);
/// Idle connections in all: they cost descriptors on both sides.
const MOST_IDLE: usize = 256;
/// How long a connection may take to be ready again once its last body ended.
const SETTLE: Duration = Duration::from_secs(1);

/// To whom a connection leads, and for which clients.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    scheme: Scheme,
    host: String,
    port: u16,
    public: bool,
}

/// All connections.
#[derive(Debug)]
pub(super) struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    per_host: usize,
    clock: SharedClock,
    state: Mutex<State>,
    /// The sweep, and connections that settle: each ends by itself within its bound.
    chores: Drain,
}

#[derive(Debug, Default)]
struct State {
    hosts: HashMap<Key, Host>,
    idle: usize,
    sweeping: bool,
}

#[derive(Debug)]
struct Host {
    places: Arc<Semaphore>,
    idle: Vec<(Single, Instant)>,
    shared: Option<(Shared, Instant)>,
}

/// A connection lent for one request and its answer. Dropping it closes an HTTP/1.1 connection: only who
/// read the whole answer may [`Lease::give_back`].
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) connection: Connection,
    reused: bool,
    place: Option<OwnedSemaphorePermit>,
    key: Key,
    home: Weak<Inner>,
}

impl Key {
    pub(super) fn of(target: &Target, reach: &Reach) -> Self {
        Self {
            scheme: target.scheme(),
            host: target.bare_host().to_owned(),
            port: target.port(),
            public: reach.is_public(),
        }
    }
}

impl Pool {
    pub(super) fn new(per_host: usize, clock: SharedClock) -> Self {
        let per_host = per_host.min(Semaphore::MAX_PERMITS);
        Self(Arc::new(Inner { per_host, clock, state: Mutex::default(), chores: Drain::new() }))
    }

    /// A connection for one request: one that is there, unless `fresh` is asked for after one failed, or a
    /// new one.
    pub(super) async fn lease(
        &self,
        dialer: &Dialer,
        target: &Target,
        reach: &Reach,
        fresh: bool,
    ) -> Result<Lease, OriginError> {
        let key = Key::of(target, reach);
        let reach_of_idle = if dialer.is_direct() { reach } else { &Reach::Anywhere };
        if fresh {
            self.0.forget(&key);
        }
        if let Some(shared) = self.0.shared(&key, reach_of_idle) {
            return Ok(self.lent(Connection::Shared(shared), true, None, key));
        }
        let places = self.0.places(&key);
        // After the deadline one goes ahead without a place.
        let waited = tokio::time::timeout(dialer.deadline(), places.acquire_owned()).await;
        let place = waited.ok().and_then(Result::ok);
        if let Some(shared) = self.0.shared(&key, reach_of_idle) {
            return Ok(self.lent(Connection::Shared(shared), true, None, key));
        }
        if !fresh && let Some(single) = self.0.take_idle(&key, reach_of_idle) {
            return Ok(self.lent(Connection::Single(single), true, place, key));
        }
        let line = dialer.line(target, reach).await?;
        let connection = connection::open(line, target.bare_host()).await?;
        Ok(match connection {
            Connection::Shared(shared) => {
                let shared = self.0.share(&key, shared);
                self.lent(Connection::Shared(shared), false, None, key)
            }
            single @ Connection::Single(_) => self.lent(single, false, place, key),
        })
    }

    /// A connection over HTTP/1.1 that nobody had before and nobody gets after.
    pub(super) async fn alone(
        &self,
        dialer: &Dialer,
        target: &Target,
        reach: &Reach,
    ) -> Result<Lease, OriginError> {
        let line = dialer.line_of_one(target, reach).await?;
        let connection = connection::open(line, target.bare_host()).await?;
        Ok(self.lent(connection, false, None, Key::of(target, reach)))
    }

    fn lent(
        &self,
        connection: Connection,
        reused: bool,
        place: Option<OwnedSemaphorePermit>,
        key: Key,
    ) -> Lease {
        Lease { connection, reused, place, key, home: Arc::downgrade(&self.0) }
    }

    #[cfg(test)]
    pub(super) fn hosts(&self) -> usize {
        self.0.lock().hosts.len()
    }
}

impl Lease {
    /// Whether the connection served others before.
    pub(super) const fn is_reused(&self) -> bool {
        self.reused
    }

    /// The whole answer was read. The connection is idle once it says so itself; the place is kept until
    /// then, so that nobody makes a new one in between.
    pub(super) fn give_back(self) {
        let Some(home) = self.home.upgrade() else { return };
        let (Connection::Single(mut single), Some(place)) = (self.connection, self.place) else { return };
        if single.is_ready() {
            home.keep(self.key, single);
            drop(place);
        } else if tokio::runtime::Handle::try_current().is_ok() && !single.is_closed() {
            let (key, keeper) = (self.key, Arc::clone(&home));
            let settling = async move {
                if let Ok(true) = tokio::time::timeout(SETTLE, single.settle()).await {
                    keeper.keep(key, single);
                }
                drop(place);
            };
            drop(home.chores.spawn(settling));
        }
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn places(&self, key: &Key) -> Arc<Semaphore> {
        Arc::clone(&self.lock().host(key, self.per_host).places)
    }

    fn shared(&self, key: &Key, reach: &Reach) -> Option<Shared> {
        let now = self.clock.instant();
        let mut state = self.lock();
        let (shared, used) = state.hosts.get_mut(key)?.shared.as_mut()?;
        if shared.is_closed() || !reach.permits(shared.remote().ip()) {
            return None;
        }
        *used = now;
        Some(shared.clone())
    }

    /// Shares a new connection, unless another one came first: then that one serves.
    fn share(self: &Arc<Self>, key: &Key, new: Shared) -> Shared {
        let now = self.clock.instant();
        let mut state = self.lock();
        let host = state.host(key, self.per_host);
        if let Some((there, used)) = &mut host.shared
            && !there.is_closed()
        {
            *used = now;
            return there.clone();
        }
        host.shared = Some((new.clone(), now));
        self.sweep_from_now(&mut state);
        new
    }

    /// The connection used last, as the one least likely to have been closed.
    fn take_idle(&self, key: &Key, reach: &Reach) -> Option<Single> {
        let mut state = self.lock();
        let State { hosts, idle, .. } = &mut *state;
        let host = hosts.get_mut(key)?;
        while let Some((single, _since)) = host.idle.pop() {
            *idle = idle.saturating_sub(1);
            if single.is_ready() && reach.permits(single.remote().ip()) {
                return Some(single);
            }
        }
        None
    }

    fn keep(self: &Arc<Self>, key: Key, single: Single) {
        if single.is_closed() {
            return;
        }
        let now = self.clock.instant();
        let mut state = self.lock();
        if state.idle >= MOST_IDLE {
            return;
        }
        state.host(&key, self.per_host).idle.push((single, now));
        state.idle += 1;
        self.sweep_from_now(&mut state);
    }

    /// One connection turned out dead: its likes are not tried.
    fn forget(&self, key: &Key) {
        let mut state = self.lock();
        let State { hosts, idle, .. } = &mut *state;
        if let Some(host) = hosts.get_mut(key) {
            *idle = idle.saturating_sub(host.idle.len());
            host.idle.clear();
            host.shared = None;
        }
    }

    /// Sees to it that a sweep runs for as long as there is anything to sweep.
    fn sweep_from_now(self: &Arc<Self>, state: &mut State) {
        if std::mem::replace(&mut state.sweeping, true) {
            return;
        }
        let weak = Arc::downgrade(self);
        let sweeping = async move {
            loop {
                tokio::time::sleep(SWEEP).await;
                match weak.upgrade() {
                    Some(inner) if inner.sweep() => {}
                    Some(_) | None => return,
                }
            }
        };
        drop(self.chores.spawn(sweeping));
    }

    /// Closes what waited too long; false when nothing is left to look after.
    fn sweep(&self) -> bool {
        let now = self.clock.instant();
        let expired = |since: Instant| now.saturating_duration_since(since) >= IDLE;
        let mut state = self.lock();
        let State { hosts, idle, sweeping } = &mut *state;
        hosts.retain(|_key, host| {
            host.idle.retain(|(single, since)| !single.is_closed() && !expired(*since));
            host.shared
                .take_if(|(shared, used)| shared.is_closed() || (expired(*used) && shared.is_used_by_none()));
            !host.is_unused()
        });
        *idle = hosts.values().map(|host| host.idle.len()).sum();
        *sweeping = !hosts.is_empty();
        *sweeping
    }
}

impl State {
    fn host(&mut self, key: &Key, per_host: usize) -> &mut Host {
        if !self.hosts.contains_key(key) {
            // Errors leave no connection behind and so start no sweep: tidy up here as well.
            self.hosts.retain(|_key, host| !host.is_unused());
        }
        self.hosts.entry(key.clone()).or_insert_with(|| Host {
            places: Arc::new(Semaphore::new(per_host)),
            idle: Vec::new(),
            shared: None,
        })
    }
}

impl Host {
    /// No connection, and nobody who holds a place or waits for one.
    fn is_unused(&self) -> bool {
        self.idle.is_empty() && self.shared.is_none() && Arc::strong_count(&self.places) == 1
    }
}
