//! A table in memory whose changes are written behind: rows by key, and the keys that changed since.
//!
//! A row is changed first and its key noted after, so whoever takes the keys and then reads the rows sees at
//! least every change that was noted.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::mem;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::orm::{Database, DbError, Query, Record, Repository};

/// Rows that are taken in at once: whoever looks something up waits so long at most.
const STEP: usize = 512;

/// A map with the cheap secret hasher.
pub(super) type Map<K, V> = HashMap<K, V, Seeded>;

/// The rows of a record in memory.
#[derive(Debug)]
pub(super) struct Hot<R: Record> {
    rows: RwLock<Map<R::Key, Arc<R>>>,
    changed: Changed<R::Key>,
    /// While rows are still being read: the keys of those that are out of date by now.
    outdated: Mutex<Option<HashSet<R::Key, Seeded>>>,
}

/// The keys of rows that are not yet on disk as they are.
#[derive(Debug)]
pub(super) struct Changed<K>(Mutex<HashSet<K, Seeded>>);

/// Makes hashers that share one secret. Keys are mostly hashes that neighbours may choose freely: without the
/// secret they could make them meet in one bucket, with it one multiplication each 16 bytes and one at the end is
/// enough: a secret that happens to have few bits would spread what is nearly alike badly without the last.
#[derive(Debug, Clone)]
pub(super) struct Seeded([u64; 2]);

/// An odd number with as many bits set as not: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Folds bytes in, 16 at a time.
pub(super) struct SeededHasher {
    state: u64,
    secret: [u64; 2],
}

// === impl Hot ===

