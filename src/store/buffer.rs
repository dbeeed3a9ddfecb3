//! Reading files in large pieces without blocking the runtime and without paying for fresh memory.
//!
//! What lies in the page cache is read at once (`preadv2` with `RWF_NOWAIT`); only what does not goes to a
//! blocking thread. Buffers are page-aligned and used again: a fresh 256 KiB each time costs more in page
//! faults than the copy itself, and an unaligned one doubles the copy on some processors.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use rustix::io::{Errno, ReadWriteFlags};

/// One read.
pub(super) const PIECE: usize = 256 * 1024;
const PAGE: usize = 4096;
/// Buffers kept for the next reader; more are freed.
const KEPT: usize = 64;

/// Buffers that were given back; a cheap clone.
#[derive(Debug, Clone, Default)]
pub(super) struct BufferPool(Arc<Mutex<Vec<Vec<u8>>>>);

/// A buffer on its way; returns to the pool when the last slice of it is gone.
struct Lent {
    pool: BufferPool,
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl BufferPool {
    fn lend(&self) -> Lent {
        let memory = self.lock().pop().unwrap_or_else(|| vec![0; PIECE + PAGE]);
        let start = memory.as_ptr().align_offset(PAGE).min(PAGE);
        Lent { pool: self.clone(), memory, start, length: 0 }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, if it needs no waiting; none if it would.
    pub(super) fn read_now(&self, file: &File, offset: u64, most: u64) -> io::Result<Option<Bytes>> {
        let most = usize::try_from(most).unwrap_or(PIECE).min(PIECE);
        let mut lent = self.lend();
        let length = read_cached(file, lent.room(most), offset)?;
        Ok(length.map(|length| {
            lent.length = length;
            lent.bytes()
        }))
    }

    /// Up to `most` bytes at `offset`, at most one piece; empty at the end of the file.
    pub(super) async fn read(&self, file: &Arc<File>, offset: u64, most: u64) -> io::Result<Bytes> {
        let most = usize::try_from(most).unwrap_or(PIECE).min(PIECE);
        if let Some(bytes) = self.read_now(file, offset, most as u64)? {
            return Ok(bytes);
        }
        let mut lent = self.lend();
        let file = Arc::clone(file);
        let read = tokio::task::spawn_blocking(move || {
            lent.length = file.read_at(lent.room(most), offset)?;
            Ok(lent.bytes())
        });
        read.await.map_err(io::Error::other)?
    }
}

impl Lent {
    fn room(&mut self, most: usize) -> &mut [u8] {
        self.memory.get_mut(self.start..self.start + most).unwrap_or_default()
    }

    fn bytes(self) -> Bytes {
        if self.length == 0 { Bytes::new() } else { Bytes::from_owner(self) }
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.memory.get(self.start..self.start + self.length).unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut kept = self.pool.lock();
        if kept.len() < KEPT {
            kept.push(std::mem::take(&mut self.memory));
        }
    }
}

/// Whether all of these bytes seem to lie in memory. Looks at a byte of each piece: what is read from a disk is
/// read in larger ones.
pub(super) fn is_cached(file: &File, at: u64, length: usize) -> bool {
    let last = at + (length.max(1) as u64 - 1);
    let places = (at..=last).step_by(PIECE / 2).chain([last]);
    places.into_iter().all(|place| read_cached(file, &mut [0], place).is_ok_and(|read| read == Some(1)))
}

/// Whether a file has no disk behind it.
fn is_in_memory(file: &File) -> bool {
    /// `TMPFS_MAGIC`, the filesystem of memory files too.
    const MEMORY: rustix::fs::FsWord = 0x0102_1994;
    rustix::fs::fstatfs(file).is_ok_and(|stat| stat.f_type == MEMORY)
}

/// Reads if that needs no waiting; none if it would, or where the filesystem cannot tell.
pub(super) fn read_cached(file: &File, room: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
    match rustix::io::preadv2(file, &mut [IoSliceMut::new(&mut *room)], offset, ReadWriteFlags::NOWAIT) {
        Ok(length) => Ok(Some(length)),
        Err(Errno::OPNOTSUPP) if is_in_memory(file) => file.read_at(room, offset).map(Some),
        Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn buffers_come_back_and_bytes_are_right() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let content: Vec<u8> = (0..600_000u32).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let (pool, file) = (BufferPool::default(), Arc::new(File::open(&path).unwrap()));
        let mut at = 0;
        while at < content.len() {
            let piece = pool.read(&file, at as u64, u64::MAX).await.unwrap();
            assert_eq!(piece, content[at..at + piece.len()]);
            at += piece.len();
        }
        assert!(pool.read(&file, at as u64, 1).await.unwrap().is_empty());
        assert_eq!(pool.lock().len(), 1);
    }
}
