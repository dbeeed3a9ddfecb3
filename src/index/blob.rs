//! What is known about each blob, and how many bytes they are together.
//!
//! What every request asks for is in memory ([`Table`]); a whole row is read from the file. While the memory is being
//! filled after a start, what is not in it yet is read from the file too, so nothing seems gone.

mod table;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::collections::hash_map::Entry;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::hot::{Map, Seeded};
use super::overlay::{Overlay, sorted};
use super::readers::Readers;
use crate::clock::Timestamp;
use crate::digest::Digest;
use crate::orm::{Database, DbError, Query, Repository};
use table::Table;

/// Rows that are taken into memory at once: whoever looks something up waits so long at most.
const STEP: usize = 1024;

crate::record! {
    /// What is known about one blob. A hint: the blob exists when its file opens with this size.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct BlobRecord in "blobs" [without_rowid], columns BlobColumns {
        key {
            /// SHA-256 of the bytes, which is the blob's name.
            digest: Digest,
        }
        /// Length in bytes.
        size: u64,
        /// Number of the file in its filesystem when it was last verified; 0 if never.
        inode: u64,
        /// Change time of the file in nanoseconds since 1970 when it was last verified; 0 if never.
        ctime_ns: i128,
        /// When it was committed.
        stored_at: Timestamp,
        /// When it was last read.
        last_used: Timestamp,
        /// How often it was read.
        hits: u64,
        /// Whether this node got it from the origin itself.
        first_hand: bool,
        /// Whether it came in answer to credentials: neighbours get it by digest only.
        guarded: bool,
    }
}

impl BlobRecord {
    /// One that came now, with nothing more to be said of it.
    pub fn new(digest: Digest, size: u64, now: Timestamp) -> Self {
        Self { digest, size, stored_at: now, last_used: now, ..Self::default() }
    }
}

/// How many blobs there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Their number.
    pub blobs: u64,
    /// Their length together.
    pub bytes: u64,
    /// Of this, what was read again after it came.
    pub again_bytes: u64,
}

/// What memory keeps of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldBlob {
    /// Its name.
    pub digest: Digest,
    /// Length in bytes.
    pub size: u64,
    mark: u64,
    /// When it was last read.
    pub last_used: Timestamp,
    /// Whether it was read since it came.
    pub again: bool,
    /// Whether this node got it from the origin itself.
    pub first_hand: bool,
    /// Whether it came in answer to credentials.
    pub guarded: bool,
}

/// What is to be written of a blob.
#[derive(Debug, Clone)]
pub(super) enum Pending {
    Put(BlobRecord),
    Used { hits: u64, last: Timestamp },
    Gone,
}

/// The changes that are written together.
pub(super) type BlobBatch = Arc<Map<Digest, Pending>>;

/// All blobs.
#[derive(Debug)]
pub(super) struct Blobs {
    table: RwLock<Table>,
    pending: Mutex<Overlay<Digest, Pending>>,
    readers: Arc<Readers>,
    /// While rows are being read: those that were removed since.
    removed: Mutex<HashSet<Digest, Seeded>>,
    is_filled: AtomicBool,
}

impl Blobs {
    /// None is in memory yet: [`Blobs::fill`] reads them.
    pub(super) fn new(readers: Arc<Readers>) -> Self {
        Self {
            table: RwLock::default(),
            pending: Mutex::default(),
            readers,
            removed: Mutex::default(),
            is_filled: AtomicBool::new(false),
        }
    }

