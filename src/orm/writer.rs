//! One thread that writes what has changed, a batch at a time, so that nobody else waits for the disk.
//!
//! The writer pulls: callers change what they hold in memory, note the key in their set of changes and call
//! [`Writer::mark`]; a moment later the thread takes the set, piece by piece where it is large, and writes each
//! piece in one transaction. The set is bounded by the number of keys, so nothing can pile up. A batch that cannot be written is put back, the
//! trouble is raised in [`Health`], and the thread tries again with growing pauses until it succeeds: callers
//! see none of it. A database that is found damaged is replaced by its owner ([`Changes::reopen`]).
//!
//! What must be on disk before its caller goes on is given to [`Writer::run`]: all that waits is done in one
//! transaction, each as a part that can fail alone, and everybody learns of his own when it is committed.
//!
//! Dropping the last handle without [`Writer::close`] lets the thread write what is there and end by itself.

mod task;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Database, DbError, Kind};
use crate::telemetry::Health;
use task::{Task, Work};

/// How long changes are gathered before they are written.
const GATHER: Duration = Duration::from_millis(200);
/// The pause after the first failure; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long a flush waits for a writer in trouble.
const FLUSH_LIMIT: Duration = Duration::from_secs(10);
/// The most tasks that wait; whoever comes then is refused.
const TASKS: usize = 256;
/// How often a transaction for tasks is begun again while somebody else holds the lock; each try waits a second.
const TASK_TRIES: u32 = 5;
/// How often a writer that is to end tries to get past somebody else's lock.
const LAST_TRIES: u32 = 5;
/// How long a writer that is to end goes on with what is left; whole batches, and the rest is not written.
const LAST_LIMIT: Duration = Duration::from_secs(10);

/// What a writer writes.
pub trait Changes: Send + Sync + 'static {
    /// The keys of what changed.
    type Batch: Send;

    /// Takes what changed since the last time, or a piece of it; none if nothing did.
    fn take(&self) -> Option<Self::Batch>;

    /// Whether this was a piece, and the rest waits to be taken.
    fn is_piece(&self, _batch: &Self::Batch) -> bool {
        false
    }

    /// Writes the present state of what changed; called inside a transaction.
    fn write(&self, batch: &Self::Batch, database: &Database) -> Result<(), DbError>;

    /// The batch is committed.
    fn written(&self, _batch: Self::Batch) {}

    /// The batch could not be written: it counts as changed still.
    fn put_back(&self, batch: Self::Batch);

    /// The database was found damaged and is closed: another one to write to, after which everything counts
    /// as changed. Asked again, without the cause, until it succeeds.
    fn reopen(&self, cause: Option<&DbError>) -> Result<Database, DbError>;
}

/// A thread that writes changes; ends when told, or with its last handle.
pub struct Writer {
    state: Arc<State>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct State {
    progress: Mutex<Progress>,
    woken: Condvar,
}

#[derive(Default)]
struct Progress {
    /// What callers wait for.
    tasks: VecDeque<Box<dyn Work>>,
    /// Counts the marks.
    marked: u64,
    /// Everything up to this mark is on disk.
    written: u64,
    /// Counts what may have changed the file; before anybody learns that it did.
    changed: u64,
    /// Somebody waits: no gathering, no pause.
    hurry: bool,
    /// Write what is there, then end.
    stop: bool,
    /// How often that has failed.
    last_tries: u32,
    /// Enough: end, whatever is left.
    give_up: bool,
    /// The thread is gone.
    ended: bool,
}

struct Thread<C> {
    /// None after it was found damaged, until its owner has another one.
    database: Option<Database>,
    changes: Arc<C>,
    state: Arc<State>,
    health: Health,
    code: &'static str,
}

// === impl Writer ===

impl Writer {
    /// Starts the thread. Its troubles are raised under `code`.
    pub fn start<C: Changes>(
        database: Database,
        changes: Arc<C>,
        health: Health,
        code: &'static str,
    ) -> std::io::Result<Self> {
        let state = Arc::new(State::default());
        let database = Some(database);
        let thread = Thread { database, changes, state: Arc::clone(&state), health, code };
        let handle =
            std::thread::Builder::new().name(format!("{code}-writer")).spawn(move || thread.run())?;
        Ok(Self { state, thread: Mutex::new(Some(handle)) })
    }