impl<R: Record> Hot<R>
where
    R::Key: Hash + Eq,
{
    /// Reads all rows.
    pub(super) fn load(database: &Database) -> Result<Self, DbError> {
        let hot = Self::to_be_filled();
        hot.fill(database, &AtomicBool::new(false), |_row| {})?;
        hot.is_filled_now();
        Ok(hot)
    }

    /// No rows yet: [`Hot::fill`] reads them while others put and remove some.
    pub(super) fn to_be_filled() -> Self {
        let (rows, changed) = (RwLock::default(), Changed::default());
        Self { rows, changed, outdated: Mutex::new(Some(HashSet::default())) }
    }

    /// Reads all rows as they were when the reading began, until `stop` says so; those that were put or removed since
    /// are passed over. Each is shown to `prepare` before it is kept.
    pub(super) fn fill(
        &self,
        database: &Database,
        stop: &AtomicBool,
        prepare: impl Fn(&mut R),
    ) -> Result<(), DbError> {
        let mut some = Vec::with_capacity(STEP);
        Repository::<R>::new(database).stream(&Query::everything(), |mut row| {
            prepare(&mut row);
            some.push(row);
            if some.len() >= STEP {
                self.take_in(&mut some);
            }
            if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        self.take_in(&mut some);
        Ok(())
    }

    /// All rows have been read.
    pub(super) fn is_filled_now(&self) {
        *self.outdated() = None;
    }

    /// Whether a row that is not here may be on disk still.
    pub(super) fn may_be_unread(&self, key: &R::Key) -> bool {
        self.outdated().as_ref().is_some_and(|outdated| !outdated.contains(key))
    }

    fn take_in(&self, some: &mut Vec<R>) {
        let mut rows = self.lock();
        let outdated = self.outdated();
        for row in some.drain(..) {
            let key = row.key();
            if !outdated.as_ref().is_some_and(|outdated| outdated.contains(&key)) {
                rows.entry(key).or_insert_with(|| Arc::new(row));
            }
        }
    }

    /// What is read of this row from now on is out of date; true if rows are being read. The rows are locked.
    fn outdate(&self, key: &R::Key) -> bool {
        let mut outdated = self.outdated();
        outdated.as_mut().map(|outdated| outdated.insert(key.clone())).is_some()
    }

    fn outdated(&self) -> MutexGuard<'_, Option<HashSet<R::Key, Seeded>>> {
        self.outdated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, key: &R::Key) -> Option<Arc<R>> {
        self.read().get(key).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<R>> {
        self.read().values().cloned().collect()
    }

    pub(super) fn keys(&self) -> Vec<R::Key> {
        self.read().keys().cloned().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.read().len()
    }

    /// The row that was there before.
    pub(super) fn put(&self, row: R) -> Option<Arc<R>> {
        let key = row.key();
        let mut rows = self.lock();
        let before = rows.insert(key.clone(), Arc::new(row));
        self.outdate(&key);
        drop(rows);
        self.changed.note(key);
        before
    }

    /// The row that was there.
    pub(super) fn remove(&self, key: &R::Key) -> Option<Arc<R>> {
        let mut rows = self.lock();
        let before = rows.remove(key);
        let may_be_unread = self.outdate(key);
        drop(rows);
        if before.is_some() || may_be_unread {
            self.changed.note(key.clone());
        }
        before
    }

    /// Changes a row in its place; false if there is none.
    pub(super) fn change(&self, key: &R::Key, change: impl FnOnce(&mut R)) -> bool
    where
        R: Clone,
    {
        let mut rows = self.lock();
        let Some(row) = rows.get_mut(key) else { return false };
        change(Arc::make_mut(row));
        drop(rows);
        self.changed.note(key.clone());
        true
    }

    /// Keeps the number of rows at or below `limit`: beyond it the rows of the lowest rank go, a sixteenth of
    /// the limit at once so that a flood does not search all rows for each one of its own. True if any went.
    pub(super) fn bound<O: Ord>(&self, limit: usize, rank: impl Fn(&R) -> O) -> bool {
        if self.len() <= limit {
            return false;
        }
        let mut rows = self.lock();
        let excess = rows.len().saturating_sub(limit - limit / 16);
        let ranked = rows.iter().map(|(key, row)| (rank(row), key.clone())).collect();
        let gone = lowest(ranked, excess);
        for key in &gone {
            rows.remove(key);
        }
        drop(rows);
        self.changed.note_all(gone);
        true
    }

    /// Drops the rows that are out of date.
    pub(super) fn retain(&self, keep: impl Fn(&R) -> bool) {
        let mut gone = Vec::new();
        self.lock().retain(|key, row| {
            let kept = keep(row);
            if !kept {
                gone.push(key.clone());
            }
            kept
        });
        self.changed.note_all(gone);
    }

    pub(super) const fn changed(&self) -> &Changed<R::Key> {
        &self.changed
    }

    /// Every row counts as changed.
    pub(super) fn all_changed(&self) {
        self.changed.note_all(self.keys());
    }

    /// Writes the present state of these rows: those that are here, and deletes the others.
    pub(super) fn write(&self, keys: &HashSet<R::Key, Seeded>, database: &Database) -> Result<(), DbError> {
        let rows = Repository::<R>::new(database);
        for key in keys {
            match self.get(key) {
                Some(row) => rows.upsert(&row)?,
                None => drop(rows.delete(key)?),
            }
        }
        Ok(())
    }

    fn read(&self) -> RwLockReadGuard<'_, Map<R::Key, Arc<R>>> {
        self.rows.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> RwLockWriteGuard<'_, Map<R::Key, Arc<R>>> {
        self.rows.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The `count` keys of the lowest rank.
fn lowest<K, O: Ord>(mut ranked: Vec<(O, K)>, count: usize) -> Vec<K> {
    if count > 0 && count < ranked.len() {
        ranked.select_nth_unstable_by(count, |(a, _), (b, _)| a.cmp(b));
    }
    ranked.into_iter().take(count).map(|(_, key)| key).collect()
}

// === impl Changed ===

impl<K: Hash + Eq> Changed<K> {
    pub(super) fn note(&self, key: K) {
        self.lock().insert(key);
    }

    pub(super) fn note_all(&self, keys: impl IntoIterator<Item = K>) {
        self.lock().extend(keys);
    }

    /// All keys noted since the last time.
    pub(super) fn take(&self) -> HashSet<K, Seeded> {
        mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<K, Seeded>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> Default for Changed<K> {
    fn default() -> Self {
        Self(Mutex::new(HashSet::default()))
    }
}

// === the hasher ===

impl Default for Seeded {
    fn default() -> Self {
        let random = RandomState::new();
        Self([random.hash_one(0_u8), random.hash_one(1_u8)])
    }
}

impl BuildHasher for Seeded {
    type Hasher = SeededHasher;

    fn build_hasher(&self) -> SeededHasher {
        // not the secret itself: it would cancel itself out of the first fold
        SeededHasher { state: self.0[0].rotate_left(32) ^ self.0[1], secret: self.0 }
    }
}

impl Hasher for SeededHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        while let Some(first) = words.next() {
            self.fold(first, words.next().unwrap_or(0));
        }
        if !rest.is_empty() {
            let word = rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
            self.fold(word, rest.len() as u64);
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.fold(u64::from(number), 1);
    }

    fn write_usize(&mut self, number: usize) {
        self.fold(number as u64, 8);
    }

    fn finish(&self) -> u64 {
        let (low, high) = self.state.carrying_mul(SPREAD, 0);
        low ^ high
    }
}

impl SeededHasher {
    fn fold(&mut self, a: u64, b: u64) {
        let [first, second] = self.secret;
        let (low, high) = (a ^ first ^ self.state).carrying_mul(b ^ second, 0);
        self.state = low ^ high;
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::digest::Digest;

    #[test]
    fn the_hasher_spreads_and_depends_on_its_secret() {
        const EACH: u64 = 2000;
        let digests: Vec<Digest> = (0..EACH).map(|n| Digest::of(&n.to_be_bytes())).collect();
        let addresses: Vec<IpAddr> = (0..2000_u32).map(|n| IpAddr::V4(n.into())).collect();
        // chosen by nobody, and the same in each run: some have many zeros at their end
        let word = |n: u64| SPREAD.wrapping_mul(n + 1) << (n % 24);
        for (first, second) in (0..200).map(|n| (word(2 * n), word(2 * n + 1))) {
            let (one, other) = (Seeded([first, second]), Seeded([second, first]));
            for hashes in [
                digests.iter().map(|digest| one.hash_one(digest)).collect::<HashSet<u64>>(),
                addresses.iter().map(|address| one.hash_one(address)).collect(),
            ] {
                assert_eq!(hashes.len() as u64, EACH);
                // of 1024 places 2000 balls leave a seventh empty: 879 are taken, give or take 9
                for shift in [0, 7, 54] {
                    let taken: HashSet<u64> = hashes.iter().map(|hash| hash >> shift & 0x3ff).collect();
                    assert!(taken.len() > 820, "{} with {first:x} {second:x} at {shift}", taken.len());
                }
            }
            assert!(digests.iter().all(|digest| one.hash_one(digest) != other.hash_one(digest)));
        }
    }

    #[test]
    fn the_lowest_go_first() {
        let ranked: Vec<(u32, u32)> = (0..100).rev().map(|n| (n, n)).collect();
        let mut gone = lowest(ranked.clone(), 10);
        gone.sort_unstable();
        assert_eq!(gone, (0..10).collect::<Vec<_>>());
        assert_eq!((lowest(ranked.clone(), 0).len(), lowest(ranked, 200).len()), (0, 100));
    }
}
