//! One database file for many callers: a few connections that read, one thread that writes.
//!
//! Who reads sees everything that was marked before, where that could be written in a moment; a writer in
//! trouble does not hold the readers up. A question that takes longer than its limit is given up. Every call
//! blocks, so none belongs on the runtime's threads.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{
    Cell, CellSource, Condition, Database, DbError, Engine, Location, Operation, Outcome, Schema, Select,
    TableSpec, Writer,
};
use crate::clock::SharedClock;

/// The most connections that read at one time.
const READERS: usize = 4;
/// How long a caller waits for one of them.
const TURN: Duration = Duration::from_secs(5);
/// How long a question may take.
const QUESTION: Duration = Duration::from_secs(5);
/// How long a reader waits for what was changed just before to be written.
const FRESH: Duration = Duration::from_secs(1);

/// A database file in common use.
#[derive(Debug)]
pub struct Shared {
    at: Location,
    schema: &'static Schema,
    writer: Arc<Writer>,
    clock: SharedClock,
    pool: Mutex<Pool>,
    given_back: Condvar,
    /// How long a question may take.
    pub(super) question: Duration,
}

#[derive(Debug, Default)]
struct Pool {
    idle: Vec<Reader>,
    out: usize,
}

/// A connection that reads.
#[derive(Debug)]
struct Reader {
    database: Database,
    /// Of the file it reads: another file may take its place.
    inode: u64,
}

/// A reader that is given back.
struct Lent<'s> {
    reader: Option<Reader>,
    shared: &'s Shared,
}

impl Shared {
    /// The file that this writer writes.
    pub fn new(
        at: impl Into<Location>,
        schema: &'static Schema,
        writer: Arc<Writer>,
        clock: SharedClock,
    ) -> Self {
        let (pool, given_back, question) = (Mutex::default(), Condvar::new(), QUESTION);
        Self { at: at.into(), schema, writer, clock, pool, given_back, question }
    }

    /// The file, and its key.
    pub const fn at(&self) -> &Location {
        &self.at
    }

    /// Looks at the database as of now.
    pub fn look<T>(&self, look: impl FnOnce(&Database) -> Result<T, DbError>) -> Result<T, DbError> {
        if !self.writer.flush_within(FRESH) {
            tracing::debug!("a question is answered without the newest changes");
        }
        let mut lent = self.lend()?;
        let Some(reader) = &mut lent.reader else { return Err(DbError::Crowded) };
        let deadline = self.clock.instant().checked_add(self.question);
        let clock = Arc::clone(&self.clock);
        reader.database.give_up_when(move || deadline.is_some_and(|deadline| clock.instant() > deadline))?;
        look(&reader.database)
    }

    fn lend(&self) -> Result<Lent<'_>, DbError> {
        let full = |pool: &mut Pool| pool.out >= READERS;
        let waited = self.given_back.wait_timeout_while(self.lock(), TURN, full);
        let (mut pool, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return Err(DbError::Crowded);
        }
        pool.out += 1;
        let idle = pool.idle.pop();
        drop(pool);
        let mut lent = Lent { reader: None, shared: self };
        let inode = fs::metadata(self.at.path())?.ino();
        lent.reader = match idle.filter(|reader| reader.inode == inode) {
            Some(reader) => Some(reader),
            None => Some(Reader { database: Database::open_to_read(&self.at, self.schema)?, inode }),
        };
        Ok(lent)
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut pool = self.shared.lock();
        pool.out -= 1;
        pool.idle.extend(self.reader.take());
        drop(pool);
        self.shared.given_back.notify_one();
    }
}

impl Engine for Shared {
    fn get(
        &self,
        table: &'static TableSpec,
        key: &[Cell<'_>],
        take: &mut dyn FnMut(&dyn CellSource),
    ) -> Result<bool, DbError> {
        self.look(|database| database.get(table, key, take))
    }

    fn read(
        &self,
        table: &'static TableSpec,
        select: &Select,
        take: &mut dyn FnMut(&dyn CellSource) -> ControlFlow<()>,
    ) -> Result<(), DbError> {
        self.look(|database| database.read(table, select, take))
    }

    fn count(&self, table: &'static TableSpec, condition: &Condition) -> Result<u64, DbError> {
        self.look(|database| database.count(table, condition))
    }

    fn state(&self) -> Option<u64> {
        self.writer.state()
    }

    fn run(&self, operation: &Operation<'_>) -> Result<Outcome, DbError> {
        let operation = operation.clone().into_owned();
        self.writer.run(move |database| database.run(&operation))
    }

    fn apply(&self, batch: &[Operation<'_>]) -> Result<Vec<Outcome>, DbError> {
        let batch: Vec<_> = batch.iter().map(|operation| operation.clone().into_owned()).collect();
        self.writer.run(move |database| database.apply(&batch))
    }

    fn delete_where(&self, table: &'static TableSpec, condition: &Condition) -> Result<u64, DbError> {
        let condition = condition.clone();
        self.writer.run(move |database| database.delete_where(table, &condition))
    }
}
