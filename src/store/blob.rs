//! An open blob: immutable bytes that any number of readers stream.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use rustix::fs::OFlags;

use super::buffer::{BufferPool, read_cached};
use super::slice::Slice;
use crate::digest::Digest;
use crate::http::Body;

/// A blob that is open; it stays readable when it is evicted meanwhile.
#[derive(Clone)]
pub struct Blob {
    digest: Digest,
    size: u64,
    file: Arc<File>,
    pool: BufferPool,
    doubts: Doubts,
}

/// Blobs that could not be read, for whoever looks after them.
#[derive(Debug, Clone, Default)]
pub(super) struct Doubts(Arc<Mutex<Vec<Digest>>>);

/// So many wait for somebody to look after them.
const DOUBTS: usize = 64;

impl Doubts {
    fn note(&self, digest: Digest) {
        let mut doubts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if doubts.len() < DOUBTS && !doubts.contains(&digest) {
            doubts.push(digest);
        }
    }

    pub(super) fn take(&self) -> Vec<Digest> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Blob {
    pub(super) fn new(digest: Digest, size: u64, file: Arc<File>, pool: BufferPool, doubts: Doubts) -> Self {
        Self { digest, size, file, pool, doubts }
    }

    /// Its name.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Its length in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The open file.
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Whether the file can only be read through what is open, so that others may have it too. That of a blob which
    /// has just arrived was written through it.
    pub fn is_read_only(&self) -> bool {
        let flags = rustix::fs::fcntl_getfl(&self.file);
        flags.is_ok_and(|flags| flags & OFlags::ACCMODE == OFlags::RDONLY)
    }

    /// A slice as a body. A file that turns out shorter ends the body with an error, never cleanly.
    pub fn body(&self, range: Range<u64>) -> Body {
        self.told_body(range, |_length| ())
    }

    /// The same; `took` is told how much of it went.
    pub fn told_body(&self, range: Range<u64>, took: impl Fn(u64) + Send + Unpin + 'static) -> Body {
        Body::of_file(Slice::new(Arc::clone(&self.file), self.pool.clone(), range, took))
    }

    /// At most `most` bytes at `at`; an error at the end of the file.
    pub async fn read(&self, at: u64, most: u64) -> std::io::Result<Bytes> {
        match self.pool.read(&self.file, at, most).await {
            Ok(bytes) if !bytes.is_empty() => Ok(bytes),
            failed => {
                self.doubts.note(self.digest);
                Err(failed.err().unwrap_or_else(|| std::io::ErrorKind::UnexpectedEof.into()))
            }
        }
    }

    /// Adds all of it to `out`, if that needs no waiting; false where it does, or where the file is not as it was.
    pub fn add_cached(&self, out: &mut Vec<u8>) -> bool {
        let (begin, size) = (out.len(), usize::try_from(self.size).unwrap_or(usize::MAX));
        out.resize(begin.saturating_add(size), 0);
        let room = out.get_mut(begin..).unwrap_or_default();
        let read = read_cached(&self.file, room, 0);
        matches!(read, Ok(Some(read)) if read == size)
    }

    /// Its bytes from the first on, for a thread that may block.
    pub fn reader(&self) -> Reader {
        Reader { file: Arc::clone(&self.file), at: 0 }
    }

    pub(super) fn pool(&self) -> &BufferPool {
        &self.pool
    }
}

/// Reads a blob from its first byte on.
#[derive(Debug)]
pub struct Reader {
    file: Arc<File>,
    at: u64,
}

impl std::io::Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = std::os::unix::fs::FileExt::read_at(&*self.file, buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({}, {} bytes)", self.digest, self.size)
    }
}
