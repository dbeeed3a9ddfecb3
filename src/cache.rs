//! Store and index kept in step: the only room that touches both, and the only one that deletes a blob.
//!
//! Order of writes, and why a crash between any two steps is harmless: a blob's file is durable before its row
//! appears; a blob's file is unlinked before its row goes. So a row without a file is possible and found when
//! the blob is opened, a file without a row is possible and found by [`Cache::reconcile`]; a row that promises
//! bytes which are not there is never served, for a blob exists only when it opens with the right stamp.
//!
//! A file whose stamp (inode, size, ctime) is not the one recorded when it was last proved is hashed again
//! before its bytes are trusted; one that turns out wrong or cannot be read is taken away with its row, told of,
//! and kept in `quarantine/` for a while. What nobody reads is looked at by a pass now and then.
//!
//! Where the folder cannot be used (missing, read-only, another owner) the cache holds nothing and says why in
//! health; downloads go on without it. Only another daemon's lock and an unknown format refuse the start.

mod commit;
mod evict;
mod limits;
mod open;
mod partials;
mod parts;
mod prove;
mod reckon;
mod reconcile;
mod room;
mod scrub;
mod spread;
mod told;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock};

use arc_swap::ArcSwap;

use crate::clock::SharedClock;
use crate::digest::Digest;
use crate::index::{BlobRecord, HeldBlob, Index, ResourceRecord};
use crate::policy::{ResourceKey, UrlKey};
use crate::store::{Blob, InMemory, Stamp, Store, StoreError};
use crate::telemetry::Health;

pub use limits::{Config, MinFree};
pub use open::Opened;
pub use parts::Part;
pub use prove::Verdict;
pub use room::{NoRoom, Reservation};
pub use scrub::{Pass, Reading, STEP as SCRUB_STEP};

use commit::Waiting;
use evict::Order;
use open::Handles;
use partials::Partials;
use parts::Parts;
use prove::Proving;
use room::Space;
use spread::Spread;
use told::Telling;

/// What this machine holds; a cheap clone.
#[derive(Debug, Clone)]
pub struct Cache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Option<Store>,
    index: Index,
    config: ArcSwap<Config>,
    clock: SharedClock,
    health: Health,
    pins: RwLock<HashSet<Digest>>,
    handles: Handles,
    proving: Proving,
    reckoning: tokio::sync::Mutex<()>,
    space: Space,
    order: Order,
    /// What neighbours say they hold.
    spread: Spread,
    /// What they are told.
    telling: Telling,
    partials: Partials,
    parts: Parts,
    /// Blobs found damaged.
    damaged: AtomicU64,
    /// Blobs about to be committed.
    arrived: RwLock<HashMap<Digest, Arrived>>,
    /// Those that wait for the disk.
    waiting: Waiting,
}

/// A blob that can be read already, while the disk takes its time.
#[derive(Debug, Clone)]
struct Arrived {
    blob: Blob,
    guarded: bool,
    /// Nobody else can reach what is read here in memory, before it has its name and after.
    memory: Option<Arc<InMemory>>,
    /// Of its file from when it had its name.
    stamp: Option<Stamp>,
}

/// The sums the status pages show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// How many blobs are held.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The most bytes that may be held.
    pub max_bytes: u64,
    /// How many blobs are pinned.
    pub pinned: u64,
}

/// How the bytes of a new blob came here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Provenance {
    /// All of them straight from the origin.
    pub first_hand: bool,
    /// Only for those the origin lets in: given to neighbours by digest alone.
    pub guarded: bool,
}

impl Cache {
    /// Opens the folder and takes up what is there. Blocks on the disk.
    pub fn open(
        config: Config,
        index: Index,
        clock: SharedClock,
        health: Health,
    ) -> Result<Self, StoreError> {
        let store = match Store::open(&config.dir) {
            Ok(store) => Some(store),
            Err(error @ StoreError::Io { .. }) => {
                tracing::warn!(%error, "the cache folder cannot be used: downloads go on without a cache");
                health.raise("cache-folder", format!("the cache folder cannot be used: {error}"));
                None
            }
            Err(error) => return Err(error),
        };
        let pins = store.as_ref().map(Store::pins).transpose()?.unwrap_or_default().into_iter().collect();
        let partials = store.as_ref().map(Partials::recover).transpose()?.unwrap_or_default();
        Ok(Self(Arc::new(Inner {
            store,
            index,
            config: ArcSwap::from_pointee(config),
            clock,
            health,
            pins: RwLock::new(pins),
            handles: Handles::default(),
            proving: Proving::default(),
            reckoning: tokio::sync::Mutex::default(),
            space: Space::default(),
            order: Order::default(),
            spread: Spread::default(),
            telling: Telling::default(),
            partials,
            parts: Parts::default(),
            damaged: AtomicU64::new(0),
            arrived: RwLock::default(),
            waiting: Waiting::default(),
        })))
    }

    /// The limits that hold now.
    pub fn limits(&self) -> Arc<Config> {
        self.0.config.load_full()
    }

    /// New limits from a reloaded configuration; the folder stays the one it was opened with.
    pub fn set_limits(&self, config: Config) {
        self.0.config.store(Arc::new(config));
    }

    /// Where things are remembered.
    pub fn index(&self) -> &Index {
        &self.0.index
    }

    /// Whether new things may be stored.
    pub fn is_writable(&self) -> bool {
        !self.0.config.load().read_only && self.0.store.as_ref().is_some_and(|store| !store.is_poisoned())
    }

    /// The size of a blob that is probably held; only opening it tells.
    pub fn holds(&self, digest: &Digest) -> Option<u64> {
        self.0.store.as_ref()?;
        let arrived = || self.arrived(digest).map(|arrived| arrived.blob.size());
        self.0.index.held(digest).map(|held| held.size).or_else(arrived)
    }

