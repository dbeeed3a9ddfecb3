//! Marks against nodes as sources: quarantine for wrong bytes, a short skip for an unreachable port.
//!
//! Set by whoever pulls bytes and read by the engine, so shared; they outlive the neighbour's entry. Whatever
//! names a source can be marked.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::tls::NodeId;

/// The first quarantine and the longest one.
const QUARANTINE: (Duration, Duration) = (Duration::from_secs(3600), Duration::from_secs(86_400));
/// The first skip of an unreachable node and the longest one.
const SKIP: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));
/// How many nodes of either kind are remembered.
const MOST: usize = 4096;

/// The marks; a cheap clone.
#[derive(Debug, Clone)]
pub struct Marks<K = NodeId>(Arc<Mutex<Books<K>>>);

#[derive(Debug)]
struct Books<K> {
    quarantined: Book<K>,
    unreachable: Book<K>,
}

#[derive(Debug)]
struct Book<K>(HashMap<K, Mark>);

#[derive(Debug, Clone, Copy)]
struct Mark {
    until: Instant,
    span: Duration,
}

impl<K: Copy + Eq + Hash> Marks<K> {
    /// Takes no bytes from this node for an hour, each time for twice as long, up to a day.
    pub fn quarantine(&self, node: K, now: Instant) -> Duration {
        self.books().quarantined.add(node, QUARANTINE, now)
    }

    /// Its port could not be reached: skips it for a while.
    pub fn failed(&self, node: K, now: Instant) {
        self.books().unreachable.add(node, SKIP, now);
    }

    /// It runs anew or moved: its port deserves another try. Quarantine stays.
    pub fn fresh_start(&self, node: &K) {
        self.books().unreachable.0.remove(node);
    }

    /// Whether its offers are passed over.
    pub fn skips(&self, node: &K, now: Instant) -> bool {
        let books = self.books();
        books.quarantined.holds(node, now) || books.unreachable.holds(node, now)
    }

    fn books(&self) -> std::sync::MutexGuard<'_, Books<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + Eq + Hash> Book<K> {
    fn add(&mut self, node: K, (first, longest): (Duration, Duration), now: Instant) -> Duration {
        let span = match self.0.get(&node) {
            // several reports of one incident count once
            Some(mark) if mark.until > now => return mark.span,
            Some(mark) if now.duration_since(mark.until) < longest => (mark.span * 2).min(longest),
            _ => first,
        };
        if self.0.len() >= MOST {
            self.0.retain(|_, mark| mark.until + longest > now);
        }
        if self.0.len() < MOST || self.0.contains_key(&node) {
            self.0.insert(node, Mark { until: now + span, span });
        }
        span
    }

    fn holds(&self, node: &K, now: Instant) -> bool {
        self.0.get(node).is_some_and(|mark| mark.until > now)
    }
}

impl<K> Default for Marks<K> {
    fn default() -> Self {
        let (quarantined, unreachable) = (Book(HashMap::new()), Book(HashMap::new()));
        Self(Arc::new(Mutex::new(Books { quarantined, unreachable })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, SystemClock};

    #[test]
    fn quarantine_doubles_to_a_day_and_relaxes() {
        let (marks, mut now) = (Marks::<NodeId>::default(), SystemClock.instant());
        let node = NodeId::from_bytes([1; 16]);
        let mut hours = Vec::new();
        for _ in 0..7 {
            let span = marks.quarantine(node, now);
            assert_eq!(marks.quarantine(node, now), span, "one incident");
            hours.push(span.as_secs() / 3600);
            now += span;
            assert!(!marks.skips(&node, now) && marks.skips(&node, now - Duration::from_secs(1)));
        }
        assert_eq!(hours, [1, 2, 4, 8, 16, 24, 24]);
        now += Duration::from_secs(86_400);
        assert_eq!(marks.quarantine(node, now).as_secs(), 3600);
    }

    #[test]
    fn an_unreachable_node_is_skipped_until_it_starts_anew() {
        let (marks, now) = (Marks::<NodeId>::default(), SystemClock.instant());
        let node = NodeId::from_bytes([1; 16]);
        marks.failed(node, now);
        assert!(marks.skips(&node, now));
        marks.fresh_start(&node);
        assert!(!marks.skips(&node, now));
    }
}
