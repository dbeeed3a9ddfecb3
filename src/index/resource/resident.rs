//! The answers in memory: those of URLs that were asked for or changed lately, all of a URL or none.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::ResourceRecord;
use crate::digest::Digest;
use crate::index::hot::{Map, Seeded};
use crate::index::overlay::Overlay;
use crate::policy::{ResourceKey, UrlKey};

/// More variants than this of one URL are not kept: a server that varies without end fills nothing.
const VARIANTS: usize = 16;
/// So many bytes of answers stay in memory, besides those that are not yet on disk.
const WEIGHT: usize = 8 << 20;
/// So many blobs are remembered as those whose answers are all in memory.
const WHOLE_BLOBS: usize = 8192;

/// The answers of a URL.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) variants: Vec<Arc<ResourceRecord>>,
    weight: usize,
    /// Asked for since it was last looked at.
    touched: AtomicBool,
    /// It waits in the queue.
    queued: bool,
}

/// An answer that is not yet on disk, or that there is none of this name any more.
#[derive(Debug, Clone)]
pub(in crate::index) struct Change {
    url: UrlKey,
    pub(super) record: Option<Arc<ResourceRecord>>,
}

/// What is in memory.
#[derive(Debug, Default)]
pub(super) struct Resident {
    pages: Map<UrlKey, Page>,
    by_key: Map<ResourceKey, UrlKey>,
    by_blob: BTreeSet<(Digest, UrlKey)>,
    /// Blobs of which no answer is on disk alone.
    whole: HashSet<Digest, Seeded>,
    queue: VecDeque<UrlKey>,
    weight: usize,
    /// What is not yet on disk: an answer, or that there is none of this name.
    pub(super) pending: Overlay<ResourceKey, Change>,
    /// The URLs of these, each with how many there are.
    dirty: Map<UrlKey, usize>,
    /// Counts the changes: what was read from the disk before one may be out of date after it.
    pub(super) changes: u64,
}

impl Resident {
    pub(super) fn page(&self, url: &UrlKey) -> Option<&Page> {
        let page = self.pages.get(url)?;
        page.touched.store(true, Ordering::Relaxed);
        Some(page)
    }

    /// The URL of an answer in memory.
    pub(super) fn url_of(&self, key: &ResourceKey) -> Option<UrlKey> {
        self.by_key.get(key).copied()
    }

    /// The URLs in memory that led to a blob, and whether there are no others.
    pub(super) fn urls_of(&self, digest: &Digest) -> (Vec<UrlKey>, bool) {
        let first = (*digest, UrlKey::from_bytes([0; 32]));
        let last = (*digest, UrlKey::from_bytes([0xff; 32]));
        let urls = self.by_blob.range(first..=last).map(|(_, url)| *url).collect();
        (urls, self.whole.contains(digest))
    }

    pub(super) fn is_whole(&mut self, digest: Digest) {
        if self.whole.len() >= WHOLE_BLOBS {
            self.whole.clear();
        }
        self.whole.insert(digest);
    }

    /// Keeps what was read from the disk.
    pub(super) fn keep(&mut self, url: UrlKey, variants: Vec<Arc<ResourceRecord>>) {
        self.set(url, variants);
        self.shrink();
    }

    /// Puts an answer in its place; how many there are more than before. All of the URL's are in memory.
    pub(super) fn put(&mut self, record: ResourceRecord) -> i64 {
        let record = Arc::new(record);
        let page = self.pages.get(&record.url_key).map_or(&[][..], |page| &page.variants);
        let is_same = |v: &Arc<ResourceRecord>| v.resource_key == record.resource_key;
        let rest: Vec<_> = page.iter().filter(|v| !is_same(v)).cloned().collect();
        let mut gone: Vec<ResourceKey> =
            rest.iter().filter(|v| v.variance == record.variance).map(|v| v.resource_key).collect();
        if gone.is_empty() && rest.len() >= VARIANTS {
            gone.extend(rest.iter().min_by_key(|v| v.answer.response_time).map(|v| v.resource_key));
        }
        let (before, url) = (page.len(), record.url_key);
        let mut variants: Vec<_> = rest.into_iter().filter(|v| !gone.contains(&v.resource_key)).collect();
        variants.push(Arc::clone(&record));
        let more = i64::try_from(variants.len()).unwrap_or(0) - i64::try_from(before).unwrap_or(0);
        self.set(url, variants);
        gone.into_iter().for_each(|key| self.note(url, key, None));
        self.note(url, record.resource_key, Some(record));
        more
    }

