//! A staging file on its way to become a blob: written once, hashed while written.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::group;
use super::pieces::PieceHasher;
use super::recovery::{self, PartialRecord};
use super::small::InMemory;
use super::{Blob, PieceHash, Stamp, Store, StoreError};
use crate::digest::{Algorithm, Digest, Found, Hasher, hex};

/// A file being received. Dropped without [`Ingest::commit`] or [`Ingest::keep`], it leaves nothing.
pub struct Ingest {
    store: Store,
    id: String,
    file: Arc<File>,
    hasher: Hasher,
    pieces: Box<PieceHasher>,
    /// The file is one in memory: nothing of it is in the folder yet.
    in_memory: bool,
    /// Room for it, until it is nowhere in memory any more.
    room: Option<Arc<InMemory>>,
    /// There may be a record of how far it had come.
    recorded: AtomicBool,
    /// What the drop must undo.
    armed: bool,
}

/// A blob that now exists.
#[derive(Debug, Clone, Copy)]
pub struct Committed {
    /// Its name.
    pub digest: Digest,
    /// Its file as it was when it was committed.
    pub stamp: Stamp,
}

impl Ingest {
    pub(super) fn create(store: &Store) -> Result<Self, StoreError> {
        let id = new_id(store)?;
        let file = create_part(store, &id)?;
        Ok(Self::of(store, id, file, None))
    }

    /// In memory, with room that was given for it.
    pub(super) fn create_small(store: &Store, room: InMemory) -> Result<Self, StoreError> {
        let file = rustix::fs::memfd_create("larder", rustix::fs::MemfdFlags::CLOEXEC)
            .map_err(|error| StoreError::io("stage in memory for", store.folder())(error.into()))?;
        Ok(Self::of(store, new_id(store)?, file.into(), Some(Arc::new(room))))
    }

    fn of(store: &Store, id: String, file: File, room: Option<Arc<InMemory>>) -> Self {
        Self {
            store: store.clone(),
            id,
            file: Arc::new(file),
            hasher: Hasher::new(),
            pieces: Box::default(),
            in_memory: room.is_some(),
            room,
            recorded: AtomicBool::new(false),
            armed: true,
        }
    }

