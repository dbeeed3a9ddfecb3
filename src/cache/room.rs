//! Room for what arrives: reservations, eviction, and the space that unlinked files still hold.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::{Cache, evict};
use crate::digest::Digest;
use crate::index::BlobRecord;
use crate::store::{Ingest, StoreError};

/// Beyond what is needed, the share of the limit that an eviction frees, so that the next thing finds room.
const SLACK: u64 = 100;

/// Bytes promised to running transfers, and files that are unlinked but still open.
#[derive(Debug, Default)]
pub(super) struct Space {
    reserved: Arc<AtomicU64>,
    unlinked: Mutex<Vec<(Weak<File>, u64)>>,
    /// One eviction at a time: two would each free room for both.
    turn: Mutex<()>,
}

/// Room promised to one transfer; given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    reserved: Arc<AtomicU64>,
    bytes: u64,
}

/// Why a thing will not be stored; it is passed through.
#[derive(Debug, thiserror::Error)]
pub enum NoRoom {
    /// Nothing new is stored here.
    #[error("the cache stores nothing new")]
    ReadOnly,
    /// It is larger than may be kept.
    #[error("larger than the cache may keep")]
    TooLarge,
    /// Nothing more can be evicted for it.
    #[error("the cache is full and nothing can be evicted")]
    Full,
    /// The disk refused.
    #[error("{0}")]
    Disk(#[from] StoreError),
}

impl Space {
    /// A blob of this size was unlinked; whoever still reads it holds its space.
    pub(super) fn unlinked(&self, file: Weak<File>, size: u64) {
        if file.strong_count() > 0 {
            self.held().push((file, size));
        }
    }

    fn zombies(&self) -> u64 {
        let mut held = self.held();
        held.retain(|(file, _)| file.strong_count() > 0);
        held.iter().map(|(_, size)| size).sum()
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Vec<(Weak<File>, u64)>> {
        self.unlinked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// How much is promised.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Hands the promise over; nothing is promised here any more.
    #[must_use]
    pub fn take(&mut self) -> Self {
        Self { reserved: Arc::clone(&self.reserved), bytes: std::mem::take(&mut self.bytes) }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.reserved.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

impl Cache {
    /// Starts storing a thing of this size, or of unknown size, making room for it. Blocks on the disk.
    pub fn begin(&self, size: Option<u64>) -> Result<(Ingest, Reservation), NoRoom> {
        let reservation = self.reserve(size.unwrap_or(0)).inspect_err(|refused| {
            if let NoRoom::Disk(error) = refused {
                self.note_trouble(error);
            }
        })?;
        let store = self.0.store.as_ref().ok_or(NoRoom::ReadOnly)?;
        let ingest = store.begin().inspect_err(|error| self.note_trouble(error))?;
        Ok((ingest, reservation))
    }

    /// Promises room, evicting what must go. Blocks on the disk.
    pub(super) fn reserve(&self, bytes: u64) -> Result<Reservation, NoRoom> {
        if !self.is_writable() {
            return Err(NoRoom::ReadOnly);
        }
        if !self.0.config.load().admits(bytes) {
            return Err(NoRoom::TooLarge);
        }
        let _turn = self.0.space.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.make_room(bytes)?;
        self.0.space.reserved.fetch_add(bytes, Ordering::SeqCst);
        Ok(Reservation { reserved: Arc::clone(&self.0.space.reserved), bytes })
    }

    /// A thing of unknown size has grown to `bytes`: promises room for it. Blocks on the disk.
    pub fn extend(&self, reservation: &mut Reservation, bytes: u64) -> Result<(), NoRoom> {
        if !self.0.config.load().admits(bytes) {
            return Err(NoRoom::TooLarge);
        }
        let mut more = self.reserve(bytes.saturating_sub(reservation.bytes))?;
        reservation.bytes += std::mem::take(&mut more.bytes);
        Ok(())
    }

    /// Evicts what is too old and what is over the limits, by at least `down_to` where given. Returns the
    /// number of blobs and bytes that went. Blocks on the disk.
    pub fn sweep(&self, down_to: Option<u64>) -> Result<(u64, u64), StoreError> {
        let before = self.0.index.totals();
        let turn = self.0.space.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.0.clock.now();
        let config = self.0.config.load();
        for digest in evict::aged(&self.0.index.blobs(), |d| self.is_pinned(d), config.max_age.0, now) {
            self.remove(&digest)?;
        }
        let over = self.over(0, down_to)?;
        self.evict(over)?;
        drop(turn);
        let after = self.0.index.totals();
        Ok((before.blobs.saturating_sub(after.blobs), before.bytes.saturating_sub(after.bytes)))
    }

    fn make_room(&self, bytes: u64) -> Result<(), NoRoom> {
        let over = self.over(bytes, None)?;
        if over == 0 {
            return Ok(());
        }
        let slack = self.0.config.load().max_size.bytes() / SLACK;
        self.evict(over.saturating_add(slack))?;
        if self.over(bytes, None)? > 0 {
            self.evict(over)?;
        }
        // space of files that are still being read is not free yet: nothing more is evicted for it
        if self.over(bytes, None)? == 0 {
            return Ok(());
        }
        self.note_full_disk(bytes)?;
        Err(NoRoom::Full)
    }

    /// Where it is the filesystem that has no room, the operator should know.
    fn note_full_disk(&self, bytes: u64) -> Result<(), StoreError> {
        let Some(store) = &self.0.store else { return Ok(()) };
        let (total, free) = store.space()?;
        if free < self.0.config.load().min_free.of(total).saturating_add(bytes) {
            let folder = store.folder().display();
            let fresh = self
                .0
                .health
                .raise("disk-full", format!("the filesystem of {folder} has no room to store more"));
            if fresh {
                tracing::warn!(free, "the cache's filesystem is full; downloads go on without it");
            }
        }
        Ok(())
    }

    /// By how many bytes the limits would be passed if `bytes` more were stored.
    fn over(&self, bytes: u64, down_to: Option<u64>) -> Result<u64, StoreError> {
        let Some(store) = &self.0.store else { return Ok(0) };
        let config = self.0.config.load();
        let limit = down_to.map_or(config.max_size.bytes(), |to| to.min(config.max_size.bytes()));
        let reserved = self.0.space.reserved.load(Ordering::SeqCst);
        let used = self.0.index.totals().bytes + reserved + self.0.partials.bytes() + self.0.space.zombies();
        let over_limit = used.saturating_add(bytes).saturating_sub(limit);
        let (total, free) = store.space()?;
        let promised = reserved.saturating_sub(store.staged());
        let wanted = config.min_free.of(total).saturating_add(bytes).saturating_add(promised);
        Ok(over_limit.max(wanted.saturating_sub(free)))
    }

    /// Drops partials, then blobs, of at least this many bytes together.
    fn evict(&self, bytes: u64) -> Result<(), StoreError> {
        let Some(store) = &self.0.store else { return Ok(()) };
        let evictable = |record: &&Arc<BlobRecord>| !self.is_pinned(&record.digest);
        let possible: u64 = self.0.index.blobs().iter().filter(evictable).map(|record| record.size).sum();
        if bytes == 0 || possible.saturating_add(self.0.partials.bytes()) < bytes {
            // all that could go would not be enough: nothing goes
            return Ok(());
        }
        let freed = self.0.partials.shrink(store, bytes);
        let need = bytes.saturating_sub(freed);
        let chosen: Vec<Digest> =
            evict::choose(&self.0.index.blobs(), |d| self.is_pinned(d), need, self.0.clock.now());
        for digest in chosen {
            self.remove(&digest)?;
        }
        Ok(())
    }
}