    /// Something changed. Cheap, and never waits for the disk.
    pub fn mark(&self) {
        let mut progress = self.state.lock();
        progress.marked = progress.marked.wrapping_add(1);
        // the thread sleeps only when all marks are written
        if progress.marked.wrapping_sub(progress.written) == 1 {
            self.state.woken.notify_all();
        }
    }

    /// A number that is another one after each change of the file; none while a change waits to be written.
    pub fn state(&self) -> Option<u64> {
        let progress = self.state.lock();
        (progress.marked == progress.written && !progress.ended).then_some(progress.changed)
    }

    /// Waits until everything marked so far is on disk; false if that could not be done within ten seconds.
    pub fn flush(&self) -> bool {
        self.flush_within(FLUSH_LIMIT)
    }

    /// The same with another limit.
    pub fn flush_within(&self, limit: Duration) -> bool {
        let mut progress = self.state.lock();
        let target = progress.marked;
        if progress.written >= target {
            return true;
        }
        progress.hurry = true;
        self.state.woken.notify_all();
        let waiting = |p: &mut Progress| p.written < target && !p.ended;
        let waited = self.state.woken.wait_timeout_while(progress, limit, waiting);
        let (progress, _) = waited.unwrap_or_else(PoisonError::into_inner);
        progress.written >= target
    }

    /// Has the thread do this in a transaction, and waits until that is committed. Blocks.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, DbError> + Send + 'static,
    ) -> Result<T, DbError> {
        let (task, result) = Task::pair(work);
        let mut progress = self.state.lock();
        if progress.ended || progress.stop {
            return Err(Task::<T>::nobody());
        }
        if progress.tasks.len() >= TASKS {
            return Err(DbError::Crowded);
        }
        progress.tasks.push_back(task);
        drop(progress);
        self.state.woken.notify_all();
        result.wait()
    }

    /// Writes what is there and ends the thread, within ten seconds and the batch that is being written then; false
    /// if something could not be written. Closing again does nothing more.
    pub fn close(&self) -> bool {
        self.close_within(LAST_LIMIT)
    }

    /// The same with another limit.
    pub fn close_within(&self, limit: Duration) -> bool {
        self.state.ask_to_stop();
        let waited = self.state.woken.wait_timeout_while(self.state.lock(), limit, |p| !p.ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.give_up = true;
        let handle = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let joined = handle.is_none_or(|handle| handle.join().is_ok());
        let progress = self.state.lock();
        joined && progress.written >= progress.marked
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.state.ask_to_stop();
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let progress = self.state.lock();
        let (marked, written) = (progress.marked, progress.written);
        f.debug_struct("Writer").field("marked", &marked).field("written", &written).finish_non_exhaustive()
    }
}

// === impl State ===

impl State {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_change(&self) {
        let mut progress = self.lock();
        progress.changed = progress.changed.wrapping_add(1);
    }

    fn ask_to_stop(&self) {
        self.lock().stop = true;
        self.woken.notify_all();
    }

    /// Sleeps until there is something to write, and then a little longer; false if it is time to end.
    fn wait_for_work(&self) -> bool {
        let idle = |p: &mut Progress| p.marked == p.written && p.tasks.is_empty() && !p.stop;
        let progress = self.woken.wait_while(self.lock(), |p| {
            // nothing is owed to those who wait
            p.hurry &= p.marked != p.written;
            idle(p)
        });
        let progress = progress.unwrap_or_else(PoisonError::into_inner);
        let stop = progress.stop && progress.marked == progress.written && progress.tasks.is_empty();
        drop(progress);
        if !stop {
            self.pause(GATHER);
        }
        !stop
    }

