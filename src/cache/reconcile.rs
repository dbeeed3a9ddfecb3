//! Bringing index and disk together after a lost index, a crash, or somebody's `rm`.

use std::collections::HashSet;

use super::Cache;
use crate::digest::Digest;
use crate::index::BlobRecord;
use crate::store::StoreError;

impl Cache {
    /// Gives every file a row and takes rows without a file away, while serving goes on. A file found
    /// without a row counts as never proved: its first reader has it hashed. Blocks on the disk; `stop` is
    /// asked now and then.
    pub fn reconcile(&self, stop: impl Fn() -> bool) -> Result<(), StoreError> {
        let Some(store) = &self.0.store else { return Ok(()) };
        let known = self.0.index.blob_names();
        let (mut found, mut added) = (HashSet::new(), 0u64);
        let now = self.0.clock.now();
        store.scan(|digest, stamp| {
            found.insert(digest);
            if self.0.index.blob(&digest).is_none() {
                added += 1;
                self.add_row(BlobRecord {
                    digest,
                    size: stamp.size,
                    inode: 0,
                    ctime_ns: 0,
                    stored_at: now,
                    last_used: now,
                    hits: 0,
                    first_hand: false,
                    guarded: false,
                });
            }
            !stop()
        })?;
        if stop() {
            return Ok(());
        }
        // only rows that were there before the scan: a blob committed meanwhile may have escaped it
        let lost: Vec<Digest> = known.into_iter().filter(|digest| !found.contains(digest)).collect();
        for digest in &lost {
            if store.blob(digest)?.is_none() {
                self.0.index.remove_blob(digest);
            }
        }
        if added > 0 || !lost.is_empty() {
            tracing::info!(
                blobs.added = added,
                blobs.lost = lost.len(),
                "brought the index in step with the disk"
            );
        }
        Ok(())
    }
}
