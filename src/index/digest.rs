//! Which blob has which digest in another algorithm than SHA-256.
//!
//! Written down only for what this node reckoned itself, so a row never goes wrong: it says that the same bytes
//! have both values, whether or not the blob is still held.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};

use super::hot::{Hot, Map};
use super::readers::Readers;
use crate::clock::Timestamp;
use crate::digest::{Algorithm, Digest, Stated, StatedKey};
use crate::orm::{Database, DbError, Repository};

/// More than this are not kept; those reckoned longest ago go first.
const DIGESTS: usize = 200_000;

crate::record! {
    /// A blob's digest in another algorithm.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct DigestRecord in "digests" [without_rowid], columns DigestColumns {
        key {
            /// The name of fixed length by which neighbours ask for it.
            stated_key: StatedKey,
        }
        /// Algorithm and value.
        stated: Stated,
        /// The blob that has it.
        blob: Digest [relates = "blobs(digest)"],
        /// When it was reckoned.
        reckoned_at: Timestamp,
    }
}

/// All digests in other algorithms.
#[derive(Debug)]
pub(super) struct Digests {
    pub(super) rows: Hot<DigestRecord>,
    readers: Arc<Readers>,
    by_blob: RwLock<Map<(Digest, Algorithm), Stated>>,
    limit: usize,
}

impl Digests {
    /// None is in memory yet: [`Digests::fill`] reads them.
    pub(super) fn new(readers: Arc<Readers>) -> Self {
        Self { rows: Hot::to_be_filled(), readers, by_blob: RwLock::default(), limit: DIGESTS }
    }

    /// Reads all rows, until `stop` says so.
    pub(super) fn fill(&self, database: &Database, stop: &AtomicBool) -> Result<(), DbError> {
        self.rows.fill(database, stop, |_row| {})
    }

    /// Nothing more is read.
    pub(super) fn is_filled_now(&self) {
        self.rows.is_filled_now();
        self.bound();
        self.sort_by_blob();
    }

    /// The blob of this key, where its algorithm is one that can be trusted.
    pub(super) fn blob(&self, key: &StatedKey) -> Option<Digest> {
        let unread = || {
            let may_be = self.rows.may_be_unread(key);
            let read = |database: &Database| Repository::<DigestRecord>::new(database).get(key);
            may_be.then(|| self.readers.read(read))??.map(Arc::new)
        };
        self.rows.get(key).or_else(unread).filter(|row| row.stated.is_strong()).map(|row| row.blob)
    }

    /// The value of a blob in an algorithm, if it was reckoned.
    pub(super) fn of(&self, blob: &Digest, algorithm: Algorithm) -> Option<Stated> {
        self.by_blob.read().unwrap_or_else(PoisonError::into_inner).get(&(*blob, algorithm)).copied()
    }

    /// Whether anything changed.
    pub(super) fn put(&self, stated: Stated, blob: Digest, now: Timestamp) -> bool {
        // of SHA-256 the blob's name says it all
        if stated.sha256().is_some() || self.of(&blob, stated.algorithm()) == Some(stated) {
            return false;
        }
        self.rows.put(DigestRecord { stated_key: stated.key(), stated, blob, reckoned_at: now });
        let mut by_blob = self.by_blob.write().unwrap_or_else(PoisonError::into_inner);
        by_blob.insert((blob, stated.algorithm()), stated);
        drop(by_blob);
        if self.bound() {
            self.sort_by_blob();
        }
        true
    }

    fn bound(&self) -> bool {
        self.rows.bound(self.limit, |row| row.reckoned_at)
    }

    fn sort_by_blob(&self) {
        let rows = self.rows.all();
        let sorted = rows.iter().map(|row| ((row.blob, row.stated.algorithm()), row.stated)).collect();
        *self.by_blob.write().unwrap_or_else(PoisonError::into_inner) = sorted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::StatedHasher;

    fn of(bytes: &[u8], algorithm: Algorithm) -> Stated {
        let mut hasher = StatedHasher::new(algorithm);
        hasher.update(bytes);
        hasher.finish()
    }

    #[test]
    fn strong_ones_find_their_blob_and_weak_ones_are_only_compared() {
        let folder = tempfile::tempdir().unwrap();
        let digests = Digests::new(Arc::new(Readers::new(&folder.path().join("index.db"))));
        digests.is_filled_now();
        let blob = Digest::of(b"a");
        let (strong, weak) = (of(b"a", Algorithm::Sha512), of(b"a", Algorithm::Md5));
        for stated in [strong, weak] {
            assert!(digests.put(stated, blob, Timestamp(1)));
            assert!(!digests.put(stated, blob, Timestamp(2)), "the same again is not written again");
            assert_eq!(digests.of(&blob, stated.algorithm()), Some(stated));
        }
        assert!(!digests.put(blob.into(), blob, Timestamp(1)));
        assert_eq!((digests.blob(&strong.key()), digests.blob(&weak.key())), (Some(blob), None));
        assert_eq!(digests.of(&blob, Algorithm::Sha1), None);
    }

    #[test]
    fn they_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let mut digests = Digests::new(Arc::new(Readers::new(&folder.path().join("index.db"))));
        digests.limit = 32;
        for n in 0..100 {
            digests.put(of(&[n], Algorithm::Blake3), Digest::of(&[n]), Timestamp(u64::from(n)));
        }
        assert!(digests.rows.len() <= 32);
        assert!(digests.by_blob.read().unwrap().len() <= 32);
        assert_eq!(digests.blob(&of(&[99], Algorithm::Blake3).key()), Some(Digest::of(&[99])));
        assert_eq!(digests.of(&Digest::of(&[0]), Algorithm::Blake3), None);
    }
}
