//! Connections kept for the next request, and the TLS settings of each neighbour (which keep its sessions).

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustls::ClientConfig;

use super::Sender;
use crate::clock::SharedClock;
use crate::tls::{NodeId, Pin, TlsError};

/// A connection idle for longer is closed: sooner than the other end would do it.
const IDLE: Duration = Duration::from_secs(5);
/// How many idle connections are kept for one neighbour, and in all.
const MOST_EACH: usize = 4;
const MOST: usize = 64;
/// How many neighbours' TLS settings are kept.
const MOST_CONFIGS: usize = 1024;

/// Which connections are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) node: NodeId,
    pub(super) address: SocketAddr,
    pub(super) https: bool,
}

pub(super) struct Pool {
    clock: SharedClock,
    idle: Mutex<Vec<Idle>>,
    configs: Mutex<HashMap<NodeId, Known>>,
}

struct Idle {
    key: Key,
    /// What the other end had proved to be one of: a connection must not outlive a change of keys.
    pins: Vec<Pin>,
    sender: Sender,
    since: Instant,
}

struct Known {
    pins: Vec<Pin>,
    config: Arc<ClientConfig>,
}

/// A connection in use; given back or, when dropped, closed.
pub(super) struct Lease {
    pool: Arc<Pool>,
    key: Key,
    pins: Vec<Pin>,
    sender: Sender,
}

impl Pool {
    pub(super) fn new(clock: SharedClock) -> Self {
        Self { clock, idle: Mutex::default(), configs: Mutex::default() }
    }

    /// The youngest connection that can take a request now.
    pub(super) fn take(&self, key: &Key, pins: &[Pin]) -> Option<Sender> {
        let mut idle = self.swept();
        let at = idle.iter().rposition(|i| i.key == *key && i.pins == pins && i.sender.is_ready())?;
        Some(idle.remove(at).sender)
    }

    pub(super) fn clear(&self) {
        self.idle().clear();
    }

    /// The TLS settings for a neighbour; its sessions live in them.
    pub(super) fn config(
        &self,
        node: NodeId,
        pins: &[Pin],
        make: impl FnOnce() -> Result<Arc<ClientConfig>, TlsError>,
    ) -> Result<Arc<ClientConfig>, TlsError> {
        let mut configs = self.configs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = configs.get(&node).filter(|known| known.pins == pins) {
            return Ok(known.config.clone());
        }
        let config = make()?;
        if configs.len() >= MOST_CONFIGS {
            configs.clear();
        }
        configs.insert(node, Known { pins: pins.to_vec(), config: config.clone() });
        Ok(config)
    }

    fn put(&self, lease: Lease) {
        let Lease { key, pins, sender, .. } = lease;
        let since = self.clock.instant();
        let mut idle = self.swept();
        if idle.iter().filter(|i| i.key == key).count() >= MOST_EACH {
            return;
        }
        if idle.len() >= MOST {
            idle.remove(0);
        }
        idle.push(Idle { key, pins, sender, since });
    }

    /// The idle connections without those that ended; the youngest last.
    fn swept(&self) -> MutexGuard<'_, Vec<Idle>> {
        let now = self.clock.instant();
        let mut idle = self.idle();
        idle.retain(|i| !i.sender.is_closed() && now.saturating_duration_since(i.since) < IDLE);
        idle
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    pub(super) fn new(pool: &Arc<Pool>, key: Key, pins: &[Pin], sender: Sender) -> Self {
        Self { pool: pool.clone(), key, pins: pins.to_vec(), sender }
    }

    pub(super) fn give_back(self) {
        let pool = self.pool.clone();
        pool.put(self);
    }
}
