//! What an earlier run left in staging.

use std::collections::HashSet;
use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

use super::StoreError;
use super::layout::Layout;
use crate::digest::Digest;

/// A partial that may be resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialRecord {
    /// Names its files.
    pub id: String,
    /// What it is a part of.
    pub key: String,
    /// How many bytes are known to be right.
    pub offset: u64,
    /// The digest of those bytes.
    pub prefix: Digest,
    /// Whatever the caller wants to know again.
    pub note: String,
}

/// Reads all records, removes what cannot be resumed.
pub(super) fn recover(layout: &Layout) -> Result<Vec<PartialRecord>, StoreError> {
    let staging = layout.staging();
    let entries = fs::read_dir(&staging).map_err(StoreError::io("read", &staging))?;
    let names: HashSet<String> = entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
    let mut records = Vec::new();
    for name in &names {
        let record = name.strip_suffix(".json").and_then(|id| read_record(layout, id));
        match record {
            Some(record) if names.contains(&format!("{}.part", record.id)) => records.push(record),
            _ if has_record(layout, name, &names) => {}
            _ => remove(&staging.join(name)),
        }
    }
    Ok(records)
}

/// Whether `name` is the data file of a readable record.
fn has_record(layout: &Layout, name: &str, names: &HashSet<String>) -> bool {
    let Some(id) = name.strip_suffix(".part") else { return false };
    names.contains(&format!("{id}.json")) && read_record(layout, id).is_some()
}

fn read_record(layout: &Layout, id: &str) -> Option<PartialRecord> {
    let text = fs::read(layout.record(id)).ok()?;
    let record: PartialRecord = serde_json::from_slice(&text).ok()?;
    (record.id == id).then_some(record)
}

/// Written whole under another name, then renamed: never half a record.
pub(super) fn write_record(layout: &Layout, record: &PartialRecord) -> Result<(), StoreError> {
    let (path, new) = (layout.record(&record.id), layout.staging().join(format!("{}.new", record.id)));
    let text = serde_json::to_vec(record).map_err(|e| StoreError::io("write", &path)(e.into()))?;
    fs::write(&new, text).map_err(StoreError::io("write", &new))?;
    fs::rename(&new, &path).map_err(StoreError::io("rename", &new))
}

pub(super) fn drop_record(layout: &Layout, id: &str) {
    remove(&layout.record(id));
}

pub(super) fn forget(layout: &Layout, id: &str) {
    remove(&layout.part(id));
    remove(&layout.record(id));
}

fn remove(path: &std::path::Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(file.path = %path.display(), %error, "failed to remove a staging file");
    }
}
