//! What can go wrong with a database, sorted by what the caller can do about it.

use super::FieldError;

/// What can be done about a [`DbError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Somebody else holds the lock: try again.
    Busy,
    /// No space left: try again when there is some.
    Full,
    /// The file is not what it should be: set it aside, or mend it.
    Damaged,
    /// A newer program wrote it: leave it alone.
    Newer,
    /// The file cannot be opened at all.
    Unreadable,
    /// The record breaks a rule of its table.
    Constraint,
    /// There is no such row.
    Missing,
    /// The row was changed by somebody else.
    Stale,
    /// It took longer than it may: ask for less.
    Slow,
    /// Anything else, such as an error of the disk.
    Other,
}

/// Why a database could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// SQLite refused.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    /// PostgreSQL refused, or cannot be reached.
    #[error("{}", said(.0))]
    Postgres(#[from] tokio_postgres::Error),
    /// It did not answer in time.
    #[error("the database does not answer")]
    Silent,
    /// A value is not of its column's type.
    #[error("table {table}: {source}")]
    Field {
        /// The table it was read from.
        table: &'static str,
        /// The column and what is wrong with its value.
        source: FieldError,
    },
    /// The tables are not those of the definitions.
    #[error("{0}")]
    Schema(String),
    /// Written by a newer program.
    #[error("it has format version {found}, and this program knows versions up to {known}")]
    Newer {
        /// The version in the file.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// There is no row of that key.
    #[error("there is no such row")]
    Missing,
    /// The row has another version than the one seen.
    #[error("the row was changed by somebody else")]
    Stale,
    /// The rows come from somewhere else and cannot be changed here.
    #[error("the rows of {0} cannot be changed here")]
    ReadOnly(&'static str),
    /// The record breaks a rule of its table; for engines that are not SQLite.
    #[error("{0}")]
    Constraint(String),
    /// Too many wait for the writer.
    #[error("too much waits to be written")]
    Crowded,
    /// What happened to somebody else's transaction that this was a part of.
    #[error("{text}")]
    Shared {
        /// What could be done about it.
        kind: Kind,
        /// What it said.
        text: String,
    },
    /// One operation of a batch failed, so none was done.
    #[error("operation {position}: {source}")]
    Batch {
        /// Its place in the batch, from 0.
        position: usize,
        /// Why.
        source: Box<Self>,
    },
    /// The file system refused.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl DbError {
    /// What can be done about it.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Sqlite(error) => error.sqlite_error_code().map_or(Kind::Other, of_code),
            Self::Postgres(error) => error.code().map_or(Kind::Other, of_state),
            Self::Silent => Kind::Slow,
            Self::Field { .. } | Self::Schema(_) => Kind::Damaged,
            Self::Newer { .. } => Kind::Newer,
            Self::Missing => Kind::Missing,
            Self::Stale => Kind::Stale,
            Self::ReadOnly(_) | Self::Constraint(_) => Kind::Constraint,
            Self::Crowded => Kind::Busy,
            Self::Shared { kind, .. } => *kind,
            Self::Batch { source, .. } => source.kind(),
            Self::Io(error) => of_io(error.kind()),
        }
    }

    /// The same, as what happened to one operation of a batch.
    #[must_use]
    pub fn at(self, position: usize) -> Self {
        Self::Batch { position, source: Box::new(self) }
    }

    /// The same for somebody else it happened to.
    #[must_use]
    pub fn shared(&self) -> Self {
        Self::Shared { kind: self.kind(), text: self.to_string() }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the rest of SQLite's codes call for nothing special")]
fn of_code(code: rusqlite::ErrorCode) -> Kind {
    use rusqlite::ErrorCode as Code;
    match code {
        Code::DatabaseBusy | Code::DatabaseLocked => Kind::Busy,
        Code::DiskFull => Kind::Full,
        Code::DatabaseCorrupt | Code::NotADatabase => Kind::Damaged,
        Code::CannotOpen | Code::PermissionDenied => Kind::Unreadable,
        Code::ConstraintViolation | Code::TypeMismatch => Kind::Constraint,
        Code::OperationInterrupted => Kind::Slow,
        _ => Kind::Other,
    }
}

/// What PostgreSQL says, without the values of rows.
fn said(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    match (error.as_db_error(), error.source()) {
        (Some(refused), _) => refused.message().to_owned(),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}

/// By the classes of the SQL standard and PostgreSQL's own.
fn of_state(state: &tokio_postgres::error::SqlState) -> Kind {
    let code = state.code();
    match (code.get(..2).unwrap_or_default(), code) {
        ("22" | "23", _) => Kind::Constraint,
        ("40", _) | (_, "55P03") => Kind::Busy,
        (_, "53100") => Kind::Full,
        (_, "57014") => Kind::Slow,
        ("28", _) | (_, "25006" | "42501") => Kind::Unreadable,
        _ => Kind::Other,
    }
}

fn of_io(kind: std::io::ErrorKind) -> Kind {
    use std::io::ErrorKind as Io;
    if kind == Io::StorageFull || kind == Io::QuotaExceeded {
        Kind::Full
    } else if kind == Io::PermissionDenied || kind == Io::IsADirectory {
        Kind::Unreadable
    } else {
        Kind::Other
    }
}
