//! How many connections there may be, in all and from one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A limit shared by all listeners of one service. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ConnectionLimit {
    total: Arc<Semaphore>,
    per_address: usize,
    counts: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// The right to one connection; given back when dropped.
#[derive(Debug)]
pub struct Permit {
    address: IpAddr,
    counts: Arc<Mutex<HashMap<IpAddr, usize>>>,
    _place: OwnedSemaphorePermit,
}

impl ConnectionLimit {
    /// At most `total` connections, at most `per_address` from one address; 0 is taken as 1.
    pub fn new(total: usize, per_address: usize) -> Self {
        let total = total.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            total: Arc::new(Semaphore::new(total)),
            per_address: per_address.max(1),
            counts: Arc::default(),
        }
    }

    /// Connections that may still come.
    pub fn free(&self) -> usize {
        self.total.available_permits()
    }

    /// Waits for a place among all.
    pub(super) async fn place(&self) -> OwnedSemaphorePermit {
        loop {
            if let Ok(place) = Arc::clone(&self.total).acquire_owned().await {
                return place;
            }
            // Unreachable: the semaphore is never closed. Waiting is the answer that harms nobody.
            std::future::pending::<()>().await;
        }
    }

    /// Counts a connection from an address; none if that address has too many.
    pub(super) fn admit(&self, address: IpAddr, place: OwnedSemaphorePermit) -> Option<Permit> {
        let address = address.to_canonical();
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_insert(0);
        if *count >= self.per_address {
            return None;
        }
        *count += 1;
        Some(Permit { address, counts: Arc::clone(&self.counts), _place: place })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}
