//! What was changed and is not yet on disk: newer than what is read from there, until it is written.

use std::collections::HashMap;
use std::hash::Hash;
use std::mem;
use std::sync::Arc;

use super::hot::{Map, Seeded};

/// So many rows are written in one transaction: what a crash in between may lose, and what memory holds of it twice.
pub(super) const PIECE: usize = 20_000;

/// Changes by key: those that came since the writer looked, and those it is writing.
#[derive(Debug)]
pub(super) struct Overlay<K, V> {
    fresh: Map<K, V>,
    writing: Arc<Map<K, V>>,
}

impl<K: Hash + Eq + Clone + Ord, V: Clone> Overlay<K, V> {
    /// What is newer than the disk has it: what came last, and what is being written.
    pub(super) fn get(&self, key: &K) -> (Option<&V>, Option<&V>) {
        (self.fresh.get(key), self.writing.get(key))
    }

    pub(super) fn contains(&self, key: &K) -> bool {
        self.fresh.contains_key(key) || self.writing.contains_key(key)
    }

    pub(super) fn put(&mut self, key: K, change: V) {
        self.fresh.insert(key, change);
    }

    /// The change of this key that came last, to be changed again.
    pub(super) fn entry(&mut self, key: K) -> std::collections::hash_map::Entry<'_, K, V> {
        self.fresh.entry(key)
    }

    /// Takes a piece of what came last; it is being written from here on.
    pub(super) fn take(&mut self) -> Arc<Map<K, V>> {
        self.writing = if self.fresh.len() <= PIECE {
            Arc::new(mem::take(&mut self.fresh))
        } else {
            // in the order of keys, so that rows that lie together are written together
            let mut keys: Vec<K> = self.fresh.keys().cloned().collect();
            keys.select_nth_unstable(PIECE);
            keys.truncate(PIECE);
            let moved = keys.into_iter().filter_map(|key| self.fresh.remove_entry(&key));
            Arc::new(moved.collect())
        };
        Arc::clone(&self.writing)
    }

    /// What was being written is on disk.
    pub(super) fn written(&mut self) -> Arc<Map<K, V>> {
        mem::take(&mut self.writing)
    }

    /// It is not: it counts as fresh, under what came since.
    pub(super) fn put_back(&mut self, merge: impl Fn(&V, &V) -> V) {
        for (key, before) in mem::take(&mut self.writing).iter() {
            let merged = self.fresh.get(key).map_or_else(|| before.clone(), |since| merge(before, since));
            self.fresh.insert(key.clone(), merged);
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&K, &V)> {
        let older = self.writing.iter().filter(|(key, _)| !self.fresh.contains_key(*key));
        self.fresh.iter().chain(older)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fresh.is_empty()
    }
}

/// In the order of keys.
pub(super) fn sorted<K: Ord, V>(batch: &Map<K, V>) -> Vec<(&K, &V)> {
    let mut rows: Vec<_> = batch.iter().collect();
    rows.sort_unstable_by_key(|(key, _)| *key);
    rows
}

impl<K, V> Default for Overlay<K, V> {
    fn default() -> Self {
        let empty = || HashMap::with_hasher(Seeded::default());
        Self { fresh: empty(), writing: Arc::new(empty()) }
    }
}
