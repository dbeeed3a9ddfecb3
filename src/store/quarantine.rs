//! Damaged blobs, kept for a while under another name: nothing is served from here.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use super::StoreError;
use super::layout::{Layout, make_folder};
use crate::digest::Digest;

/// Moves a blob here; the oldest go where all together are more than `most` bytes. False if there is none.
pub(super) fn put(layout: &Layout, digest: &Digest, most: u64) -> Result<bool, StoreError> {
    let from = layout.blob(digest);
    let size = match fs::symlink_metadata(&from) {
        Ok(about) => about.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(StoreError::io("stat", &from)(error)),
    };
    // what does not fit, or has no place to go, must go all the same: it would be served
    if size > most || make_folder(&layout.quarantine()).is_err() || !moved(layout, digest) {
        fs::remove_file(&from).map_err(StoreError::io("remove", &from))?;
    }
    shrink(layout, most);
    Ok(true)
}

fn moved(layout: &Layout, digest: &Digest) -> bool {
    let moved = fs::rename(layout.blob(digest), layout.quarantine().join(digest.hex()));
    moved.inspect_err(|error| tracing::warn!(%error, "failed to set a damaged blob aside")).is_ok()
}

fn shrink(layout: &Layout, most: u64) {
    let Ok(entries) = fs::read_dir(layout.quarantine()) else { return };
    let mut kept: Vec<(SystemTime, u64, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let about = entry.metadata().ok()?;
            Some((about.modified().unwrap_or(SystemTime::UNIX_EPOCH), about.len(), entry.path()))
        })
        .collect();
    kept.sort();
    let mut together: u64 = kept.iter().map(|(_, size, _)| size).sum();
    for (_, size, path) in kept {
        if together <= most {
            return;
        }
        if let Err(error) = fs::remove_file(&path) {
            tracing::warn!(file.path = %path.display(), %error, "failed to remove a damaged blob");
            return;
        }
        together = together.saturating_sub(size);
    }
}