    /// One stored answer by its key.
    pub fn resource(&self, key: &ResourceKey) -> Option<Arc<ResourceRecord>> {
        self.0.index.resource(key)
    }

    /// The stored answers of a URL.
    pub fn variants(&self, url: &UrlKey) -> Vec<Arc<ResourceRecord>> {
        self.0.index.variants(url)
    }

    /// Keeps an answer; it replaces the one of the same URL and variant, and a whole replaces parts.
    pub fn put_resource(&self, record: ResourceRecord) {
        self.forget_parts(&record.url_key);
        self.0.index.put_resource(record);
    }

    /// Forgets the answers of a URL; blobs stay, they are addressed by digest.
    pub fn forget_url(&self, url: &UrlKey) {
        self.0.index.remove_url(url);
        self.forget_parts(url);
    }

    fn arrived(&self, digest: &Digest) -> Option<Arrived> {
        let arrived = self.0.arrived.read().unwrap_or_else(PoisonError::into_inner);
        arrived.get(digest).cloned()
    }

    /// Whether a blob came in answer to credentials, and nobody's but its origin's word gives it out.
    pub fn is_guarded(&self, digest: &Digest) -> bool {
        let arrived = self.0.arrived.read().unwrap_or_else(PoisonError::into_inner);
        let arriving = arrived.get(digest).map(|arrived| arrived.guarded);
        arriving.unwrap_or_else(|| self.0.index.held(digest).is_some_and(|held| held.guarded))
    }

    /// Only the origin's own answer to everybody takes the mark off a blob that has it.
    fn stays_guarded(&self, digest: &Digest, how: Provenance) -> bool {
        let held = self.0.index.held(digest).map(|held| held.guarded);
        held.map_or(how.guarded, |held| held && (how.guarded || !how.first_hand))
    }

    /// Notes a blob that is new, or new to the index.
    fn add_row(&self, record: BlobRecord) {
        let held = HeldBlob::from(&record);
        self.0.index.put_blob(record);
        self.0.order.add(held, self, self.0.clock.now());
    }

    /// Unlinks a blob and forgets it; readers that have it open finish. Blocks on the disk.
    pub fn remove(&self, digest: &Digest) -> Result<bool, StoreError> {
        let Some(store) = &self.0.store else { return Ok(false) };
        let held = self.0.index.held(digest).map_or(0, |held| held.size);
        let open = self.0.handles.forget(digest);
        let removed = store.remove(digest)?;
        self.0.space.unlinked(open, held);
        self.0.index.remove_blob(digest);
        Ok(removed || held > 0)
    }

    /// Keeps a blob from eviction; false if it is not held. Blocks on the disk.
    pub fn pin(&self, digest: &Digest) -> Result<bool, StoreError> {
        let (Some(store), Some(_)) = (&self.0.store, self.holds(digest)) else { return Ok(false) };
        store.pin(digest)?;
        self.pins_mut().insert(*digest);
        Ok(true)
    }

    /// Lets eviction have a blob again; false if it was not pinned. Blocks on the disk.
    pub fn unpin(&self, digest: &Digest) -> Result<bool, StoreError> {
        let Some(store) = &self.0.store else { return Ok(false) };
        self.pins_mut().remove(digest);
        let unpinned = store.unpin(digest)?;
        if let Some(held) = self.0.index.held(digest) {
            self.0.order.add(held, self, self.0.clock.now());
        }
        Ok(unpinned)
    }

    /// Whether a blob is pinned.
    pub fn is_pinned(&self, digest: &Digest) -> bool {
        self.0.pins.read().unwrap_or_else(PoisonError::into_inner).contains(digest)
    }

    /// All pinned blobs, in no order.
    pub fn pins(&self) -> Vec<Digest> {
        self.0.pins.read().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// The sums for the status pages.
    pub fn summary(&self) -> Summary {
        let totals = self.0.index.totals();
        let pinned = self.0.pins.read().unwrap_or_else(PoisonError::into_inner).len() as u64;
        let max_bytes = self.0.config.load().max_size.bytes();
        Summary { blobs: totals.blobs, bytes: totals.bytes, max_bytes, pinned }
    }

    /// Gives the folder up to whoever takes its lock next; what is open stays readable.
    pub fn close(&self) {
        if let Some(store) = &self.0.store {
            store.close();
        }
    }

    /// Says in health, once, what the disk refused.
    pub fn note_trouble(&self, error: &StoreError) {
        let code = if error.is_full() { "disk-full" } else { "disk" };
        let fresh = self.0.health.raise(code, format!("the cache cannot store: {error}"));
        if fresh {
            tracing::warn!(%error, "the cache cannot store; downloads go on without it");
        }
    }

    /// Whether the filesystem has room again after it had none.
    pub fn look_at_disk(&self) {
        /// So much more than the limit must be free before the trouble is over: no blinking.
        const ROOM: u64 = 16 * 1024 * 1024;
        let space = self.0.store.as_ref().and_then(|store| store.space().ok());
        let min_free = self.0.config.load().min_free;
        let roomy = space.is_some_and(|space| {
            space.free_bytes > min_free.of(space.bytes).saturating_add(ROOM) && space.lacks_files() == 0
        });
        if roomy && self.0.health.clear("disk-full") {
            tracing::info!("the disk has room again: storing goes on");
        }
    }

    /// Whether there is a folder that can be written to, or one that is read-only on purpose.
    pub fn has_disk(&self) -> bool {
        self.0.store.as_ref().is_some_and(|store| !store.is_poisoned())
    }

    fn pins_mut(&self) -> std::sync::RwLockWriteGuard<'_, HashSet<Digest>> {
        self.0.pins.write().unwrap_or_else(PoisonError::into_inner)
    }
}
