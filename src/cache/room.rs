//! Room for what arrives: reservations, eviction, and the space that unlinked files still hold.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::spread::Copies;
use super::{Cache, evict};
use crate::digest::Digest;
use crate::index::{HeldBlob, Totals};
use crate::store::{Ingest, SMALL, StoreError};

/// Beyond what is needed, the share of the limit that an eviction frees, so that the next thing finds room.
const SLACK: u64 = 100;
/// A sweep removes so many blobs before it lets others have their turn.
const STEP: u64 = 64;
/// For so many bytes room is made before the first of them is here. For what is larger it is made as they come:
/// an origin that only announces much empties no cache.
const AHEAD: u64 = 64 * 1024 * 1024;

/// Bytes promised to running transfers, and files that are unlinked but still open.
#[derive(Debug, Default)]
pub(super) struct Space {
    reserved: Arc<AtomicU64>,
    /// What running transfers announced beyond what is promised to them.
    announced: Arc<AtomicU64>,
    unlinked: Mutex<Vec<(Weak<File>, u64)>>,
    /// One eviction at a time: two would each free room for both.
    turn: Mutex<()>,
}

/// Room promised to one transfer; given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    reserved: Arc<AtomicU64>,
    bytes: u64,
    /// What it will ask for yet, and where that is counted.
    to_come: u64,
    announced: Arc<AtomicU64>,
}

/// By how much limits are passed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Over {
    bytes: u64,
    /// The filesystem can hold so many files fewer than it should.
    files: u64,
}

/// Blobs that went.
#[derive(Debug, Clone, Copy, Default)]
struct Freed {
    bytes: u64,
    count: u64,
}

/// All that went.
#[derive(Debug, Clone, Copy, Default)]
struct Evicted {
    blobs: Freed,
    /// Bytes of partials.
    partials: u64,
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
    /// More waits for the disk than may.
    #[error("the disk is slower than what comes")]
    Behind,
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
        let (bytes, to_come) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.to_come));
        let (reserved, announced) = (Arc::clone(&self.reserved), Arc::clone(&self.announced));
        Self { reserved, bytes, to_come, announced }
    }

    /// So much more of what was announced is promised now.
    fn came(&mut self, bytes: u64) {
        let came = bytes.min(self.to_come);
        self.to_come -= came;
        self.announced.fetch_sub(came, Ordering::SeqCst);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.reserved.fetch_sub(self.bytes, Ordering::SeqCst);
        self.announced.fetch_sub(self.to_come, Ordering::SeqCst);
    }
}

impl Cache {
    /// Starts storing a thing that is announced to be of this size, or of unknown size. Where it could never find
    /// room, with what others announced, nothing is evicted for it; else room is made for its beginning, and
    /// [`Cache::extend`] makes more as it grows. Blocks on the disk.
    pub fn begin_arriving(&self, size: Option<u64>) -> Result<(Ingest, Reservation), NoRoom> {
        let to_come = size.unwrap_or(0).saturating_sub(AHEAD);
        if to_come == 0 {
            return self.begin(size);
        }
        let announced = &self.0.space.announced;
        if !self.0.config.load().admits(to_come + AHEAD) {
            return Err(NoRoom::TooLarge);
        }
        if !self.could_take(to_come + AHEAD)? {
            return Err(NoRoom::Full);
        }
        let (ingest, mut reservation) = self.begin(Some(AHEAD))?;
        announced.fetch_add(to_come, Ordering::SeqCst);
        reservation.to_come = to_come;
        Ok((ingest, reservation))
    }

    /// Whether evicting could make room for this much beyond what running transfers announced.
    fn could_take(&self, bytes: u64) -> Result<bool, StoreError> {
        let _turn = self.turn();
        let announced = self.0.space.announced.load(Ordering::SeqCst);
        let over = self.over(bytes.saturating_add(announced), None)?;
        Ok(over.bytes <= self.evictable_bytes().saturating_add(self.0.partials.bytes()))
    }

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

