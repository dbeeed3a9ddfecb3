//! Rows in memory: an engine without files, and one whose rows are computed when they are asked for.
//!
//! The rows of a table lie in the order of their keys. What a definition says in SQL (`check`, `references`)
//! is for the databases; what it says by type, length, key and uniqueness holds here too.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError, RwLock};

use super::sqlite::{changed, owned};
use super::{
    Action, Cell, CellSource, Change, ColumnSpec, Condition, DbError, Engine, Feed, Operation, Outcome,
    Record, Select, SqlType, TableSpec,
};

/// An engine whose rows end with it.
#[derive(Debug, Default)]
pub struct Memory {
    tables: RwLock<HashMap<&'static str, Rows>>,
    feed: Option<Feed>,
}

/// An engine that shows what a function knows: rows that live elsewhere. They cannot be changed through it.
pub struct Computed {
    rows: Box<dyn Fn() -> Vec<Row> + Send + Sync>,
}

type Row = Arc<[Cell<'static>]>;

#[derive(Debug, Default)]
struct Rows {
    by_key: BTreeMap<Key, Row>,
    /// The key of the row that has a value in a column where no two rows share one.
    by_unique: HashMap<usize, BTreeMap<Key, Key>>,
}

/// A key in the order of the engines.
#[derive(Debug, Clone)]
struct Key(Vec<Cell<'static>>);

/// How to undo one operation.
type Undo = (&'static TableSpec, Key, Option<Row>);

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

    fn rows<T>(&self, table: &TableSpec, look: impl FnOnce(&Rows) -> T) -> T {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let none = Rows::default();
        look(tables.get(table.name).unwrap_or(&none))
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
        let fitting = self.rows(table, |rows| fitting(table, select, rows.by_key.values()));
        hand_out(table, select, fitting, take);
        Ok(())
    }

    fn count(&self, table: &'static TableSpec, condition: &Condition) -> Result<u64, DbError> {
        Ok(self.rows(table, |rows| count(table, condition, rows.by_key.values())))
    }

    fn run(&self, operation: &Operation<'_>) -> Result<Outcome, DbError> {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let (mut undo, mut told) = (Vec::new(), Vec::new());
        let outcome = tables.entry(operation.table.name).or_default().run(operation, &mut undo, &mut told)?;
        self.feed.iter().for_each(|feed| feed.publish(std::mem::take(&mut told)));
        Ok(outcome)
    }

    fn apply(&self, batch: &[Operation<'_>]) -> Result<Vec<Outcome>, DbError> {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let (mut undo, mut told, mut outcomes) = (Vec::new(), Vec::new(), Vec::new());
        for (position, operation) in batch.iter().enumerate() {
            let rows = tables.entry(operation.table.name).or_default();
            let done = rows.run(operation, &mut undo, &mut told).map_err(|error| error.at(position));
            match done.and_then(|outcome| outcome.in_batch(position)) {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => {
                    undo.into_iter().rev().for_each(|undo| put_back(&mut tables, undo));
                    return Err(error);
                }
            }
        }
        self.feed.iter().for_each(|feed| feed.publish(std::mem::take(&mut told)));
        Ok(outcomes)
    }

    fn delete_where(&self, table: &'static TableSpec, condition: &Condition) -> Result<u64, DbError> {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let rows = tables.entry(table.name).or_default();
        let gone: Vec<Key> = rows
            .by_key
            .iter()
            .filter(|(_, row)| condition.holds(table, row.as_ref()))
            .map(|(key, _)| key.clone())
            .collect();
        for key in &gone {
            rows.remove(table, key);
        }
        if let Some(feed) = &self.feed {
            feed.publish(gone.iter().map(|key| Change { table, key: key.0.clone(), row: None }).collect());
        }
        Ok(u64::try_from(gone.len()).unwrap_or(u64::MAX))
    }
}

fn put_back(tables: &mut HashMap<&'static str, Rows>, (table, key, before): Undo) {
    let rows = tables.entry(table.name).or_default();
    match before {
        Some(row) => rows.insert(table, key, row),
        None => drop(rows.remove(table, &key)),
    }
}

// === impl Rows ===

impl Rows {
    fn run(
        &mut self,
        operation: &Operation<'_>,
        undo: &mut Vec<Undo>,
        told: &mut Vec<Change>,
    ) -> Result<Outcome, DbError> {
        let table = operation.table;
        let (key, row, seen) = match &operation.action {
            Action::Add(row) => {
                let key = Key::of_row(table, row);
                if self.by_key.contains_key(&key) {
                    return Err(DbError::Constraint(format!("the key is taken in {}", table.name)));
                }
                (key, Some(row.iter().map(|cell| cell.clone().into_owned()).collect()), None)
            }
            Action::Upsert(row) => {
                let all = row.iter().map(|cell| cell.clone().into_owned()).collect();
                (Key::of_row(table, row), Some(all), None)
            }
            Action::Update { key, changes, seen } => {
                let key = Key::of(key);
                let Some(before) = self.by_key.get(&key) else { return Ok(Outcome::Missing) };
                let mut row: Vec<Cell<'static>> = before.to_vec();
                for (at, cell) in changes {
                    row.get_mut(*at).into_iter().for_each(|old| *old = cell.clone().into_owned());
                }
                (key, Some(row), *seen)
            }
            Action::Delete { key, seen } => (Key::of(key), None, *seen),
        };
        self.set(table, key, row, seen, (undo, told))
    }

    fn set(
        &mut self,
        table: &'static TableSpec,
        key: Key,
        row: Option<Vec<Cell<'static>>>,
        seen: Option<u64>,
        (undo, told): (&mut Vec<Undo>, &mut Vec<Change>),
    ) -> Result<Outcome, DbError> {
        let before = self.by_key.get(&key).cloned();
        let counter = table.columns.iter().position(|column| column.is_version);
        let version = before.as_ref().zip(counter).and_then(|(row, at)| row.get(at).map(version_of));
        if let (Some(seen), Some(version)) = (seen, version)
            && seen != version
        {
            return Ok(Outcome::Stale);
        }
        let Some(mut row) = row else {
            let Some(before) = self.remove(table, &key) else { return Ok(Outcome::Missing) };
            told.push(Change { table, key: key.0.clone(), row: None });
            undo.push((table, key, Some(before)));
            return Ok(Outcome::Done(None));
        };
        let next = counter.map(|_| version.map_or(1, |version| version + 1));
        if let (Some(at), Some(next)) = (counter, next) {
            row.get_mut(at).into_iter().for_each(|cell| *cell = Cell::Integer(next.cast_signed()));
        }
        self.check(table, &key, &row)?;
        told.push(changed(table, &row, None));
        undo.push((table, key.clone(), before));
        self.insert(table, key, row.into());
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
            let taken = value.and_then(|value| self.by_unique.get(&at)?.get(&Key(vec![value.clone()])));
            if taken.is_some_and(|theirs| theirs != key) {
                return Err(DbError::Constraint(format!("{} is taken in {}", column.name, table.name)));
            }
        }
        Ok(())
    }

    fn insert(&mut self, table: &TableSpec, key: Key, row: Row) {
        self.remove(table, &key);
        for (at, _) in unique(table) {
            if let Some(value) = row.get(at).filter(|value| **value != Cell::Null) {
                self.by_unique.entry(at).or_default().insert(Key(vec![value.clone()]), key.clone());
            }
        }
        self.by_key.insert(key, row);
    }

    fn remove(&mut self, table: &TableSpec, key: &Key) -> Option<Row> {
        let row = self.by_key.remove(key)?;
        for (at, _) in unique(table) {
            if let (Some(value), Some(values)) = (row.get(at), self.by_unique.get_mut(&at)) {
                values.remove(&Key(vec![value.clone()]));
            }
        }
        Some(row)
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
        hand_out(table, select, fitting(table, select, (self.rows)().iter()), take);
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

fn fitting<'r>(table: &TableSpec, select: &Select, rows: impl Iterator<Item = &'r Row>) -> Vec<Row> {
    let fitting = rows.filter(|row| select.condition.holds(table, row.as_ref())).cloned();
    if !select.order.is_empty() {
        return fitting.collect();
    }
    // in no order the first ones will do
    let enough = select.limit.map_or(u64::MAX, |limit| limit.saturating_add(select.offset));
    fitting.take(usize::try_from(enough).unwrap_or(usize::MAX)).collect()
}

fn hand_out(
    table: &TableSpec,
    select: &Select,
    mut rows: Vec<Row>,
    take: &mut dyn FnMut(&dyn CellSource) -> ControlFlow<()>,
) {
    if !select.order.is_empty() {
        rows.sort_by(|a, b| select.compare(table, a.as_ref(), b.as_ref()));
    }
    let skip = usize::try_from(select.offset).unwrap_or(usize::MAX);
    let limit = select.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    for row in rows.iter().skip(skip).take(limit) {
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
        Self(parts.iter().map(|part| part.clone().into_owned()).collect())
    }

    fn of_row(table: &TableSpec, row: &[Cell<'_>]) -> Self {
        let parts = table.columns.iter().zip(row).filter(|(column, _)| column.is_key);
        Self(parts.map(|(_, cell)| cell.clone().into_owned()).collect())
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
        let parts = self.0.iter().zip(&other.0).map(|(a, b)| a.order(b));
        parts.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    }
}