    /// Forgets those of a URL that are not to be kept; how many. All of the URL's are in memory.
    pub(super) fn retain(&mut self, url: &UrlKey, keep: impl Fn(&ResourceKey) -> bool) -> usize {
        let all = self.pages.get(url).map_or(&[][..], |page| &page.variants);
        let (kept, gone): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|v| keep(&v.resource_key));
        if !gone.is_empty() {
            self.set(*url, kept);
        }
        gone.iter().for_each(|v| self.note(*url, v.resource_key, None));
        gone.len()
    }

    /// Everything in memory counts as changed.
    pub(super) fn all_changed(&mut self) {
        let all: Vec<_> = self.pages.values().flat_map(|page| page.variants.iter().cloned()).collect();
        for record in all {
            if !self.pending.contains(&record.resource_key) {
                self.note(record.url_key, record.resource_key, Some(record));
            }
        }
    }

    /// The answers that were being written are on disk.
    pub(super) fn written(&mut self) {
        for (key, change) in self.pending.written().iter() {
            if !self.pending.contains(key) {
                self.clean(change.url);
            }
        }
        self.shrink();
    }

    fn note(&mut self, url: UrlKey, key: ResourceKey, record: Option<Arc<ResourceRecord>>) {
        self.changes = self.changes.wrapping_add(1);
        if !self.pending.contains(&key) {
            *self.dirty.entry(url).or_default() += 1;
        }
        self.pending.put(key, Change { url, record });
    }

    fn clean(&mut self, url: UrlKey) {
        let Some(count) = self.dirty.get_mut(&url) else { return };
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.dirty.remove(&url);
            self.enqueue(url);
        }
    }

    fn enqueue(&mut self, url: UrlKey) {
        if let Some(page) = self.pages.get_mut(&url)
            && !std::mem::replace(&mut page.queued, true)
        {
            self.queue.push_back(url);
        }
    }

    fn set(&mut self, url: UrlKey, variants: Vec<Arc<ResourceRecord>>) {
        let queued = self.forget(&url).is_some_and(|page| page.queued);
        let weight = 256 + variants.iter().map(|record| weight_of(record)).sum::<usize>();
        for record in &variants {
            self.by_key.insert(record.resource_key, url);
            if let Some(digest) = record.digest {
                self.by_blob.insert((digest, url));
            }
        }
        self.weight = self.weight.saturating_add(weight);
        let touched = AtomicBool::new(true);
        self.pages.insert(url, Page { variants, weight, touched, queued });
        self.enqueue(url);
    }

    fn forget(&mut self, url: &UrlKey) -> Option<Page> {
        let page = self.pages.remove(url)?;
        self.weight = self.weight.saturating_sub(page.weight);
        for record in &page.variants {
            self.by_key.remove(&record.resource_key);
            if let Some(digest) = record.digest {
                self.by_blob.remove(&(digest, *url));
            }
        }
        Some(page)
    }

    /// Lets go of what was not asked for lately, as long as there is too much.
    fn shrink(&mut self) {
        let mut looks = self.queue.len().saturating_mul(2);
        while self.weight > WEIGHT && looks > 0 {
            looks -= 1;
            let Some(url) = self.queue.pop_front() else { return };
            let Some(page) = self.pages.get_mut(&url) else { continue };
            page.queued = false;
            if self.dirty.contains_key(&url) {
                // comes back when it is written
                continue;
            }
            if page.touched.swap(false, Ordering::Relaxed) {
                self.enqueue(url);
                continue;
            }
            for record in self.forget(&url).into_iter().flat_map(|page| page.variants) {
                record.digest.map(|digest| self.whole.remove(&digest));
            }
        }
    }
}

/// About so many bytes of memory.
fn weight_of(record: &ResourceRecord) -> usize {
    let head = record.answer.head.fields.iter().map(|(name, value)| name.len() + value.len() + 64);
    let fields = record.variance.fields().count() * 96;
    size_of::<ResourceRecord>() + record.shown_url.len() + fields + head.sum::<usize>() + 160
}