    /// The same for a small thing, where that needs no waiting: room is there, and it is received in memory.
    pub fn begin_now(&self, size: Option<u64>) -> Option<(Ingest, Reservation)> {
        let (store, size) = (self.0.store.as_ref()?, size.filter(|size| *size <= SMALL)?);
        let admits = self.is_writable() && self.0.config.load().admits(size);
        let _turn = self.0.space.turn.try_lock().ok().filter(|_| admits)?;
        let has_room = self.over(size, None).is_ok_and(Over::is_nothing);
        let ingest = store.begin_small(size).ok().flatten().filter(|_| has_room)?;
        Some((ingest, self.promise(size)))
    }

    fn promise(&self, bytes: u64) -> Reservation {
        self.0.space.reserved.fetch_add(bytes, Ordering::SeqCst);
        let Space { reserved, announced, .. } = &self.0.space;
        let (reserved, announced) = (Arc::clone(reserved), Arc::clone(announced));
        Reservation { reserved, bytes, to_come: 0, announced }
    }

    /// Promises room, evicting what must go. Blocks on the disk.
    pub(super) fn reserve(&self, bytes: u64) -> Result<Reservation, NoRoom> {
        if !self.is_writable() {
            return Err(NoRoom::ReadOnly);
        }
        if !self.0.config.load().admits(bytes) {
            return Err(NoRoom::TooLarge);
        }
        let _turn = self.turn();
        self.make_room(bytes)?;
        Ok(self.promise(bytes))
    }

    /// A thing has grown to `bytes`: promises room for it. Blocks on the disk.
    pub fn extend(&self, reservation: &mut Reservation, bytes: u64) -> Result<(), NoRoom> {
        if !self.0.config.load().admits(bytes) {
            return Err(NoRoom::TooLarge);
        }
        let mut more = self.reserve(bytes.saturating_sub(reservation.bytes))?;
        let bytes = std::mem::take(&mut more.bytes);
        reservation.bytes += bytes;
        reservation.came(bytes);
        Ok(())
    }

    /// Evicts what is too old and what is over the limits, by at least `down_to` where given, in steps between which
    /// others find room. Returns the number of blobs and bytes that went. Blocks on the disk.
    pub fn sweep(&self, down_to: Option<u64>) -> Result<(u64, u64), StoreError> {
        let mut gone = Freed::default();
        while self.sweep_aged(&mut gone)? {}
        let mut over = self.over(0, down_to)?;
        // reckoned once: files that are still being read hold their space, and nothing more goes for that
        while !over.is_nothing() {
            let _turn = self.turn();
            let step = self.evict(over, STEP)?;
            gone.add(step.blobs);
            if step.blobs.count < STEP {
                break;
            }
            over.bytes = over.bytes.saturating_sub(step.blobs.bytes.saturating_add(step.partials));
            over.files = over.files.saturating_sub(step.blobs.count);
        }
        Ok((gone.count, gone.bytes))
    }

    /// One step; true if there may be more.
    fn sweep_aged(&self, gone: &mut Freed) -> Result<bool, StoreError> {
        if !self.0.index.is_read() {
            return Ok(false);
        }
        let (_turn, max_age) = (self.turn(), self.0.config.load().max_age.0);
        for _ in 0..STEP {
            let Some(blob) = self.0.order.next_aged(self, max_age, self.0.clock.now()) else {
                return Ok(false);
            };
            self.let_go(&blob, gone)?;
        }
        Ok(true)
    }

    fn turn(&self) -> std::sync::MutexGuard<'_, ()> {
        self.0.space.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make_room(&self, bytes: u64) -> Result<(), NoRoom> {
        let over = self.over(bytes, None)?;
        if over.is_nothing() {
            return Ok(());
        }
        let slack = self.0.config.load().max_size.bytes() / SLACK;
        self.evict(Over { bytes: over.bytes.saturating_add(slack), ..over }, u64::MAX)?;
        if !self.over(bytes, None)?.is_nothing() {
            self.evict(over, u64::MAX)?;
        }
        // space of files that are still being read is not free yet: nothing more is evicted for it
        if self.over(bytes, None)?.is_nothing() {
            return Ok(());
        }
        self.note_full_disk(bytes)?;
        Err(NoRoom::Full)
    }

