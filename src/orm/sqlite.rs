//! One connection to one database file: opening and checking it, transactions, the online backup.
//!
//! Opening never changes a file that is not ours, not whole, or newer than this program; the caller decides
//! what becomes of it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::{DbError, Schema};

/// How long a statement waits for somebody else's lock before it gives up.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);
/// Files up to this size are checked page by page at opening (about 2 ms a MiB); damage in larger ones is found
/// when their rows are read, or when they are written.
const CHECKED_UP_TO: u64 = 16 << 20;
/// The file of the write-ahead log is cut back to this size in bytes after a large batch.
const LOG_LIMIT: i64 = 4 << 20;
/// More than the statements of all repositories of one database.
const CACHED_STATEMENTS: usize = 64;
/// What stands for the path of a database in memory.
const MEMORY: &str = ":memory:";

/// One connection; belongs to one thread at a time.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    path: PathBuf,
    fresh: bool,
}

impl Database {
    /// Opens a file, or makes it, with the tables of the schema.
    pub fn open(path: &Path, schema: &Schema) -> Result<Self, DbError> {
        // made by us: SQLite would make it readable to everybody. A file that is there is never opened but by
        // SQLite: closing it again would end the locks of every other connection of this process
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
        let length = fs::metadata(path)?.len();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        if length > 0 && length <= CHECKED_UP_TO {
            check(&connection)?;
        }
        Self::with(connection, path, schema)
    }

    /// A database that lives in memory and ends with its connection.
    pub fn memory(schema: &Schema) -> Result<Self, DbError> {
        Self::with(Connection::open_in_memory()?, Path::new(MEMORY), schema)
    }

    /// Whether the tables were made by this opening.
    pub const fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` in one transaction: all of it is kept, or nothing if it fails. Inside another transaction
    /// it is a part of that one.
    pub fn transaction<T>(&self, work: impl FnOnce(&Self) -> Result<T, DbError>) -> Result<T, DbError> {
        if !self.connection.is_autocommit() {
            return work(self);
        }
        // the lock is taken at once: a transaction that begins by reading could not get it later
        let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
        let result = work(self)?;
        transaction.commit()?;
        Ok(result)
    }

    /// An error of kind [`Damaged`](super::Kind::Damaged) if somebody took the file away: what is written
    /// would end with this connection.
    pub fn is_in_place(&self) -> Result<(), DbError> {
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.path != Path::new(MEMORY) => {
                Err(DbError::Schema("the file is gone".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Copies the database, as of now, into a file beside `to`, and puts it in the place of `to` when it is
    /// whole and on disk.
    pub fn backup(&self, to: &Path) -> Result<(), DbError> {
        let half = with_suffix(to, ".new");
        match fs::remove_file(&half) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&half)?;
        let mut copy = Connection::open(&half)?;
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

    pub(super) const fn connection(&self) -> &Connection {
        &self.connection
    }

    fn with(connection: Connection, path: &Path, schema: &Schema) -> Result<Self, DbError> {
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
        Ok(Self { connection, path: path.to_owned(), fresh })
    }
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
