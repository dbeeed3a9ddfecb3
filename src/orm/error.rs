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
    /// Anything else, such as an error of the disk.
    Other,
}

/// Why a database could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// SQLite refused.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
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
    /// The file system refused.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl DbError {
    /// What can be done about it.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Sqlite(error) => error.sqlite_error_code().map_or(Kind::Other, of_code),
            Self::Field { .. } | Self::Schema(_) => Kind::Damaged,
            Self::Newer { .. } => Kind::Newer,
            Self::Io(error) => of_io(error.kind()),
        }
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