    /// Waits so long, or until somebody is in a hurry.
    fn pause(&self, length: Duration) {
        let waited =
            self.woken.wait_timeout_while(self.lock(), length, |p| !p.hurry && !p.stop && p.tasks.is_empty());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

// === impl Thread ===

impl<C: Changes> Thread<C> {
    fn run(mut self) {
        let _ended = Ended(Arc::clone(&self.state));
        let mut pause = FIRST_PAUSE;
        while self.state.wait_for_work() {
            self.do_tasks();
            let target = self.state.lock().marked;
            match self.write() {
                Ok(true) if self.state.lock().give_up => break,
                Ok(true) => {}
                Ok(false) => {
                    pause = FIRST_PAUSE;
                    self.succeeded(target);
                }
                Err(error) if self.failed(&error, pause) => break,
                Err(_) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
        }
    }

    fn database(&mut self) -> Result<&Database, DbError> {
        let database = match self.database.take() {
            Some(database) => database,
            None => self.changes.reopen(None)?,
        };
        let database = &*self.database.insert(database);
        database.is_in_place().map(|()| database)
    }

    /// Does all that callers wait for.
    fn do_tasks(&mut self) {
        let mut tasks = std::mem::take(&mut self.state.lock().tasks);
        if tasks.is_empty() {
            return;
        }
        let mut tries = 0;
        let done = loop {
            tries += 1;
            let mut begun = false;
            let done = self.database().and_then(|database| {
                database.transaction(|database| {
                    begun = true;
                    tasks.iter_mut().for_each(|task| task.work(database));
                    Ok(())
                })
            });
            let busy = done.as_ref().is_err_and(|error| error.kind() == Kind::Busy);
            if begun || !busy || tries >= TASK_TRIES {
                break done;
            }
        };
        self.state.count_change();
        tasks.into_iter().for_each(|task| task.committed(done.as_ref().err()));
    }

    /// Writes what changed, or a piece of it; true if there is more.
    fn write(&mut self) -> Result<bool, DbError> {
        let changes = Arc::clone(&self.changes);
        let Some(batch) = changes.take() else { return self.database().map(|_database| false) };
        let is_piece = changes.is_piece(&batch);
        let result = self
            .database()
            .and_then(|database| database.transaction(|database| changes.write(&batch, database)));
        self.state.count_change();
        match result {
            Ok(()) => changes.written(batch),
            Err(_) => changes.put_back(batch),
        }
        result.map(|()| is_piece)
    }

    fn succeeded(&self, target: u64) {
        // before those who wait for the batch go on: they may look whether all is well
        if self.health.clear(self.code) {
            tracing::info!(database = self.code, "the index is written again");
        }
        let mut progress = self.state.lock();
        progress.written = target;
        progress.hurry = progress.hurry && progress.marked != target;
        self.state.woken.notify_all();
    }

    /// Says so once, and pauses; true if there is no time left to try again.
    fn failed(&mut self, error: &DbError, pause: Duration) -> bool {
        let reason = format!("{}.db cannot be written, its changes are kept in memory: {error}", self.code);
        if self.health.raise(self.code, reason) {
            tracing::warn!(database = self.code, %error, "failed to write the index; trying again");
        }
        if error.kind() == Kind::Damaged {
            // closed before another one is opened: closing removes the file `-wal` by its name
            drop(self.database.take());
            self.state.count_change();
            match self.changes.reopen(Some(error)) {
                Ok(database) => self.database = Some(database),
                Err(error) => tracing::debug!(database = self.code, %error, "failed to replace the index"),
            }
        }
        let mut progress = self.state.lock();
        progress.hurry = false;
        if progress.stop {
            // somebody else's lock may end in time; each try has waited for it
            progress.last_tries += 1;
            let hopeful = matches!(error.kind(), Kind::Busy | Kind::Damaged);
            return progress.last_tries >= LAST_TRIES || !hopeful;
        }
        drop(progress);
        self.state.pause(pause);
        false
    }
}

/// Tells those who wait that nobody will write any more, also when the thread panics.
struct Ended(Arc<State>);

impl Drop for Ended {
    fn drop(&mut self) {
        let mut progress = self.0.lock();
        progress.ended = true;
        // who waits for them learns that nobody does them
        drop(std::mem::take(&mut progress.tasks));
        drop(progress);
        self.0.woken.notify_all();
    }
}
