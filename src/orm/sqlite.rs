//! One connection to one database file: opening and checking it, transactions, the online backup.
//!
//! Opening never changes a file that is not ours, not whole, or newer than this program; the caller decides
//! what becomes of it.

mod cipher;
mod kept;
mod location;
mod rows;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

#[cfg(feature = "sqlcipher")]
use super::Kind;
use super::statements::Statements;
use super::{Change, DbError, Feed, Schema};

pub use cipher::FileKey;
use kept::Kept;
pub use location::Location;
pub(super) use rows::{changed, owned};

/// How long a statement waits for somebody else's lock before it gives up.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);
/// Files up to this size are checked page by page at opening (about 2 ms a MiB); damage in larger ones is found
/// when their rows are read, or when they are written.
const CHECKED_UP_TO: u64 = 16 << 20;
/// The file of the write-ahead log is cut back to this size in bytes after a large batch.
const LOG_LIMIT: i64 = 4 << 20;
/// Steps of SQLite's machine between two looks at the clock.
pub(super) const LOOK_EVERY: std::ffi::c_int = 10_000;
/// More than the statements of all repositories of one database.
const CACHED_STATEMENTS: usize = 64;
/// What stands for the path of a database in memory.
const MEMORY: &str = ":memory:";

/// One connection; belongs to one thread at a time.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    at: Location,
    fresh: bool,
    statements: RefCell<HashMap<&'static str, Arc<Statements>>>,
    /// Where committed changes are told, and those that are not committed yet.
    feed: Option<Feed>,
    pending: RefCell<Vec<Change>>,
}

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// For each transaction the disk, with a rollback journal: nothing committed is ever lost.
    Full,
    /// For nothing: a power cut may damage the file.
    Off,
    /// For nothing, and nobody else may open the file.
    OffExclusive,
}

impl Database {
    /// The same with another care than the usual one of this room, for who measures or fills it.
    pub fn with_care(self, care: Care) -> Result<Self, DbError> {
        // the limit is for a write-ahead log: a rollback journal would be measured at each commit
        self.connection.pragma_update(None, "journal_size_limit", -1)?;
        self.connection.execute_batch(match care {
            Care::Full => "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL",
            Care::Off => "PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF",
            Care::OffExclusive => {
                "PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE"
            }
        })?;
        Ok(self)
    }

    /// Opens a file, or makes it, with the tables of the schema. With a key it is encrypted at rest from then on.
    pub fn open(at: impl Into<Location>, schema: &Schema) -> Result<Self, DbError> {
        let at = at.into();
        #[cfg(feature = "sqlcipher")]
        if let Some(key) = at.key() {
            let opened = Self::open_as_it_is(at.clone(), schema);
            return match opened {
                Err(error) if error.kind() == Kind::Damaged && cipher::seal(at.path(), key)? => {
                    Self::open_as_it_is(at, schema)
                }
                opened => opened,
            };
        }
        Self::open_as_it_is(at, schema)
    }

