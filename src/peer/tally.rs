//! Who gave and took how much: body bytes by neighbour since the start. Bounded; whoever comes beyond the bound is
//! counted nowhere here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::tls::NodeId;

/// The most neighbours told apart.
const MOST: usize = 4096;

/// The sums; a cheap clone.
#[derive(Debug, Clone, Default)]
pub struct Tally(Arc<Mutex<HashMap<NodeId, Account>>>);

/// The sums of one neighbour.
#[derive(Debug, Clone, Default)]
struct Account {
    received: Arc<AtomicU64>,
    given: Arc<AtomicU64>,
}

/// What one neighbour gave and took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exchanged {
    /// Body bytes received from it.
    pub received: u64,
    /// Body bytes given to it.
    pub given: u64,
}

impl Tally {
    /// The sums of a neighbour.
    pub fn of(&self, node: &NodeId) -> Exchanged {
        let accounts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.get(node).map_or_else(Exchanged::default, |account| Exchanged {
            received: account.received.load(Ordering::Relaxed),
            given: account.given.load(Ordering::Relaxed),
        })
    }

    /// Counts what is received from it.
    pub(super) fn received(&self, node: NodeId) -> Arc<AtomicU64> {
        self.account(node).received
    }

    /// Counts what is given to it.
    pub(super) fn given(&self, node: NodeId) -> Arc<AtomicU64> {
        self.account(node).given
    }

    fn account(&self, node: NodeId) -> Account {
        let mut accounts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if accounts.len() >= MOST && !accounts.contains_key(&node) {
            return Account::default();
        }
        accounts.entry(node).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_kept_by_neighbour() {
        let (tally, one, two) = (Tally::default(), NodeId::from_bytes([1; 16]), NodeId::from_bytes([2; 16]));
        tally.received(one).fetch_add(5, Ordering::Relaxed);
        tally.received(one).fetch_add(2, Ordering::Relaxed);
        tally.given(two).fetch_add(3, Ordering::Relaxed);
        assert_eq!(tally.of(&one), Exchanged { received: 7, given: 0 });
        assert_eq!(tally.of(&two), Exchanged { received: 0, given: 3 });
    }
}
