//! Rows in memory: an engine without files, and one whose rows are computed when they are asked for.
//!
//! The rows of a table lie in the order of their keys. What a definition says in SQL (`check`, `references`)
//! is for the databases; what it says by type, length, key and uniqueness holds here too.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use super::select::Direction;
use super::sqlite::owned;
use super::{
    Action, Cell, CellSource, Change, ColumnSpec, Condition, DbError, Engine, Feed, Operation, Outcome,
    Record, Select, SqlType, TableSpec,
};

/// An engine whose rows end with it.
#[derive(Debug, Default)]
pub struct Memory {
    tables: RwLock<Tables>,
    /// Counts the changes, before anybody else can see them.
    changed: AtomicU64,
    feed: Option<Feed>,
}

/// An engine that shows what a function knows: rows that live elsewhere. They cannot be changed through it.
pub struct Computed {
    rows: Box<dyn Fn() -> Vec<Row> + Send + Sync>,
}

type Row = Arc<[Cell<'static>]>;

/// Few enough that looking through them is quicker than a hash of their names.
#[derive(Debug, Default)]
struct Tables(Vec<(&'static str, Rows)>);

#[derive(Debug, Default)]
struct Rows {
    by_key: BTreeMap<Key, Row>,
    /// The key of the row that has a value in a column where no two rows share one.
    by_unique: HashMap<usize, BTreeMap<Key, Key>>,
}

/// A key in the order of the engines.
#[derive(Debug, Clone)]
enum Key {
    One(Cell<'static>),
    Several(Vec<Cell<'static>>),
}

/// How to undo one operation.
type Undo = (&'static TableSpec, Key, Option<Row>);

/// What was done to the rows, as far as somebody wants to know.
#[derive(Debug, Default)]
struct Traces {
    undo: Option<Vec<Undo>>,
    told: Option<Vec<Change>>,
}

// === impl Memory ===

impl Memory {
    /// No rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same; what is changed is told here.
    pub fn telling(feed: Feed) -> Self {
        Self { feed: Some(feed), ..Self::default() }
    }

    /// The tables, to be changed.
    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        let tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        self.changed.fetch_add(1, Ordering::Release);
        tables
    }

    fn rows<T>(&self, table: &TableSpec, look: impl FnOnce(&Rows) -> T) -> T {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let none = Rows::default();
        look(tables.get(table).unwrap_or(&none))
    }

    /// What is noted while something is done; whether it may have to be undone.
    fn traces(&self, can_fail_later: bool) -> Traces {
        Traces { undo: can_fail_later.then(Vec::new), told: self.feed.as_ref().map(|_| Vec::new()) }
    }

    fn tell(&self, traces: Traces) {
        if let (Some(feed), Some(told)) = (&self.feed, traces.told) {
            feed.publish(told);
        }
    }
}

impl Engine for Memory {
    fn get(
        &self,
        table: &'static TableSpec,
        key: &[Cell<'_>],
        take: &mut dyn FnMut(&dyn CellSource),
    ) -> Result<bool, DbError> {
        let found = self.rows(table, |rows| rows.by_key.get(&Key::of(key)).cloned());
        Ok(found.map(|row| take(&Borrowed(&row))).is_some())
    }

    fn read(
        &self,
        table: &'static TableSpec,
        select: &Select,
        take: &mut dyn FnMut(&dyn CellSource) -> ControlFlow<()>,
    ) -> Result<(), DbError> {
        // nobody waits for `take`: the rows that are wanted are held, the table is not
        let found = self.rows(table, |rows| {
            let within = rows.within(table, &select.condition);
            match select.by_key(table) {
                Some(Direction::Forth) => wanted(table, select, true, within),
                Some(Direction::Back) => wanted(table, select, true, within.rev()),
                None => wanted(table, select, false, within),
            }
        });
        hand_out(&found, take);
        Ok(())
    }

    fn count(&self, table: &'static TableSpec, condition: &Condition) -> Result<u64, DbError> {
        Ok(self.rows(table, |rows| count(table, condition, rows.within(table, condition))))
    }

    fn state(&self) -> Option<u64> {
        Some(self.changed.load(Ordering::Acquire))
    }

    fn run(&self, operation: &Operation<'_>) -> Result<Outcome, DbError> {
        let mut tables = self.write();
        let mut traces = self.traces(false);
        let outcome = tables.of(operation.table).run(operation, &mut traces)?;
        self.tell(traces);
        Ok(outcome)
    }

    fn apply(&self, batch: &[Operation<'_>]) -> Result<Vec<Outcome>, DbError> {
        let mut tables = self.write();
        let (mut traces, mut outcomes) = (self.traces(true), Vec::with_capacity(batch.len()));
        for (position, operation) in batch.iter().enumerate() {
            let done = tables.of(operation.table).run(operation, &mut traces);
            match done.map_err(|error| error.at(position)).and_then(|outcome| outcome.in_batch(position)) {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => {
                    traces.undo.into_iter().flatten().rev().for_each(|undo| tables.put_back(undo));
                    return Err(error);
                }
            }
        }
        self.tell(traces);
        Ok(outcomes)
    }

    fn delete_where(&self, table: &'static TableSpec, condition: &Condition) -> Result<u64, DbError> {
        let mut tables = self.write();
        let rows = tables.of(table);
        let gone: Vec<Key> = rows
            .within(table, condition)
            .filter(|row| condition.holds(table, row.as_ref()))
            .map(|row| Key::of_row(table, row))
            .collect();
        for key in &gone {
            rows.set(table, key.clone(), None);
        }
        if let Some(feed) = &self.feed {
            feed.publish(
                gone.iter().map(|key| Change { table, key: key.parts().to_vec(), row: None }).collect(),
            );
        }
        Ok(u64::try_from(gone.len()).unwrap_or(u64::MAX))
    }
}

// === impl Tables ===

impl Tables {
    fn get(&self, table: &TableSpec) -> Option<&Rows> {
        self.0.iter().find(|(name, _)| *name == table.name).map(|(_, rows)| rows)
    }

    fn of(&mut self, table: &TableSpec) -> &mut Rows {
        let at = self.0.iter().position(|(name, _)| *name == table.name).unwrap_or(self.0.len());
        if at == self.0.len() {
            self.0.push((table.name, Rows::default()));
        }
        let (_, rows) = self.0.get_mut(at).expect("there is one of each place");
        rows
    }

    fn put_back(&mut self, (table, key, before): Undo) {
        let rows = self.of(table);
        match before {
            Some(row) => drop(rows.set(table, key, Some(row))),
            None => drop(rows.set(table, key, None)),
        }
    }
}

// === impl Rows ===

impl Rows {
    /// The rows that may meet a condition, in the order of their keys: the first part of the key bounds them.
    fn within(
        &self,
        table: &TableSpec,
        condition: &Condition,
    ) -> impl DoubleEndedIterator<Item = &Row> + use<'_> {
        let mut parts = table.key_columns();
        let (first, is_only) = (parts.next(), parts.next().is_none());
        let (least, most) = first.map_or((None, None), |column| condition.span(column.name));
        let bound = |value: &Cell<'static>| {
            let value = value.clone();
            if is_only { Key::One(value) } else { Key::Several(vec![value]) }
        };
        let from = least.map(bound);
        // several parts with the last first one come after it alone
        let to = most.filter(|_| is_only).map(bound);
        let bounds = match (from, to) {
            (Some(from), Some(to)) if from > to => (Bound::Included(from.clone()), Bound::Excluded(from)),
            (from, to) => {
                (from.map_or(Bound::Unbounded, Bound::Included), to.map_or(Bound::Unbounded, Bound::Included))
            }
        };
        self.by_key.range(bounds).map(|(_, row)| row)
    }

    fn run(&mut self, operation: &Operation<'_>, traces: &mut Traces) -> Result<Outcome, DbError> {
        let table = operation.table;
        let (key, seen) = match &operation.action {
            Action::Add(row) | Action::Upsert(row) => (Key::of_row(table, row), None),
            Action::Update { key, seen, .. } | Action::Delete { key, seen } => (Key::of(key), *seen),
        };
        let before = self.by_key.get(&key);
        let counter = table.columns.iter().position(|column| column.is_version);
        let version = before.zip(counter).and_then(|(row, at)| row.get(at).map(version_of));
        if let (Some(seen), Some(version)) = (seen, version)
            && seen != version
        {
            return Ok(Outcome::Stale);
        }
        let mut row: Row = match (&operation.action, before) {
            (Action::Add(_), Some(_)) => {
                return Err(DbError::Constraint(format!("the key is taken in {}", table.name)));
            }
            (Action::Add(row) | Action::Upsert(row), _) => row.iter().map(Cell::to_owned_cell).collect(),
            (Action::Update { .. } | Action::Delete { .. }, None) => return Ok(Outcome::Missing),
            (Action::Update { changes, .. }, Some(before)) => {
                let changed = |at| changes.iter().rev().find(|(changed, _)| *changed == at);
                let cells = before.iter().enumerate();
                cells.map(|(at, old)| changed(at).map_or(old, |(_, new)| new).to_owned_cell()).collect()
            }
            (Action::Delete { .. }, Some(_)) => {
                traces.note(table, &key, None, || self.set(table, key.clone(), None));
                return Ok(Outcome::Done(None));
            }
        };
        let next = counter.map(|_| version.map_or(1, |version| version + 1));
        if let (Some(at), Some(next)) = (counter, next) {
            let cell = Arc::get_mut(&mut row).and_then(|row| row.get_mut(at));
            cell.into_iter().for_each(|cell| *cell = Cell::Integer(next.cast_signed()));
        }
        self.check(table, &key, &row)?;
        traces.note(table, &key, Some(&row), || self.set(table, key.clone(), Some(row.clone())));
        Ok(Outcome::Done(next))
    }

    /// What the types and the uniqueness of the columns ask for.
    fn check(&self, table: &TableSpec, key: &Key, row: &[Cell<'static>]) -> Result<(), DbError> {
        for (column, cell) in table.columns.iter().zip(row) {
            let fits = match cell {
                Cell::Null => column.nullable,
                Cell::Integer(_) => matches!(column.sql_type, SqlType::Integer | SqlType::Real),
                Cell::Real(_) => column.sql_type == SqlType::Real,
                Cell::Text(_) => column.sql_type == SqlType::Text,
                Cell::Blob(_) => column.sql_type == SqlType::Blob,
            };
            let long = *cell != Cell::Null && column.bytes.is_some_and(|bytes| cell.length() != bytes);
            if !fits || long {
                return Err(DbError::Constraint(format!("{} does not fit {}", column.name, table.name)));
            }
        }
        for (at, column) in unique(table) {
            let value = row.get(at).filter(|value| **value != Cell::Null);
            let taken = value.and_then(|value| self.by_unique.get(&at)?.get(&Key::One(value.clone())));
            if taken.is_some_and(|theirs| theirs != key) {
                return Err(DbError::Constraint(format!("{} is taken in {}", column.name, table.name)));
            }
        }
        Ok(())
    }

    /// Makes this the row of the key, or leaves it without one; the row from before.
    fn set(&mut self, table: &TableSpec, key: Key, row: Option<Row>) -> Option<Row> {
        let has_unique = unique(table).next().is_some();
        if !has_unique {
            return match row {
                Some(row) => self.by_key.insert(key, row),
                None => self.by_key.remove(&key),
            };
        }
        let before = self.by_key.remove(&key);
        for (at, _) in unique(table) {
            let values = self.by_unique.entry(at).or_default();
            let value_of = |row: &Row| row.get(at).filter(|value| **value != Cell::Null).cloned();
            if let Some(value) = before.as_ref().and_then(value_of) {
                values.remove(&Key::One(value));
            }
            if let Some(value) = row.as_ref().and_then(value_of) {
                values.insert(Key::One(value), key.clone());
            }
        }
        if let Some(row) = row {
            self.by_key.insert(key, row);
        }
        before
    }
}

// === impl Traces ===

impl Traces {
    /// Has something done to the row of a key, and notes what.
    fn note(
        &mut self,
        table: &'static TableSpec,
        key: &Key,
        row: Option<&Row>,
        set: impl FnOnce() -> Option<Row>,
    ) {
        let before = set();
        if let Some(told) = &mut self.told {
            told.push(Change { table, key: key.parts().to_vec(), row: row.map(|row| row.to_vec()) });
        }
        if let Some(undo) = &mut self.undo {
            undo.push((table, key.clone(), before));
        }
    }
}

fn unique(table: &TableSpec) -> impl Iterator<Item = (usize, &'static ColumnSpec)> {
    table.columns.iter().enumerate().filter(|(_, column)| column.is_unique)
}

fn version_of(cell: &Cell<'_>) -> u64 {
    if let Cell::Integer(number) = cell { number.cast_unsigned() } else { 0 }
}

// === impl Computed ===

impl Computed {
    /// The rows that a function gives.
    pub fn new<R: Record>(rows: impl Fn() -> Vec<R> + Send + Sync + 'static) -> Self {
        let cells =
            move || rows().iter().map(|row| owned(R::table(), row.encode().as_slice()).into()).collect();
        Self { rows: Box::new(cells) }
    }
}

impl Engine for Computed {
    fn get(
        &self,
        table: &'static TableSpec,
        key: &[Cell<'_>],
        take: &mut dyn FnMut(&dyn CellSource),
    ) -> Result<bool, DbError> {
        let wanted = Key::of(key);
        let found = (self.rows)().into_iter().find(|row| Key::of_row(table, row) == wanted);
        Ok(found.map(|row| take(&Borrowed(&row))).is_some())
    }

    fn read(
        &self,
        table: &'static TableSpec,
        select: &Select,
        take: &mut dyn FnMut(&dyn CellSource) -> ControlFlow<()>,
    ) -> Result<(), DbError> {
        hand_out(&wanted(table, select, select.order.is_empty(), (self.rows)().iter()), take);
        Ok(())
    }

    fn count(&self, table: &'static TableSpec, condition: &Condition) -> Result<u64, DbError> {
        Ok(count(table, condition, (self.rows)().iter()))
    }

    fn run(&self, operation: &Operation<'_>) -> Result<Outcome, DbError> {
        Err(DbError::ReadOnly(operation.table.name))
    }

    fn apply(&self, batch: &[Operation<'_>]) -> Result<Vec<Outcome>, DbError> {
        batch.first().map_or(Ok(Vec::new()), |first| Err(DbError::ReadOnly(first.table.name)))
    }

    fn delete_where(&self, table: &'static TableSpec, _condition: &Condition) -> Result<u64, DbError> {
        Err(DbError::ReadOnly(table.name))
    }
}

impl fmt::Debug for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Computed")
    }
}

// === the rows asked for ===

struct Borrowed<'r>(&'r [Cell<'static>]);

impl CellSource for Borrowed<'_> {
    fn cell(&self, position: usize) -> Cell<'_> {
        self.0.cell(position)
    }
}

/// The rows asked for, in their order; `in_order` if that is how they come.
fn wanted<'r>(
    table: &TableSpec,
    select: &Select,
    in_order: bool,
    rows: impl Iterator<Item = &'r Row>,
) -> Vec<Row> {
    let all = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (skip, limit) = (all(select.offset), select.limit.map_or(usize::MAX, all));
    let fitting = rows.filter(|row| select.condition.holds(table, row.as_ref()));
    if in_order {
        return fitting.skip(skip).take(limit).cloned().collect();
    }
    let mut fitting: Vec<&Row> = fitting.collect();
    fitting.sort_by(|a, b| select.compare(table, a.as_ref(), b.as_ref()));
    fitting.into_iter().skip(skip).take(limit).cloned().collect()
}

fn hand_out(rows: &[Row], take: &mut dyn FnMut(&dyn CellSource) -> ControlFlow<()>) {
    for row in rows {
        if take(&Borrowed(row)).is_break() {
            return;
        }
    }
}

fn count<'r>(table: &TableSpec, condition: &Condition, rows: impl Iterator<Item = &'r Row>) -> u64 {
    u64::try_from(rows.filter(|row| condition.holds(table, row.as_ref())).count()).unwrap_or(u64::MAX)
}

// === impl Key ===

impl Key {
    fn of(parts: &[Cell<'_>]) -> Self {
        match parts {
            [one] => Self::One(one.to_owned_cell()),
            several => Self::Several(several.iter().map(Cell::to_owned_cell).collect()),
        }
    }

    fn of_row(table: &TableSpec, row: &[Cell<'_>]) -> Self {
        let mut parts =
            table.columns.iter().zip(row).filter(|(column, _)| column.is_key).map(|(_, cell)| cell);
        match (parts.next(), parts.next()) {
            (Some(one), None) => Self::One(one.to_owned_cell()),
            (first, second) => {
                let all = first.into_iter().chain(second).chain(parts);
                Self::Several(all.map(Cell::to_owned_cell).collect())
            }
        }
    }

    fn parts(&self) -> &[Cell<'static>] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several,
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // most keys are one cell, and a look-up compares a dozen of them
        if let (Self::One(a), Self::One(b)) = (self, other) {
            return a.order(b);
        }
        let mut parts = self.parts().iter().zip(other.parts()).map(|(a, b)| a.order(b));
        let differing = parts.find(|order| order.is_ne());
        differing.unwrap_or_else(|| self.parts().len().cmp(&other.parts().len()))
    }
}
