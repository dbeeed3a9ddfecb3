//! What is known about each blob, and how many bytes they are together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::hot::Hot;
use crate::clock::Timestamp;
use crate::digest::Digest;
use crate::orm::{Database, DbError};

crate::record! {
    /// What is known about one blob. A hint: the blob exists when its file opens with this size.
    #[derive(Debug, Clone, PartialEq, Eq)]
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

/// All blobs.
#[derive(Debug)]
pub(super) struct Blobs {
    pub(super) rows: Hot<BlobRecord>,
    bytes: AtomicU64,
    again_bytes: AtomicU64,
}

impl Blobs {
    pub(super) fn load(database: &Database) -> Result<Self, DbError> {
        let rows = Hot::<BlobRecord>::load(database)?;
        let blobs = Self { rows, bytes: AtomicU64::new(0), again_bytes: AtomicU64::new(0) };
        blobs.rows.all().iter().for_each(|blob| blobs.add(blob));
        Ok(blobs)
    }

    pub(super) fn get(&self, digest: &Digest) -> Option<Arc<BlobRecord>> {
        self.rows.get(digest)
    }

    pub(super) fn all(&self) -> Vec<Arc<BlobRecord>> {
        self.rows.all()
    }

    pub(super) fn keys(&self) -> Vec<Digest> {
        self.rows.keys()
    }

    pub(super) fn put(&self, record: BlobRecord) {
        self.add(&record);
        let before = self.rows.put(record);
        self.subtract(before);
    }

    pub(super) fn remove(&self, digest: &Digest) -> bool {
        let before = self.rows.remove(digest);
        let was_there = before.is_some();
        self.subtract(before);
        was_there
    }

    pub(super) fn used(&self, digest: &Digest, now: Timestamp) -> bool {
        self.rows.change(digest, |blob| {
            if blob.hits == 0 {
                self.again_bytes.fetch_add(blob.size, Ordering::Relaxed);
            }
            blob.hits = blob.hits.saturating_add(1);
            blob.last_used = blob.last_used.max(now);
        })
    }

    pub(super) fn totals(&self) -> Totals {
        let blobs = u64::try_from(self.rows.len()).unwrap_or(u64::MAX);
        let (bytes, again) = (&self.bytes, &self.again_bytes);
        Totals { blobs, bytes: bytes.load(Ordering::Relaxed), again_bytes: again.load(Ordering::Relaxed) }
    }

    fn add(&self, blob: &BlobRecord) {
        self.bytes.fetch_add(blob.size, Ordering::Relaxed);
        self.again_bytes.fetch_add(blob.again_bytes(), Ordering::Relaxed);
    }

    /// Each row's size is added once and subtracted once, so the sums are right whenever nobody is at work.
    fn subtract(&self, before: Option<Arc<BlobRecord>>) {
        let Some(blob) = before else { return };
        self.bytes.fetch_sub(blob.size, Ordering::Relaxed);
        self.again_bytes.fetch_sub(blob.again_bytes(), Ordering::Relaxed);
    }
}

impl BlobRecord {
    fn again_bytes(&self) -> u64 {
        if self.hits > 0 { self.size } else { 0 }
    }
}
