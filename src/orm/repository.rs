//! The rows of one record in an engine: get, add, update, upsert, delete, find, count, page by page.

use std::cell::OnceCell;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use super::{
    Action, Cell, CellSource, Column, Database, DbError, Engine, Filter, KeyParts as _, Operation, Outcome,
    Prepared, Query, Record, Select,
};

/// The rows of `R` in one engine. The longer one is kept, the less it costs: its statements stay ready.
#[derive(Debug)]
pub struct Repository<'e, R, E: ?Sized = Database> {
    engine: &'e E,
    prepared: OnceCell<Option<Box<dyn Prepared + 'e>>>,
    record: PhantomData<fn() -> R>,
}

/// A part of a long list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<R> {
    /// The rows.
    pub rows: Vec<R>,
    /// Where the next part begins; none if this was the last.
    pub next: Option<Vec<Cell<'static>>>,
}

impl<'e, R: Record, E: Engine + ?Sized> Repository<'e, R, E> {
    /// The rows in this engine.
    pub const fn new(engine: &'e E) -> Self {
        Self { engine, prepared: OnceCell::new(), record: PhantomData }
    }

    /// The row of this key.
    pub fn get(&self, key: &R::Key) -> Result<Option<R>, DbError> {
        let mut found = None;
        self.look(key, &mut |row| found = Some(decoded(row)))?;
        found.transpose()
    }

    /// The row that has this value in a column that is unique.
    pub fn get_by<T>(&self, column: Column<R, T>, value: &T) -> Result<Option<R>, DbError> {
        let found = self.find(&Query::everything().filter(column.is(value)).limit(1))?;
        Ok(found.into_iter().next())
    }

    /// Adds a row; an error of kind [`Constraint`](super::Kind::Constraint) if its key is taken.
    pub fn add(&self, record: &R) -> Result<(), DbError> {
        self.put(record, false)
    }

    /// Adds a row, or replaces the one of its key.
    pub fn upsert(&self, record: &R) -> Result<(), DbError> {
        self.put(record, true)
    }

    /// Adds rows in one transaction, all or none; the error says which one could not be added.
    pub fn add_all(&self, records: &[R]) -> Result<(), DbError> {
        let Some(prepared) = self.prepared() else {
            let added = records.iter().map(|record| Action::Add(record.encode()));
            let added = added.map(|action| Operation { table: R::table(), action });
            return self.engine.apply(&added.collect::<Vec<_>>()).map(drop);
        };
        prepared.together(&mut || {
            let mut each = records.iter().enumerate();
            each.try_for_each(|(at, record)| {
                prepared.put(record.cells().as_ref(), false).map(drop).map_err(|error| error.at(at))
            })
        })
    }

    /// Replaces the row of this key; with `seen` only if it has that version still.
    pub fn update(&self, record: &R, seen: Option<u64>) -> Result<Outcome, DbError> {
        let key = record.key();
        let cells = record.encode().into_iter().enumerate();
        let is_key = |at: usize| R::TABLE.columns.get(at).is_none_or(|column| column.is_key);
        let changes = cells.filter(|(at, _)| !is_key(*at)).collect();
        let operation =
            Operation { table: R::table(), action: Action::Update { key: key.parts(), changes, seen } };
        self.engine.run(&operation)
    }

    /// Deletes the row of this key; true if there was one.
    pub fn delete(&self, key: &R::Key) -> Result<bool, DbError> {
        let outcome = self.run(Action::Delete { key: key.parts(), seen: None })?;
        Ok(matches!(outcome, Outcome::Done(_)))
    }

    /// Deletes the rows that meet the condition; how many.
    pub fn delete_where(&self, filter: &Filter<R>) -> Result<u64, DbError> {
        self.engine.delete_where(R::table(), filter.condition())
    }

    /// All rows, each handed to `take`, in no order.
    pub fn each(&self, mut take: impl FnMut(R)) -> Result<(), DbError> {
        self.stream(&Query::everything(), |row| {
            take(row);
            ControlFlow::Continue(())
        })
    }

    /// The rows a query asks for, each handed to `take` until it has enough.
    pub fn stream(&self, query: &Query<R>, take: impl FnMut(R) -> ControlFlow<()>) -> Result<(), DbError> {
        self.select(query.select(), take)
    }

    /// All rows, in no order.
    pub fn all(&self) -> Result<Vec<R>, DbError> {
        self.find(&Query::everything())
    }

    /// The rows a query asks for.
    pub fn find(&self, query: &Query<R>) -> Result<Vec<R>, DbError> {
        let mut found = Vec::new();
        self.stream(query, |row| {
            found.push(row);
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// At most `size` of the rows a query asks for, after those of the page before.
    pub fn page(
        &self,
        query: &Query<R>,
        size: usize,
        after: Option<&[Cell<'static>]>,
    ) -> Result<Page<R>, DbError> {
        let mut select = query.select().clone();
        select.complete_order(R::table());
        if let Some(mark) = after {
            select.after(mark);
        }
        select.limit = Some(u64::try_from(size).unwrap_or(u64::MAX).saturating_add(1));
        let mut page = Page { rows: Vec::new(), next: None };
        let mut more = false;
        self.select(&select, |row| {
            more = page.rows.len() == size;
            if more {
                return ControlFlow::Break(());
            }
            page.rows.push(row);
            ControlFlow::Continue(())
        })?;
        let last = page.rows.last().filter(|_| more);
        page.next = last.map(|row| select.mark(R::table(), row.encode().as_slice()));
        Ok(page)
    }

    /// How many rows meet the condition.
    pub fn count(&self, filter: &Filter<R>) -> Result<u64, DbError> {
        self.engine.count(R::table(), filter.condition())
    }

    /// Whether there is a row of this key.
    pub fn exists(&self, key: &R::Key) -> Result<bool, DbError> {
        self.look(key, &mut |_row| {})
    }

    fn look(&self, key: &R::Key, take: &mut dyn FnMut(&dyn CellSource)) -> Result<bool, DbError> {
        key.with_parts(|key| match self.prepared() {
            Some(prepared) => prepared.get(key, take),
            None => self.engine.get(R::table(), key, take),
        })
    }

    fn put(&self, record: &R, replaces: bool) -> Result<(), DbError> {
        let cells = record.cells();
        let outcome = match self.prepared() {
            Some(prepared) => prepared.put(cells.as_ref(), replaces),
            None if replaces => self.run(Action::Upsert(cells.into())),
            None => self.run(Action::Add(cells.into())),
        };
        outcome.map(drop)
    }

    fn prepared(&self) -> Option<&(dyn Prepared + 'e)> {
        self.prepared.get_or_init(|| self.engine.prepared(R::table())).as_deref()
    }

    fn run(&self, action: Action<'_>) -> Result<Outcome, DbError> {
        self.engine.run(&Operation { table: R::table(), action })
    }

    #[inline]
    fn select(&self, select: &Select, mut take: impl FnMut(R) -> ControlFlow<()>) -> Result<(), DbError> {
        let mut wrong = None;
        self.engine.read(R::table(), select, &mut |row| match decoded(row) {
            Ok(record) => take(record),
            Err(error) => {
                wrong = Some(error);
                ControlFlow::Break(())
            }
        })?;
        wrong.map_or(Ok(()), Err)
    }
}

#[inline]
fn decoded<R: Record>(row: &dyn CellSource) -> Result<R, DbError> {
    let decoded = match row.as_row() {
        Some(row) => R::decode(row),
        None => R::decode(row),
    };
    decoded.map_err(|source| DbError::Field { table: R::TABLE.name, source })
}
