//! How a value of Rust becomes a cell of a row, and back.
//!
//! Every type has one form: [`Field`] for types that are a cell by themselves, [`Json`] for those that are
//! kept as a JSON text. Numbers without a sign keep all their 64 bits: above `i64::MAX` they are stored as the
//! negative number with the same bits, so they come back right but sort below zero.

mod types;

use std::borrow::Cow;
use std::cmp::Ordering;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Shape;

/// One value of a row, as engines understand it.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell<'a> {
    /// No value.
    Null,
    /// A whole number.
    Integer(i64),
    /// A floating point number.
    Real(f64),
    /// Text.
    Text(Cow<'a, str>),
    /// Bytes.
    Blob(Cow<'a, [u8]>),
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlType {
    /// Whole numbers, truth values and times.
    Integer,
    /// Floating point numbers.
    Real,
    /// Text.
    Text,
    /// Bytes.
    Blob,
}

/// A cell that does not hold what its column says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column} holds {found} instead of {wanted}")]
pub struct FieldError {
    /// Which column; empty until the record knows.
    pub column: &'static str,
    /// What was there.
    pub found: &'static str,
    /// What should be there.
    pub wanted: &'static str,
}

/// Where the cells of one row are read from.
pub trait CellSource {
    /// The cell at this position; [`Cell::Null`] where there is none.
    fn cell(&self, position: usize) -> Cell<'_>;

    /// The whole number at this position, else the cell that is there instead.
    #[inline]
    fn integer(&self, position: usize) -> Result<i64, Cell<'_>> {
        let cell = self.cell(position);
        if let Cell::Integer(number) = cell { Ok(number) } else { Err(cell) }
    }

    /// A text of its own of the one at this position, else the cell that is there instead.
    #[inline]
    fn string(&self, position: usize) -> Result<String, Cell<'_>> {
        match self.cell(position) {
            Cell::Text(text) => Ok(text.into_owned()),
            other @ (Cell::Null | Cell::Integer(_) | Cell::Real(_) | Cell::Blob(_)) => Err(other),
        }
    }

    /// The same as a row of SQLite, where it is one: its cells are read without asking what it is for each of them.
    fn as_row(&self) -> Option<&rusqlite::Row<'_>> {
        None
    }
}

/// A type that is a cell by itself.
pub trait Field: Sized {
    /// The column's type.
    const TYPE: SqlType;
    /// Whether the column may hold no value.
    const NULLABLE: bool = false;
    /// How many bytes a value has, where all have the same number.
    const BYTES: Option<usize> = None;
    /// What a value is to the outside.
    const SHAPE: Shape = Shape::of(Self::TYPE);

    /// As a cell.
    fn encode(&self) -> Cell<'_>;

    /// From a cell.
    fn decode(cell: Cell<'_>) -> Result<Self, FieldError>;

    /// From the cell at this position of a row, where that can be read without making a cell of it.
    #[inline]
    fn decode_at<S: CellSource + ?Sized>(row: &S, position: usize) -> Result<Self, FieldError> {
        Self::decode(row.cell(position))
    }
}

/// One of the two ways to keep a `T`: [`Plain`] or [`Json`].
pub trait Codec<T> {
    /// The column's type.
    const TYPE: SqlType;
    /// Whether the column may hold no value.
    const NULLABLE: bool;
    /// How many bytes a value has, where all have the same number.
    const BYTES: Option<usize>;
    /// What a value is to the outside.
    const SHAPE: Shape;

    /// As a cell.
    fn encode(value: &T) -> Cell<'_>;

    /// From a cell.
    fn decode(cell: Cell<'_>) -> Result<T, FieldError>;

    /// From the cell at this position of a row.
    #[inline]
    fn decode_at<S: CellSource + ?Sized>(row: &S, position: usize) -> Result<T, FieldError> {
        Self::decode(row.cell(position))
    }
}

/// Kept as the type's own cell.
#[derive(Debug, Clone, Copy)]
pub struct Plain;

/// Kept as a JSON text.
#[derive(Debug, Clone, Copy)]
pub struct Json;

/// What a primary key consists of: one field, or several.
pub trait KeyParts {
    /// Hands the parts to `ask`, in the order of the key's columns.
    fn with_parts<'k, T>(&'k self, ask: impl FnOnce(&[Cell<'k>]) -> T) -> T;

    /// The parts, to be kept.
    fn parts(&self) -> Vec<Cell<'_>> {
        self.with_parts(<[Cell<'_>]>::to_vec)
    }
}

// === impl Cell ===

impl Cell<'_> {
    /// The same value, owned.
    pub fn into_owned(self) -> Cell<'static> {
        match self {
            Self::Null => Cell::Null,
            Self::Integer(number) => Cell::Integer(number),
            Self::Real(number) => Cell::Real(number),
            Self::Text(text) => Cell::Text(Cow::Owned(text.into_owned())),
            Self::Blob(bytes) => Cell::Blob(Cow::Owned(bytes.into_owned())),
        }
    }

    /// A copy of the value that is owned.
    pub fn to_owned_cell(&self) -> Cell<'static> {
        self.borrowed().into_owned()
    }

