//! The ledger: which bytes went to clients and where they came from.
//!
//! Counted at the door. The first delivery of a received byte counts as from peers or from the origin, every
//! other delivery as from the cache; a received byte that is never delivered enters its source and
//! `discarded` together when its transfer ends. So clients = cache + peers + origin − discarded holds for all
//! that has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::measures::Measures;

/// Running sums; a cheap clone.
#[derive(Debug, Clone, Default)]
pub struct Ledger(Arc<Sums>);

#[derive(Debug, Default)]
struct Sums {
    requests: AtomicU64,
    to_clients: AtomicU64,
    from_cache: AtomicU64,
    from_peers: AtomicU64,
    from_origin: AtomicU64,
    to_peers: AtomicU64,
    discarded: AtomicU64,
    tunnelled: AtomicU64,
    measures: Measures,
    sidecars: AtomicU64,
}

/// The sums at one moment, named as in the status document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Traffic {
    /// Requests answered by the doors.
    pub requests: u64,
    /// Body bytes given to clients.
    pub bytes_to_clients: u64,
    /// Of these, from the store.
    pub bytes_from_cache: u64,
    /// Received from neighbours.
    pub bytes_from_peers: u64,
    /// Received from origin servers.
    pub bytes_from_origin: u64,
    /// Given to neighbours.
    pub bytes_to_peers: u64,
    /// Received and never delivered.
    pub bytes_discarded: u64,
    /// Bytes through `CONNECT` tunnels, both ways, in no other sum.
    pub bytes_tunnelled: u64,
    /// Bytes of checksum files that were asked for beside downloads, in no other sum.
    #[serde(default)]
    pub bytes_sidecars: u64,
}

/// Where received bytes came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// The store.
    Cache,
    /// A neighbour.
    Peer,
    /// The origin server.
    Origin,
}

impl Ledger {
    /// Nothing counted yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long things take.
    pub fn measures(&self) -> &Measures {
        &self.0.measures
    }

    /// One more request at a door.
    pub fn request(&self) {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Bytes went to a client.
    pub fn delivered(&self, from: From, bytes: u64) {
        self.0.to_clients.fetch_add(bytes, Ordering::Relaxed);
        self.source(from).fetch_add(bytes, Ordering::Relaxed);
    }

    /// Received bytes will never be delivered.
    pub fn discarded(&self, from: From, bytes: u64) {
        self.0.discarded.fetch_add(bytes, Ordering::Relaxed);
        self.source(from).fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes went to a neighbour.
    pub fn to_peer(&self, bytes: u64) {
        self.0.to_peers.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes went through a tunnel.
    pub fn tunnelled(&self, bytes: u64) {
        self.0.tunnelled.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A checksum file was read beside a download.
    pub fn sidecar(&self, bytes: u64) {
        self.0.sidecars.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The sums now.
    pub fn traffic(&self) -> Traffic {
        let read = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        Traffic {
            requests: read(&self.0.requests),
            bytes_to_clients: read(&self.0.to_clients),
            bytes_from_cache: read(&self.0.from_cache),
            bytes_from_peers: read(&self.0.from_peers),
            bytes_from_origin: read(&self.0.from_origin),
            bytes_to_peers: read(&self.0.to_peers),
            bytes_discarded: read(&self.0.discarded),
            bytes_tunnelled: read(&self.0.tunnelled),
            bytes_sidecars: read(&self.0.sidecars),
        }
    }

    fn source(&self, from: From) -> &AtomicU64 {
        match from {
            From::Cache => &self.0.from_cache,
            From::Peer => &self.0.from_peers,
            From::Origin => &self.0.from_origin,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_equal_sources_less_what_was_discarded() {
        let ledger = Ledger::new();
        ledger.delivered(From::Origin, 10);
        ledger.delivered(From::Cache, 5);
        ledger.discarded(From::Peer, 3);
        let sums = ledger.traffic();
        let sources = sums.bytes_from_cache + sums.bytes_from_peers + sums.bytes_from_origin;
        assert_eq!(sums.bytes_to_clients, sources - sums.bytes_discarded);
    }
}
