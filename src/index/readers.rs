//! A few connections that read single rows of `index.db` for whoever cannot find them in memory.
//!
//! A read takes some ten microseconds, more where the disk is asked. Whoever reads on one of the runtime's threads
//! gives its other tasks away first. A trouble counts as a row that is not there: it costs a question to the origin.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};

use super::migrations::INDEX;
use crate::orm::{Database, DbError, Kind, Location};

/// So many read at one time.
const READERS: usize = 4;
/// How long a read waits for somebody else's lock: a download waits with it.
const PATIENCE: Duration = Duration::from_millis(20);

/// The connections; made when they are needed.
#[derive(Debug)]
pub(super) struct Readers {
    at: Location,
    /// Counts the files that were at this path.
    file: AtomicU64,
    damaged: AtomicBool,
    connections: [Mutex<Option<(u64, Database)>>; READERS],
}

impl Readers {
    pub(super) fn new(at: impl Into<Location>) -> Self {
        let (file, damaged) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { at: at.into(), file, damaged, connections: Default::default() }
    }

    pub(super) const fn at(&self) -> &Location {
        &self.at
    }

    /// What `read` finds; none where it could not.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Database) -> Result<T, DbError>) -> Option<T> {
        let look = || self.look(read);
        let found = match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
            Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(look),
            _ => look(),
        };
        found.inspect_err(|error| self.note(error)).ok()
    }

    /// Another file is in this place from now on.
    pub(super) fn begin_anew(&self) {
        self.damaged.store(false, Ordering::Relaxed);
        self.file.fetch_add(1, Ordering::Relaxed);
    }

    /// Somebody read what is no database: the writer should know.
    pub(super) fn note(&self, error: &DbError) {
        if error.kind() == Kind::Damaged {
            self.damaged.store(true, Ordering::Relaxed);
        }
        tracing::debug!(file.path = %self.at.path().display(), %error, "failed to read the index");
    }

    pub(super) fn found_damage(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    fn look<T>(&self, read: impl FnOnce(&Database) -> Result<T, DbError>) -> Result<T, DbError> {
        let mut connection = self.free();
        let file = self.file.load(Ordering::Relaxed);
        let open = match connection.take().filter(|(of, _)| *of == file) {
            Some(open) => open,
            None => (file, Database::open_to_read(&self.at, &INDEX)?.with_patience(PATIENCE)?),
        };
        let found = read(&open.1);
        if found.is_ok() {
            *connection = Some(open);
        }
        found
    }

    /// A connection that nobody reads with, else the turn at the first one.
    fn free(&self) -> MutexGuard<'_, Option<(u64, Database)>> {
        let free = self.connections.iter().find_map(|connection| connection.try_lock().ok());
        let [first, ..] = &self.connections;
        free.unwrap_or_else(|| first.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