    /// The same value, without a copy.
    #[inline]
    pub fn borrowed(&self) -> Cell<'_> {
        match self {
            Self::Null => Cell::Null,
            Self::Integer(number) => Cell::Integer(*number),
            Self::Real(number) => Cell::Real(*number),
            Self::Text(text) => Cell::Text(Cow::Borrowed(text)),
            Self::Blob(bytes) => Cell::Blob(Cow::Borrowed(bytes)),
        }
    }

    /// The order of the engines: nothing, then numbers, then text, then bytes, each byte by byte.
    pub fn order(&self, other: &Cell<'_>) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Cell::Integer(b)) => a.cmp(b),
            (Self::Text(a), Cell::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Self::Blob(a), Cell::Blob(b)) => a.cmp(b),
            (Self::Real(a), Cell::Real(b)) => real_order(*a, *b),
            (Self::Integer(a), Cell::Real(b)) => real_order(as_real(*a), *b),
            (Self::Real(a), Cell::Integer(b)) => real_order(*a, as_real(*b)),
            (a, b) => a.class().cmp(&b.class()),
        }
    }

    /// How many bytes a text or bytes are.
    pub fn length(&self) -> usize {
        match self {
            Self::Null | Self::Integer(_) | Self::Real(_) => 0,
            Self::Text(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
        }
    }

    const fn class(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Integer(_) | Self::Real(_) => 1,
            Self::Text(_) => 2,
            Self::Blob(_) => 3,
        }
    }

    /// The error that says another thing than this cell was wanted.
    pub const fn instead_of(&self, wanted: &'static str) -> FieldError {
        let found = match self {
            Cell::Null => "nothing",
            Cell::Integer(_) => "another number",
            Cell::Real(_) => "a floating point number",
            Cell::Text(_) => "other text",
            Cell::Blob(_) => "other bytes",
        };
        FieldError { column: "", found, wanted }
    }

    /// The bytes, if it is exactly that many.
    #[inline]
    pub fn array<const N: usize>(&self, wanted: &'static str) -> Result<[u8; N], FieldError> {
        match self {
            Self::Blob(bytes) => bytes.as_ref().try_into().map_err(|_ignored| self.instead_of(wanted)),
            Self::Null | Self::Integer(_) | Self::Real(_) | Self::Text(_) => Err(self.instead_of(wanted)),
        }
    }

    /// The text.
    #[inline]
    pub fn text(&self, wanted: &'static str) -> Result<&str, FieldError> {
        if let Self::Text(text) = self { Ok(text) } else { Err(self.instead_of(wanted)) }
    }
}

/// Near enough for a comparison with another floating point number.
#[expect(clippy::cast_precision_loss, reason = "a comparison with a rounded number is rounded")]
const fn as_real(number: i64) -> f64 {
    number as f64
}

/// The two zeros are the same.
fn real_order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.total_cmp(&b))
}

impl CellSource for [Cell<'_>] {
    #[inline]
    fn cell(&self, position: usize) -> Cell<'_> {
        self.get(position).map_or(Cell::Null, Cell::borrowed)
    }
}

impl SqlType {
    /// The name in a definition.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Integer => "INTEGER",
            Self::Real => "REAL",
            Self::Text => "TEXT",
            Self::Blob => "BLOB",
        }
    }
}

impl FieldError {
    /// The same, with the column's name.
    #[must_use]
    pub const fn in_column(mut self, column: &'static str) -> Self {
        self.column = column;
        self
    }
}

// === the two codecs ===

impl<T: Field> Codec<T> for Plain {
    const TYPE: SqlType = T::TYPE;
    const NULLABLE: bool = T::NULLABLE;
    const BYTES: Option<usize> = T::BYTES;
    const SHAPE: Shape = T::SHAPE;

    #[inline]
    fn encode(value: &T) -> Cell<'_> {
        value.encode()
    }

    #[inline]
    fn decode(cell: Cell<'_>) -> Result<T, FieldError> {
        T::decode(cell)
    }

    #[inline]
    fn decode_at<S: CellSource + ?Sized>(row: &S, position: usize) -> Result<T, FieldError> {
        T::decode_at(row, position)
    }
}

impl<T: Serialize + DeserializeOwned> Codec<T> for Json {
    const TYPE: SqlType = SqlType::Text;
    const NULLABLE: bool = false;
    const BYTES: Option<usize> = None;
    const SHAPE: Shape = Shape::Json;

    /// A value that serde refuses becomes [`Cell::Null`], which the column then refuses.
    fn encode(value: &T) -> Cell<'_> {
        serde_json::to_string(value).map_or(Cell::Null, |text| Cell::Text(Cow::Owned(text)))
    }

    fn decode(cell: Cell<'_>) -> Result<T, FieldError> {
        let wanted = "a JSON text of the record's type";
        serde_json::from_str(cell.text(wanted)?).map_err(|_ignored| cell.instead_of(wanted))
    }
}
