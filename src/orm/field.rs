//! How a value of Rust becomes a cell of a row, and back.
//!
//! Every type has one form: [`Field`] for types that are a cell by themselves, [`Json`] for those that are
//! kept as a JSON text. Numbers without a sign keep all their 64 bits: above `i64::MAX` they are stored as the
//! negative number with the same bits, so they come back right but sort below zero.

mod types;

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;

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
}

/// A type that is a cell by itself.
pub trait Field: Sized {
    /// The column's type.
    const TYPE: SqlType;
    /// Whether the column may hold no value.
    const NULLABLE: bool = false;
    /// How many bytes a value has, where all have the same number.
    const BYTES: Option<usize> = None;

    /// As a cell.
    fn encode(&self) -> Cell<'_>;

    /// From a cell.
    fn decode(cell: Cell<'_>) -> Result<Self, FieldError>;
}

/// One of the two ways to keep a `T`: [`Plain`] or [`Json`].
pub trait Codec<T> {
    /// The column's type.
    const TYPE: SqlType;
    /// Whether the column may hold no value.
    const NULLABLE: bool;
    /// How many bytes a value has, where all have the same number.
    const BYTES: Option<usize>;

    /// As a cell.
    fn encode(value: &T) -> Cell<'_>;

    /// From a cell.
    fn decode(cell: Cell<'_>) -> Result<T, FieldError>;
}

/// Kept as the type's own cell.
#[derive(Debug, Clone, Copy)]
pub struct Plain;

/// Kept as a JSON text.
#[derive(Debug, Clone, Copy)]
pub struct Json;

/// What a primary key consists of: one field, or several.
pub trait KeyParts {
    /// The parts, in the order of the key's columns.
    fn parts(&self) -> Vec<Cell<'_>>;
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
    pub fn array<const N: usize>(&self, wanted: &'static str) -> Result<[u8; N], FieldError> {
        match self {
            Self::Blob(bytes) => bytes.as_ref().try_into().map_err(|_ignored| self.instead_of(wanted)),
            Self::Null | Self::Integer(_) | Self::Real(_) | Self::Text(_) => Err(self.instead_of(wanted)),
        }
    }

    /// The text.
    pub fn text(&self, wanted: &'static str) -> Result<&str, FieldError> {
        if let Self::Text(text) = self { Ok(text) } else { Err(self.instead_of(wanted)) }
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

    fn encode(value: &T) -> Cell<'_> {
        value.encode()
    }

    fn decode(cell: Cell<'_>) -> Result<T, FieldError> {
        T::decode(cell)
    }
}

impl<T: Serialize + DeserializeOwned> Codec<T> for Json {
    const TYPE: SqlType = SqlType::Text;
    const NULLABLE: bool = false;
    const BYTES: Option<usize> = None;

    /// A value that serde refuses becomes [`Cell::Null`], which the column then refuses.
    fn encode(value: &T) -> Cell<'_> {
        serde_json::to_string(value).map_or(Cell::Null, |text| Cell::Text(Cow::Owned(text)))
    }

    fn decode(cell: Cell<'_>) -> Result<T, FieldError> {
        let wanted = "a JSON text of the record's type";
        serde_json::from_str(cell.text(wanted)?).map_err(|_ignored| cell.instead_of(wanted))
    }
}
