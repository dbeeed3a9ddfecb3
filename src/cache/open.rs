//! Opening blobs: a bounded set of open files, and the check that a file is still what was proved.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::{Arrived, Cache};
use crate::digest::Digest;
use crate::index::HeldBlob;
use crate::store::{Blob, End, Growing, Stamp};

/// Open files kept for the next request.
const KEPT: usize = 256;

/// A blob that was opened.
#[derive(Debug, Clone)]
pub enum Opened {
    /// Its file is the one that was proved.
    Proven(Blob),
    /// Its file changed since: it is being hashed again, and bytes are released as the proof allows.
    Proving(Blob, Growing),
}

/// Open files of blobs that were used lately.
#[derive(Debug, Default)]
pub(super) struct Handles(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    turn: u64,
    blobs: HashMap<Digest, (Blob, u64)>,
}

impl Handles {
    fn get(&self, digest: &Digest) -> Option<Blob> {
        let mut kept = self.lock();
        kept.turn += 1;
        let turn = kept.turn;
        let (blob, used) = kept.blobs.get_mut(digest)?;
        *used = turn;
        Some(blob.clone())
    }

    fn keep(&self, blob: &Blob) {
        let mut kept = self.lock();
        if kept.blobs.len() >= KEPT {
            let oldest = kept.blobs.iter().min_by_key(|(_, (_, used))| *used).map(|(digest, _)| *digest);
            oldest.map(|digest| kept.blobs.remove(&digest));
        }
        let turn = kept.turn;
        kept.blobs.insert(blob.digest(), (blob.clone(), turn));
    }

    /// Lets go of a blob; what remains tells whether somebody still reads it.
    pub(super) fn forget(&self, digest: &Digest) -> Weak<File> {
        self.lock().blobs.remove(digest).map_or_else(Weak::new, |(blob, _)| Arc::downgrade(blob.file()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cache {
    /// Opens a blob; none if it is not held. What turns out missing or short is forgotten.
    pub async fn open_blob(&self, digest: &Digest) -> Option<Opened> {
        if let Some(Arrived { blob, stamp, .. }) = self.arrived(digest) {
            // until it has its name nobody else can reach it
            let is_same = stamp.is_none_or(|stamp| Stamp::of(blob.file()).is_ok_and(|now| now == stamp));
            let proving = || Opened::Proving(blob.clone(), self.prove(&blob));
            return Some(if is_same { Opened::Proven(blob) } else { proving() });
        }
        let held = self.0.index.held(digest)?;
        let (blob, stamp) = match self.kept(digest) {
            Some(open) => open,
            None => self.open_file(digest).await?,
        };
        self.0.index.used(digest, self.0.clock.now());
        if is_proved(&held, stamp) {
            return Some(Opened::Proven(blob));
        }
        Some(Opened::Proving(blob.clone(), self.prove(&blob)))
    }

    /// A blob that is open already and proved; none does not say that it is not held.
    pub fn open_kept(&self, digest: &Digest) -> Option<Blob> {
        let (blob, stamp) = self.kept(digest)?;
        let is_proved = self.0.index.held(digest).is_some_and(|held| is_proved(&held, stamp));
        if is_proved {
            self.0.index.used(digest, self.0.clock.now());
        }
        is_proved.then_some(blob)
    }

    /// Opens a blob whose bytes are proved, waiting for the proof; none if it is not held or turned out wrong.
    pub async fn open_proven(&self, digest: &Digest) -> Option<Blob> {
        match self.open_blob(digest).await? {
            Opened::Proven(blob) => Some(blob),
            Opened::Proving(blob, growing) => match growing.ended().await {
                End::Complete(_) => Some(blob),
                End::Failed(_) => None,
            },
        }
    }

    /// A file that is open already, unless its name is gone.
    fn kept(&self, digest: &Digest) -> Option<(Blob, Stamp)> {
        let blob = self.0.handles.get(digest)?;
        match Stamp::of_linked(blob.file()) {
            Some(stamp) => Some((blob, stamp)),
            None => {
                self.0.handles.forget(digest);
                None
            }
        }
    }

    async fn open_file(&self, digest: &Digest) -> Option<(Blob, Stamp)> {
        let (store, wanted) = (self.0.store.clone()?, *digest);
        let opened = tokio::task::spawn_blocking(move || store.blob(&wanted)).await;
        match opened {
            Ok(Ok(Some((blob, stamp)))) => {
                self.0.handles.keep(&blob);
                Some((blob, stamp))
            }
            Ok(Ok(None)) => {
                tracing::debug!(blob.digest = %digest, "a blob's file is gone: forgotten");
                self.0.index.remove_blob(digest);
                None
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "failed to open a blob");
                None
            }
            Err(_) => None,
        }
    }
}

/// Whether this is the file that was proved, untouched since.
fn is_proved(held: &HeldBlob, stamp: Stamp) -> bool {
    held.is_file(stamp.inode, stamp.ctime_ns, stamp.size)
}
