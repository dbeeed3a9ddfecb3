//! The statements by key of one table, prepared when they are first wanted and kept for whoever goes on asking.
//!
//! To take a statement from what the connection keeps and to put it back costs about a tenth of what SQLite needs to
//! add a row.

use std::cell::RefCell;
use std::sync::Arc;

use rusqlite::{CachedStatement, params_from_iter};

use super::{Database, changed};
use crate::orm::statements::Statements;
use crate::orm::{Cell, CellSource, DbError, Outcome, Prepared, TableSpec};

/// What is ready of the statements of one table.
pub(super) struct Kept<'d> {
    database: &'d Database,
    table: &'static TableSpec,
    texts: Arc<Statements>,
    get: Ready<'d>,
    add: Ready<'d>,
    upsert: Ready<'d>,
}

type Ready<'d> = RefCell<Option<CachedStatement<'d>>>;

impl<'d> Kept<'d> {
    pub(super) fn new(database: &'d Database, table: &'static TableSpec, texts: Arc<Statements>) -> Self {
        let [get, add, upsert] = [(); 3].map(|()| Ready::default());
        Self { database, table, texts, get, add, upsert }
    }

    pub(super) fn is_of(&self, table: &'static TableSpec) -> bool {
        std::ptr::eq(self.table, table)
    }

    fn with<T>(
        &self,
        ready: &Ready<'d>,
        sql: &str,
        work: impl FnOnce(&mut CachedStatement<'d>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let prepare = || self.database.connection.prepare_cached(sql);
        // one that is at work, because what it found led to the next question, is not asked again
        let Ok(mut ready) = ready.try_borrow_mut() else { return work(&mut prepare()?) };
        match &mut *ready {
            Some(statement) => work(statement),
            None => work(ready.insert(prepare()?)),
        }
    }
}

impl Prepared for Kept<'_> {
    fn get(&self, key: &[Cell<'_>], take: &mut dyn FnMut(&dyn CellSource)) -> Result<bool, DbError> {
        self.with(&self.get, &self.texts.get, |statement| {
            let mut rows = statement.query(params_from_iter(key))?;
            let Some(row) = rows.next()? else { return Ok(false) };
            take(row);
            Ok(true)
        })
    }

    fn put(&self, row: &[Cell<'_>], replaces: bool) -> Result<Outcome, DbError> {
        let (ready, sql) =
            if replaces { (&self.upsert, &self.texts.upsert) } else { (&self.add, &self.texts.add) };
        let version = self.with(ready, sql, |statement| {
            let Some(counter) = self.texts.counter else {
                statement.execute(params_from_iter(row))?;
                return Ok(None);
            };
            let first = Cell::Integer(1);
            let cells = row.iter().enumerate().map(|(at, cell)| if at == counter { &first } else { cell });
            if replaces {
                return Ok(Some(statement.query_row(params_from_iter(cells), |row| row.get::<_, i64>(0))?));
            }
            statement.execute(params_from_iter(cells))?;
            Ok(Some(1))
        })?;
        self.database.note(|| changed(self.table, row, self.texts.counter.zip(version)));
        self.database.publish_unless_in_transaction();
        Ok(Outcome::Done(version.map(i64::cast_unsigned)))
    }

    fn together(&self, work: &mut dyn FnMut() -> Result<(), DbError>) -> Result<(), DbError> {
        self.database.transaction(|_| work())
    }
}

impl std::fmt::Debug for Kept<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("table", &self.table.name).finish_non_exhaustive()
    }
}
