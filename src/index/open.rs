//! Opening the two files: what is damaged, what is done about it, and the sentences for the administrator.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::behind::is_large;
use super::migrations::{INDEX, STATE};
use super::shelf::{IndexShelf, StateShelf};
use crate::clock::Timestamp;
use crate::orm::{Database, DbError, Feed, FileKey, Kind, Location, Schema};

/// Why the index could not be opened or copied. Each is a sentence that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The state folder cannot be used.
    #[error("cannot use the state folder {path}: {source}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A newer program wrote the file.
    #[error("{path} was written by a newer Larder: {source}. {hint}", path = path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Which versions.
        source: DbError,
        /// What to do.
        hint: &'static str,
    },
    /// `state.db` is damaged and must not be thrown away.
    #[error("{path} is damaged: {source}. {hint}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// In which way.
        source: DbError,
        /// What to do.
        hint: String,
    },
    /// Anything else: locked by another program, no space, an error of the disk.
    #[error("cannot open {path}: {source}. {hint}", path = path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What SQLite or the system said.
        source: DbError,
        /// What to do.
        hint: &'static str,
    },
    /// No backup could be made; the one from before is still there.
    #[error("cannot copy {path} to its backup: {source}", path = path.display())]
    Backup {
        /// The file.
        path: PathBuf,
        /// What SQLite or the system said.
        source: DbError,
    },
    /// No thread for writing.
    #[error("cannot start a thread that writes the index: {0}")]
    Thread(io::Error),
}

/// The state folder.
#[derive(Debug)]
pub(super) struct Folder {
    index: Location,
    state: Location,
}

impl Folder {
    pub(super) fn new(path: &Path, key: Option<&FileKey>) -> Result<Self, IndexError> {
        fs::create_dir_all(path).map_err(|source| IndexError::Folder { path: path.to_owned(), source })?;
        let file = |name: &str| Location::from(&path.join(name)).sealed_with(key.cloned());
        Ok(Self { index: file("index.db"), state: file("state.db") })
    }

    /// Opens `index.db`, and reads it unless it is large; a file that is of no use is set aside and made anew.
    pub(super) fn index(&self, now: Timestamp, feed: &Feed) -> Result<(Database, IndexShelf), IndexError> {
        let path = self.index.path();
        let load = |mut database: Database| {
            let shelf = IndexShelf::to_be_filled(&database, now, feed.clone())?;
            if !is_large(path) {
                shelf.fill(&database, &AtomicBool::new(false))?;
                shelf.is_filled_now();
            }
            database.tell(feed.clone());
            Ok((database, shelf))
        };
        let cause = match Database::open(&self.index, &INDEX).and_then(load) {
            Ok(opened) => return Ok(opened),
            Err(cause) if !matches!(cause.kind(), Kind::Damaged | Kind::Unreadable) => {
                return Err(refused(path, cause, "Or move the file away: it will be made anew."));
            }
            Err(cause) => cause,
        };
        let aside = set_aside(path).map_err(|source| IndexError::Open {
            path: path.to_owned(),
            source: source.into(),
            hint: "It is damaged and cannot be moved away: remove it.",
        })?;
        tracing::warn!(file = %path.display(), aside = %aside.display(), %cause, "the index was damaged and is made anew");
        let again = Database::open(&self.index, &INDEX).and_then(load);
        again.map_err(|source| refused(path, source, "Look at its folder."))
    }

    /// Opens and reads `state.db`; a damaged one is left as it is.
    pub(super) fn state(&self, now: Timestamp, feed: &Feed) -> Result<(Database, StateShelf), IndexError> {
        let path = self.state.path();
        let backup = with_suffix(path, ".backup");
        if backup.exists() && fs::metadata(path).is_ok_and(|file| file.len() == 0) {
            return Err(self.damaged(DbError::Schema("it is empty, though it has a backup".to_owned())));
        }
        let load = |mut database: Database| {
            let shelf = StateShelf::load(&database, now, feed.clone())?;
            if self.state.key().is_some() && is_in_clear(&backup) {
                database.backup(&backup)?;
            }
            database.tell(feed.clone());
            Ok((database, shelf))
        };
        let opened = Database::open(&self.state, &STATE).and_then(load);
        opened.map_err(|cause| match cause.kind() {
            Kind::Damaged => self.damaged(cause),
            Kind::Busy
            | Kind::Full
            | Kind::Newer
            | Kind::Unreadable
            | Kind::Constraint
            | Kind::Missing
            | Kind::Stale
            | Kind::Slow
            | Kind::Other => refused(
                path,
                cause,
                "It holds what cannot be made again, such as the bans: do not delete it.",
            ),
        })
    }

