//! Records on SQLite: a record is written down once, and table, statements and typed filters follow from it.
//!
//! [`record!`](crate::record) takes a struct with its table name, key, columns and docs and makes a [`Record`]
//! of it. From the definition come the table of a new database ([`Schema`]), the check that an existing one
//! still has that shape, the cached prepared statements of a [`Repository`], and the names and types of a
//! [`Query`]: values are always bound, never written into the statement. An older database is brought up by
//! numbered steps that are only ever added to (`user_version`).
//!
//! One [`Database`] is one connection and belongs to one thread; nothing here is async. What is written often
//! goes through a [`Writer`]: its thread takes whatever has changed since it last looked ([`Changes`]) and
//! writes it in one transaction, so that the callers neither wait for the disk nor see its troubles.
//!
//! Promises: WAL with `synchronous = NORMAL`, so after a crash of the process every committed batch is whole
//! and after a power cut the newest ones may be missing as a whole. Fails with a [`DbError`] whose
//! [`kind`](DbError::kind) says what can be done about it. Knows nothing of caches.

mod error;
mod field;
mod query;
mod record;
mod repository;
mod schema;
mod sqlite;
mod writer;

#[cfg(test)]
mod tests;

pub use error::{DbError, Kind};
pub use field::{Cell, CellSource, Codec, Field, FieldError, Json, KeyParts, Plain, SqlType};
pub use query::{Column, Filter, Order, Query};
pub use record::Record;
pub use repository::Repository;
pub use schema::{ColumnSpec, Schema, Step, TableSpec};
pub use sqlite::Database;
pub use writer::{Changes, Writer};
