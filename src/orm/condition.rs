//! Conditions on the rows of any table, for every engine the same: SQL with bound values for one, a question
//! asked of each row for another.
//!
//! Only names from the definitions enter a statement's text. A comparison with nothing is false and its
//! opposite true; equality knows nothing as a value. A member of a JSON column is compared as text, and with a
//! number by its size.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::dialect::{As, Rendered};
use super::{Cell, CellSource, Pattern, TableSpec};

/// What is compared: a column, or a member of a JSON column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The column.
    pub column: &'static str,
    /// The names that lead to the member; none for the column itself.
    pub path: Vec<String>,
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// The same.
    Equal,
    /// Another one.
    Other,
    /// Less.
    Below,
    /// Less or the same.
    AtMost,
    /// More.
    Above,
    /// More or the same.
    AtLeast,
}

/// A condition on a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// A comparison with a value.
    Compare(Place, Operator, Cell<'static>),
    /// One of these values.
    AnyOf(Place, Vec<Cell<'static>>),
    /// Text like a pattern.
    Like(Place, Pattern),
    /// No value.
    IsNull(Place),
    /// The opposite.
    Not(Box<Self>),
    /// Each of these; true if there are none.
    All(Vec<Self>),
    /// At least one of these; false if there are none.
    Any(Vec<Self>),
}

/// The least value and the most, where there is one.
pub(super) type Span<'c> = (Option<&'c Cell<'static>>, Option<&'c Cell<'static>>);

// === impl Place ===

impl Place {
    /// A column.
    pub const fn column(column: &'static str) -> Self {
        Self { column, path: Vec::new() }
    }

    /// Its value in a row.
    pub fn value<'r>(&self, table: &TableSpec, row: &'r (impl CellSource + ?Sized)) -> Cell<'r> {
        let cell = table.position(self.column).map_or(Cell::Null, |position| row.cell(position));
        if self.path.is_empty() {
            return cell;
        }
        let Cell::Text(text) = &cell else { return Cell::Null };
        let Ok(value) = serde_json::from_str::<Value>(text) else { return Cell::Null };
        let member = self.path.iter().try_fold(&value, |value, name| value.get(name));
        member.map_or(Cell::Null, |member| match member {
            Value::Null => Cell::Null,
            Value::Bool(truth) => Cell::Integer(i64::from(*truth)),
            Value::Number(number) => number
                .as_i64()
                .map(Cell::Integer)
                .or_else(|| number.as_f64().map(Cell::Real))
                .unwrap_or(Cell::Null),
            Value::String(text) => Cell::Text(Cow::Owned(text.clone())),
            Value::Array(_) | Value::Object(_) => Cell::Text(Cow::Owned(member.to_string())),
        })
    }

    /// As it is compared with a text: a number as its digits.
    fn text<'r>(&self, table: &TableSpec, row: &'r (impl CellSource + ?Sized)) -> Cell<'r> {
        let value = self.value(table, row);
        match value {
            Cell::Integer(number) if !self.path.is_empty() => Cell::Text(Cow::Owned(number.to_string())),
            Cell::Real(number) if !self.path.is_empty() => Cell::Text(Cow::Owned(format!("{number:?}"))),
            Cell::Null | Cell::Integer(_) | Cell::Real(_) | Cell::Text(_) | Cell::Blob(_) => value,
        }
    }

    fn compared<'r>(
        &self,
        with: &Cell<'_>,
        table: &TableSpec,
        row: &'r (impl CellSource + ?Sized),
    ) -> Cell<'r> {
        if matches!(with, Cell::Text(_)) { self.text(table, row) } else { self.value(table, row) }
    }
}

// === impl Condition ===

impl Condition {
    /// Every row.
    pub const fn everything() -> Self {
        Self::All(Vec::new())
    }

