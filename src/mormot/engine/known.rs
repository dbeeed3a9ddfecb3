//! Peers that answered lately, ours or anybody's question.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Within this time a peer that answered is there.
const THERE: Duration = Duration::from_secs(90);
/// So many finds in a row without an answer, and a peer is not waited for.
const PATIENCE: u8 = 3;
/// How many are remembered.
const MOST: usize = 4096;

/// The table.
#[derive(Debug, Default)]
pub(super) struct Known(HashMap<Ipv4Addr, Peer>);

#[derive(Debug, Clone, Copy)]
struct Peer {
    heard: Instant,
    missed: u8,
}

impl Known {
    /// It answered.
    pub(super) fn answered(&mut self, address: Ipv4Addr, now: Instant) {
        if self.0.len() >= MOST && !self.0.contains_key(&address) {
            self.sweep(now);
        }
        if self.0.len() < MOST || self.0.contains_key(&address) {
            self.0.insert(address, Peer { heard: now, missed: 0 });
        }
    }

    /// It did not answer in time.
    pub(super) fn missed(&mut self, address: Ipv4Addr) {
        if let Some(peer) = self.0.get_mut(&address) {
            peer.missed = peer.missed.saturating_add(1);
        }
    }

    /// Those worth waiting for.
    pub(super) fn awaited(&self, now: Instant) -> HashSet<Ipv4Addr> {
        let awaited = self.0.iter().filter(|(_, peer)| peer.is_there(now) && peer.missed < PATIENCE);
        awaited.map(|(address, _)| *address).collect()
    }

    pub(super) fn count(&self, now: Instant) -> usize {
        self.0.values().filter(|peer| peer.is_there(now)).count()
    }

    pub(super) fn sweep(&mut self, now: Instant) {
        self.0.retain(|_, peer| peer.is_there(now));
    }
}

impl Peer {
    fn is_there(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.heard) < THERE
    }
}
