//! What keeps rows: one trait, and what it can be told to do.
//!
//! Engines know tables and cells, not records; [`Repository`](super::Repository) is the typed side. All engines
//! pass the same suite of tests, so whoever writes against the trait need not know which one is behind it.

use std::ops::ControlFlow;

use super::{Cell, CellSource, Condition, DbError, Select, TableSpec};

/// Where rows are kept.
pub trait Engine {
    /// Hands the row of a key to `take`; false if there is none.
    fn get(
        &self,
        table: &'static TableSpec,
        key: &[Cell<'_>],
        take: &mut dyn FnMut(&dyn CellSource),
    ) -> Result<bool, DbError>;

    /// Hands the rows asked for to `take`, one after the other, until it has enough.
    fn read(
        &self,
        table: &'static TableSpec,
        select: &Select,
        take: &mut dyn FnMut(&dyn CellSource) -> ControlFlow<()>,
    ) -> Result<(), DbError>;

    /// How many rows meet a condition.
    fn count(&self, table: &'static TableSpec, condition: &Condition) -> Result<u64, DbError>;

    /// Does one thing, and has done it when this returns.
    fn run(&self, operation: &Operation<'_>) -> Result<Outcome, DbError>;

    /// Does all of these in one transaction, or none of them: one that fails, or finds no row or another
    /// version than expected, is the error and says its place in the list.
    fn apply(&self, batch: &[Operation<'_>]) -> Result<Vec<Outcome>, DbError>;

    /// Deletes the rows that meet a condition; how many.
    fn delete_where(&self, table: &'static TableSpec, condition: &Condition) -> Result<u64, DbError>;

    /// A number that stays the same only while all rows do; none where that is not known without waiting.
    fn state(&self) -> Option<u64> {
        None
    }

    /// The statements of a table, kept ready for who asks again and again; none where there are none to prepare.
    fn prepared(&self, _table: &'static TableSpec) -> Option<Box<dyn Prepared + '_>> {
        None
    }
}

/// What is done with single rows of one table, ready to be done at once.
pub trait Prepared: std::fmt::Debug {
    /// Hands the row of a key to `take`; false if there is none.
    fn get(&self, key: &[Cell<'_>], take: &mut dyn FnMut(&dyn CellSource)) -> Result<bool, DbError>;

    /// Adds a row: the cells of all columns. A key that is taken is an error, or with `replaces` has its row replaced.
    fn put(&self, row: &[Cell<'_>], replaces: bool) -> Result<Outcome, DbError>;

    /// Does what is done meanwhile in one transaction: all of it, or nothing if it fails.
    fn together(&self, work: &mut dyn FnMut() -> Result<(), DbError>) -> Result<(), DbError>;
}

/// One thing to do with one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation<'a> {
    /// The table.
    pub table: &'static TableSpec,
    /// What to do.
    pub action: Action<'a>,
}

/// What to do with a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Action<'a> {
    /// Add it: the cells of all columns. A key that is taken is an error.
    Add(Vec<Cell<'a>>),
    /// Add it, or replace the row of its key.
    Upsert(Vec<Cell<'a>>),
    /// Change some of its columns, by their places.
    Update {
        /// The cells of the key.
        key: Vec<Cell<'a>>,
        /// Which columns get which cells.
        changes: Vec<(usize, Cell<'a>)>,
        /// Only if the row has this version still.
        seen: Option<u64>,
    },
    /// Delete it.
    Delete {
        /// The cells of the key.
        key: Vec<Cell<'a>>,
        /// Only if the row has this version still.
        seen: Option<u64>,
    },
}

/// What came of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Done; the version of the row from now on, where its table counts versions.
    Done(Option<u64>),
    /// There is no such row.
    Missing,
    /// The row has another version by now.
    Stale,
}

impl Operation<'_> {
    /// The same, owned.
    pub fn into_owned(self) -> Operation<'static> {
        let cells = |cells: Vec<Cell<'_>>| cells.into_iter().map(Cell::into_owned).collect();
        let action = match self.action {
            Action::Add(row) => Action::Add(cells(row)),
            Action::Upsert(row) => Action::Upsert(cells(row)),
            Action::Update { key, changes, seen } => {
                let changes = changes.into_iter().map(|(at, cell)| (at, cell.into_owned())).collect();
                Action::Update { key: cells(key), changes, seen }
            }
            Action::Delete { key, seen } => Action::Delete { key: cells(key), seen },
        };
        Operation { table: self.table, action }
    }
}

impl Outcome {
    /// The outcome as one of a batch, where a row that is not as expected undoes the rest.
    pub(super) fn in_batch(self, position: usize) -> Result<Self, DbError> {
        match self {
            Self::Done(_) => Ok(self),
            Self::Missing => Err(DbError::Missing.at(position)),
            Self::Stale => Err(DbError::Stale.at(position)),
        }
    }
}
