//! From a received file to a blob: one at once, or many together where many come at once.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::{Arrived, Cache, Provenance};
use crate::digest::Digest;
use crate::index::BlobRecord;
use crate::store::{Committed, Ingest, StoreError, one_file_of};

/// So many come to the disk together.
const TOGETHER: usize = 512;
/// So many files may wait for a disk that is slower than what comes before no other is begun, and no more than this
/// part of all that may be open.
const MOST_WAITING: u64 = 1024;
const PART_OF_FILES: u64 = 16;
/// So long the beginning of another waits for the disk.
const PATIENCE: Duration = Duration::from_millis(100);

/// Whole things that wait for the disk.
#[derive(Debug)]
pub(super) struct Waiting {
    queue: Mutex<Queue>,
    /// For files; what waits in memory is counted there.
    places: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: Vec<Job>,
    /// Somebody brings them to the disk.
    is_served: bool,
}

struct Job {
    ingest: Ingest,
    how: Provenance,
    /// None where more end at once than have a place: no other is begun until they are done.
    place: Option<OwnedSemaphorePermit>,
    /// Done when it is a blob, or will never be.
    done: Box<dyn FnOnce(bool) + Send>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("ingest", &self.ingest).finish_non_exhaustive()
    }
}

impl Default for Waiting {
    fn default() -> Self {
        Self::of(MOST_WAITING.min(one_file_of(PART_OF_FILES)).max(1))
    }
}

impl Waiting {
    fn of(places: u64) -> Self {
        let places = usize::try_from(places).unwrap_or(Semaphore::MAX_PERMITS);
        Self { queue: Mutex::default(), places: Arc::new(Semaphore::new(places)) }
    }

    /// Whether whoever puts this one in has to see to it that they are served.
    fn put(&self, job: Job) -> bool {
        let mut queue = self.lock();
        queue.jobs.push(job);
        !std::mem::replace(&mut queue.is_served, true)
    }

    /// The next ones; none and nobody serves any more if there are none.
    fn take(&self) -> Vec<Job> {
        let mut queue = self.lock();
        queue.is_served = !queue.jobs.is_empty();
        let most = queue.jobs.len().min(TOGETHER);
        queue.jobs.drain(..most).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever serves, until it ends.
struct Served<'a>(&'a Waiting);

impl Drop for Served<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().is_served = false;
        }
    }
}

impl Cache {
    /// A thing is whole and right and about to be committed: it can be read and shared from now on, while the
    /// disk takes its time.
    pub fn announce(&self, ingest: &Ingest, digest: Digest, how: Provenance) {
        let guarded = self.stays_guarded(&digest, how);
        let mut arrived = self.0.arrived.write().unwrap_or_else(PoisonError::into_inner);
        let (blob, memory) = (ingest.as_blob(digest), ingest.memory());
        arrived.insert(digest, Arrived { blob, guarded, memory, stamp: None });
    }

    /// Makes a received file a blob. Blocks on the disk.
    pub fn commit(&self, ingest: Ingest, how: Provenance) -> Result<Committed, StoreError> {
        self.commit_all(vec![(ingest, how)]).pop().unwrap_or(Err(StoreError::Closed))
    }

    /// Has it made a blob soon, together with others, and calls `done`, on a thread that may block. Whoever wants it
    /// meanwhile gets what was announced.
    pub fn commit_soon(&self, ingest: Ingest, how: Provenance, done: impl FnOnce(bool) + Send + 'static) {
        let places = Arc::clone(&self.0.waiting.places);
        let place = (!ingest.is_in_memory()).then(|| places.try_acquire_owned().ok()).flatten();
        if self.0.waiting.put(Job { ingest, how, place, done: Box::new(done) }) {
            let cache = self.clone();
            // joined by the runtime: blocking tasks are waited for when it shuts down, and this one always ends
            drop(tokio::task::spawn_blocking(move || cache.serve_waiting()));
        }
    }

    /// Whether the disk takes what comes; waits a moment for it where it does not. What comes meanwhile is better
    /// passed through than held open until the disk has taken all that waits.
    pub async fn disk_keeps_up(&self) -> bool {
        timeout(PATIENCE, self.0.waiting.places.acquire()).await.is_ok()
    }

