//! What URLs led to: one answer for each variant, found by URL, by name and by blob.
//!
//! Answers lie in the file; those that were asked for or changed lately are in memory ([`Resident`]), all of a URL or
//! none of it. Of a URL that nothing is kept for, memory knows that ([`Urls`]).

mod resident;
mod urls;

use std::borrow::Cow;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::hot::Map;
use super::overlay::sorted;
use super::readers::Readers;
use crate::clock::Timestamp;
use crate::digest::Digest;
use crate::orm::{Cell, Database, DbError, Field, FieldError, Query, Repository, SqlType};
use crate::policy::{Answer, ResourceKey, UrlKey, Variance};
use resident::{Change, Resident};
use urls::Urls;

/// More answers than this are not kept. Those without a blob are bounded by nothing else.
const ANSWERS: usize = 2_000_000;

crate::record! {
    /// What a URL led to at one time: the answer, and the blob it named.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ResourceRecord in "resources", columns ResourceColumns {
        key {
            /// The name of this answer among the nodes of a site.
            resource_key: ResourceKey,
        }
        /// The name of the URL.
        url_key: UrlKey [index],
        /// The URL as it may be shown: query values as `…`.
        shown_url: String,
        /// The request fields that selected this answer.
        variance: Variance [json],
        /// Head and times, from which freshness is reckoned.
        answer: Answer [json],
        /// The blob it led to; none for an answer without a body.
        digest: Option<Digest> [index, relates = "blobs(digest)"],
        /// Length of the body in bytes.
        size: u64,
        /// Whether this node got it from the origin itself.
        first_hand: bool,
        /// Whether neighbours may have it.
        shareable: bool,
    }
}

/// Answers that are written together.
pub(super) type ResourceBatch = Arc<Map<ResourceKey, Change>>;

/// All answers.
#[derive(Debug)]
pub(super) struct Resources {
    resident: RwLock<Resident>,
    readers: Arc<Readers>,
    urls: Urls,
    /// Whether `urls` knows all that is on disk.
    is_filled: AtomicBool,
    count: AtomicI64,
    limit: AtomicUsize,
}

impl Resources {
    /// What is on disk is read when it is asked for; [`Resources::fill`] reads which URLs there are.
    pub(super) fn new(readers: Arc<Readers>) -> Self {
        Self {
            resident: RwLock::default(),
            readers,
            urls: Urls::default(),
            is_filled: AtomicBool::new(false),
            count: AtomicI64::new(0),
            limit: AtomicUsize::new(ANSWERS),
        }
    }

