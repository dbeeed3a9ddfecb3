//! Bringing index and disk together after a lost index, a crash, or somebody's `rm`.

use super::Cache;
use crate::index::BlobRecord;
use crate::store::StoreError;

/// So many rows are changed before the disk has its turn: what waits to be written lies in memory.
const STEP: usize = 10_000;

impl Cache {
    /// Gives every file a row and takes rows without a file away, while serving goes on. A file found
    /// without a row counts as never proved: its first reader has it hashed. Blocks on the disk; `stop` is
    /// asked now and then.
    pub fn reconcile(&self, stop: impl Fn() -> bool) -> Result<(), StoreError> {
        let Some(store) = &self.0.store else { return Ok(()) };
        let index = &self.0.index;
        index.wait_until_read(&stop);
        if stop() {
            return Ok(());
        }
        // only rows that are there before the scan: a blob committed meanwhile may escape it
        index.call_roll();
        let (mut added, now) = (0_usize, self.0.clock.now());
        store.scan(|digest, stamp| {
            if !index.seen(&digest) {
                added += 1;
                self.add_row(BlobRecord::new(digest, stamp.size, now));
                if added.is_multiple_of(STEP) {
                    index.flush();
                }
            }
            !stop()
        })?;
        let lost = if stop() { return Ok(()) } else { self.forget_lost(&stop)? };
        if added > 0 || lost > 0 {
            tracing::info!(blobs.added = added, blobs.lost = lost, "brought the index in step with the disk");
        }
        Ok(())
    }

    /// Takes the rows away whose files were not seen and are not there; how many.
    fn forget_lost(&self, stop: impl Fn() -> bool) -> Result<usize, StoreError> {
        let (Some(store), index) = (&self.0.store, &self.0.index) else { return Ok(0) };
        let mut lost = 0;
        loop {
            let unseen = index.unseen(STEP);
            if unseen.is_empty() || stop() {
                return Ok(lost);
            }
            for digest in &unseen {
                if store.blob(digest)?.is_none() {
                    index.remove_blob(digest);
                    lost += 1;
                }
            }
            index.flush();
        }
    }
}
