//! Reckoning another algorithm than SHA-256 of what is held.

use std::os::unix::fs::FileExt as _;

use super::Cache;
use crate::digest::Digest;
use crate::digest::{Algorithm, Found, Hasher, Stated};
use crate::store::Blob;

/// Larger blobs are not read whole on a client's way: a second or two is what a wait may cost.
const MOST: u64 = 1024 * 1024 * 1024;
const PIECE: usize = 256 * 1024;

impl Cache {
    /// The value of a held blob in another algorithm: known, or reckoned now and remembered. None if it is not held,
    /// too large, or not what its name says.
    pub async fn reckon(&self, digest: &Digest, algorithm: Algorithm) -> Option<Stated> {
        let known = || self.0.index.digest_of(digest, algorithm);
        if let Some(stated) = known() {
            return Some(stated);
        }
        if self.holds(digest).is_none_or(|size| size > MOST) {
            return None;
        }
        // one at a time: many may ask for the same one at once
        let _turn = self.0.reckoning.lock().await;
        if let Some(stated) = known() {
            return Some(stated);
        }
        let blob = self.open_proven(digest).await?;
        let read = tokio::task::spawn_blocking(move || read(&blob, algorithm)).await.ok()?;
        let found = read.inspect_err(|error| tracing::warn!(%error, "failed to read a blob")).ok()?;
        // the file was proved long ago: what is remembered of it must be of these bytes
        let stated = found.beside.filter(|_| found.digest == *digest)?;
        self.0.index.put_digest(stated, *digest, self.0.clock.now());
        Some(stated)
    }
}

fn read(blob: &Blob, algorithm: Algorithm) -> std::io::Result<Found> {
    let (mut hasher, mut piece) = (Hasher::beside(Some(algorithm)), vec![0; PIECE]);
    loop {
        let read = blob.file().read_at(&mut piece, hasher.length())?;
        match piece.get(..read) {
            Some(bytes) if read > 0 => hasher.update(bytes),
            _ => return Ok(hasher.found()),
        }
    }
}
