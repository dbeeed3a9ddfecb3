//! One reader of a growing thing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use tokio::sync::watch;

use super::spill::Place;
use super::{End, Failure, Progress, ReaderSlot, Shared};

/// Reads a growing thing from some offset, waiting for what has not come yet.
pub struct Follower {
    shared: Arc<Shared>,
    progress: watch::Receiver<Progress>,
    slot: Arc<ReaderSlot>,
    at: u64,
    until: Option<u64>,
    /// It passes on what is not proved: how often bytes had been taken back when it began.
    relays: Option<u32>,
}

impl Follower {
    pub(super) fn new(shared: Arc<Shared>, start: u64, until: Option<u64>) -> Self {
        let slot = shared.enter(start);
        let progress = shared.progress.subscribe();
        Self { shared, progress, slot, at: start, until, relays: None }
    }

    /// Stands in no slot: whoever stands in one is waited for where the disk has given out.
    pub(super) fn relay(shared: Arc<Shared>, start: u64, until: Option<u64>) -> Self {
        shared.readers.send_modify(|readers| *readers += 1);
        let progress = shared.progress.subscribe();
        let relays = Some(progress.borrow().rewinds);
        Self { shared, progress, slot: Arc::default(), at: start, until, relays }
    }

    /// Where the next byte comes from.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// The next bytes with their offset; none at the end that was asked for, or at the thing's own.
    ///
    /// Waits as long as the writer lives: the transfer that writes has the deadlines.
    pub async fn next(&mut self) -> Result<Option<(u64, Bytes)>, Failure> {
        loop {
            if self.until.is_some_and(|until| self.at >= until) {
                return Ok(None);
            }
            let (released, end) = self.may_have()?;
            let limit = self.until.map_or(released, |until| until.min(released));
            if self.at < limit {
                let read = self.read(limit).await?;
                // what was taken back while it was read may have been overwritten
                self.may_have()?;
                return Ok(Some(read));
            }
            match end {
                Some(End::Complete(_)) => return Ok(None),
                Some(End::Failed(failure)) => return Err(failure),
                None => self.progress.changed().await.map_err(|_closed| Failure::Abandoned)?,
            }
        }
    }

    /// How far it may read, and the end if there is one.
    fn may_have(&mut self) -> Result<(u64, Option<End>), Failure> {
        let now = self.progress.borrow_and_update();
        let released = match self.relays {
            None => now.released,
            Some(rewinds) if rewinds != now.rewinds => return Err(Failure::Changed),
            Some(_) if self.shared.spill.is_open() => return Err(Failure::Abandoned),
            Some(_) => now.received,
        };
        Ok((released, now.end.clone()))
    }

    async fn read(&mut self, limit: u64) -> Result<(u64, Bytes), Failure> {
        let most = limit - self.at;
        let bytes = match self.shared.spill.place(self.at) {
            Place::File(end) => {
                let most = most.min(end.saturating_sub(self.at));
                let read = self.shared.pool.read(&self.shared.file, self.at, most).await;
                read.map_err(|error| {
                    Failure::Unreadable(format!("failed to read what was received: {error}"))
                })?
            }
            Place::Memory(bytes) => {
                let most = usize::try_from(most).unwrap_or(usize::MAX).min(bytes.len());
                bytes.slice(..most)
            }
            Place::Gone => Bytes::new(),
        };
        if bytes.is_empty() {
            return Err(Failure::Unreadable("what was received is no longer there".to_owned()));
        }
        let from = self.at;
        self.at += bytes.len() as u64;
        self.slot.at.store(self.at, Ordering::Release);
        self.shared.spill.moved();
        Ok((from, bytes))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // the slot goes first, so that whoever is told looks at those who remain
        self.slot = Arc::default();
        self.shared.leave();
    }
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").field("at", &self.at).field("until", &self.until).finish_non_exhaustive()
    }
}
