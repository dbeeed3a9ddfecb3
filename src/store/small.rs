//! Small things on their way: they lie in memory until they are whole, and come to the disk many at a time.
//!
//! To make a file, bring it to the disk and give it its name costs a hundred times what it costs to receive a few
//! kilobytes. So a small thing is received into a file in memory, is given out of it, and is put into the folder with
//! others when it is whole. How much lies in memory is bounded; what finds no room goes to the disk as any other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, getrlimit};

use super::{Ingest, Store, StoreError};

/// What is larger goes to the disk at once.
pub const SMALL: u64 = 64 * 1024;
/// So much may lie in memory.
const MOST_BYTES: u64 = 32 << 20;
/// So many things, and no more than this part of all files that may be open: each is open twice while it goes to the
/// disk and is still read from memory.
const MOST_THINGS: u64 = 2048;
const PART_OF_FILES: u64 = 16;

/// How much lies in memory.
#[derive(Debug, Default)]
pub(super) struct Room {
    bytes: AtomicU64,
    things: AtomicU64,
}

/// Room for one thing, until it is dropped.
#[derive(Debug)]
pub struct InMemory {
    room: Arc<Room>,
    bytes: u64,
}

/// One file of so many that this process may have open.
pub fn one_file_of(part: u64) -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / part
}

impl Room {
    fn give(self: &Arc<Self>, bytes: u64) -> Option<InMemory> {
        // counted first, so that two who come at once do not both have the last place
        let given = InMemory { room: Arc::clone(self), bytes };
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let things = self.things.fetch_add(1, Ordering::Relaxed);
        let most = MOST_THINGS.min(one_file_of(PART_OF_FILES));
        (before + bytes <= MOST_BYTES && things < most).then_some(given)
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        self.room.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.room.things.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Store {
    /// Starts to receive a thing of this size in memory; none where it is too large for it or there is no room.
    /// Waits for no disk.
    pub fn begin_small(&self, size: u64) -> Result<Option<Ingest>, StoreError> {
        self.owned()?;
        let room = (size <= SMALL).then(|| self.0.small.give(size)).flatten();
        room.map(|room| Ingest::create_small(self, room)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::digest::Digest;
    use crate::store::{Hold, Writer};

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        (folder, store)
    }

    fn staged(store: &Store) -> usize {
        std::fs::read_dir(store.folder().join("staging")).unwrap().count()
    }

    #[tokio::test]
    async fn a_small_thing_touches_no_disk_before_it_is_whole_and_is_then_a_blob_as_any() {
        let (_folder, store) = store();
        let mut writer = Writer::new(store.begin_small(6).unwrap().unwrap(), Some(6), Hold::Nothing);
        let mut reader = writer.growing().follow(0, None);
        writer.write(Bytes::from_static(b"abc")).await.unwrap();
        assert_eq!(reader.next().await.unwrap(), Some((0, Bytes::from_static(b"abc"))), "at once");
        writer.write(Bytes::from_static(b"def")).await.unwrap();
        assert_eq!((staged(&store), store.staged()), (0, 0));
        let digest = writer.found().await.unwrap().unwrap().digest;
        let ingest = writer.complete(digest).unwrap();
        let announced = ingest.as_blob(digest);
        assert!(!announced.is_read_only());
        let committed = ingest.commit(|_| {}).unwrap();
        assert_eq!(reader.next().await.unwrap(), Some((3, Bytes::from_static(b"def"))));
        assert_eq!(announced.read(0, 9).await.unwrap(), Bytes::from_static(b"abcdef"));
        let (blob, stamp) = store.blob(&Digest::of(b"abcdef")).unwrap().unwrap();
        assert_eq!((committed.digest, committed.stamp), (blob.digest(), stamp));
        assert!(blob.is_read_only() && blob.file().metadata().unwrap().permissions().readonly());
        assert_eq!((staged(&store), store.staged()), (0, 0));
    }

    #[test]
    fn many_come_to_the_disk_together_and_one_that_cannot_harms_no_other() {
        let (folder, store) = store();
        let begin = |bytes: &[u8]| {
            let mut ingest = store.begin_small(bytes.len() as u64).unwrap().unwrap();
            ingest.append(bytes).unwrap();
            ingest
        };
        let contents: Vec<Vec<u8>> = (0..50_u8).map(|number| vec![number; 1000]).collect();
        let mut ingests: Vec<_> = contents.iter().map(|bytes| begin(bytes)).collect();
        // twice the same, and one whose place is taken by something else
        ingests.push(begin(&[7; 1000]));
        let blocked = folder.path().join("blobs/sha256").join(Digest::of(b"x").hex().get(..2).unwrap());
        std::fs::write(blocked, "no folder").unwrap();
        ingests.insert(3, begin(b"x"));
        let mut done = store.commit(ingests, |_, _| {});
        assert!(done.remove(3).is_err() && !store.is_poisoned());
        for (bytes, committed) in contents.iter().chain([&vec![7; 1000]]).zip(done) {
            assert_eq!(committed.unwrap().digest, Digest::of(bytes));
            let (blob, _) = store.blob(&Digest::of(bytes)).unwrap().unwrap();
            let mut found = Vec::new();
            std::io::Read::read_to_end(&mut blob.reader(), &mut found).unwrap();
            assert_eq!(found, *bytes);
        }
        assert_eq!((staged(&store), store.staged()), (0, 0));
    }

    #[test]
    fn what_is_left_of_a_small_thing_can_be_kept() {
        let (_folder, store) = store();
        let mut ingest = store.begin_small(6).unwrap().unwrap();
        ingest.append(b"abc").unwrap();
        let record = ingest.keep("key", "note").unwrap();
        assert_eq!(store.recover().unwrap().as_slice(), std::slice::from_ref(&record));
        let mut resumed = store.resume(&record, None).unwrap().unwrap();
        assert_eq!(store.staged(), 3);
        resumed.append(b"def").unwrap();
        assert_eq!(resumed.commit(|_| {}).unwrap().digest, Digest::of(b"abcdef"));
        assert_eq!((staged(&store), store.staged()), (0, 0));
    }

    #[test]
    fn no_more_than_so_much_lies_in_memory() {
        let (_folder, store) = store();
        assert!(store.begin_small(SMALL + 1).unwrap().is_none());
        let most = usize::try_from(MOST_BYTES / SMALL).unwrap();
        let mut held: Vec<_> =
            std::iter::from_fn(|| store.begin_small(SMALL).unwrap()).take(most + 1).collect();
        assert!(!held.is_empty() && held.len() <= most);
        held.pop();
        assert!(store.begin_small(SMALL).unwrap().is_some(), "what is done makes room");
    }
}
