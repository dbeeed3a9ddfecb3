//! Typed questions: filters and orders made from a record's columns, rendered as SQL with bound values.
//!
//! Only names from the definitions enter the statement's text; every value is a parameter.

use std::fmt;
use std::marker::PhantomData;

use super::{Cell, Condition, Field, Operator, Pattern, Place, Select, Sort};

/// A column of a record `R` holding a `T`.
pub struct Column<R, T> {
    name: &'static str,
    encode: fn(&T) -> Cell<'static>,
    record: PhantomData<fn() -> R>,
}

/// A condition on the rows of `R`.
#[derive(Debug, Clone)]
pub struct Filter<R> {
    condition: Condition,
    record: PhantomData<fn() -> R>,
}

/// By which column rows are ordered.
#[derive(Debug, Clone)]
pub struct Order<R> {
    sort: Sort,
    record: PhantomData<fn() -> R>,
}

/// Which rows of `R`, in which order, and how many of them.
#[derive(Debug, Clone)]
pub struct Query<R> {
    select: Select,
    record: PhantomData<fn() -> R>,
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
        self.compare(Operator::Equal, value)
    }

    /// Anything but the value.
    pub fn is_not(&self, value: &T) -> Filter<R> {
        self.compare(Operator::Other, value)
    }

    /// Less than the value.
    pub fn below(&self, value: &T) -> Filter<R> {
        self.compare(Operator::Below, value)
    }

    /// The value or less.
    pub fn at_most(&self, value: &T) -> Filter<R> {
        self.compare(Operator::AtMost, value)
    }

    /// More than the value.
    pub fn above(&self, value: &T) -> Filter<R> {
        self.compare(Operator::Above, value)
    }

    /// The value or more.
    pub fn at_least(&self, value: &T) -> Filter<R> {
        self.compare(Operator::AtLeast, value)
    }

    /// One of the values.
    pub fn any_of<'v>(&self, values: impl IntoIterator<Item = &'v T>) -> Filter<R>
    where
        T: 'v,
    {
        let values = values.into_iter().map(self.encode).collect();
        Filter::of(Condition::AnyOf(Place::column(self.name), values))
    }

    /// Smallest first.
    pub const fn ascending(&self) -> Order<R> {
        Order { sort: Sort { place: Place::column(self.name), descending: false }, record: PhantomData }
    }

    /// Largest first.
    pub const fn descending(&self) -> Order<R> {
        Order { sort: Sort { place: Place::column(self.name), descending: true }, record: PhantomData }
    }

    fn compare(&self, operator: Operator, value: &T) -> Filter<R> {
        Filter::of(Condition::Compare(Place::column(self.name), operator, (self.encode)(value)))
    }
}

impl<R> Column<R, String> {
    /// Text like the pattern, as [`Pattern`] has it; letter case of ASCII is ignored.
    pub fn like(&self, pattern: &str) -> Filter<R> {
        Filter::of(Condition::Like(Place::column(self.name), Pattern::new(pattern, true)))
    }
}

impl<R, T: Field> Column<R, Option<T>> {
    /// No value.
    pub fn is_none(&self) -> Filter<R> {
        Filter::of(Condition::IsNull(Place::column(self.name)))
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
        Self::of(Condition::everything())
    }

    /// Both conditions.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::of(Condition::All(vec![self.condition, other.condition]))
    }

    /// Either condition.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::of(Condition::Any(vec![self.condition, other.condition]))
    }

    /// All rows but these.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "reads with `and` and `or`; an operator would not")]
    pub fn not(self) -> Self {
        Self::of(Condition::Not(Box::new(self.condition)))
    }

    /// The same for a row of any table.
    pub const fn condition(&self) -> &Condition {
        &self.condition
    }

    const fn of(condition: Condition) -> Self {
        Self { condition, record: PhantomData }
    }
}

// === impl Query ===

impl<R> Query<R> {
    /// Every row, in no order.
    pub const fn everything() -> Self {
        Self { select: Select::everything(), record: PhantomData }
    }

    /// Only rows that meet the condition too.
    #[must_use]
    pub fn filter(mut self, filter: Filter<R>) -> Self {
        self.select.condition = Condition::All(vec![self.select.condition, filter.condition]);
        self
    }

    /// Ordered by this, after the orders given before.
    #[must_use]
    pub fn order(mut self, order: Order<R>) -> Self {
        self.select.order.push(order.sort);
        self
    }

    /// At most so many.
    #[must_use]
    pub const fn limit(mut self, limit: u64) -> Self {
        self.select.limit = Some(limit);
        self
    }

    /// Without the first so many.
    #[must_use]
    pub const fn offset(mut self, offset: u64) -> Self {
        self.select.offset = offset;
        self
    }

    /// The same for the rows of any table.
    pub const fn select(&self) -> &Select {
        &self.select
    }
}