    /// Learns which URLs there are, until `stop` says so.
    pub(super) fn fill(&self, database: &Database, stop: &AtomicBool) -> Result<(), DbError> {
        let mut count = 0;
        database.column(ResourceRecord::COLUMNS.url_key, |url| {
            self.urls.add(&url);
            count += 1;
            if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        self.count.fetch_add(count, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn is_filled_now(&self) {
        self.is_filled.store(true, Ordering::Release);
    }

    pub(super) fn variants(&self, url: &UrlKey) -> Vec<Arc<ResourceRecord>> {
        if let Some(page) = self.read().page(url) {
            return page.variants.clone();
        }
        self.load(url)
    }

    pub(super) fn is_only_variant(&self, record: &Arc<ResourceRecord>) -> bool {
        let resident = self.read();
        let variants = resident.page(&record.url_key).map(|page| page.variants.as_slice());
        matches!(variants, Some([only]) if Arc::ptr_eq(only, record))
    }

    pub(super) fn get(&self, key: &ResourceKey) -> Option<Arc<ResourceRecord>> {
        let known = self.read().url_of(key);
        let on_disk =
            || self.readers.read(|database| Repository::<ResourceRecord>::new(database).get(key))?;
        let url = known.or_else(|| on_disk().map(|record| record.url_key))?;
        self.variants(&url).into_iter().find(|record| record.resource_key == *key)
    }

    pub(super) fn of_blob(&self, digest: &Digest) -> Vec<Arc<ResourceRecord>> {
        let (mut urls, changes) = {
            let resident = self.read();
            let (urls, is_whole) = resident.urls_of(digest);
            if is_whole {
                drop(resident);
                return self.that_led_to(&urls, digest);
            }
            (urls, resident.changes)
        };
        let query = Query::everything().filter(ResourceRecord::COLUMNS.digest.is(&Some(*digest)));
        let on_disk = self.readers.read(|database| Repository::<ResourceRecord>::new(database).find(&query));
        let is_read = on_disk.is_some();
        urls.extend(on_disk.into_iter().flatten().map(|record| record.url_key));
        urls.sort_unstable();
        urls.dedup();
        let found = self.that_led_to(&urls, digest);
        let mut resident = self.lock();
        let are_here = urls.iter().all(|url| resident.page(url).is_some());
        if is_read && are_here && resident.changes == changes {
            resident.is_whole(*digest);
        }
        drop(resident);
        found
    }

    fn that_led_to(&self, urls: &[UrlKey], digest: &Digest) -> Vec<Arc<ResourceRecord>> {
        let all = urls.iter().flat_map(|url| self.variants(url));
        all.filter(|record| record.digest == Some(*digest)).collect()
    }

    /// All answers, in no order.
    #[cfg(test)]
    pub(super) fn all(&self) -> Vec<Arc<ResourceRecord>> {
        let urls = self.urls_where(|_record| true);
        urls.iter().flat_map(|url| self.variants(url)).collect()
    }

    /// The URLs that have an answer like this. Reads everything.
    pub(super) fn urls_where(&self, fits: impl Fn(&ResourceRecord) -> bool) -> BTreeSet<UrlKey> {
        let mut urls = BTreeSet::new();
        let found = self.readers.read(|database| {
            Repository::<ResourceRecord>::new(database).each(|record| {
                if fits(&record) {
                    urls.insert(record.url_key);
                }
            })
        });
        if found.is_none() {
            tracing::warn!("not all answers could be read");
        }
        let resident = self.read();
        let changed = resident.pending.all().filter_map(|(_, change)| change.record.as_ref());
        urls.extend(changed.filter(|record| fits(record)).map(|record| record.url_key));
        drop(resident);
        urls.retain(|url| self.variants(url).iter().any(|record| fits(record)));
        urls
    }

    pub(super) fn put(&self, record: ResourceRecord) {
        let (url, is_new) = (record.url_key, !self.may_be_on_disk(&record.url_key));
        self.urls.add(&url);
        let more = self.with_page(&url, is_new, |resident| resident.put(record));
        self.count.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn remove(&self, key: &ResourceKey) -> bool {
        let Some(record) = self.get(key) else { return false };
        self.retain(&record.url_key, |other| other != key) > 0
    }

    pub(super) fn remove_url(&self, url: &UrlKey) -> bool {
        self.retain(url, |_key| false) > 0
    }

    fn retain(&self, url: &UrlKey, keep: impl Fn(&ResourceKey) -> bool) -> usize {
        if self.variants(url).is_empty() {
            return 0;
        }
        let gone = self.with_page(url, false, |resident| resident.retain(url, keep));
        self.count.fetch_sub(i64::try_from(gone).unwrap_or(0), Ordering::Relaxed);
        gone
    }

    /// The answers of a URL that is not in memory; from now on they are.
    fn load(&self, url: &UrlKey) -> Vec<Arc<ResourceRecord>> {
        if !self.may_be_on_disk(url) {
            return Vec::new();
        }
        let changes = {
            let resident = self.read();
            if let Some(page) = resident.page(url) {
                return page.variants.clone();
            }
            resident.changes
        };
        let variants = self.on_disk(url);
        let mut resident = self.lock();
        if let Some(page) = resident.page(url) {
            return page.variants.clone();
        }
        if resident.changes == changes && !variants.is_empty() {
            resident.keep(*url, variants.clone());
        }
        variants
    }

    fn may_be_on_disk(&self, url: &UrlKey) -> bool {
        !self.is_filled.load(Ordering::Acquire) || self.urls.may_have(url)
    }

    /// Changes the answers of a URL when all of them are in memory. There are none of one that is new.
    fn with_page<T>(&self, url: &UrlKey, is_new: bool, change: impl FnOnce(&mut Resident) -> T) -> T {
        loop {
            let (is_here, changes) = {
                let resident = self.read();
                (resident.page(url).is_some(), resident.changes)
            };
            let variants = if is_here || is_new { Vec::new() } else { self.on_disk(url) };
            let mut resident = self.lock();
            if resident.page(url).is_none() {
                if is_here || (!is_new && resident.changes != changes) {
                    // it went, or something came in between
                    continue;
                }
                resident.keep(*url, variants);
            }
            return change(&mut resident);
        }
    }

    fn on_disk(&self, url: &UrlKey) -> Vec<Arc<ResourceRecord>> {
        let query = Query::everything().filter(ResourceRecord::COLUMNS.url_key.is(url));
        let found = self.readers.read(|database| Repository::<ResourceRecord>::new(database).find(&query));
        found.into_iter().flatten().map(Arc::new).collect()
    }

    // === what the writer asks ===

    pub(super) fn take(&self) -> ResourceBatch {
        self.lock().pending.take()
    }

    pub(super) fn is_all_taken(&self) -> bool {
        self.read().pending.is_empty()
    }

    pub(super) fn write(&self, batch: &ResourceBatch, database: &Database) -> Result<(), DbError> {
        let rows = Repository::<ResourceRecord>::new(database);
        for (key, change) in sorted(batch) {
            match &change.record {
                Some(record) => rows.upsert(record)?,
                None => drop(rows.delete(key)?),
            }
        }
        self.bound(&rows)
    }

    pub(super) fn written(&self) {
        self.lock().written();
    }

    pub(super) fn put_back(&self) {
        self.lock().pending.put_back(|_before, since| since.clone());
    }

    /// Everything in memory is written to a new file.
    pub(super) fn all_changed(&self) {
        self.lock().all_changed();
    }

    /// Beyond the limit a sixteenth of it goes at once: first what led to no blob, and of those the oldest.
    fn bound(&self, rows: &Repository<'_, ResourceRecord>) -> Result<(), DbError> {
        let limit = self.limit.load(Ordering::Relaxed);
        let count = usize::try_from(self.count.load(Ordering::Relaxed)).unwrap_or(0);
        if count <= limit || !self.is_filled.load(Ordering::Acquire) {
            return Ok(());
        }
        let excess = count.saturating_sub(limit - limit / 16);
        let mut lowest: BinaryHeap<(bool, Timestamp, ResourceKey, UrlKey)> = BinaryHeap::new();
        let mut there = 0_usize;
        rows.each(|r| {
            there += 1;
            lowest.push((r.digest.is_some(), r.answer.response_time, r.resource_key, r.url_key));
            if lowest.len() > excess {
                lowest.pop();
            }
        })?;
        // what waits to be written counts too, but is not there yet
        let gone = excess.min(there);
        for (_, _, key, url) in lowest.into_sorted_vec().into_iter().take(gone) {
            rows.delete(&key)?;
            let mut resident = self.lock();
            if resident.page(&url).is_some() {
                resident.retain(&url, |other| *other != key);
            }
            drop(resident);
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    fn read(&self) -> RwLockReadGuard<'_, Resident> {
        self.resident.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> RwLockWriteGuard<'_, Resident> {
        self.resident.write().unwrap_or_else(PoisonError::into_inner)
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
