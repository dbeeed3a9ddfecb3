//! What URLs led to: one answer for each variant, found by URL, by name and by blob.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::hot::{Changed, Map, Seeded, lowest, write_behind};
use crate::digest::Digest;
use crate::orm::{Cell, Database, DbError, Field, FieldError, Record as _, Repository, SqlType};
use crate::policy::{Answer, ResourceKey, UrlKey, Variance};

/// More variants than this of one URL are not kept: a server that varies without end fills nothing.
const VARIANTS: usize = 16;
/// More answers than this are not kept. Those without a blob are bounded by nothing else.
const ANSWERS: usize = 500_000;

crate::record! {
    /// What a URL led to at one time: the answer, and the blob it named.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ResourceRecord in "resources", columns ResourceColumns {
        key {
            /// The name of this answer among the nodes of a site.
            resource_key: ResourceKey,
        }
        /// The name of the URL.
        url_key: UrlKey,
        /// The URL as it may be shown: query values as `…`.
        shown_url: String,
        /// The request fields that selected this answer.
        variance: Variance [json],
        /// Head and times, from which freshness is reckoned.
        answer: Answer [json],
        /// The blob it led to; none for an answer without a body.
        digest: Option<Digest> [relates = "blobs(digest)"],
        /// Length of the body in bytes.
        size: u64,
        /// Whether this node got it from the origin itself.
        first_hand: bool,
        /// Whether neighbours may have it.
        shareable: bool,
    }
}

/// All answers.
#[derive(Debug)]
pub(super) struct Resources {
    held: RwLock<Held>,
    changed: Changed<ResourceKey>,
    limit: usize,
}

#[derive(Debug, Default)]
struct Held {
    by_key: Map<ResourceKey, Arc<ResourceRecord>>,
    by_url: Map<UrlKey, Vec<Arc<ResourceRecord>>>,
    by_blob: BTreeSet<(Digest, ResourceKey)>,
}

impl Resources {
    pub(super) fn load(database: &Database) -> Result<Self, DbError> {
        Self::load_within(database, ANSWERS)
    }

    pub(super) fn load_within(database: &Database, limit: usize) -> Result<Self, DbError> {
        let resources = Self { held: RwLock::default(), changed: Changed::default(), limit };
        let mut held = resources.lock();
        let mut gone = Vec::new();
        Repository::<ResourceRecord>::new(database).each(|record| gone.extend(held.put(record)))?;
        gone.extend(held.bound(limit));
        drop(held);
        resources.changed.note_all(gone);
        Ok(resources)
    }

    pub(super) fn get(&self, key: &ResourceKey) -> Option<Arc<ResourceRecord>> {
        self.read().by_key.get(key).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<ResourceRecord>> {
        self.read().by_key.values().cloned().collect()
    }

    pub(super) fn variants(&self, url: &UrlKey) -> Vec<Arc<ResourceRecord>> {
        self.read().by_url.get(url).cloned().unwrap_or_default()
    }

    pub(super) fn is_only_variant(&self, record: &Arc<ResourceRecord>) -> bool {
        let held = self.read();
        matches!(held.by_url.get(&record.url_key).map(Vec::as_slice), Some([only]) if Arc::ptr_eq(only, record))
    }

    pub(super) fn of_blob(&self, digest: &Digest) -> Vec<Arc<ResourceRecord>> {
        let held = self.read();
        let first = (*digest, ResourceKey::from_bytes([0; 32]));
        let last = (*digest, ResourceKey::from_bytes([0xff; 32]));
        held.by_blob.range(first..=last).filter_map(|(_, key)| held.by_key.get(key).cloned()).collect()
    }

    pub(super) fn put(&self, record: ResourceRecord) {
        let key = record.resource_key;
        let mut held = self.lock();
        let mut changed = held.put(record);
        changed.extend(held.bound(self.limit));
        drop(held);
        changed.push(key);
        self.changed.note_all(changed);
    }

    pub(super) fn remove(&self, key: &ResourceKey) -> bool {
        let was_there = self.lock().remove(key);
        if was_there {
            self.changed.note(*key);
        }
        was_there
    }

    pub(super) fn remove_url(&self, url: &UrlKey) -> bool {
        let mut held = self.lock();
        let keys: Vec<_> =
            held.by_url.get(url).into_iter().flatten().map(|record| record.resource_key).collect();
        for key in &keys {
            held.remove(key);
        }
        drop(held);
        let was_there = !keys.is_empty();
        self.changed.note_all(keys);
        was_there
    }

    pub(super) const fn changed(&self) -> &Changed<ResourceKey> {
        &self.changed
    }

    pub(super) fn all_changed(&self) {
        let keys: Vec<_> = self.read().by_key.keys().copied().collect();
        self.changed.note_all(keys);
    }

    pub(super) fn write(
        &self,
        keys: &HashSet<ResourceKey, Seeded>,
        database: &Database,
    ) -> Result<(), DbError> {
        write_behind(keys, database, |key| self.get(key))
    }

    fn read(&self) -> RwLockReadGuard<'_, Held> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> RwLockWriteGuard<'_, Held> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Puts an answer in its place; the names of those that had to go for it.
    fn put(&mut self, record: ResourceRecord) -> Vec<ResourceKey> {
        self.remove(&record.key());
        let mut gone = Vec::new();
        let variants = self.by_url.get(&record.url_key).map_or(&[][..], Vec::as_slice);
        gone.extend(variants.iter().filter(|v| v.variance == record.variance).map(|v| v.resource_key));
        if gone.is_empty() && variants.len() >= VARIANTS {
            gone.extend(variants.iter().min_by_key(|v| v.answer.response_time).map(|v| v.resource_key));
        }
        for key in &gone {
            self.remove(key);
        }
        let record = Arc::new(record);
        self.by_key.insert(record.resource_key, Arc::clone(&record));
        if let Some(digest) = record.digest {
            self.by_blob.insert((digest, record.resource_key));
        }
        self.by_url.entry(record.url_key).or_default().push(record);
        gone
    }

    fn remove(&mut self, key: &ResourceKey) -> bool {
        let Some(record) = self.by_key.remove(key) else { return false };
        if let Some(digest) = record.digest {
            self.by_blob.remove(&(digest, *key));
        }
        if let Some(variants) = self.by_url.get_mut(&record.url_key) {
            variants.retain(|variant| variant.resource_key != *key);
            if variants.is_empty() {
                self.by_url.remove(&record.url_key);
            }
        }
        true
    }

    /// Beyond the limit a sixteenth of it goes at once: first what led to no blob, and of those the oldest.
    fn bound(&mut self, limit: usize) -> Vec<ResourceKey> {
        if self.by_key.len() <= limit {
            return Vec::new();
        }
        let excess = self.by_key.len().saturating_sub(limit - limit / 16);
        let rank = |r: &ResourceRecord| (r.digest.is_some(), r.answer.response_time);
        let ranked = self.by_key.iter().map(|(key, record)| (rank(record), *key)).collect();
        let gone = lowest(ranked, excess);
        for key in &gone {
            self.remove(key);
        }
        gone
    }
}

/// A key of the rules is its 32 bytes.
macro_rules! key_field {
    ($($key:ident),+) => {$(
        impl Field for $key {
            const TYPE: SqlType = SqlType::Blob;
            const BYTES: Option<usize> = Some(32);

            fn encode(&self) -> Cell<'_> {
                Cell::Blob(Cow::Borrowed(self.as_bytes()))
            }

            fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
                cell.array("the 32 bytes of a key").map(Self::from_bytes)
            }
        }
    )+};
}
key_field!(UrlKey, ResourceKey);
