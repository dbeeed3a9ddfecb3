//! The rows of one record in one database: get, add, upsert, delete, find, count.
//!
//! The texts of the statements are made once per repository and the prepared statements are kept by the
//! connection, so making a repository for each batch costs little.

use std::marker::PhantomData;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Row, ToSql, params_from_iter};

use super::query::Rendered;
use super::{Cell, CellSource, Database, DbError, Filter, KeyParts, Query, Record};

/// The rows of `R` in one database.
#[derive(Debug)]
pub struct Repository<'d, R> {
    database: &'d Database,
    sql: Statements,
    record: PhantomData<fn() -> R>,
}

#[derive(Debug)]
struct Statements {
    select: String,
    get: String,
    add: String,
    upsert: String,
    delete: String,
}

impl<'d, R: Record> Repository<'d, R> {
    /// The rows in this database.
    pub fn new(database: &'d Database) -> Self {
        Self { database, sql: Statements::of::<R>(), record: PhantomData }
    }

    /// The row of this key.
    pub fn get(&self, key: &R::Key) -> Result<Option<R>, DbError> {
        let mut found = None;
        self.read(&self.sql.get, &key.parts(), |record| found = Some(record))?;
        Ok(found)
    }

    /// Adds a row; an error of kind [`Constraint`](super::Kind::Constraint) if its key is taken.
    pub fn add(&self, record: &R) -> Result<(), DbError> {
        self.execute(&self.sql.add, &record.encode()).map(|_one| ())
    }

    /// Adds a row, or replaces the one of its key.
    pub fn upsert(&self, record: &R) -> Result<(), DbError> {
        self.execute(&self.sql.upsert, &record.encode()).map(|_one| ())
    }

    /// Deletes the row of this key; true if there was one.
    pub fn delete(&self, key: &R::Key) -> Result<bool, DbError> {
        self.execute(&self.sql.delete, &key.parts()).map(|rows| rows > 0)
    }

    /// Deletes the rows that meet the condition; how many.
    pub fn delete_where(&self, filter: &Filter<R>) -> Result<usize, DbError> {
        let mut rendered =
            Rendered { sql: format!("DELETE FROM \"{}\" WHERE ", R::TABLE.name), values: Vec::new() };
        filter.render(&mut rendered);
        self.execute(&rendered.sql, &rendered.values)
    }

    /// All rows, each handed to `take`, in no order.
    pub fn each(&self, take: impl FnMut(R)) -> Result<(), DbError> {
        self.read(&self.sql.select, &[], take)
    }

    /// All rows, in no order.
    pub fn all(&self) -> Result<Vec<R>, DbError> {
        let mut all = Vec::new();
        self.each(|record| all.push(record))?;
        Ok(all)
    }

    /// The rows a query asks for.
    pub fn find(&self, query: &Query<R>) -> Result<Vec<R>, DbError> {
        let mut rendered = Rendered { sql: self.sql.select.clone(), values: Vec::new() };
        query.render(&mut rendered);
        let mut found = Vec::new();
        self.read(&rendered.sql, &rendered.values, |record| found.push(record))?;
        Ok(found)
    }

    /// How many rows meet the condition.
    pub fn count(&self, filter: &Filter<R>) -> Result<u64, DbError> {
        let start = format!("SELECT count(*) FROM \"{}\" WHERE ", R::TABLE.name);
        let mut rendered = Rendered { sql: start, values: Vec::new() };
        filter.render(&mut rendered);
        let mut statement = self.database.connection().prepare_cached(&rendered.sql)?;
        let count: i64 = statement.query_row(params_from_iter(&rendered.values), |row| row.get(0))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Whether there is a row of this key.
    pub fn exists(&self, key: &R::Key) -> Result<bool, DbError> {
        let mut statement = self.database.connection().prepare_cached(&self.sql.get)?;
        Ok(statement.exists(params_from_iter(&key.parts()))?)
    }

    fn execute(&self, sql: &str, values: &[Cell<'_>]) -> Result<usize, DbError> {
        let mut statement = self.database.connection().prepare_cached(sql)?;
        Ok(statement.execute(params_from_iter(values))?)
    }

    fn read(&self, sql: &str, values: &[Cell<'_>], mut take: impl FnMut(R)) -> Result<(), DbError> {
        let mut statement = self.database.connection().prepare_cached(sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            take(R::decode(row).map_err(|source| DbError::Field { table: R::TABLE.name, source })?);
        }
        Ok(())
    }
}

impl Statements {
    fn of<R: Record>() -> Self {
        let table = R::TABLE.name;
        let names: Vec<String> =
            R::TABLE.columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
        let keys: Vec<String> = R::TABLE.key_columns().map(|column| format!("\"{}\"", column.name)).collect();
        let by_key: Vec<String> = keys.iter().map(|key| format!("{key} = ?")).collect();
        let by_key = by_key.join(" AND ");
        let others = R::TABLE.columns.iter().filter(|column| !column.is_key);
        let replaced: Vec<String> = others.map(|c| format!("\"{0}\" = excluded.\"{0}\"", c.name)).collect();
        let conflict = match replaced.as_slice() {
            [] => "DO NOTHING".to_owned(),
            replaced => format!("DO UPDATE SET {}", replaced.join(", ")),
        };
        let (all, marks) = (names.join(", "), vec!["?"; names.len()].join(", "));
        let select = format!("SELECT {all} FROM \"{table}\"");
        let add = format!("INSERT INTO \"{table}\" ({all}) VALUES ({marks})");
        Self {
            get: format!("{select} WHERE {by_key}"),
            upsert: format!("{add} ON CONFLICT ({}) {conflict}", keys.join(", ")),
            delete: format!("DELETE FROM \"{table}\" WHERE {by_key}"),
            select,
            add,
        }
    }
}

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl CellSource for Row<'_> {
    fn cell(&self, position: usize) -> Cell<'_> {
        match self.get_ref(position) {
            Ok(ValueRef::Integer(number)) => Cell::Integer(number),
            Ok(ValueRef::Real(number)) => Cell::Real(number),
            // text that is not UTF-8 is damage: as bytes it fails where text is wanted
            Ok(ValueRef::Text(text)) => {
                std::str::from_utf8(text).map_or_else(|_| Cell::Blob(text.into()), |t| Cell::Text(t.into()))
            }
            Ok(ValueRef::Blob(bytes)) => Cell::Blob(bytes.into()),
            Ok(ValueRef::Null) | Err(_) => Cell::Null,
        }
    }
}
