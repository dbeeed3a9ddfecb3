//! The one writer of a growing thing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinHandle;

use super::{Blob, End, Failure, Growing, Progress, Shared};
use crate::digest::{Digest, Found, Hasher};
use crate::store::{Ingest, PieceHash, PieceHasher, StoreError};

/// How long the slowest reader may stand still while it holds up everybody (the disk has given out).
const SLOWEST: Duration = Duration::from_secs(30);

/// How much of what has arrived readers may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Everything at once.
    Nothing,
    /// All but this many bytes, until the proof.
    Tail(u64),
    /// What comes before this byte.
    After(u64),
    /// Nothing until the proof.
    Everything,
}

impl Hold {
    /// The stricter of two.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Everything, _) | (_, Self::Everything) => Self::Everything,
            (Self::After(one), Self::After(other)) => Self::After(one.min(other)),
            (after @ Self::After(_), _) | (_, after @ Self::After(_)) => after,
            (Self::Tail(one), Self::Tail(other)) => Self::Tail(one.max(other)),
            (tail @ Self::Tail(_), Self::Nothing) | (Self::Nothing, tail @ Self::Tail(_)) => tail,
            (Self::Nothing, Self::Nothing) => Self::Nothing,
        }
    }
}

/// Receives bytes: writes and hashes them on a blocking thread while the next ones arrive.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
    sink: Sink,
    hold: Hold,
    received: u64,
}

#[derive(Debug)]
enum Sink {
    /// On the disk, idle.
    Disk(Ingest),
    /// On the disk, one write running.
    Writing(JoinHandle<Written>),
    /// Through memory.
    Memory(Hasher, Box<PieceHasher>),
    /// Taken apart.
    Gone,
}

#[derive(Debug)]
struct Written {
    ingest: Ingest,
    bytes: Bytes,
    result: Result<(), StoreError>,
}

/// Why a writer cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The disk gave out while unproven bytes were held: they cannot pass through memory.
    #[error("{0}")]
    Disk(StoreError),
    /// Everything passes through memory and nobody reads.
    #[error("nobody reads what cannot be stored")]
    Deserted,
}

/// What to do about a disk that gave out.
#[derive(Debug)]
pub enum WriteNote {
    /// All is well.
    Stored,
    /// From now on bytes pass through memory and nothing will be stored: why.
    Spilled(StoreError),
}

impl Writer {
    /// Over a staging file, empty or resumed.
    pub fn new(ingest: Ingest, total: Option<u64>, hold: Hold) -> Self {
        let received = ingest.length();
        let progress = Progress { received, released: 0, total, ..Progress::default() };
        let shared = Shared::new(Arc::clone(ingest.file()), ingest.store().0.pool.clone(), progress);
        let mut writer = Self { shared, sink: Sink::Disk(ingest), hold, received };
        writer.show();
        writer
    }

    /// Over an existing blob that has to be proved again: nothing is written, [`Writer::seen`] moves on.
    pub fn over(blob: &Blob, hold: Hold) -> Self {
        let progress = Progress { total: Some(blob.size()), ..Progress::default() };
        let shared = Shared::new(Arc::clone(blob.file()), blob.pool().clone(), progress);
        Self { shared, sink: Sink::Gone, hold, received: 0 }
    }

    /// The readers' side.
    pub fn growing(&self) -> Growing {
        Growing(Arc::clone(&self.shared))
    }

    /// How many bytes were taken.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// How much of it readers may have had.
    pub fn released(&self) -> u64 {
        self.shared.progress.borrow().released
    }

    /// The hash of what follows on the last whole piece, to be compared with another source's.
    pub async fn last_piece(&mut self) -> Option<PieceHash> {
        self.settle().await.ok()?;
        match &self.sink {
            Sink::Disk(ingest) => ingest.last_piece(),
            Sink::Memory(_, pieces) => pieces.rest(),
            Sink::Writing(_) | Sink::Gone => None,
        }
    }

    /// Whether what arrives can still become a blob.
    pub fn is_storing(&self) -> bool {
        matches!(self.sink, Sink::Disk(_) | Sink::Writing(_))
    }

    /// How much is held back.
    pub fn holds(&self) -> Hold {
        self.hold
    }

    /// From now on this much is held back; what was released stays released.
    pub fn hold(&mut self, hold: Hold) {
        self.hold = hold;
        self.show();
    }

    /// The whole size is known now.
    pub fn set_total(&mut self, total: Option<u64>) {
        self.shared.progress.send_modify(|now| now.total = total);
    }