    fn open_as_it_is(at: Location, schema: &Schema) -> Result<Self, DbError> {
        // made by us: SQLite would make it readable to everybody. A file that is there is never opened but by
        // SQLite: closing it again would end the locks of every other connection of this process
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(at.path()) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
        let length = fs::metadata(at.path())?.len();
        let connection = connect(&at, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        if length > 0 && length <= CHECKED_UP_TO {
            check(&connection)?;
        }
        Self::with(connection, at, schema)
    }

    /// Opens a file that somebody else writes, and only reads it.
    pub fn open_to_read(at: impl Into<Location>, schema: &Schema) -> Result<Self, DbError> {
        let at = at.into();
        let connection = connect(&at, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        schema.found(&connection)?;
        connection.pragma_update(None, "query_only", true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
        Ok(Self::around(connection, at, false))
    }

    /// How long a statement waits for somebody else's lock before it gives up.
    pub fn with_patience(self, patience: Duration) -> Result<Self, DbError> {
        self.connection.busy_timeout(patience)?;
        Ok(self)
    }

    /// A statement that still runs when this says so is given up, with an error of kind
    /// [`Slow`](super::Kind::Slow).
    pub fn give_up_when(&mut self, late: impl FnMut() -> bool + Send + 'static) -> Result<(), DbError> {
        Ok(self.connection.progress_handler(LOOK_EVERY, Some(late))?)
    }

    /// A database that lives in memory and ends with its connection.
    pub fn memory(schema: &Schema) -> Result<Self, DbError> {
        Self::with(Connection::open_in_memory()?, MEMORY.into(), schema)
    }

    /// Whether the tables were made by this opening.
    pub const fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// The file, and its key.
    pub const fn at(&self) -> &Location {
        &self.at
    }

    /// Runs `work` in one transaction: all of it is kept, or nothing if it fails. Inside another transaction
    /// it is a part of that one.
    pub fn transaction<T>(&self, work: impl FnOnce(&Self) -> Result<T, DbError>) -> Result<T, DbError> {
        if !self.connection.is_autocommit() {
            return work(self);
        }
        // the lock is taken at once: a transaction that begins by reading could not get it later
        let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
        let result = work(self).and_then(|result| {
            transaction.commit()?;
            Ok(result)
        });
        let pending = self.pending.take();
        if let (Ok(_), Some(feed)) = (&result, &self.feed) {
            feed.publish(pending);
        }
        result
    }

    /// Runs `work` as a part of a transaction that can fail alone: what it did is undone, the rest stays.
    pub fn part<T>(&self, work: impl FnOnce(&Self) -> Result<T, DbError>) -> Result<T, DbError> {
        let noted = self.pending.borrow().len();
        self.connection.execute_batch("SAVEPOINT part")?;
        let result = work(self);
        if result.is_err() {
            self.pending.borrow_mut().truncate(noted);
            self.connection.execute_batch("ROLLBACK TO part")?;
        }
        self.connection.execute_batch("RELEASE part")?;
        result
    }

    /// From now on committed changes are told here.
    pub fn tell(&mut self, feed: Feed) {
        self.feed = Some(feed);
    }

    /// An error of kind [`Damaged`](super::Kind::Damaged) if somebody took the file away: what is written
    /// would end with this connection.
    pub fn is_in_place(&self) -> Result<(), DbError> {
        match fs::symlink_metadata(self.at.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.at.path() != Path::new(MEMORY) => {
                Err(DbError::Schema("the file is gone".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Copies the database, as of now, into a file beside `to`, and puts it in the place of `to` when it is
    /// whole and on disk.
    pub fn backup(&self, to: &Path) -> Result<(), DbError> {
        let half = make_beside(to)?;
        let half_at = Location::from(&half).sealed_with(self.at.key().cloned());
        let mut copy = connect(&half_at, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // all pages in one step: a copy in several would start over whenever somebody writes
        if Backup::new(&self.connection, &mut copy)?.step(-1)? != StepResult::Done {
            return Err(io::Error::other("somebody else holds the lock").into());
        }
        copy.close().map_err(|(_, error)| error)?;
        File::open(&half)?.sync_all()?;
        fs::rename(&half, to)?;
        if let Some(folder) = to.parent() {
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }

    /// Notes a change that is told when it is committed; costs nothing where nobody listens.
    fn note(&self, change: impl FnOnce() -> Change) {
        if self.feed.is_some() {
            self.pending.borrow_mut().push(change());
        }
    }

    fn publish_unless_in_transaction(&self) {
        if self.connection.is_autocommit()
            && let Some(feed) = &self.feed
        {
            feed.publish(self.pending.take());
        }
    }

    #[cfg(test)]
    pub(super) const fn connection(&self) -> &Connection {
        &self.connection
    }

    fn with(connection: Connection, at: Location, schema: &Schema) -> Result<Self, DbError> {
        // a file that is not ours is left as it is: the mode would be written into it
        schema.found(&connection)?;
        let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
        tracing::trace!(mode, "journal mode");
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "journal_size_limit", LOG_LIMIT)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
        let fresh = schema.apply(&connection)?;
        Ok(Self::around(connection, at, fresh))
    }

    fn around(connection: Connection, at: Location, fresh: bool) -> Self {
        let (statements, pending) = (RefCell::default(), RefCell::default());
        Self { connection, at, fresh, statements, feed: None, pending }
    }
}

/// A connection to a file that is there.
pub(super) fn connect(at: &Location, flags: OpenFlags) -> Result<Connection, DbError> {
    let connection = Connection::open_with_flags(at.path(), flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    if let Some(key) = at.key() {
        key.unlock(&connection)?;
    }
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

/// An empty file beside this one, for what is to take its place.
fn make_beside(path: &Path) -> Result<PathBuf, DbError> {
    let half = with_suffix(path, ".new");
    match fs::remove_file(&half) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&half)?;
    Ok(half)
}

/// The same path with something added to its last name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn check(connection: &Connection) -> Result<(), DbError> {
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict == "ok" { Ok(()) } else { Err(DbError::Schema(format!("its pages are damaged ({verdict})"))) }
}