    fn serve_waiting(&self) {
        // where this thread ends early, the next thing finds another one
        let _served = Served(&self.0.waiting);
        loop {
            let jobs = self.0.waiting.take();
            if jobs.is_empty() {
                return;
            }
            let (received, done): (Vec<_>, Vec<_>) =
                jobs.into_iter().map(|job| ((job.ingest, job.how), (job.done, job.place))).unzip();
            let committed = self.commit_all(received);
            for ((done, place), committed) in done.into_iter().zip(committed) {
                drop(place);
                done(committed.is_ok());
            }
        }
    }

    /// What came of each, in their order.
    fn commit_all(&self, received: Vec<(Ingest, Provenance)>) -> Vec<Result<Committed, StoreError>> {
        let mut done = Vec::with_capacity(received.len());
        let (mut new, mut places, mut again) = (Vec::new(), Vec::new(), Vec::new());
        let mut digests = HashSet::new();
        for (place, (ingest, how)) in received.into_iter().enumerate() {
            let digest = ingest.digest();
            // until its turn has come
            done.push(Err(StoreError::Closed));
            if !digests.insert(digest) {
                again.push((place, ingest, how));
            } else if let Some(known) = self.need_not_be_written(&ingest, how) {
                done.splice(place..=place, [known]);
            } else {
                new.push(ingest);
                places.push((place, how));
            }
        }
        for ((place, how), committed) in places.into_iter().zip(self.write(new)) {
            let committed = committed.inspect(|committed| self.note_blob(*committed, how));
            done.splice(place..=place, [committed]);
        }
        for (place, ingest, how) in again {
            let known = self.need_not_be_written(&ingest, how);
            let write = || {
                let committed = self.write(vec![ingest]).pop().unwrap_or(Err(StoreError::Closed));
                committed.inspect(|committed| self.note_blob(*committed, how))
            };
            done.splice(place..=place, [known.unwrap_or_else(write)]);
        }
        let mut arrived = self.0.arrived.write().unwrap_or_else(PoisonError::into_inner);
        digests.iter().for_each(|digest| drop(arrived.remove(digest)));
        done
    }

    fn write(&self, ingests: Vec<Ingest>) -> Vec<Result<Committed, StoreError>> {
        let Some(store) = self.0.store.as_ref().filter(|_| !ingests.is_empty()) else { return Vec::new() };
        let committed = store.commit(ingests, |digest, stamp| {
            let mut arrived = self.0.arrived.write().unwrap_or_else(PoisonError::into_inner);
            if let Some(arrived) = arrived.get_mut(&digest).filter(|arrived| arrived.memory.is_none()) {
                arrived.stamp = Some(stamp);
            }
        });
        committed.iter().filter_map(|done| done.as_ref().err()).for_each(|error| self.note_trouble(error));
        committed
    }

    /// What came of it where nothing has to be written: it is blocked, or a small thing that is held already, byte
    /// for byte.
    fn need_not_be_written(&self, ingest: &Ingest, how: Provenance) -> Option<Result<Committed, StoreError>> {
        let digest = ingest.digest();
        if self.0.index.block_of_blob(&digest).is_some() {
            return Some(Err(StoreError::Blocked(digest)));
        }
        let held = self.0.index.held(&digest).filter(|_| ingest.is_in_memory())?;
        let (blob, stamp) = self.0.store.as_ref()?.blob(&digest).ok()??;
        if !held.is_file(stamp.inode, stamp.ctime_ns, stamp.size) || !ingest.is_same_as(&blob) {
            return None;
        }
        let record = self.0.index.blob(&digest)?;
        let (first_hand, guarded) = (record.first_hand || how.first_hand, self.stays_guarded(&digest, how));
        if (first_hand, guarded) != (record.first_hand, record.guarded) {
            self.0.index.put_blob(BlobRecord { first_hand, guarded, ..(*record).clone() });
        }
        self.0.index.used(&digest, self.0.clock.now());
        Some(Ok(Committed { digest, stamp }))
    }

