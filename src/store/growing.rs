//! A thing that is still arriving: one writer, any number of readers, each at its own pace.
//!
//! The staging file is the only buffer: readers trail the writer through the page cache, so a slow one costs
//! nothing and a late one finds everything. What may be read ends at `released`, which trails `received` while
//! bytes wait for their proof. The end is always said: complete, or failed with a reason; a reader never sees
//! a short end as a clean one.
//!
//! Where the disk gives out in the middle, the rest passes through a small window in memory: the writer then
//! waits for the slowest reader, and nothing is kept ([`spill`]).
//!
//! [`spill`]: self

mod follower;
mod spill;
mod writer;

use std::fmt;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::watch;

use super::buffer::BufferPool;
use super::{Blob, PIECE_SIZE, PieceHash};
use crate::digest::Digest;

pub use follower::Follower;
pub use writer::{Hold, WriteError, WriteNote, Writer};

use spill::Spill;

/// The readers' side of a growing thing; a cheap clone.
#[derive(Clone)]
pub struct Growing(Arc<Shared>);

#[derive(Debug)]
pub(super) struct Shared {
    file: Arc<File>,
    pool: BufferPool,
    progress: watch::Sender<Progress>,
    readers: watch::Sender<usize>,
    slots: Mutex<Vec<Weak<ReaderSlot>>>,
    spill: Spill,
    /// The hashes of the whole pieces so far.
    pieces: Mutex<Vec<PieceHash>>,
}

/// How far a growing thing has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that have arrived.
    pub received: u64,
    /// Bytes that readers may have.
    pub released: u64,
    /// The whole size, once known.
    pub total: Option<u64>,
    /// How often bytes were taken back.
    pub rewinds: u32,
    /// How it ended, once it has.
    pub end: Option<End>,
}

/// How a growing thing ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// All bytes are there and right.
    Complete(Digest),
    /// It will never be whole.
    Failed(Failure),
}

/// Why a growing thing will never be whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The bytes do not have the digest they must have.
    #[error("the bytes do not have the digest they must have")]
    Digest,
    /// The thing changed at its origin while it was being received.
    #[error("the file changed at the origin during the transfer")]
    Changed,
    /// It is blocked here.
    #[error("what came is blocked here")]
    Blocked,
    /// No source could deliver the rest.
    #[error("{0}")]
    Source(String),
    /// What was received is not to be had from the disk any more. Only a reader fails so: others may have it.
    #[error("{0}")]
    Unreadable(String),
    /// Nobody read it any more, or the program is stopping.
    #[error("the transfer was given up")]
    Abandoned,
}

/// Where one reader stands.
#[derive(Debug, Default)]
pub(super) struct ReaderSlot {
    at: AtomicU64,
}

impl Growing {
    /// A reader from `start` to `end`, or to the thing's end.
    pub fn follow(&self, start: u64, end: Option<u64>) -> Follower {
        Follower::new(Arc::clone(&self.0), start, end)
    }

    /// A reader that passes on what has come whether it is proved or not, and says so: a neighbour's. It ends with
    /// an error as soon as bytes are taken back, and holds up nobody where the disk has given out.
    pub fn relay(&self, start: u64, end: Option<u64>) -> Follower {
        Follower::relay(Arc::clone(&self.0), start, end)
    }

    /// The hashes of its whole pieces so far, from this one on; of a shorter last piece too once it is complete.
    pub fn pieces(&self, from: usize) -> Vec<PieceHash> {
        self.0.pieces().get(from..).unwrap_or_default().to_vec()
    }

    /// Waits until this byte is here, or nothing more comes; whether it is here.
    pub async fn has(&self, byte: u64) -> bool {
        let mut progress = self.0.progress.subscribe();
        let there = progress.wait_for(|now| now.end.is_some() || now.received > byte).await;
        there.is_ok_and(|now| now.received > byte)
    }

    /// Waits until this piece is whole, or nothing more comes.
    pub async fn has_piece(&self, piece: u64) {
        let mut progress = self.0.progress.subscribe();
        let there = |now: &Progress| now.end.is_some() || now.received / PIECE_SIZE > piece;
        if progress.wait_for(there).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Counts as a reader and reads nothing: keeps the transfer going until its holder makes up its mind.
    pub fn interest(&self) -> Follower {
        self.follow(0, Some(0))
    }

    /// Whether its rest passes through memory, so that who comes late cannot have it from the start.
    pub fn is_spilling(&self) -> bool {
        self.0.spill.is_open()
    }

    /// How far it has come.
    pub fn progress(&self) -> Progress {
        self.0.progress.borrow().clone()
    }

    /// How many readers follow it.
    pub fn readers(&self) -> usize {
        *self.0.readers.borrow()
    }

    /// Waits until nobody reads it.
    pub async fn deserted(&self) {
        // an error means that the sender, which we hold, is gone: it cannot come
        if self.0.readers.subscribe().wait_for(|readers| *readers == 0).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the first byte may be read or the end is known.
    pub async fn opened(&self) -> Progress {
        let mut progress = self.0.progress.subscribe();
        match progress.wait_for(|now| now.released > 0 || now.end.is_some()).await {
            Ok(now) => now.clone(),
            Err(_) => self.progress(),
        }
    }

    /// Waits until it has ended.
    pub async fn ended(&self) -> End {
        let mut progress = self.0.progress.subscribe();
        let ended = progress.wait_for(|now| now.end.is_some()).await.map(|now| now.end.clone());
        ended.ok().flatten().unwrap_or(End::Failed(Failure::Abandoned))
    }
}

impl fmt::Debug for Growing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Growing").field("progress", &self.progress()).finish_non_exhaustive()
    }
}

impl Shared {
    fn new(file: Arc<File>, pool: BufferPool, progress: Progress) -> Arc<Self> {
        Arc::new(Self {
            file,
            pool,
            progress: watch::Sender::new(progress),
            readers: watch::Sender::new(0),
            slots: Mutex::new(Vec::new()),
            spill: Spill::default(),
            pieces: Mutex::default(),
        })
    }

    fn enter(&self, start: u64) -> Arc<ReaderSlot> {
        let slot = Arc::new(ReaderSlot { at: AtomicU64::new(start) });
        let mut slots = self.slots();
        slots.retain(|slot| slot.strong_count() > 0);
        slots.push(Arc::downgrade(&slot));
        drop(slots);
        self.readers.send_modify(|readers| *readers += 1);
        slot
    }

    fn pieces(&self) -> std::sync::MutexGuard<'_, Vec<PieceHash>> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn piece_count(&self) -> usize {
        self.pieces().len()
    }

    fn add_pieces(&self, more: &[PieceHash]) {
        if !more.is_empty() {
            self.pieces().extend_from_slice(more);
        }
    }

    fn set_pieces(&self, all: &[PieceHash]) {
        *self.pieces() = all.to_vec();
    }

    fn leave(&self) {
        self.readers.send_modify(|readers| *readers = readers.saturating_sub(1));
        self.spill.moved();
    }

    /// Where the slowest reader stands; none if there is no reader.
    fn slowest(&self) -> Option<u64> {
        self.slots().iter().filter_map(Weak::upgrade).map(|slot| slot.at.load(Ordering::Acquire)).min()
    }

    fn slots(&self) -> std::sync::MutexGuard<'_, Vec<Weak<ReaderSlot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