    pub(super) fn resume(
        store: &Store,
        record: &PartialRecord,
        beside: Option<Algorithm>,
    ) -> Result<Option<Self>, StoreError> {
        let path = store.0.layout.part(&record.id);
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io("open", &path)(error)),
        };
        let hasher = Hasher::beside(beside);
        let (hasher, pieces) =
            hash_prefix(&file, record.offset, hasher).map_err(StoreError::io("read", &path))?;
        if hasher.length() != record.offset || hasher.so_far() != record.prefix {
            recovery::forget(&store.0.layout, &record.id);
            return Ok(None);
        }
        file.set_len(record.offset).map_err(StoreError::io("truncate", &path))?;
        store.0.staged.fetch_add(record.offset, Ordering::Relaxed);
        let id = record.id.clone();
        let mut resumed = Self::of(store, id, file, None);
        (resumed.hasher, resumed.pieces, resumed.recorded) = (hasher, pieces, AtomicBool::new(true));
        Ok(Some(resumed))
    }

    /// Whether it lies in memory, so that adding to it waits for no disk.
    pub fn is_in_memory(&self) -> bool {
        self.in_memory
    }

    /// What it takes in memory. Held by whoever reads it from there when it has gone to the folder.
    pub fn memory(&self) -> Option<Arc<InMemory>> {
        self.room.clone().filter(|_| self.in_memory)
    }

    /// How many bytes it has.
    pub fn length(&self) -> u64 {
        self.hasher.length()
    }

    /// The digest of what it has.
    pub fn digest(&self) -> Digest {
        self.hasher.so_far()
    }

    /// All that was reckoned of what it has.
    pub(super) fn found(&self) -> Found {
        self.hasher.found()
    }

    /// From the first byte on another algorithm is reckoned beside SHA-256; later it is too late for it.
    pub fn reckon(&mut self, beside: Option<Algorithm>) {
        if self.length() == 0 {
            self.hasher = Hasher::beside(beside);
        }
    }

    /// The hashes of its whole pieces from this one on.
    pub(super) fn pieces(&self, from: usize) -> &[PieceHash] {
        self.pieces.done().get(from..).unwrap_or_default()
    }

    /// The hash of what follows on its last whole piece.
    pub(super) fn last_piece(&self) -> Option<PieceHash> {
        self.pieces.rest()
    }

    /// What it has as a blob of this name, readable before it has the name.
    pub fn as_blob(&self, digest: Digest) -> Blob {
        self.store.blob_in(digest, self.length(), Arc::clone(&self.file))
    }

    /// The hashes of what it has, of the whole and of its pieces, to go on with elsewhere.
    pub(super) fn hashers(&self) -> (Hasher, Box<PieceHasher>) {
        (self.hasher.clone(), self.pieces.clone())
    }

    /// The file, for those who read while it grows.
    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// Adds bytes at the end. After an error the file holds what it held before.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.store.writable()?;
        self.file.write_all_at(bytes, self.length()).map_err(|error| {
            let path = self.store.0.layout.part(&self.id);
            StoreError::io("write", &path)(error)
        })?;
        self.hasher.update(bytes);
        self.pieces.update(bytes);
        self.count_staged(bytes.len() as u64);
        Ok(())
    }

    fn count_staged(&self, bytes: u64) {
        if !self.is_in_memory() {
            self.store.0.staged.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn uncount_staged(&self, bytes: u64) {
        if !self.is_in_memory() {
            self.store.0.staged.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Puts what lay in memory into the folder. Whoever reads it reads on from memory.
    pub(super) fn put_on_disk(&mut self) -> Result<(), StoreError> {
        if !self.is_in_memory() {
            return Ok(());
        }
        let path = self.store.0.layout.part(&self.id);
        let mut bytes = vec![0; usize::try_from(self.length()).unwrap_or(0)];
        self.file.read_exact_at(&mut bytes, 0).map_err(StoreError::io("read", &path))?;
        let file = create_part(&self.store, &self.id)?;
        (self.file, self.in_memory) = (Arc::new(file), false);
        self.count_staged(self.length());
        self.file.write_all_at(&bytes, 0).map_err(StoreError::io("write", &path))
    }

    /// Goes back to what it was when it had this many bytes; they are read and hashed again.
    pub fn rewind(&mut self, offset: u64) -> Result<(), StoreError> {
        let path = self.store.0.layout.part(&self.id);
        let (hasher, pieces) = hash_prefix(&self.file, offset, Hasher::beside(self.hasher.algorithm()))
            .map_err(StoreError::io("read", &path))?;
        self.file.set_len(hasher.length()).map_err(StoreError::io("truncate", &path))?;
        self.drop_record();
        let gone = self.length().saturating_sub(hasher.length());
        self.uncount_staged(gone);
        (self.hasher, self.pieces) = (hasher, pieces);
        Ok(())
    }

    /// Records how far it has come, so that another run can go on from here. What lies in memory is not worth it.
    pub fn checkpoint(&self, key: &str, note: &str) -> Result<(), StoreError> {
        if self.is_in_memory() {
            return Ok(());
        }
        self.recorded.store(true, Ordering::Relaxed);
        recovery::write_record(&self.store.0.layout, &self.record(key, note))
    }

    fn record(&self, key: &str, note: &str) -> PartialRecord {
        PartialRecord {
            id: self.id.clone(),
            key: key.to_owned(),
            offset: self.length(),
            prefix: self.digest(),
            note: note.to_owned(),
        }
    }

    pub(super) fn drop_record(&self) {
        if self.recorded.swap(false, Ordering::Relaxed) {
            recovery::drop_record(&self.store.0.layout, &self.id);
        }
    }

    /// Leaves the file for a later run and says what it is; the last checkpoint counts.
    pub fn keep(mut self, key: &str, note: &str) -> Result<PartialRecord, StoreError> {
        self.put_on_disk()?;
        self.checkpoint(key, note)?;
        self.armed = false;
        self.uncount_staged(self.length());
        Ok(self.record(key, note))
    }

    /// It is a blob by now: nothing is left to clear away.
    pub(super) fn became_blob(&mut self) {
        self.drop_record();
        self.armed = false;
        self.uncount_staged(self.length());
    }

    /// Its name in staging.
    pub(super) fn path(&self) -> PathBuf {
        self.store.0.layout.part(&self.id)
    }

    /// Whether a blob has the same bytes, for what lies in memory.
    pub fn is_same_as(&self, blob: &Blob) -> bool {
        let length = usize::try_from(self.length()).unwrap_or(usize::MAX);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        if !self.is_in_memory() || blob.size() != self.length() {
            return false;
        }
        ours.resize(length, 0);
        theirs.resize(length, 0);
        self.file.read_exact_at(&mut ours, 0).is_ok()
            && blob.file().read_exact_at(&mut theirs, 0).is_ok()
            && ours == theirs
    }

    /// Makes it a blob. The caller has judged the digest, and is told what the file is like as soon as it has its name.
    pub fn commit(self, mut named: impl FnMut(Stamp)) -> Result<Committed, StoreError> {
        let store = self.store.clone();
        group::commit(&store, vec![self], |_, stamp| named(stamp)).pop().unwrap_or(Err(StoreError::Closed))
    }
}

fn new_id(store: &Store) -> Result<String, StoreError> {
    let mut random = [0; 12];
    getrandom::fill(&mut random).map_err(|e| StoreError::io("name a file in", store.folder())(e.into()))?;
    Ok(hex(&random))
}

fn create_part(store: &Store, id: &str) -> Result<File, StoreError> {
    let path = store.0.layout.part(id);
    let open = || OpenOptions::new().create_new(true).read(true).write(true).mode(0o600).open(&path);
    let file = open().or_else(|error| {
        if error.kind() != io::ErrorKind::NotFound {
            return Err(error);
        }
        // somebody removed the folders under us: make them again, once
        store.0.layout.make_folders().map_err(io::Error::other)?;
        open()
    });
    file.map_err(StoreError::io("create", &path))
}

impl Drop for Ingest {
    fn drop(&mut self) {
        if self.armed && !self.is_in_memory() {
            recovery::forget(&self.store.0.layout, &self.id);
            self.uncount_staged(self.length());
        }
    }
}

impl fmt::Debug for Ingest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ingest({}, {} bytes)", self.id, self.length())
    }
}

/// Hashes the first `length` bytes, or what there is of them.
fn hash_prefix(file: &File, length: u64, mut hasher: Hasher) -> io::Result<(Hasher, Box<PieceHasher>)> {
    let mut pieces = Box::<PieceHasher>::default();
    let mut piece = vec![0; super::buffer::PIECE];
    loop {
        let left = usize::try_from(length.saturating_sub(hasher.length())).unwrap_or(usize::MAX);
        let most = left.min(piece.len());
        let read = file.read_at(piece.get_mut(..most).unwrap_or_default(), hasher.length())?;
        match piece.get(..read) {
            Some(bytes) if read > 0 => {
                hasher.update(bytes);
                pieces.update(bytes);
            }
            _ => return Ok((hasher, pieces)),
        }
    }
}
