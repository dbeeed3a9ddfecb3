//! Bytes by digest, on one filesystem: staging files that grow, blobs that never change.
//!
//! Promises: a name under `blobs/` appears only by renaming a whole, synced file whose SHA-256 is that name;
//! what is not committed leaves nothing behind but a resumable partial; two daemons never share a folder;
//! after a failed fsync nothing more is written until the store is opened anew (the kernel may have dropped
//! the dirty pages, so a later success would prove nothing; want of space is another matter, for then the file
//! is given up and everybody hears of it).
//!
//! Why a power cut at any moment is harmless: the bytes are synced before the name appears, the names of the
//! folders on the way before anything is put into them, and the folder before a commit returns; so a visible name
//! has its bytes, and a committed blob its name. The format line and a partial's record appear whole by renaming. A
//! record may be lost or be older than its bytes: its prefix is hashed before it is believed. What is unlinked and
//! not synced may come back, whole, as a blob that nobody has a row for.
//! Fails with [`StoreError`], whose sentence names the file. Knows nothing of URLs, of the index or of where
//! bytes come from: a partial's note is opaque text to it.
//!
//! All functions here block on the disk and belong on a blocking thread, but for [`Store::begin_small`] and adding to
//! what it gives, and for reading through [`Blob`] and [`Follower`], which never block the runtime.
#![doc = include_str!("store/FORMAT.md")]

mod blob;
mod buffer;
mod group;
mod growing;
mod ingest;
mod layout;
mod lock;
mod pieces;
mod quarantine;
mod recovery;
mod slice;
mod small;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::digest::{Algorithm, Digest};

pub use blob::{Blob, Reader};
pub use growing::{End, Failure, Follower, Growing, Hold, Progress, WriteError, WriteNote, Writer};
pub use ingest::{Committed, Ingest};
pub use pieces::{PIECE_SIZE, PieceHash, PieceHasher};
pub use recovery::PartialRecord;
pub use small::{InMemory, SMALL, one_file_of};

use blob::Doubts;
use buffer::BufferPool;
use layout::Layout;
use lock::Lock;

/// The blobs and staging files of one folder; a cheap clone.
#[derive(Debug, Clone)]
pub struct Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    layout: Layout,
    lock: Mutex<Option<Lock>>,
    closed: AtomicBool,
    poisoned: AtomicBool,
    staged: AtomicU64,
    pool: BufferPool,
    doubts: Doubts,
    small: Arc<small::Room>,
}

/// What identifies a file's content without reading it: equal now and then means untouched since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Inode number.
    pub inode: u64,
    /// Length in bytes.
    pub size: u64,
    /// Time of the last change to content or inode, nanoseconds since 1970.
    pub ctime_ns: i128,
}

/// What a filesystem has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Space {
    /// All bytes.
    pub bytes: u64,
    /// Of these, free.
    pub free_bytes: u64,
    /// All files it can hold; 0 where it knows no such limit.
    pub files: u64,
    /// Of these, free.
    pub free_files: u64,
}

/// What went wrong on the disk.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process holds the folder.
    #[error("the folder {} is in use by another larder (process {holder})", folder.display())]
    Locked {
        /// The folder.
        folder: PathBuf,
        /// The process id written in the lock file.
        holder: String,
    },
    /// The folder was written by a version we do not know.
    #[error("{} says `{found}`; this version reads `{expected}`", file.display())]
    Format {
        /// The version file.
        file: PathBuf,
        /// What it says.
        found: String,
        /// What we would understand.
        expected: &'static str,
    },
    /// A failed fsync stopped all writing.
    #[error("writing stopped after a failed fsync; restart larder once the disk is sound")]
    Poisoned,
    /// The store was closed: another daemon may own the folder now.
    #[error("the store is closed")]
    Closed,
    /// It is blocked here.
    #[error("{0} is blocked here")]
    Blocked(Digest),
    /// The operating system refused.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

/// Where a blob lies below the folder of a store: for who reads it there without the daemon.
pub fn blob_path(folder: &Path, digest: &Digest) -> PathBuf {
    Layout::of(folder).blob(digest)
}

impl StoreError {
    fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }

    /// Whether the filesystem has no space or no inodes left, or the quota is used up.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Io { source, .. }
            if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }
}

impl Space {
    /// How many files fewer than it should the filesystem can still hold: 64 stay free, of a small one a sixteenth.
    pub fn lacks_files(self) -> u64 {
        (self.files / 16).min(64).saturating_sub(self.free_files)
    }
}

impl Stamp {
    /// Of an open file.
    pub fn of(file: &File) -> io::Result<Self> {
        Ok(Self::from_metadata(&file.metadata()?))
    }

    /// Of an open file that still has a name.
    pub fn of_linked(file: &File) -> Option<Self> {
        let meta = file.metadata().ok()?;
        (meta.nlink() > 0).then(|| Self::from_metadata(&meta))
    }

    /// Of an open file whose bytes were proved when it was like this; nobody's, so that it is hashed before it is
    /// given out, if they changed since.
    fn of_same(file: &File, proved: &fs::Metadata) -> io::Result<Self> {
        let meta = file.metadata()?;
        let written = |meta: &fs::Metadata| (meta.len(), meta.mtime(), meta.mtime_nsec());
        let is_same = written(&meta) == written(proved);
        Ok(if is_same { Self::from_metadata(&meta) } else { Self { size: proved.len(), ..Self::default() } })
    }

    fn from_metadata(meta: &fs::Metadata) -> Self {
        let ctime_ns = i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec());
        Self { inode: meta.ino(), size: meta.len(), ctime_ns }
    }
}

