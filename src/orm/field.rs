//! How a value of Rust becomes a cell of a row, and back.
//!
//! Every type has one form: [`Field`] for types that are a cell by themselves, [`Json`] for those that are
//! kept as a JSON text. Numbers without a sign keep all their 64 bits: above `i64::MAX` they are stored as the
//! negative number with the same bits, so they come back right but sort below zero.

use std::borrow::Cow;
use std::net::IpAddr;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::clock::Timestamp;
use crate::digest::Digest;

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

// === the types that are a cell by themselves ===

impl Field for i64 {
    const TYPE: SqlType = SqlType::Integer;

    fn encode(&self) -> Cell<'_> {
        Cell::Integer(*self)
    }

    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        if let Cell::Integer(number) = cell { Ok(number) } else { Err(cell.instead_of("a whole number")) }
    }
}

impl Field for u64 {
    const TYPE: SqlType = SqlType::Integer;

    fn encode(&self) -> Cell<'_> {
        Cell::Integer(self.cast_signed())
    }

    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        i64::decode(cell).map(i64::cast_unsigned)
    }
}

impl Field for u32 {
    const TYPE: SqlType = SqlType::Integer;

    fn encode(&self) -> Cell<'_> {
        Cell::Integer(i64::from(*self))
    }

    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        let number = i64::decode(cell)?;
        Self::try_from(number).map_err(|_ignored| Cell::Integer(number).instead_of("a 32-bit number"))
    }
}

impl Field for i128 {
    const TYPE: SqlType = SqlType::Blob;
    const BYTES: Option<usize> = Some(16);

    /// Big-endian with the sign turned over, so that bytes sort as numbers do.
    fn encode(&self) -> Cell<'_> {
        Cell::Blob(Cow::Owned((self ^ Self::MIN).to_be_bytes().to_vec()))
    }

    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        cell.array("16 bytes").map(|bytes| Self::from_be_bytes(bytes) ^ Self::MIN)
    }
}

impl Field for bool {
    const TYPE: SqlType = SqlType::Integer;

    fn encode(&self) -> Cell<'_> {
        Cell::Integer(i64::from(*self))
    }

    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        match cell {
            Cell::Integer(0) => Ok(false),
            Cell::Integer(1) => Ok(true),
            Cell::Null | Cell::Integer(_) | Cell::Real(_) | Cell::Text(_) | Cell::Blob(_) => {
                Err(cell.instead_of("0 or 1"))
            }
        }
    }
}

impl Field for f64 {
    const TYPE: SqlType = SqlType::Real;

    fn encode(&self) -> Cell<'_> {
        Cell::Real(*self)
    }

    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        if let Cell::Real(number) = cell {
            Ok(number)
        } else {
            Err(cell.instead_of("a floating point number"))
        }
    }
}

impl Field for String {
    const TYPE: SqlType = SqlType::Text;

    fn encode(&self) -> Cell<'_> {
        Cell::Text(Cow::Borrowed(self))
    }

    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        cell.text("text").map(str::to_owned)
    }
}

impl Field for Vec<u8> {
    const TYPE: SqlType = SqlType::Blob;

    fn encode(&self) -> Cell<'_> {
        Cell::Blob(Cow::Borrowed(self))
    }

    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        if let Cell::Blob(bytes) = cell { Ok(bytes.into_owned()) } else { Err(cell.instead_of("bytes")) }
    }
}

impl<const N: usize> Field for [u8; N] {
    const TYPE: SqlType = SqlType::Blob;
    const BYTES: Option<usize> = Some(N);

    fn encode(&self) -> Cell<'_> {
        Cell::Blob(Cow::Borrowed(self))
    }

    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        cell.array("bytes of the column's length")
    }
}

impl Field for Digest {
    const TYPE: SqlType = SqlType::Blob;
    const BYTES: Option<usize> = Some(32);

    fn encode(&self) -> Cell<'_> {
        Cell::Blob(Cow::Borrowed(self.as_bytes()))
    }

    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        cell.array("the 32 bytes of a digest").map(Self::from_bytes)
    }
}

impl Field for Timestamp {
    const TYPE: SqlType = SqlType::Integer;

    fn encode(&self) -> Cell<'_> {
        Cell::Integer(self.0.cast_signed())
    }

    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        u64::decode(cell).map(Self)
    }
}

impl Field for IpAddr {
    const TYPE: SqlType = SqlType::Text;

    fn encode(&self) -> Cell<'_> {
        Cell::Text(Cow::Owned(self.to_string()))
    }

    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        cell.text("an IP address")?.parse().map_err(|_ignored| cell.instead_of("an IP address"))
    }
}

impl<T: Field> Field for Option<T> {
    const TYPE: SqlType = T::TYPE;
    const NULLABLE: bool = true;
    const BYTES: Option<usize> = T::BYTES;

    fn encode(&self) -> Cell<'_> {
        self.as_ref().map_or(Cell::Null, T::encode)
    }

    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        if cell == Cell::Null { Ok(None) } else { T::decode(cell).map(Some) }
    }
}

// === impl KeyParts ===

impl<A: Field> KeyParts for A {
    fn parts(&self) -> Vec<Cell<'_>> {
        vec![self.encode()]
    }
}

impl<A: Field, B: Field> KeyParts for (A, B) {
    fn parts(&self) -> Vec<Cell<'_>> {
        vec![self.0.encode(), self.1.encode()]
    }
}

impl<A: Field, B: Field, C: Field> KeyParts for (A, B, C) {
    fn parts(&self) -> Vec<Cell<'_>> {
        vec![self.0.encode(), self.1.encode(), self.2.encode()]
    }
}
