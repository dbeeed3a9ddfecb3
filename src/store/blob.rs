//! An open blob: immutable bytes that any number of readers stream.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http_body::Frame;
use http_body_util::StreamBody;

use super::buffer::BufferPool;
use crate::digest::Digest;
use crate::http::{Body, BodyError, boxed};

/// A blob that is open; it stays readable when it is evicted meanwhile.
#[derive(Clone)]
pub struct Blob {
    digest: Digest,
    size: u64,
    file: Arc<File>,
    pool: BufferPool,
}

impl Blob {
    pub(super) fn new(digest: Digest, size: u64, file: Arc<File>, pool: BufferPool) -> Self {
        Self { digest, size, file, pool }
    }

    /// Its name.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Its length in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The open file, read-only.
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// A slice as a body. A file that turns out shorter ends the body with an error, never cleanly.
    pub fn body(&self, range: Range<u64>) -> Body {
        let state = (self.clone(), range.start);
        boxed(StreamBody::new(stream::try_unfold(state, move |(blob, at)| async move {
            if at >= range.end {
                return Ok::<_, BodyError>(None);
            }
            let bytes = blob.read(at, range.end - at).await?;
            let next = at + bytes.len() as u64;
            Ok(Some((Frame::data(bytes), (blob, next))))
        })))
    }

    /// At most `most` bytes at `at`; an error at the end of the file.
    pub async fn read(&self, at: u64, most: u64) -> std::io::Result<Bytes> {
        let bytes = self.pool.read(&self.file, at, most).await?;
        if bytes.is_empty() { Err(std::io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
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
