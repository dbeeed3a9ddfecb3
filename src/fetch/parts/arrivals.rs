//! Parts that are arriving, by URL: whoever downloads the whole takes them from here instead of asking for them again.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::policy::{UrlKey, Variance};

/// All of them.
#[derive(Debug, Default)]
pub(in crate::fetch) struct Arrivals {
    urls: Mutex<HashMap<UrlKey, Vec<Arc<Arrival>>>>,
    /// Grows with every change, so that nobody has to look who has seen them all.
    changes: AtomicU64,
}

/// A part on its way, under a strong entity tag.
#[derive(Debug)]
pub(in crate::fetch) struct Arrival {
    pub(super) variance: Variance,
    pub(super) tag: String,
    pub(super) size: u64,
    pub(in crate::fetch) range: Range<u64>,
    state: watch::Sender<State>,
}

/// How far a part has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::fetch) struct State {
    /// So many bytes of it are here.
    pub(in crate::fetch) here: u64,
    /// Nothing more comes: what is here is kept, or lost.
    pub(in crate::fetch) ended: bool,
}

/// Takes the part out again when it ends, however it ends.
pub(super) struct Entry {
    all: Arc<Arrivals>,
    url: UrlKey,
    arrival: Arc<Arrival>,
}

impl Arrival {
    pub(super) fn new(variance: Variance, tag: String, range: Range<u64>, size: u64) -> Self {
        Self { variance, tag, size, range, state: watch::Sender::default() }
    }

    /// To be told how far it comes.
    pub(in crate::fetch) fn watch(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }
}

impl Arrivals {
    pub(super) fn enter(self: &Arc<Self>, url: UrlKey, arrival: Arrival) -> Entry {
        let arrival = Arc::new(arrival);
        self.lock().entry(url).or_default().push(Arc::clone(&arrival));
        self.changed();
        Entry { all: Arc::clone(self), url, arrival }
    }

    /// The parts of a URL that are arriving.
    pub(super) fn of(&self, url: &UrlKey) -> Vec<Arc<Arrival>> {
        self.lock().get(url).cloned().unwrap_or_default()
    }

    /// How often anything has changed.
    pub(in crate::fetch) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<UrlKey, Vec<Arc<Arrival>>>> {
        self.urls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// So much of it is here by now.
    pub(super) fn came(&self, here: u64) {
        self.arrival.state.send_modify(|state| state.here = here);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        {
            let mut urls = self.all.lock();
            if let Some(arrivals) = urls.get_mut(&self.url) {
                arrivals.retain(|other| !Arc::ptr_eq(other, &self.arrival));
                if arrivals.is_empty() {
                    urls.remove(&self.url);
                }
            }
        }
        self.all.changed();
        self.arrival.state.send_modify(|state| state.ended = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_is_there_until_it_ends() {
        let (all, url) = (Arc::new(Arrivals::default()), UrlKey::from_bytes([1; 32]));
        let entry = all.enter(url, Arrival::new(Variance::default(), "\"a\"".into(), 5..9, 20));
        let before = all.changes();
        let arrival = Arc::clone(&all.of(&url)[0]);
        entry.came(3);
        assert_eq!(*arrival.watch().borrow(), State { here: 3, ended: false });
        drop(entry);
        assert!(all.of(&url).is_empty() && all.lock().is_empty());
        assert!(arrival.watch().borrow().ended && all.changes() > before);
    }
}