    /// Adds bytes; returns when the bytes before them are written.
    pub async fn write(&mut self, bytes: Bytes) -> Result<WriteNote, WriteError> {
        let note = self.settle().await?;
        self.received += bytes.len() as u64;
        match std::mem::replace(&mut self.sink, Sink::Gone) {
            Sink::Disk(mut ingest) if ingest.is_in_memory() => {
                let result = ingest.append(&bytes);
                return self.wrote(Written { ingest, bytes, result }).await;
            }
            Sink::Disk(mut ingest) => {
                let write = move || {
                    let result = ingest.append(&bytes);
                    Written { ingest, bytes, result }
                };
                self.sink = Sink::Writing(tokio::task::spawn_blocking(write));
            }
            memory @ Sink::Memory(..) => {
                self.sink = memory;
                self.pass(bytes).await?;
            }
            Sink::Writing(_) | Sink::Gone => {}
        }
        Ok(note)
    }

    /// Waits for the running write and shows it to the readers.
    pub async fn settle(&mut self) -> Result<WriteNote, WriteError> {
        let Sink::Writing(running) = &mut self.sink else { return Ok(WriteNote::Stored) };
        let Ok(written) = running.await else {
            self.sink = Sink::Gone;
            let lost = std::io::Error::other("the writing thread ended");
            return Err(WriteError::Disk(StoreError::io("write in", std::path::Path::new("staging"))(lost)));
        };
        self.wrote(written).await
    }

    async fn wrote(&mut self, written: Written) -> Result<WriteNote, WriteError> {
        let Written { ingest, bytes, result } = written;
        match result {
            Ok(()) => {
                self.sink = Sink::Disk(ingest);
                self.show();
                Ok(WriteNote::Stored)
            }
            Err(error) => self.spill(ingest, bytes, error).await,
        }
    }

    /// The disk gave out with `bytes` unwritten.
    async fn spill(
        &mut self,
        ingest: Ingest,
        bytes: Bytes,
        error: StoreError,
    ) -> Result<WriteNote, WriteError> {
        // a tail fits the window; more does not
        if self.hold == Hold::Everything {
            self.received = ingest.length();
            self.sink = Sink::Disk(ingest);
            return Err(WriteError::Disk(error));
        }
        self.go_on_in_memory(&ingest);
        drop(ingest);
        self.pass(bytes).await?;
        Ok(WriteNote::Spilled(error))
    }

    /// Stops storing by decision (the thing grew beyond what may be kept): the rest passes through memory.
    pub async fn stop_storing(&mut self) -> Result<(), WriteError> {
        self.settle().await?;
        match std::mem::replace(&mut self.sink, Sink::Gone) {
            Sink::Disk(ingest) => self.go_on_in_memory(&ingest),
            other @ (Sink::Writing(_) | Sink::Memory(..) | Sink::Gone) => self.sink = other,
        }
        Ok(())
    }

    /// Gives the staging file away (to be kept as a partial); the rest passes through memory. The file stays
    /// readable for those who follow.
    pub async fn part_with_file(&mut self) -> Result<Option<Ingest>, WriteError> {
        self.settle().await?;
        match std::mem::replace(&mut self.sink, Sink::Gone) {
            Sink::Disk(ingest) => {
                self.go_on_in_memory(&ingest);
                Ok(Some(ingest))
            }
            other @ (Sink::Writing(_) | Sink::Memory(..) | Sink::Gone) => {
                self.sink = other;
                Ok(None)
            }
        }
    }

    fn go_on_in_memory(&mut self, ingest: &Ingest) {
        self.shared.spill.open(ingest.length());
        let (hasher, pieces) = ingest.hashers();
        self.sink = Sink::Memory(hasher, pieces);
    }

    async fn pass(&mut self, bytes: Bytes) -> Result<(), WriteError> {
        if let Sink::Memory(hasher, pieces) = &mut self.sink {
            hasher.update(&bytes);
            pieces.update(&bytes);
            self.shared.add_pieces(pieces.done().get(self.shared.piece_count()..).unwrap_or_default());
        }
        self.shared.spill.push(bytes);
        self.show();
        loop {
            let slowest = self.shared.slowest().ok_or(WriteError::Deserted)?;
            if self.shared.spill.trim(slowest) || self.is_proof_missing(slowest) {
                return Ok(());
            }
            if tokio::time::timeout(SLOWEST, self.shared.spill.wait()).await.is_err() {
                self.shared.spill.force();
            }
        }
    }

    /// Whether the readers wait for a proof and not the writer for them: it comes while more is received, and only
    /// then. So much may wait for it.
    fn is_proof_missing(&self, slowest: u64) -> bool {
        const MOST: u64 = 64 * 1024 * 1024;
        let is_waited_for = matches!(self.hold, Hold::After(_)) && slowest >= self.released();
        is_waited_for && self.received.saturating_sub(slowest) < MOST
    }

