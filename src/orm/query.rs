//! Typed questions: filters and orders made from a record's columns, rendered as SQL with bound values.
//!
//! Only names from the definitions enter the statement's text; every value is a parameter.

use std::fmt;
use std::marker::PhantomData;

use super::{Cell, Field};

/// A column of a record `R` holding a `T`.
pub struct Column<R, T> {
    name: &'static str,
    encode: fn(&T) -> Cell<'static>,
    record: PhantomData<fn() -> R>,
}

/// A condition on the rows of `R`.
#[derive(Debug, Clone)]
pub struct Filter<R> {
    node: Node,
    record: PhantomData<fn() -> R>,
}

/// By which column rows are ordered.
#[derive(Debug, Clone, Copy)]
pub struct Order<R> {
    column: &'static str,
    descending: bool,
    record: PhantomData<fn() -> R>,
}

/// Which rows of `R`, in which order, and how many of them.
#[derive(Debug, Clone)]
pub struct Query<R> {
    filter: Filter<R>,
    order: Vec<Order<R>>,
    limit: Option<u64>,
    offset: u64,
}

#[derive(Debug, Clone)]
enum Node {
    Compare { column: &'static str, operator: &'static str, value: Cell<'static> },
    AnyOf { column: &'static str, values: Vec<Cell<'static>> },
    IsNull { column: &'static str },
    Not(Box<Self>),
    All(Vec<Self>),
    Any(Vec<Self>),
}

/// SQL in the making: its text and the values to bind, in order.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    pub(super) sql: String,
    pub(super) values: Vec<Cell<'static>>,
}

// === impl Column ===

impl<R, T> Column<R, T> {
    /// For [`record!`](crate::record): the column's name and how its values become cells.
    pub const fn new(name: &'static str, encode: fn(&T) -> Cell<'static>) -> Self {
        Self { name, encode, record: PhantomData }
    }

    /// The column's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The value, or none where none is asked for.
    pub fn is(&self, value: &T) -> Filter<R> {
        self.compare("IS", value)
    }

    /// Anything but the value.
    pub fn is_not(&self, value: &T) -> Filter<R> {
        self.compare("IS NOT", value)
    }

    /// Less than the value.
    pub fn below(&self, value: &T) -> Filter<R> {
        self.compare("<", value)
    }

    /// The value or less.
    pub fn at_most(&self, value: &T) -> Filter<R> {
        self.compare("<=", value)
    }

    /// More than the value.
    pub fn above(&self, value: &T) -> Filter<R> {
        self.compare(">", value)
    }

    /// The value or more.
    pub fn at_least(&self, value: &T) -> Filter<R> {
        self.compare(">=", value)
    }

    /// One of the values.
    pub fn any_of<'v>(&self, values: impl IntoIterator<Item = &'v T>) -> Filter<R>
    where
        T: 'v,
    {
        let values = values.into_iter().map(self.encode).collect();
        Filter::of(Node::AnyOf { column: self.name, values })
    }

    /// Smallest first.
    pub const fn ascending(&self) -> Order<R> {
        Order { column: self.name, descending: false, record: PhantomData }
    }

    /// Largest first.
    pub const fn descending(&self) -> Order<R> {
        Order { column: self.name, descending: true, record: PhantomData }
    }

    fn compare(&self, operator: &'static str, value: &T) -> Filter<R> {
        Filter::of(Node::Compare { column: self.name, operator, value: (self.encode)(value) })
    }
}

impl<R> Column<R, String> {
    /// Text like the pattern, where `%` stands for any characters and `_` for one; letter case of ASCII is ignored.
    pub fn like(&self, pattern: &str) -> Filter<R> {
        let value = Cell::Text(pattern.to_owned().into());
        Filter::of(Node::Compare { column: self.name, operator: "LIKE", value })
    }
}