    fn note_blob(&self, committed: Committed, how: Provenance) {
        let now = self.0.clock.now();
        let held = self.0.index.blob(&committed.digest);
        self.add_row(BlobRecord {
            inode: committed.stamp.inode,
            ctime_ns: committed.stamp.ctime_ns,
            hits: held.as_ref().map_or(0, |held| held.hits),
            first_hand: how.first_hand || held.as_ref().is_some_and(|held| held.first_hand),
            guarded: self.stays_guarded(&committed.digest, how),
            ..BlobRecord::new(committed.digest, committed.stamp.size, now)
        });
        for over in ["disk-full", "disk"] {
            self.0.health.clear(over);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::cache::{Config, MinFree};
    use crate::clock::{ManualClock, SharedClock, Timestamp};
    use crate::index::Index;
    use crate::telemetry::Health;
    use crate::unit::ByteSize;

    fn cache(folder: &std::path::Path) -> Cache {
        let clock: SharedClock = ManualClock::new(Timestamp::from_seconds(1_800_000_000));
        let health = Health::new();
        let (index, _) = Index::open(&folder.join("state"), Arc::clone(&clock), health.clone()).unwrap();
        let min_free = MinFree::Size(ByteSize(0));
        let config = Config { dir: folder.join("cache"), min_free, ..Config::default() };
        Cache::open(config, index, clock, health).unwrap()
    }

    fn received(cache: &Cache, bytes: &[u8]) -> Ingest {
        let (mut ingest, _room) = cache.begin_now(Some(bytes.len() as u64)).unwrap();
        ingest.append(bytes).unwrap();
        ingest
    }

    #[tokio::test]
    async fn what_arrives_is_held_at_once_and_a_blob_soon() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        let (tell, done) = mpsc::channel();
        let contents: Vec<Vec<u8>> = (0..20_u8).map(|number| vec![number / 2; 100]).collect();
        for bytes in &contents {
            let ingest = received(&cache, bytes);
            let digest = ingest.digest();
            cache.announce(&ingest, digest, Provenance::default());
            assert_eq!(cache.holds(&digest), Some(100));
            let tell = tell.clone();
            cache.commit_soon(ingest, Provenance::default(), move |is_blob| tell.send(is_blob).unwrap());
        }
        drop(tell);
        let done = tokio::task::spawn_blocking(move || done.iter().collect::<Vec<bool>>()).await.unwrap();
        assert_eq!(done, [true; 20]);
        assert_eq!(cache.summary().blobs, 10);
        for bytes in &contents {
            let blob = cache.open_proven(&Digest::of(bytes)).await.unwrap();
            assert_eq!(blob.read(0, 1000).await.unwrap(), *bytes);
        }
    }

    #[tokio::test]
    async fn o02_no_more_files_wait_for_a_slow_disk_than_may_be_open() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        let most = cache.0.waiting.places.available_permits();
        let taken = cache.0.waiting.places.acquire_many(u32::try_from(most).unwrap()).await.unwrap();
        assert!(!cache.disk_keeps_up().await, "all places are taken");
        let (tell, done) = tokio::sync::oneshot::channel();
        let (mut ingest, _room) = cache.begin(None).unwrap();
        ingest.append(b"abc").unwrap();
        cache.commit_soon(ingest, Provenance::default(), move |is_blob| tell.send(is_blob).unwrap());
        assert!(done.await.unwrap(), "what was begun before ends all the same");
        drop(taken);
        assert!(cache.disk_keeps_up().await);
        assert_eq!(cache.0.waiting.places.available_permits(), most);
    }

    #[tokio::test]
    async fn what_is_held_byte_for_byte_is_not_written_again_and_what_was_damaged_is() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        let first = cache.commit(received(&cache, b"abc"), Provenance::default()).unwrap();
        let first_hand = Provenance { first_hand: true, guarded: false };
        let again = cache.commit(received(&cache, b"abc"), first_hand).unwrap();
        assert_eq!(again.stamp, first.stamp, "the same file");
        assert!(cache.index().blob(&first.digest).unwrap().first_hand, "but more is known of it");
        let file = crate::store::blob_path(&folder.path().join("cache"), &first.digest);
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, "abd").unwrap();
        let mended = cache.commit(received(&cache, b"abc"), Provenance::default()).unwrap();
        assert_ne!(mended.stamp, first.stamp);
        assert_eq!(std::fs::read(&file).unwrap(), b"abc");
    }
}
