//! Reading a large index into memory while the node serves already.
//!
//! Nothing seems gone meanwhile: what is not in memory yet is read from the file by whoever wants it. What is put or
//! removed is newer than what is read. A file that turns out damaged is read as far as it goes; the writer replaces it
//! and writes what memory knows, and the blobs beyond that are found on the disk.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::migrations::INDEX;
use super::shelf::IndexShelf;
use crate::orm::{Database, DbError};

/// A file above this size is read behind: below it that takes no time worth mentioning.
const LARGE: u64 = 8 << 20;
/// How often whoever waits looks whether it is still worth it.
const LOOK: Duration = Duration::from_millis(100);

/// The reading, running or done.
#[derive(Debug)]
pub(super) struct Behind {
    state: Arc<State>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct State {
    done: Mutex<bool>,
    over: Condvar,
    stop: AtomicBool,
}

/// Whether an index of this file is better read behind.
pub(super) fn is_large(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.len() > LARGE)
}

impl Behind {
    /// Nothing to read any more.
    pub(super) fn done() -> Self {
        let state = State { done: Mutex::new(true), ..State::default() };
        Self { state: Arc::new(state), thread: Mutex::default() }
    }

    /// Reads into a shelf that is to be filled; `done` is called at the end.
    pub(super) fn start(
        shelf: Arc<IndexShelf>,
        done: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Self> {
        let state = Arc::new(State::default());
        let own = Arc::clone(&state);
        let read = move || {
            if let Err(error) = read_all(&shelf, &own.stop) {
                let path = shelf.at().path().display();
                tracing::warn!(file.path = %path, %error, "the index could not be read to its end");
                shelf.note_trouble(&error);
            }
            shelf.is_filled_now();
            done();
            *own.done.lock().unwrap_or_else(PoisonError::into_inner) = true;
            own.over.notify_all();
        };
        let thread = std::thread::Builder::new().name("index-reader".to_owned()).spawn(read)?;
        Ok(Self { state, thread: Mutex::new(Some(thread)) })
    }

    /// Waits until all is read, or `stop` says that nobody needs it. Blocks.
    pub(super) fn wait(&self, stop: impl Fn() -> bool) {
        let mut done = self.state.done.lock().unwrap_or_else(PoisonError::into_inner);
        while !*done && !stop() {
            let waited = self.state.over.wait_timeout(done, LOOK);
            done = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends it. Blocks for a moment.
    pub(super) fn close(&self) {
        self.state.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that reads the index ended early");
        }
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Relaxed);
    }
}

fn read_all(shelf: &IndexShelf, stop: &AtomicBool) -> Result<(), DbError> {
    shelf.fill(&Database::open_to_read(shelf.at(), &INDEX)?, stop)
}
