//! A staging file on its way to become a blob: written once, hashed while written.

use std::fmt;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::layout::make_folder;
use super::pieces::PieceHasher;
use super::recovery::{self, PartialRecord};
use super::{Blob, PieceHash, Stamp, Store, StoreError};
use crate::digest::{Algorithm, Digest, Found, Hasher, hex};

/// A file being received. Dropped without [`Ingest::commit`] or [`Ingest::keep`], it leaves nothing.
pub struct Ingest {
    store: Store,
    id: String,
    file: Arc<File>,
    hasher: Hasher,
    pieces: Box<PieceHasher>,
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
        let mut random = [0; 12];
        getrandom::fill(&mut random)
            .map_err(|e| StoreError::io("name a file in", store.folder())(e.into()))?;
        let id = hex(&random);
        let path = store.0.layout.part(&id);
        let open = || OpenOptions::new().create_new(true).read(true).write(true).mode(0o600).open(&path);
        let file = open().or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                return Err(error);
            }
            // somebody removed the folders under us: make them again, once
            store.0.layout.make_folders().map_err(io::Error::other)?;
            open()
        });
        let file = Arc::new(file.map_err(StoreError::io("create", &path))?);
        Ok(Self {
            store: store.clone(),
            id,
            file,
            hasher: Hasher::new(),
            pieces: Box::default(),
            armed: true,
        })
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
        Ok(Some(Self { store: store.clone(), id, file: Arc::new(file), hasher, pieces, armed: true }))
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
        self.store.0.staged.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Goes back to what it was when it had this many bytes; they are read and hashed again.
    pub fn rewind(&mut self, offset: u64) -> Result<(), StoreError> {
        let path = self.store.0.layout.part(&self.id);
        let (hasher, pieces) = hash_prefix(&self.file, offset, Hasher::beside(self.hasher.algorithm()))
            .map_err(StoreError::io("read", &path))?;
        self.file.set_len(hasher.length()).map_err(StoreError::io("truncate", &path))?;
        recovery::drop_record(&self.store.0.layout, &self.id);
        let gone = self.length().saturating_sub(hasher.length());
        self.store.0.staged.fetch_sub(gone, Ordering::Relaxed);
        (self.hasher, self.pieces) = (hasher, pieces);
        Ok(())
    }

    /// Records how far it has come, so that another run can go on from here.
    pub fn checkpoint(&self, key: &str, note: &str) -> Result<(), StoreError> {
        let record = PartialRecord {
            id: self.id.clone(),
            key: key.to_owned(),
            offset: self.length(),
            prefix: self.digest(),
            note: note.to_owned(),
        };
        recovery::write_record(&self.store.0.layout, &record)
    }

    /// Leaves the file for a later run and says what it is; the last checkpoint counts.
    pub fn keep(mut self, key: &str, note: &str) -> Result<PartialRecord, StoreError> {
        self.checkpoint(key, note)?;
        self.armed = false;
        self.store.0.staged.fetch_sub(self.length(), Ordering::Relaxed);
        Ok(PartialRecord {
            id: self.id.clone(),
            key: key.to_owned(),
            offset: self.length(),
            prefix: self.digest(),
            note: note.to_owned(),
        })
    }

    /// Makes it a blob: sync, rename, sync the folder. The caller has judged the digest, and is told what the file is
    /// like as soon as it has its name.
    pub fn commit(mut self, named: impl FnOnce(Stamp)) -> Result<Committed, StoreError> {
        self.store.owned()?;
        let digest = self.digest();
        let layout = &self.store.0.layout;
        let (from, to) = (layout.part(&self.id), layout.blob(&digest));
        self.file.set_permissions(Permissions::from_mode(0o444)).map_err(StoreError::io("chmod", &from))?;
        self.sync(&self.file, &from)?;
        let shelf = to.parent().unwrap_or(layout.root()).to_owned();
        make_folder(&shelf)?;
        // from the rename on others can reach the file: what they do to it before it is stamped must not be stamped
        let proved = self.file.metadata().map_err(StoreError::io("stat", &from))?;
        fs::rename(&from, &to).map_err(StoreError::io("rename", &from))?;
        // at once, not after the folder's sync, which may take a while
        let stamp = Stamp::of_same(&self.file, &proved).map_err(StoreError::io("stat", &to))?;
        named(stamp);
        recovery::drop_record(layout, &self.id);
        self.armed = false;
        self.store.0.staged.fetch_sub(self.length(), Ordering::Relaxed);
        let folder = File::open(&shelf).map_err(StoreError::io("open", &shelf))?;
        self.sync(&folder, &shelf)?;
        Ok(Committed { digest, stamp })
    }

    /// No space is told as such and harms nothing but this file, which is given up; after any other failure nobody
    /// knows what is on the disk.
    fn sync(&self, file: &File, path: &std::path::Path) -> Result<(), StoreError> {
        file.sync_all().map_err(StoreError::io("sync", path)).inspect_err(|error| {
            if !error.is_full() {
                self.store.poison();
            }
        })
    }
}

impl Drop for Ingest {
    fn drop(&mut self) {
        if self.armed {
            recovery::forget(&self.store.0.layout, &self.id);
            self.store.0.staged.fetch_sub(self.length(), Ordering::Relaxed);
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