    /// Goes back to an earlier byte; only while clients have had nothing beyond it, and only on the disk. Whoever
    /// relays what comes is cut off.
    pub async fn rewind(&mut self, offset: u64) -> Result<(), WriteError> {
        self.settle().await?;
        let mut ingest = match std::mem::replace(&mut self.sink, Sink::Gone) {
            Sink::Disk(ingest) => ingest,
            other @ (Sink::Writing(_) | Sink::Memory(..) | Sink::Gone) => {
                self.sink = other;
                return Err(WriteError::Deserted);
            }
        };
        self.shared.progress.send_modify(|now| {
            (now.received, now.rewinds) = (offset, now.rewinds + 1);
        });
        let back = tokio::task::spawn_blocking(move || (ingest.rewind(offset), ingest)).await;
        let Ok((result, ingest)) = back else { return Err(WriteError::Deserted) };
        self.shared.set_pieces(ingest.pieces(0));
        self.received = offset;
        self.sink = Sink::Disk(ingest);
        result.map_err(WriteError::Disk)
    }

    /// What was reckoned of all that was received.
    pub async fn found(&mut self) -> Result<Option<Found>, WriteError> {
        self.settle().await?;
        Ok(match &self.sink {
            Sink::Disk(ingest) => Some(ingest.found()),
            Sink::Memory(hasher, _) => Some(hasher.found()),
            Sink::Writing(_) | Sink::Gone => None,
        })
    }

    /// Records how far it has come. Cheap enough to call now and then.
    pub async fn checkpoint(&mut self, key: String, note: String) -> Result<WriteNote, WriteError> {
        let settled = self.settle().await?;
        let ingest = match std::mem::replace(&mut self.sink, Sink::Gone) {
            Sink::Disk(ingest) => ingest,
            // the disk gave out meanwhile: there is nothing to record
            other @ (Sink::Writing(_) | Sink::Memory(..) | Sink::Gone) => {
                self.sink = other;
                return Ok(settled);
            }
        };
        let write = move || {
            let result = ingest.checkpoint(&key, &note);
            (ingest, result)
        };
        let Ok((ingest, result)) = tokio::task::spawn_blocking(write).await else { return Ok(settled) };
        self.sink = Sink::Disk(ingest);
        result.map(|()| settled).map_err(WriteError::Disk)
    }

    /// Bytes of an existing file were looked at, up to here.
    pub fn seen(&mut self, offset: u64) {
        self.received = offset;
        self.show();
    }

    /// All bytes are there and right: readers may have everything. Gives the staging file to commit, if any.
    pub fn complete(mut self, digest: Digest) -> Option<Ingest> {
        if let Sink::Disk(ingest) = &self.sink {
            self.shared.add_pieces(ingest.last_piece().as_slice());
        }
        self.end(End::Complete(digest));
        match std::mem::replace(&mut self.sink, Sink::Gone) {
            Sink::Disk(ingest) => Some(ingest),
            Sink::Writing(_) | Sink::Memory(..) | Sink::Gone => None,
        }
    }

    /// It will never be whole. Gives the staging file to keep or drop, if any.
    pub async fn fail(mut self, failure: Failure) -> Option<Ingest> {
        if let Err(error) = self.settle().await {
            tracing::debug!(%error, "the last write of a failed transfer failed too");
        }
        self.end(End::Failed(failure));
        match std::mem::replace(&mut self.sink, Sink::Gone) {
            Sink::Disk(ingest) => Some(ingest),
            Sink::Writing(_) | Sink::Memory(..) | Sink::Gone => None,
        }
    }

    /// What an existing file holds is not what it must be.
    pub fn reject(self) {
        self.end(End::Failed(Failure::Digest));
    }

    fn end(&self, end: End) {
        self.shared.progress.send_modify(|now| {
            if matches!(end, End::Complete(_)) {
                now.received = self.received;
                now.released = self.received;
                now.total = Some(self.received);
            }
            now.end = Some(end);
        });
    }

    fn show(&mut self) {
        let received = match &self.sink {
            Sink::Disk(ingest) => {
                self.shared.add_pieces(ingest.pieces(self.shared.piece_count()));
                ingest.length()
            }
            Sink::Memory(..) | Sink::Gone => self.received,
            // what is on its way to the disk cannot be read yet
            Sink::Writing(_) => self.shared.progress.borrow().received,
        };
        let free = match self.hold {
            Hold::Nothing => received,
            Hold::Tail(tail) => received.saturating_sub(tail),
            Hold::After(proven) => received.min(proven),
            Hold::Everything => 0,
        };
        self.shared.progress.send_modify(|now| {
            now.received = received;
            now.released = now.released.max(free);
        });
    }
}

impl Drop for Writer {
    /// A writer that is dropped in the middle (a panic, a cancelled task) fails its readers.
    fn drop(&mut self) {
        self.shared.progress.send_if_modified(|now| {
            let ends = now.end.is_none();
            if ends {
                now.end = Some(End::Failed(Failure::Abandoned));
            }
            ends
        });
    }
}
