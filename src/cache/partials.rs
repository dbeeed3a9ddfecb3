//! Partials that a later transfer of the same thing may take up.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::{Cache, NoRoom, Reservation};
use crate::digest::Algorithm;
use crate::store::{Ingest, PartialRecord, Store, StoreError};

/// Partials by what they are of.
#[derive(Debug, Default)]
pub(super) struct Partials(Mutex<HashMap<String, PartialRecord>>);

impl Partials {
    pub(super) fn recover(store: &Store) -> Result<Self, StoreError> {
        let mut kept: HashMap<String, PartialRecord> = HashMap::new();
        for record in store.recover()? {
            match kept.get(&record.key) {
                Some(other) if other.offset >= record.offset => store.forget(&record),
                _ => {
                    if let Some(shorter) = kept.insert(record.key.clone(), record) {
                        store.forget(&shorter);
                    }
                }
            }
        }
        Ok(Self(Mutex::new(kept)))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.lock().values().map(|record| record.offset).sum()
    }

    /// Drops partials of at least this many bytes together, as far as there are any.
    pub(super) fn shrink(&self, store: &Store, bytes: u64) -> u64 {
        let (mut kept, mut freed) = (self.lock(), 0);
        while freed < bytes {
            let Some(key) = kept.keys().next().cloned() else { break };
            if let Some(record) = kept.remove(&key) {
                freed += record.offset;
                store.forget(&record);
            }
        }
        freed
    }

    /// Takes this one out; false where another one has its place by now, which may be of another version.
    fn take(&self, record: &PartialRecord) -> bool {
        let mut kept = self.lock();
        let is_it = kept.get(&record.key) == Some(record);
        if is_it {
            kept.remove(&record.key);
        }
        is_it
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, PartialRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cache {
    /// What an earlier transfer left of this thing: how much, and the note it was kept with.
    pub fn partial(&self, key: &str) -> Option<PartialRecord> {
        self.0.partials.lock().get(key).cloned()
    }

    /// Takes up this partial of a thing of `total` bytes, if it is still what is kept of it and its bytes are still
    /// right, reckoning another algorithm beside where one is given. It belongs to the caller then. Blocks on the
    /// disk.
    pub fn resume(
        &self,
        record: &PartialRecord,
        total: Option<u64>,
        beside: Option<Algorithm>,
    ) -> Result<Option<(Ingest, Reservation)>, NoRoom> {
        let Some(store) = self.0.store.as_ref().filter(|_| self.0.partials.take(record)) else {
            return Ok(None);
        };
        let room = self.reserve(total.unwrap_or(record.offset).max(record.offset));
        let reservation = room.inspect_err(|_| store.forget(record))?;
        Ok(store.resume(record, beside)?.map(|ingest| (ingest, reservation)))
    }

    /// Keeps what was received for a later transfer. Blocks on the disk.
    pub fn keep(&self, ingest: Ingest, key: &str, note: &str) {
        if ingest.length() == 0 {
            return;
        }
        match ingest.keep(key, note) {
            Ok(record) => {
                let older = self.0.partials.lock().insert(key.to_owned(), record);
                if let (Some(older), Some(store)) = (older, &self.0.store) {
                    store.forget(&older);
                }
            }
            Err(error) => self.note_trouble(&error),
        }
    }

    /// Drops what was kept of this thing. Blocks on the disk.
    pub fn drop_partial(&self, key: &str) {
        let record = self.0.partials.lock().remove(key);
        if let (Some(record), Some(store)) = (record, &self.0.store) {
            store.forget(&record);
        }
    }
}