    /// Whether a row meets it.
    pub fn holds(&self, table: &TableSpec, row: &(impl CellSource + ?Sized)) -> bool {
        match self {
            Self::Compare(place, operator, value) => {
                compare(&place.compared(value, table, row), *operator, value)
            }
            Self::AnyOf(place, values) => values.iter().any(|value| {
                let found = place.compared(value, table, row);
                found != Cell::Null && found.order(value) == Ordering::Equal
            }),
            Self::Like(place, pattern) => match place.text(table, row) {
                Cell::Text(text) => pattern.matches(&text),
                Cell::Null | Cell::Integer(_) | Cell::Real(_) | Cell::Blob(_) => false,
            },
            Self::IsNull(place) => place.value(table, row) == Cell::Null,
            Self::Not(inner) => !inner.holds(table, row),
            Self::All(all) => all.iter().all(|inner| inner.holds(table, row)),
            Self::Any(any) => any.iter().any(|inner| inner.holds(table, row)),
        }
    }

    /// The least and the most that a column has in the rows that meet this, as far as that is plain: no row outside
    /// need be looked at.
    pub(super) fn span(&self, column: &str) -> Span<'_> {
        match self {
            Self::Compare(place, operator, value) if place.path.is_empty() && place.column == column => {
                match operator {
                    Operator::Equal => (Some(value), Some(value)),
                    Operator::Below | Operator::AtMost => (None, Some(value)),
                    Operator::Above | Operator::AtLeast => (Some(value), None),
                    Operator::Other => (None, None),
                }
            }
            Self::All(all) => all.iter().map(|inner| inner.span(column)).fold((None, None), narrower),
            Self::Compare(..)
            | Self::AnyOf(..)
            | Self::Like(..)
            | Self::IsNull(_)
            | Self::Not(_)
            | Self::Any(_) => (None, None),
        }
    }

    /// How many values it compares with.
    pub fn weight(&self) -> usize {
        match self {
            Self::Compare(..) | Self::IsNull(_) | Self::Like(..) => 1,
            Self::AnyOf(_, values) => values.len(),
            Self::Not(inner) => inner.weight(),
            Self::All(inner) | Self::Any(inner) => inner.iter().map(Self::weight).sum(),
        }
    }

    pub(super) fn render(&self, table: &TableSpec, to: &mut Rendered) {
        match self {
            Self::Compare(place, operator, value) => {
                to.place(place, table, As::compared(value));
                to.compare(*operator, value);
            }
            Self::AnyOf(place, values) => to.any_of(place, table, values),
            Self::Like(place, pattern) => {
                to.place(place, table, As::Text);
                to.like(pattern);
            }
            Self::IsNull(place) => {
                to.place(place, table, As::Itself);
                to.sql.push_str(" IS NULL");
            }
            Self::Not(inner) => {
                // a comparison with nothing is neither true nor false: its opposite is to be true
                to.sql.push_str("NOT coalesce((");
                inner.render(table, to);
                to.sql.push_str("), ");
                to.truth(false);
                to.sql.push(')');
            }
            Self::All(inner) => join(inner, " AND ", true, table, to),
            Self::Any(inner) => join(inner, " OR ", false, table, to),
        }
    }
}

/// What lies within both.
fn narrower<'c>((from, to): Span<'c>, (least, most): Span<'c>) -> Span<'c> {
    let further = |a: Option<&'c Cell<'static>>, b: Option<&'c Cell<'static>>, which: Ordering| match (a, b) {
        (Some(a), Some(b)) => Some(if b.order(a) == which { b } else { a }),
        (a, b) => a.or(b),
    };
    (further(from, least, Ordering::Greater), further(to, most, Ordering::Less))
}

fn join(inner: &[Condition], between: &str, empty: bool, table: &TableSpec, to: &mut Rendered) {
    if inner.is_empty() {
        to.truth(empty);
    }
    for (position, condition) in inner.iter().enumerate() {
        to.sql.push_str(if position == 0 { "" } else { between });
        to.sql.push('(');
        condition.render(table, to);
        to.sql.push(')');
    }
}

fn compare(found: &Cell<'_>, operator: Operator, value: &Cell<'_>) -> bool {
    let order = found.order(value);
    let known = *found != Cell::Null && *value != Cell::Null;
    match operator {
        Operator::Equal => order == Ordering::Equal,
        Operator::Other => order != Ordering::Equal,
        Operator::Below => known && order == Ordering::Less,
        Operator::AtMost => known && order != Ordering::Greater,
        Operator::Above => known && order == Ordering::Greater,
        Operator::AtLeast => known && order != Ordering::Less,
    }
}
