//! Which rows of a table, in which order, from where on and how many, for every engine the same.

use std::cmp::Ordering;

use super::dialect::Rendered;
use super::{Cell, CellSource, ColumnSpec, Condition, Operator, Place, TableSpec};

/// By what rows are ordered. No value comes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sort {
    /// The column, or the member of one.
    pub place: Place,
    /// Largest first.
    pub descending: bool,
}

/// Which rows, in which order, and how many of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    /// Only rows that meet this.
    pub condition: Condition,
    /// Their order; none in particular if there is none.
    pub order: Vec<Sort>,
    /// At most so many.
    pub limit: Option<u64>,
    /// Without the first so many.
    pub offset: u64,
}

/// Which way rows in the order of their keys are gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Forth,
    Back,
}

impl Sort {
    /// Smallest first.
    pub const fn ascending(column: &'static str) -> Self {
        Self { place: Place::column(column), descending: false }
    }
}

impl Select {
    /// Every row, in no order.
    pub const fn everything() -> Self {
        Self { condition: Condition::everything(), order: Vec::new(), limit: None, offset: 0 }
    }

    /// The order made complete by the columns of the key, so that no two rows stand at the same place.
    pub fn complete_order(&mut self, table: &TableSpec) {
        for column in table.key_columns() {
            let stands = |sort: &Sort| sort.place.path.is_empty() && sort.place.column == column.name;
            if !self.order.iter().any(stands) {
                self.order.push(Sort::ascending(column.name));
            }
        }
    }

    /// What a row has at the places of the order: where the next page goes on.
    pub fn mark(&self, table: &TableSpec, row: &(impl CellSource + ?Sized)) -> Vec<Cell<'static>> {
        self.order.iter().map(|sort| sort.place.value(table, row).into_owned()).collect()
    }

    /// Only rows that come after the one with this mark.
    pub fn after(&mut self, mark: &[Cell<'static>]) {
        let mut behind = Vec::new();
        for (position, (sort, value)) in self.order.iter().zip(mark).enumerate() {
            let equal = self.order.iter().zip(mark).take(position);
            let mut all: Vec<_> = equal
                .map(|(sort, value)| Condition::Compare(sort.place.clone(), Operator::Equal, value.clone()))
                .collect();
            all.push(beyond(sort, value));
            behind.push(Condition::All(all));
        }
        let before = std::mem::replace(&mut self.condition, Condition::everything());
        self.condition = match behind.pop() {
            // of one column the plain comparison, which an index can answer
            Some(Condition::All(mut only)) if behind.is_empty() && only.len() == 1 => {
                only.insert(0, before);
                Condition::All(only)
            }
            last => {
                behind.extend(last);
                Condition::All(vec![before, Condition::Any(behind)])
            }
        };
    }

    /// Whether rows in the order of their keys are in this order: as they are, or from the last to the first.
    pub(super) fn by_key(&self, table: &TableSpec) -> Option<Direction> {
        let first = self.order.first().is_some_and(|sort| sort.descending);
        let keys: Vec<&ColumnSpec> = table.key_columns().collect();
        let same = |(sort, key): (&Sort, &&ColumnSpec)| {
            sort.place.path.is_empty() && sort.place.column == key.name && sort.descending == first
        };
        let is_so = self.order.len() <= keys.len() && self.order.iter().zip(&keys).all(same);
        is_so.then_some(if first { Direction::Back } else { Direction::Forth })
    }

    pub(super) fn compare(
        &self,
        table: &TableSpec,
        a: &(impl CellSource + ?Sized),
        b: &(impl CellSource + ?Sized),
    ) -> Ordering {
        let by = self.order.iter().map(|sort| {
            let order = sort.place.value(table, a).order(&sort.place.value(table, b));
            if sort.descending { order.reverse() } else { order }
        });
        by.fold(Ordering::Equal, Ordering::then)
    }

    pub(super) fn render(&self, table: &TableSpec, to: &mut Rendered) {
        to.sql.push_str(" WHERE ");
        self.condition.render(table, to);
        for (position, sort) in self.order.iter().enumerate() {
            to.sql.push_str(if position == 0 { " ORDER BY " } else { ", " });
            to.sorted(sort, table);
        }
        if self.limit.is_some() || self.offset > 0 {
            to.limit(self.limit, self.offset);
        }
    }
}

/// Further on in this order than the value.
fn beyond(sort: &Sort, value: &Cell<'static>) -> Condition {
    let place = || sort.place.clone();
    let compare = |operator| Condition::Compare(place(), operator, value.clone());
    match (sort.descending, value) {
        (false, Cell::Null) => Condition::Not(Box::new(Condition::IsNull(place()))),
        (true, Cell::Null) => Condition::Any(Vec::new()),
        (false, _) => compare(Operator::Above),
        (true, _) => Condition::Any(vec![compare(Operator::Below), Condition::IsNull(place())]),
    }
}
