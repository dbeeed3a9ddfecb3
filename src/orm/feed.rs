//! What was changed and is committed, in order: for whoever wants to follow along.
//!
//! The newest changes are kept in a ring bounded by number and bytes. A reader remembers the number of the last
//! change it has seen and asks for what came after; one who was away too long is told that he missed some. So
//! a slow reader costs nothing but the ring, which is there anyway.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{Cell, TableSpec};

/// The most changes kept.
const CHANGES: usize = 16_384;
/// The most bytes of rows kept.
const BYTES: usize = 8 << 20;

/// One committed change.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its table.
    pub table: &'static TableSpec,
    /// The cells of the row's key.
    pub key: Vec<Cell<'static>>,
    /// The row as it is now; none if it is gone.
    pub row: Option<Vec<Cell<'static>>>,
}

/// The changes of one or more databases; a cheap clone.
#[derive(Debug, Clone)]
pub struct Feed(Arc<Inner>);

/// What a reader gets.
#[derive(Debug, Clone)]
pub struct News {
    /// The changes with their numbers.
    pub changes: Vec<(u64, Arc<Change>)>,
    /// Changes before these are not kept any more.
    pub missed: bool,
    /// The number to go on from.
    pub last: u64,
}

struct Inner {
    /// Tells this feed from one of another run.
    life: String,
    ring: Mutex<Ring>,
    newest: watch::Sender<u64>,
}

#[derive(Default)]
struct Ring {
    changes: VecDeque<(usize, Arc<Change>)>,
    bytes: usize,
    /// The number of the newest one; the first one is 1.
    last: u64,
}

impl Feed {
    /// Nothing happened yet.
    pub fn new() -> Self {
        let life = format!("{:016x}", RandomState::new().hash_one(0_u8));
        Self(Arc::new(Inner { life, ring: Mutex::default(), newest: watch::Sender::new(0) }))
    }

    /// These changes are committed.
    pub fn publish(&self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        let mut ring = self.lock();
        changes.into_iter().for_each(|change| ring.put(change));
        let last = ring.last;
        drop(ring);
        self.0.newest.send_replace(last);
    }

    /// A name that no other feed has: numbers of one mean nothing to another.
    pub fn life(&self) -> &str {
        &self.0.life
    }

    /// The number of the newest change.
    pub fn last(&self) -> u64 {
        self.lock().last
    }

    /// Up to `limit` changes after the one of this number.
    pub fn after(&self, number: u64, limit: usize) -> News {
        let ring = self.lock();
        let kept = u64::try_from(ring.changes.len()).unwrap_or(u64::MAX);
        let before_kept = ring.last.saturating_sub(kept);
        // a number from the future is of another life of this feed
        let missed = number < before_kept || number > ring.last;
        let from = if missed { before_kept } else { number };
        let skip = usize::try_from(from - before_kept).unwrap_or(usize::MAX);
        let newer = ring.changes.iter().skip(skip).take(limit);
        let changes: Vec<_> = (from + 1..).zip(newer.map(|(_, change)| Arc::clone(change))).collect();
        let last = changes.last().map_or(from, |(number, _)| *number);
        News { changes, missed, last }
    }

    /// Tells the number of the newest change whenever it grows.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.0.newest.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.0.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Feed {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").finish_non_exhaustive()
    }
}

impl Ring {
    fn put(&mut self, change: Change) {
        let size = change.size();
        self.bytes = self.bytes.saturating_add(size);
        self.changes.push_back((size, Arc::new(change)));
        self.last += 1;
        while self.changes.len() > CHANGES || (self.bytes > BYTES && self.changes.len() > 1) {
            let gone = self.changes.pop_front().map_or(0, |(size, _)| size);
            self.bytes = self.bytes.saturating_sub(gone);
        }
    }
}

impl Change {
    fn size(&self) -> usize {
        let cells = self.key.iter().chain(self.row.iter().flatten());
        cells.map(|cell| size_of::<Cell<'_>>() + cell.length()).sum::<usize>() + size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: TableSpec = TableSpec::new("t", &[]);

    fn change(number: i64) -> Change {
        Change { table: &TABLE, key: vec![Cell::Integer(number)], row: None }
    }

    #[test]
    fn a_reader_goes_on_where_he_was() {
        let feed = Feed::new();
        feed.publish((0..10).map(change).collect());
        let news = feed.after(4, 3);
        assert_eq!(news.changes.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [5, 6, 7]);
        assert_eq!(news.changes[0].1.key, [Cell::Integer(4)]);
        assert!(!news.missed);
        let rest = feed.after(news.last, 100);
        assert_eq!((rest.changes.len(), rest.last), (3, 10));
        assert!(feed.after(10, 100).changes.is_empty());
        assert!(feed.after(11, 100).missed, "a number of another life");
    }

    #[test]
    fn who_was_away_too_long_is_told() {
        let feed = Feed::new();
        feed.publish((0..20_000).map(change).collect());
        assert!(feed.after(0, 1).missed);
        assert!(!feed.after(20_000 - 16_384, 1).missed);
        let big = Change { row: Some(vec![Cell::Blob(vec![0; 3 << 20].into())]), ..change(0) };
        feed.publish(vec![big.clone(), big.clone(), big]);
        assert_eq!(feed.after(20_000, 10).changes.len(), 2);
        assert!(feed.after(20_000, 10).missed);
    }
}
