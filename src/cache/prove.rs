//! Proving a blob again: hashing its file while readers follow, and taking it away when it is wrong.

use std::collections::HashMap;
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, PoisonError};

use super::Cache;
use crate::digest::{Digest, Hasher};
use crate::store::{Blob, End, Growing, Hold, Stamp, Writer};

/// Up to this size nothing goes out before the proof; above it all but the tail does.
const WHOLE: u64 = 64 * 1024 * 1024;
/// What waits for the proof of a larger blob.
const TAIL: u64 = 64 * 1024;
const PIECE: usize = 256 * 1024;

/// Blobs that are being hashed now.
#[derive(Debug, Default)]
pub(super) struct Proving(Mutex<HashMap<Digest, Growing>>);

/// What looking at a blob's bytes showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// They are what the name says.
    Right,
    /// They were not; the blob is gone.
    Rotten,
    /// There is no such blob.
    Missing,
}

impl Cache {
    /// Hashes a blob's file anew, whatever its stamp says.
    pub async fn verify(&self, digest: &Digest) -> Verdict {
        let Some(opened) = self.open_blob(digest).await else { return Verdict::Missing };
        let growing = match opened {
            super::Opened::Proven(blob) => self.prove(&blob),
            super::Opened::Proving(_, growing) => growing,
        };
        match growing.ended().await {
            End::Complete(_) => Verdict::Right,
            End::Failed(_) => Verdict::Rotten,
        }
    }

    /// Hashes a blob on a blocking thread; one run for everybody who asks meanwhile.
    pub(super) fn prove(&self, blob: &Blob) -> Growing {
        let mut running = self.proving();
        // one that has ended speaks for the moment it ended
        let still = running.get(&blob.digest()).filter(|growing| growing.progress().end.is_none());
        if let Some(growing) = still {
            return growing.clone();
        }
        let hold = if blob.size() <= WHOLE { Hold::Everything } else { Hold::Tail(TAIL) };
        let writer = Writer::over(blob, hold);
        let growing = writer.growing();
        running.insert(blob.digest(), growing.clone());
        drop(running);
        let (cache, blob) = (self.clone(), blob.clone());
        // joined by the runtime: blocking tasks are waited for when it shuts down, and this one always ends
        drop(tokio::task::spawn_blocking(move || cache.run_proof(&blob, writer)));
        growing
    }

    fn run_proof(&self, blob: &Blob, mut writer: Writer) {
        let (digest, before) = (blob.digest(), Stamp::of(blob.file()).ok());
        let found = hash_file(blob, &mut writer);
        let after = Stamp::of(blob.file()).ok();
        if let Err(error) = &found {
            tracing::warn!(%error, blob.digest = %digest, "failed to read a blob");
        }
        match Judged::of(&digest, found, before, after) {
            Judged::Whole(stamp) => {
                self.renew(&digest, stamp);
                drop(writer.complete(digest));
            }
            Judged::Touched => writer.reject(),
            Judged::Wrong => {
                self.quarantine(&digest);
                writer.reject();
            }
        }
        self.proving().retain(|proved, growing| *proved != digest || growing.progress().end.is_none());
    }

    pub(super) fn renew(&self, digest: &Digest, stamp: Stamp) {
        if let Some(record) = self.0.index.blob(digest) {
            let mut record = (*record).clone();
            (record.inode, record.size, record.ctime_ns) = (stamp.inode, stamp.size, stamp.ctime_ns);
            self.0.index.put_blob(record);
        }
    }

    fn proving(&self) -> std::sync::MutexGuard<'_, HashMap<Digest, Growing>> {
        self.0.proving.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What reading a blob's file to its end showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    /// It is what its name says, and this is its stamp.
    Whole(Stamp),
    /// Its bytes were right, but somebody changed the file meanwhile.
    Touched,
    /// Its bytes are wrong or cannot be read.
    Wrong,
}

impl Judged {
    pub(super) fn of(
        digest: &Digest,
        found: std::io::Result<Digest>,
        before: Option<Stamp>,
        after: Option<Stamp>,
    ) -> Self {
        match (found.is_ok_and(|found| found == *digest), before, after) {
            (true, Some(before), Some(after)) if before == after => Self::Whole(after),
            (true, _, _) => Self::Touched,
            (false, _, _) => Self::Wrong,
        }
    }
}

fn hash_file(blob: &Blob, writer: &mut Writer) -> std::io::Result<Digest> {
    let (mut hasher, mut piece) = (Hasher::new(), vec![0; PIECE]);
    loop {
        let read = blob.file().read_at(&mut piece, hasher.length())?;
        match piece.get(..read) {
            Some(bytes) if read > 0 => hasher.update(bytes),
            _ => return Ok(hasher.finish()),
        }
        writer.seen(hasher.length());
    }
}
