//! A database as an engine: rows by prepared statements that the connection keeps, values always bound.

use std::ops::ControlFlow;
use std::sync::Arc;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Row, ToSql, params_from_iter};

use super::{Database, Kept};
use crate::orm::dialect::{Dialect, Rendered};
use crate::orm::statements::{self, Statements};
use crate::orm::{
    Action, Cell, CellSource, Change, Column, Condition, DbError, Engine, Field, Operation, Outcome,
    Prepared, Record, Select, TableSpec,
};

impl Engine for Database {
    fn get(
        &self,
        table: &'static TableSpec,
        key: &[Cell<'_>],
        take: &mut dyn FnMut(&dyn CellSource),
    ) -> Result<bool, DbError> {
        self.kept(table).get(key, take)
    }

    fn read(
        &self,
        table: &'static TableSpec,
        select: &Select,
        take: &mut dyn FnMut(&dyn CellSource) -> ControlFlow<()>,
    ) -> Result<(), DbError> {
        let mut rendered = Rendered::new(Dialect::Sqlite, self.texts(table).select.clone());
        select.render(table, &mut rendered);
        let mut statement = self.connection.prepare_cached(&rendered.sql)?;
        let mut rows = statement.query(params_from_iter(&rendered.values))?;
        while let Some(row) = rows.next()? {
            if take(row).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn count(&self, table: &'static TableSpec, condition: &Condition) -> Result<u64, DbError> {
        let start = format!("SELECT count(*) FROM \"{}\" WHERE ", table.name);
        let mut rendered = Rendered::new(Dialect::Sqlite, start);
        condition.render(table, &mut rendered);
        let mut statement = self.connection.prepare_cached(&rendered.sql)?;
        let count: i64 = statement.query_row(params_from_iter(&rendered.values), |row| row.get(0))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    fn run(&self, operation: &Operation<'_>) -> Result<Outcome, DbError> {
        let table = operation.table;
        let outcome = match &operation.action {
            Action::Add(row) => return self.kept(table).put(row, false),
            Action::Upsert(row) => return self.kept(table).put(row, true),
            Action::Update { key, changes, seen } => self.update(table, key, changes, *seen)?,
            Action::Delete { key, seen } => self.delete(table, key, *seen)?,
        };
        self.publish_unless_in_transaction();
        Ok(outcome)
    }

    fn apply(&self, batch: &[Operation<'_>]) -> Result<Vec<Outcome>, DbError> {
        self.transaction(|database| {
            // rows of one table mostly come one after the other: their statement is not put away in between
            let mut last: Option<Kept<'_>> = None;
            let each = batch.iter().enumerate().map(|(position, operation)| {
                let (Action::Add(row) | Action::Upsert(row)) = &operation.action else {
                    return database.run(operation).map_err(|error| error.at(position))?.in_batch(position);
                };
                let kept = match last.take().filter(|kept| kept.is_of(operation.table)) {
                    Some(kept) => last.insert(kept),
                    None => last.insert(database.kept(operation.table)),
                };
                let replaces = matches!(operation.action, Action::Upsert(_));
                kept.put(row, replaces).map_err(|error| error.at(position))?.in_batch(position)
            });
            each.collect()
        })
    }

    fn delete_where(&self, table: &'static TableSpec, condition: &Condition) -> Result<u64, DbError> {
        let mut rendered = Rendered::new(Dialect::Sqlite, format!("DELETE FROM \"{}\" WHERE ", table.name));
        condition.render(table, &mut rendered);
        rendered.sql.push_str(&self.texts(table).returning_key);
        let mut statement = self.connection.prepare_cached(&rendered.sql)?;
        let mut rows = statement.query(params_from_iter(&rendered.values))?;
        let mut deleted = 0;
        while let Some(row) = rows.next()? {
            let parts = 0..table.key_columns().count();
            self.note(|| Change {
                table,
                key: parts.map(|at| row.cell(at).into_owned()).collect(),
                row: None,
            });
            deleted += 1;
        }
        drop(rows);
        self.publish_unless_in_transaction();
        Ok(deleted)
    }

    fn prepared(&self, table: &'static TableSpec) -> Option<Box<dyn Prepared + '_>> {
        Some(Box::new(self.kept(table)))
    }
}

impl Database {
    /// All values of one column, each handed to `take` until it has enough.
    pub fn column<R: Record, T: Field>(
        &self,
        column: Column<R, T>,
        mut take: impl FnMut(T) -> ControlFlow<()>,
    ) -> Result<(), DbError> {
        let (table, column) = (R::TABLE.name, column.name());
        let mut statement =
            self.connection.prepare_cached(&format!("SELECT \"{column}\" FROM \"{table}\""))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let value = T::decode(row.cell(0))
                .map_err(|error| DbError::Field { table, source: error.in_column(column) })?;
            if take(value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn kept(&self, table: &'static TableSpec) -> Kept<'_> {
        Kept::new(self, table, self.texts(table))
    }

    fn texts(&self, table: &'static TableSpec) -> Arc<Statements> {
        let mut known = self.statements.borrow_mut();
        Arc::clone(
            known.entry(table.name).or_insert_with(|| Arc::new(Statements::of(table, Dialect::Sqlite))),
        )
    }

    fn update(
        &self,
        table: &'static TableSpec,
        key: &[Cell<'_>],
        changes: &[(usize, Cell<'_>)],
        seen: Option<u64>,
    ) -> Result<Outcome, DbError> {
        let columns = changes.iter().filter_map(|(at, cell)| Some((table.columns.get(*at)?, cell)));
        let columns: Vec<_> = columns.filter(|(column, _)| !column.is_version).collect();
        let counter = table.version_column().map(|column| column.name);
        if columns.is_empty() && counter.is_none() {
            return Ok(if self.has(table, key)? { Outcome::Done(None) } else { Outcome::Missing });
        }
        let names: Vec<&str> = columns.iter().map(|(column, _)| column.name).collect();
        let (sql, seen) = with_version(statements::update(table, Dialect::Sqlite, &names), counter, seen);
        let values = columns.iter().map(|(_, cell)| (*cell).borrowed());
        let values = values.chain(key.iter().map(Cell::borrowed)).chain(seen);
        let done = self.connection.prepare_cached(&sql)?.execute(params_from_iter(values))?;
        if done == 0 {
            return self.not_done(table, key);
        }
        let mut now = Vec::new();
        self.get(table, key, &mut |row| now = owned(table, row))?;
        let version = table.version_column().and_then(|column| table.position(column.name));
        let version = version.and_then(|at| now.get(at)).and_then(as_version);
        self.note(|| changed(table, &now, None));
        Ok(Outcome::Done(version))
    }

    fn delete(
        &self,
        table: &'static TableSpec,
        key: &[Cell<'_>],
        seen: Option<u64>,
    ) -> Result<Outcome, DbError> {
        let counter = table.version_column().map(|column| column.name);
        let (sql, seen) = with_version(self.texts(table).delete.clone(), counter, seen);
        let values = key.iter().map(Cell::borrowed).chain(seen);
        let done = self.connection.prepare_cached(&sql)?.execute(params_from_iter(values))?;
        if done == 0 {
            return self.not_done(table, key);
        }
        self.note(|| Change {
            table,
            key: key.iter().map(|part| part.clone().into_owned()).collect(),
            row: None,
        });
        Ok(Outcome::Done(None))
    }

    /// Why nothing was done: there is no such row, or it is another one by now.
    fn not_done(&self, table: &'static TableSpec, key: &[Cell<'_>]) -> Result<Outcome, DbError> {
        Ok(if self.has(table, key)? { Outcome::Stale } else { Outcome::Missing })
    }

    fn has(&self, table: &'static TableSpec, key: &[Cell<'_>]) -> Result<bool, DbError> {
        self.get(table, key, &mut |_row| {})
    }
}

/// A statement that does nothing where the row has another version than the one seen.
fn with_version(
    mut sql: String,
    counter: Option<&str>,
    seen: Option<u64>,
) -> (String, Option<Cell<'static>>) {
    match (counter, seen) {
        (Some(name), Some(version)) => {
            sql.push_str(&format!(" AND \"{name}\" = ?"));
            (sql, Some(Cell::Integer(version.cast_signed())))
        }
        _ => (sql, None),
    }
}

fn as_version(cell: &Cell<'_>) -> Option<u64> {
    if let Cell::Integer(number) = cell { Some(number.cast_unsigned()) } else { None }
}

/// All cells of a row.
pub(in crate::orm) fn owned(table: &TableSpec, row: &(impl CellSource + ?Sized)) -> Vec<Cell<'static>> {
    (0..table.columns.len()).map(|at| row.cell(at).into_owned()).collect()
}

/// A row as it is now, with its version where that was counted.
pub(in crate::orm) fn changed(
    table: &'static TableSpec,
    row: &[Cell<'_>],
    version: Option<(usize, i64)>,
) -> Change {
    let mut row: Vec<Cell<'static>> = row.iter().map(|cell| cell.clone().into_owned()).collect();
    if let Some((at, version)) = version
        && let Some(cell) = row.get_mut(at)
    {
        *cell = Cell::Integer(version);
    }
    let key = table.columns.iter().zip(&row).filter(|(column, _)| column.is_key);
    Change { table, key: key.map(|(_, cell)| cell.clone()).collect(), row: Some(row) }
}

impl ToSql for Cell<'_> {
    #[inline]
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
    fn as_row(&self) -> Option<&Row<'_>> {
        Some(self)
    }

    #[inline]
    fn integer(&self, position: usize) -> Result<i64, Cell<'_>> {
        let Ok(ValueRef::Integer(number)) = self.get_ref(position) else { return Err(self.cell(position)) };
        Ok(number)
    }

    #[inline]
    fn string(&self, position: usize) -> Result<String, Cell<'_>> {
        if let Ok(ValueRef::Text(text)) = self.get_ref(position)
            && let Ok(text) = std::str::from_utf8(text)
        {
            return Ok(text.to_owned());
        }
        Err(self.cell(position))
    }

    #[inline]
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