    /// Reads all rows, as they were when the reading began, until `stop` says so. What changed since is newer.
    pub(super) fn fill(&self, database: &Database, stop: &AtomicBool) -> Result<(), DbError> {
        let mut some = Vec::with_capacity(STEP);
        Repository::<BlobRecord>::new(database).stream(&Query::everything(), |row| {
            some.push(HeldBlob::of(&row));
            if some.len() >= STEP {
                self.take_in(&mut some);
            }
            if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        self.take_in(&mut some);
        Ok(())
    }

    /// Nothing more is read: what is not in memory is not there.
    pub(super) fn is_filled_now(&self) {
        self.is_filled.store(true, Ordering::Release);
        *self.removed() = HashSet::default();
    }

    pub(super) fn is_filled(&self) -> bool {
        self.is_filled.load(Ordering::Acquire)
    }

    fn take_in(&self, some: &mut Vec<HeldBlob>) {
        let mut table = self.lock();
        let removed = self.removed();
        for blob in some.drain(..) {
            if table.get(&blob.digest).is_none() && !removed.contains(&blob.digest) {
                table.put(&blob);
            }
        }
    }

    pub(super) fn held(&self, digest: &Digest) -> Option<HeldBlob> {
        let found = self.read().get(digest);
        if found.is_some() || self.is_filled() {
            return found;
        }
        if self.removed().contains(digest) {
            return None;
        }
        let row = self.readers.read(|database| Repository::<BlobRecord>::new(database).get(digest))??;
        self.take_in(&mut vec![HeldBlob::of(&row)]);
        self.read().get(digest)
    }

    /// The whole row, read from the file unless it is newer than that.
    pub(super) fn get(&self, digest: &Digest) -> Option<BlobRecord> {
        self.held(digest)?;
        let newest = |pending: &Overlay<Digest, Pending>| {
            let (fresh, writing) = pending.get(digest);
            (fresh.cloned(), writing.cloned())
        };
        let changes = newest(&self.pending());
        let on_disk = || self.readers.read(|database| Repository::<BlobRecord>::new(database).get(digest))?;
        match changes {
            (Some(Pending::Put(row)), _) => Some(row),
            (Some(Pending::Gone), _) | (None, Some(Pending::Gone)) => None,
            (None, Some(Pending::Put(row))) => Some(row),
            (Some(used), Some(Pending::Put(row))) => used.onto(Some(row)),
            (Some(used), Some(before)) => used.onto(before.onto(on_disk())),
            (Some(used), None) | (None, Some(used)) => used.onto(on_disk()),
            (None, None) => on_disk(),
        }
    }

    /// All rows, in no order.
    #[cfg(test)]
    pub(super) fn all(&self) -> Vec<BlobRecord> {
        let mut digests = Vec::new();
        self.each(|blob| digests.push(blob.digest));
        digests.iter().filter_map(|digest| self.get(digest)).collect()
    }

    /// Shows all blobs in memory, in no order; others come in between.
    pub(super) fn each(&self, mut take: impl FnMut(HeldBlob)) {
        let mut from = 0;
        while self.read().some(from..from + STEP, &mut take) {
            from += STEP;
        }
    }

    pub(super) fn put(&self, record: BlobRecord) {
        let mut table = self.lock();
        if table.put(&HeldBlob::of(&record)) {
            self.pending().put(record.digest, Pending::Put(record));
        }
    }

    pub(super) fn remove(&self, digest: &Digest) -> bool {
        let mut table = self.lock();
        let was_there = table.remove(digest).is_some();
        let may_be_unread = !self.is_filled();
        if may_be_unread {
            self.removed().insert(*digest);
        }
        if was_there || may_be_unread {
            self.pending().put(*digest, Pending::Gone);
        }
        was_there || may_be_unread
    }

    pub(super) fn used(&self, digest: &Digest, now: Timestamp) -> bool {
        let mut table = self.lock();
        if !table.used(digest, now) {
            return false;
        }
        match self.pending().entry(*digest) {
            Entry::Occupied(mut entry) => entry.get_mut().used(now),
            Entry::Vacant(entry) => drop(entry.insert(Pending::Used { hits: 1, last: now })),
        }
        true
    }

    pub(super) fn totals(&self) -> Totals {
        self.read().totals()
    }

    /// See [`super::Index::call_roll`].
    pub(super) fn call_roll(&self) {
        self.lock().call_roll();
    }

    pub(super) fn seen(&self, digest: &Digest) -> bool {
        self.lock().seen(digest)
    }

    pub(super) fn unseen(&self, most: usize) -> Vec<Digest> {
        self.lock().unseen(most)
    }

    // === what the writer asks ===

    pub(super) fn take(&self) -> BlobBatch {
        self.pending().take()
    }

    pub(super) fn is_all_taken(&self) -> bool {
        self.pending().is_empty()
    }

    pub(super) fn write(batch: &BlobBatch, database: &Database) -> Result<(), DbError> {
        let rows = Repository::<BlobRecord>::new(database);
        for (digest, pending) in sorted(batch) {
            match pending {
                Pending::Put(row) => rows.upsert(row)?,
                Pending::Gone => drop(rows.delete(digest)?),
                used @ Pending::Used { .. } => {
                    used.onto(rows.get(digest)?).map_or(Ok(()), |row| rows.upsert(&row))?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn written(&self) {
        let gone = self.pending().written();
        drop(gone);
    }

    pub(super) fn put_back(&self) {
        self.pending().put_back(|before, since| match since {
            Pending::Put(_) | Pending::Gone => since.clone(),
            Pending::Used { hits, last } => before.clone().and(*hits, *last),
        });
    }

    /// Writes what memory knows into a new file. Which file was proved is not known there: who reads one first has
    /// it hashed again.
    pub(super) fn write_anew(&self, database: &Database) -> Result<(), DbError> {
        let rows = Repository::<BlobRecord>::new(database);
        let mut from = 0;
        loop {
            let mut some = Vec::with_capacity(STEP);
            let has_more = self.read().some(from..from + STEP, |blob| some.push(blob));
            database.transaction(|_database| {
                some.iter().filter(|blob| !self.is_pending(&blob.digest)).try_for_each(|blob| {
                    rows.upsert(&BlobRecord {
                        hits: u64::from(blob.again),
                        first_hand: blob.first_hand,
                        guarded: blob.guarded,
                        ..BlobRecord::new(blob.digest, blob.size, blob.last_used)
                    })
                })
            })?;
            if !has_more {
                return Ok(());
            }
            from += STEP;
        }
    }

    fn is_pending(&self, digest: &Digest) -> bool {
        matches!(self.pending().get(digest), (Some(Pending::Put(_) | Pending::Gone), _))
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn pending(&self) -> MutexGuard<'_, Overlay<Digest, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn removed(&self) -> MutexGuard<'_, HashSet<Digest, Seeded>> {
        self.removed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    fn used(&mut self, now: Timestamp) {
        *self = std::mem::replace(self, Self::Gone).and(1, now);
    }

    /// This, and so many hits after it.
    fn and(self, more: u64, now: Timestamp) -> Self {
        match self {
            Self::Put(mut row) => {
                row.hits = row.hits.saturating_add(more);
                row.last_used = row.last_used.max(now);
                Self::Put(row)
            }
            Self::Used { hits, last } => Self::Used { hits: hits.saturating_add(more), last: last.max(now) },
            Self::Gone => Self::Gone,
        }
    }

    /// A row after this happened to it.
    fn onto(&self, row: Option<BlobRecord>) -> Option<BlobRecord> {
        match (self, row) {
            (Self::Put(row), _) => Some(row.clone()),
            (Self::Gone, _) | (_, None) => None,
            (Self::Used { hits, last }, Some(mut row)) => {
                row.hits = row.hits.saturating_add(*hits);
                row.last_used = row.last_used.max(*last);
                Some(row)
            }
        }
    }
}

impl From<&BlobRecord> for HeldBlob {
    fn from(record: &BlobRecord) -> Self {
        Self::of(record)
    }
}