impl Store {
    /// Opens or creates the folder, takes its lock and checks its format.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let layout = Layout::create(folder)?;
        let lock = Lock::take(&layout)?;
        layout.check_format()?;
        Ok(Self(Arc::new(Inner {
            layout,
            lock: Mutex::new(Some(lock)),
            closed: AtomicBool::new(false),
            poisoned: AtomicBool::new(false),
            staged: AtomicU64::new(0),
            pool: BufferPool::default(),
            doubts: Doubts::default(),
            small: Arc::default(),
        })))
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.0.layout.root()
    }

    /// Starts a new staging file.
    pub fn begin(&self) -> Result<Ingest, StoreError> {
        self.owned()?;
        Ingest::create(self)
    }

    /// Makes all of them blobs: what came of each, in their order. The caller has judged their digests, and is told
    /// what each file is like as soon as it has its name.
    pub fn commit(
        &self,
        ingests: Vec<Ingest>,
        named: impl FnMut(Digest, Stamp),
    ) -> Vec<Result<Committed, StoreError>> {
        group::commit(self, ingests, named)
    }

    /// Takes up a partial left by an earlier run, after checking that its prefix is what was recorded; none
    /// (and the partial is gone) if it is not. Another
    /// algorithm can be reckoned beside SHA-256.
    pub fn resume(
        &self,
        record: &PartialRecord,
        beside: Option<Algorithm>,
    ) -> Result<Option<Ingest>, StoreError> {
        self.owned()?;
        Ingest::resume(self, record, beside)
    }

    /// Partials left by an earlier run; whatever else lies in staging is cleared.
    pub fn recover(&self) -> Result<Vec<PartialRecord>, StoreError> {
        recovery::recover(&self.0.layout)
    }

    /// Drops a partial that will not be resumed.
    pub fn forget(&self, record: &PartialRecord) {
        if self.owned().is_err() {
            return;
        }
        recovery::forget(&self.0.layout, &record.id);
    }

    /// Opens a blob; none if there is no such file. Its content is not looked at.
    pub fn blob(&self, digest: &Digest) -> Result<Option<(Blob, Stamp)>, StoreError> {
        let path = self.0.layout.blob(digest);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io("open", &path)(error)),
        };
        let stamp = Stamp::of(&file).map_err(StoreError::io("stat", &path))?;
        Ok(Some((self.blob_in(*digest, stamp.size, Arc::new(file)), stamp)))
    }

    fn blob_in(&self, digest: Digest, size: u64, file: Arc<File>) -> Blob {
        Blob::new(digest, size, file, self.0.pool.clone(), self.0.doubts.clone())
    }

    /// Blobs that could not be read since this was asked last.
    pub fn doubted(&self) -> Vec<Digest> {
        self.0.doubts.take()
    }

    /// Takes a blob whose bytes are wrong out of the way: it is kept among the latest such, up to `most` bytes
    /// together, for whoever wants to know what became of it. False if there is none.
    pub fn quarantine(&self, digest: &Digest, most: u64) -> Result<bool, StoreError> {
        self.owned()?;
        quarantine::put(&self.0.layout, digest, most)
    }

    /// Unlinks a blob; readers that have it open finish. False if there was none.
    pub fn remove(&self, digest: &Digest) -> Result<bool, StoreError> {
        self.owned()?;
        let path = self.0.layout.blob(digest);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StoreError::io("remove", &path)(error)),
        }
    }

    /// Calls `each` for every blob on the disk, in no order, until it returns false.
    pub fn scan(&self, each: impl FnMut(Digest, Stamp) -> bool) -> Result<(), StoreError> {
        self.0.layout.scan(each)
    }

    /// Sets the mark that keeps a blob from eviction.
    pub fn pin(&self, digest: &Digest) -> Result<(), StoreError> {
        let path = self.0.layout.pin(digest);
        File::create(&path).map_err(StoreError::io("create", &path))?;
        path.parent().map_or(Ok(()), layout::sync_folder)
    }

    /// Takes the mark away; false if there was none.
    pub fn unpin(&self, digest: &Digest) -> Result<bool, StoreError> {
        let path = self.0.layout.pin(digest);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StoreError::io("remove", &path)(error)),
        }
    }

    /// All marks.
    pub fn pins(&self) -> Result<Vec<Digest>, StoreError> {
        self.0.layout.pins()
    }

    /// Bytes in staging files now.
    pub fn staged(&self) -> u64 {
        self.0.staged.load(Ordering::Relaxed)
    }

    /// What the filesystem has and what of it is free, as an ordinary user sees it.
    pub fn space(&self) -> Result<Space, StoreError> {
        let root = self.0.layout.root();
        let stat =
            rustix::fs::statvfs(root).map_err(|e| StoreError::io("stat filesystem of", root)(e.into()))?;
        Ok(Space {
            bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
            free_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
            files: stat.f_files,
            free_files: stat.f_favail,
        })
    }

    /// Whether a failed fsync stopped all writing.
    pub fn is_poisoned(&self) -> bool {
        self.0.poisoned.load(Ordering::SeqCst)
    }

    /// Gives the folder up to whoever takes its lock next. Nothing is begun, committed or removed here any
    /// more; open files stay readable.
    pub fn close(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
        self.0.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn poison(&self) {
        self.0.poisoned.store(true, Ordering::SeqCst);
    }

    fn writable(&self) -> Result<(), StoreError> {
        if self.is_poisoned() { Err(StoreError::Poisoned) } else { Ok(()) }
    }

    /// Whether names may still appear and go.
    fn owned(&self) -> Result<(), StoreError> {
        if self.0.closed.load(Ordering::SeqCst) { Err(StoreError::Closed) } else { self.writable() }
    }
}
