//! Records: written down once, and table, statements, typed filters and their shape outside follow from it.
//!
//! [`record!`](crate::record) takes a struct with its table name, key, columns and docs and makes a [`Record`]
//! of it. From the definition come the table of a new database ([`Schema`]), the check that an existing one
//! still has that shape, and the names, types and [`Shape`]s that whoever shows the rows needs. An older
//! database is brought up by numbered steps that are only ever added to (`user_version`).
//!
//! Rows are kept by an [`Engine`]: a [`Database`] (an SQLite file, or one in memory; one connection that belongs
//! to one thread), a [`Shared`] file with readers and one writer, the [`Memory`] of this process, a function
//! ([`Computed`]), or a [`Postgres`] database that many nodes share. All take the same [`Condition`]s, [`Select`]s and batches of [`Operation`]s and pass the same
//! tests; a [`Repository`] is the typed side of any of them. Values are always bound, never written into a
//! statement. What is committed is told to a [`Feed`], in order.
//!
//! What is written often goes through a [`Writer`]: its thread takes whatever has changed since it last looked
//! ([`Changes`]) and writes it in one transaction, so that the callers neither wait for the disk nor see its
//! troubles. Nothing here is async to its callers.
//!
//! Promises: WAL with `synchronous = NORMAL`, so after a crash of the process every committed batch is whole
//! and after a power cut the newest ones may be missing as a whole. Fails with a [`DbError`] whose
//! [`kind`](DbError::kind) says what can be done about it. Knows nothing of caches.

mod condition;
mod dialect;
mod engine;
mod error;
mod feed;
mod field;
mod inquiry;
mod memory;
mod pattern;
mod postgres;
mod query;
mod record;
mod repository;
mod schema;
mod select;
mod shape;
mod shared;
mod sqlite;
mod statements;
mod writer;

#[cfg(test)]
mod tests;

pub use condition::{Condition, Operator, Place};
pub use engine::{Action, Engine, Operation, Outcome, Prepared};
pub use error::{DbError, Kind};
pub use feed::{Change, Feed, News};
pub use field::{Cell, CellSource, Codec, Field, FieldError, Json, KeyParts, Plain, SqlType};
pub use inquiry::{Found, inquire};
pub use memory::{Computed, Memory};
pub use pattern::Pattern;
pub use postgres::{Postgres, Server, ServerError};
pub use query::{Column, Filter, Order, Query};
pub use record::Record;
pub use repository::{Page, Repository};
pub use schema::{ColumnSpec, Schema, Step, TableSpec};
pub use select::{Select, Sort};
pub use shape::Shape;
pub use shared::Shared;
pub use sqlite::{Care, Database, FileKey, Location};
pub use writer::{Changes, Writer};

/// For tests of rooms that use a real server.
#[cfg(test)]
pub(crate) mod postgres_tests {
    pub(crate) use super::tests::postgres::{runtime, server_of};
    pub(crate) use super::tests::server::Postgres as Server;
}