    fn damaged(&self, source: DbError) -> IndexError {
        let (path, backup) = (self.state.path().to_owned(), with_suffix(self.state.path(), ".backup"));
        let begin = "move it away to begin with no bans and settings";
        let hint = if backup.exists() {
            format!("Put its backup {} in its place, or {begin}.", backup.display())
        } else {
            format!("Put a backup of yours in its place, or {begin}.")
        };
        let key = match self.state.key() {
            Some(_) => " Or it is sealed with another key than [index] key_file.",
            None if FileKey::IS_OF_USE => " Or it is sealed: name its key in [index] key_file.",
            None => "",
        };
        let hint = hint + key;
        IndexError::Damaged { path, source, hint }
    }
}

/// A new database in the place of one that was found damaged while in use. Without a cause it was set aside
/// before: what is there now is good unless it cannot be opened.
pub(super) fn anew(
    at: &Location,
    schema: &Schema,
    feed: &Feed,
    cause: Option<&DbError>,
) -> Result<Database, DbError> {
    let told = |mut database: Database| {
        database.tell(feed.clone());
        database
    };
    if cause.is_none() {
        match Database::open(at, schema) {
            Err(error) if matches!(error.kind(), Kind::Damaged | Kind::Unreadable) => {}
            result => return result.map(told),
        }
    }
    let (path, aside) = (at.path(), set_aside(at.path())?);
    let cause = cause.map(ToString::to_string);
    tracing::error!(file = %path.display(), aside = %aside.display(), cause, "a damaged database is written anew");
    Database::open(at, schema).map(told)
}

/// Copies a database that is in use to its backup.
pub(super) fn backup(at: &Location) -> Result<PathBuf, IndexError> {
    let (path, to) = (at.path(), with_suffix(at.path(), ".backup"));
    let copied = Database::open(at, &STATE).and_then(|database| database.backup(&to));
    copied.map_err(|source| IndexError::Backup { path: path.to_owned(), source })?;
    Ok(to)
}

/// Whether a file was copied before its original was sealed.
fn is_in_clear(path: &Path) -> bool {
    let mut head = [0; 15];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && &head == b"SQLite format 3"
}

fn refused(path: &Path, source: DbError, last: &'static str) -> IndexError {
    let path = path.to_owned();
    match source.kind() {
        Kind::Newer => IndexError::Newer { path, source, hint: last },
        Kind::Busy => {
            IndexError::Open { path, source, hint: "Another program holds its lock: end that one first." }
        }
        Kind::Full => IndexError::Open { path, source, hint: "Make space on its filesystem." },
        Kind::Unreadable => IndexError::Open { path, source, hint: "Give it to the user Larder runs as." },
        Kind::Damaged | Kind::Constraint | Kind::Missing | Kind::Stale | Kind::Slow | Kind::Other => {
            IndexError::Open { path, source, hint: last }
        }
    }
}

/// Moves a database and its two companions away, to the first name that takes them.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for name in [".damaged", ".damaged.1", ".damaged.2", ".damaged.3"] {
        let aside = with_suffix(path, name);
        match fs::rename(path, &aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => failure = error,
            _ => {
                // left behind, they would be read as a part of the new one
                move_file(&with_suffix(path, "-wal"), &with_suffix(&aside, "-wal"))?;
                move_file(&with_suffix(path, "-shm"), &with_suffix(&aside, "-shm"))?;
                return Ok(aside);
            }
        }
    }
    Err(failure)
}

/// Moves a file over another one; where there is none, the other one goes too.
fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::remove_file(to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
        result => result,
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