    /// Where it is the filesystem that has no room, the operator should know.
    fn note_full_disk(&self, bytes: u64) -> Result<(), StoreError> {
        let Some(store) = &self.0.store else { return Ok(()) };
        let space = store.space()?;
        let wanted = self.0.config.load().min_free.of(space.bytes).saturating_add(bytes);
        if space.free_bytes < wanted || space.lacks_files() > 0 {
            let folder = store.folder().display();
            let fresh = self
                .0
                .health
                .raise("disk-full", format!("the filesystem of {folder} has no room to store more"));
            if fresh {
                tracing::warn!(
                    free.bytes = space.free_bytes,
                    free.files = space.free_files,
                    "the cache's filesystem is full; downloads go on without it"
                );
            }
        }
        Ok(())
    }

    /// By how much the limits would be passed if `bytes` more were stored.
    fn over(&self, bytes: u64, down_to: Option<u64>) -> Result<Over, StoreError> {
        let Some(store) = &self.0.store else { return Ok(Over::default()) };
        let config = self.0.config.load();
        let limit = down_to.map_or(config.max_size.bytes(), |to| to.min(config.max_size.bytes()));
        let reserved = self.0.space.reserved.load(Ordering::SeqCst);
        let used = self.0.index.totals().bytes + reserved + self.0.partials.bytes() + self.0.space.zombies();
        let over_limit = used.saturating_add(bytes).saturating_sub(limit);
        let space = store.space()?;
        let promised = reserved.saturating_sub(store.staged());
        let wanted = config.min_free.of(space.bytes).saturating_add(bytes).saturating_add(promised);
        let over_disk = wanted.saturating_sub(space.free_bytes);
        Ok(Over { bytes: over_limit.max(over_disk), files: space.lacks_files() })
    }

    /// Drops partials, then blobs, of at least this much together, or the most blobs that may go now.
    fn evict(&self, over: Over, most: u64) -> Result<Evicted, StoreError> {
        let mut gone = Evicted::default();
        let Some(store) = self.0.store.as_ref().filter(|_| !over.is_nothing()) else { return Ok(gone) };
        if !self.0.index.is_read() {
            // for the first seconds of a large cache nobody knows what is the oldest
            return Ok(gone);
        }
        if self.evictable_bytes().saturating_add(self.0.partials.bytes()) < over.bytes {
            // all that could go would not be enough: nothing goes
            return Ok(gone);
        }
        gone.partials = self.0.partials.shrink(store, over.bytes);
        let need = over.bytes.saturating_sub(gone.partials);
        while gone.blobs.count < most && (gone.blobs.bytes < need || gone.blobs.count < over.files) {
            let Some(blob) = self.0.order.next(self, self.0.clock.now()) else { break };
            self.let_go(&blob, &mut gone.blobs)?;
        }
        Ok(gone)
    }

    fn evictable_bytes(&self) -> u64 {
        let index = &self.0.index;
        let pinned: u64 =
            self.pins().iter().filter_map(|digest| index.held(digest)).map(|blob| blob.size).sum();
        index.totals().bytes.saturating_sub(pinned)
    }

    /// Removes a blob that the order gave.
    fn let_go(&self, blob: &HeldBlob, gone: &mut Freed) -> Result<(), StoreError> {
        self.remove(&blob.digest).inspect_err(|_| self.0.order.add(*blob, self, self.0.clock.now()))?;
        gone.add(Freed { bytes: blob.size, count: 1 });
        Ok(())
    }
}

impl evict::Rows for Cache {
    fn row(&self, digest: &Digest) -> Option<HeldBlob> {
        self.0.index.held(digest)
    }

    fn each(&self, take: &mut dyn FnMut(HeldBlob)) {
        self.0.index.each_blob(take);
    }

    fn totals(&self) -> Totals {
        self.0.index.totals()
    }

    fn is_pinned(&self, digest: &Digest) -> bool {
        self.is_pinned(digest)
    }

    fn copies(&self, digest: &Digest) -> Copies {
        self.0.spread.copies(digest)
    }

    fn changes(&self) -> u64 {
        self.0.spread.changes()
    }
}

impl Over {
    fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

impl Freed {
    fn add(&mut self, more: Self) {
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.count += more.count;
    }
}