impl<R, T: Field> Column<R, Option<T>> {
    /// No value.
    pub fn is_none(&self) -> Filter<R> {
        Filter::of(Node::IsNull { column: self.name })
    }
}

impl<R, T> Clone for Column<R, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, T> Copy for Column<R, T> {}

impl<R, T> fmt::Debug for Column<R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

// === impl Filter ===

impl<R> Filter<R> {
    /// Every row.
    pub const fn everything() -> Self {
        Self::of(Node::All(Vec::new()))
    }

    /// Both conditions.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::of(Node::All(vec![self.node, other.node]))
    }

    /// Either condition.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::of(Node::Any(vec![self.node, other.node]))
    }

    /// All rows but these.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "reads with `and` and `or`; an operator would not")]
    pub fn not(self) -> Self {
        Self::of(Node::Not(Box::new(self.node)))
    }

    pub(super) fn render(&self, to: &mut Rendered) {
        self.node.render(to);
    }

    const fn of(node: Node) -> Self {
        Self { node, record: PhantomData }
    }
}

impl Node {
    fn render(&self, to: &mut Rendered) {
        match self {
            Self::Compare { column, operator, value } => {
                to.sql.push_str(&format!("\"{column}\" {operator} ?"));
                to.values.push(value.clone());
            }
            Self::AnyOf { column, values } => {
                let marks = vec!["?"; values.len()].join(", ");
                to.sql.push_str(&format!("\"{column}\" IN ({marks})"));
                to.values.extend(values.iter().cloned());
            }
            Self::IsNull { column } => to.sql.push_str(&format!("\"{column}\" IS NULL")),
            Self::Not(node) => {
                // a comparison with nothing is neither true nor false: its opposite is to be true
                to.sql.push_str("NOT coalesce((");
                node.render(to);
                to.sql.push_str("), 0)");
            }
            Self::All(nodes) => join(nodes, " AND ", "1", to),
            Self::Any(nodes) => join(nodes, " OR ", "0", to),
        }
    }
}

fn join(nodes: &[Node], between: &str, empty: &str, to: &mut Rendered) {
    if nodes.is_empty() {
        to.sql.push_str(empty);
    }
    for (position, node) in nodes.iter().enumerate() {
        to.sql.push_str(if position == 0 { "" } else { between });
        to.sql.push('(');
        node.render(to);
        to.sql.push(')');
    }
}

// === impl Query ===

impl<R> Query<R> {
    /// Every row, in no order.
    pub const fn everything() -> Self {
        Self { filter: Filter::everything(), order: Vec::new(), limit: None, offset: 0 }
    }

    /// Only rows that meet the condition too.
    #[must_use]
    pub fn filter(mut self, filter: Filter<R>) -> Self {
        self.filter = self.filter.and(filter);
        self
    }

    /// Ordered by this, after the orders given before.
    #[must_use]
    pub fn order(mut self, order: Order<R>) -> Self {
        self.order.push(order);
        self
    }

    /// At most so many.
    #[must_use]
    pub const fn limit(mut self, limit: u64) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Without the first so many.
    #[must_use]
    pub const fn offset(mut self, offset: u64) -> Self {
        self.offset = offset;
        self
    }

    pub(super) fn render(&self, to: &mut Rendered) {
        to.sql.push_str(" WHERE ");
        self.filter.render(to);
        for (position, order) in self.order.iter().enumerate() {
            let start = if position == 0 { " ORDER BY " } else { ", " };
            let direction = if order.descending { "DESC" } else { "ASC" };
            to.sql.push_str(&format!("{start}\"{}\" {direction}", order.column));
        }
        if self.limit.is_some() || self.offset > 0 {
            to.sql.push_str(" LIMIT ? OFFSET ?");
            let whole = |number: u64| Cell::Integer(i64::try_from(number).unwrap_or(i64::MAX));
            to.values.push(self.limit.map_or(Cell::Integer(-1), whole));
            to.values.push(whole(self.offset));
        }
    }
}
