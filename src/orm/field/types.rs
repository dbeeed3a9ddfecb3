//! The types that are a cell by themselves, and the keys made of them.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use super::{Cell, CellSource, Field, FieldError, KeyParts, SqlType};
use crate::clock::Timestamp;
use crate::digest::{Digest, Stated, StatedKey};
use crate::orm::Shape;

impl Field for i64 {
    const TYPE: SqlType = SqlType::Integer;

    #[inline]
    fn encode(&self) -> Cell<'_> {
        Cell::Integer(*self)
    }

    #[inline]
    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        if let Cell::Integer(number) = cell { Ok(number) } else { Err(cell.instead_of("a whole number")) }
    }

    #[inline]
    fn decode_at<S: CellSource + ?Sized>(row: &S, position: usize) -> Result<Self, FieldError> {
        row.integer(position).map_err(|cell| cell.instead_of("a whole number"))
    }
}

impl Field for u64 {
    const TYPE: SqlType = SqlType::Integer;
    const SHAPE: Shape = Shape::Unsigned;

    #[inline]
    fn encode(&self) -> Cell<'_> {
        Cell::Integer(self.cast_signed())
    }

    #[inline]
    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        i64::decode(cell).map(i64::cast_unsigned)
    }

    #[inline]
    fn decode_at<S: CellSource + ?Sized>(row: &S, position: usize) -> Result<Self, FieldError> {
        i64::decode_at(row, position).map(i64::cast_unsigned)
    }
}

impl Field for u32 {
    const TYPE: SqlType = SqlType::Integer;
    const SHAPE: Shape = Shape::Unsigned;

    #[inline]
    fn encode(&self) -> Cell<'_> {
        Cell::Integer(i64::from(*self))
    }

    #[inline]
    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        let number = i64::decode(cell)?;
        Self::try_from(number).map_err(|_ignored| Cell::Integer(number).instead_of("a 32-bit number"))
    }
}

impl Field for i128 {
    const TYPE: SqlType = SqlType::Blob;
    const BYTES: Option<usize> = Some(16);
    const SHAPE: Shape = Shape::Wide;

    /// Big-endian with the sign turned over, so that bytes sort as numbers do.
    #[inline]
    fn encode(&self) -> Cell<'_> {
        Cell::Blob(Cow::Owned((self ^ Self::MIN).to_be_bytes().to_vec()))
    }

    #[inline]
    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        cell.array("16 bytes").map(|bytes| Self::from_be_bytes(bytes) ^ Self::MIN)
    }
}

impl Field for bool {
    const TYPE: SqlType = SqlType::Integer;
    const SHAPE: Shape = Shape::Boolean;

    #[inline]
    fn encode(&self) -> Cell<'_> {
        Cell::Integer(i64::from(*self))
    }

    #[inline]
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

    #[inline]
    fn encode(&self) -> Cell<'_> {
        Cell::Real(*self)
    }

    #[inline]
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

    #[inline]
    fn encode(&self) -> Cell<'_> {
        Cell::Text(Cow::Borrowed(self))
    }

    #[inline]
    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        match cell {
            Cell::Text(text) => Ok(text.into_owned()),
            Cell::Null | Cell::Integer(_) | Cell::Real(_) | Cell::Blob(_) => Err(cell.instead_of("text")),
        }
    }

    #[inline]
    fn decode_at<S: CellSource + ?Sized>(row: &S, position: usize) -> Result<Self, FieldError> {
        row.string(position).map_err(|cell| cell.instead_of("text"))
    }
}

impl Field for Arc<str> {
    const TYPE: SqlType = SqlType::Text;

    #[inline]
    fn encode(&self) -> Cell<'_> {
        Cell::Text(Cow::Borrowed(self))
    }

    #[inline]
    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        cell.text("text").map(Self::from)
    }
}

impl Field for Vec<u8> {
    const TYPE: SqlType = SqlType::Blob;

    #[inline]
    fn encode(&self) -> Cell<'_> {
        Cell::Blob(Cow::Borrowed(self))
    }

    #[inline]
    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        if let Cell::Blob(bytes) = cell { Ok(bytes.into_owned()) } else { Err(cell.instead_of("bytes")) }
    }
}

impl<const N: usize> Field for [u8; N] {
    const TYPE: SqlType = SqlType::Blob;
    const BYTES: Option<usize> = Some(N);

    #[inline]
    fn encode(&self) -> Cell<'_> {
        Cell::Blob(Cow::Borrowed(self))
    }

    #[inline]
    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        cell.array("bytes of the column's length")
    }
}

impl Field for Digest {
    const TYPE: SqlType = SqlType::Blob;
    const BYTES: Option<usize> = Some(32);
    const SHAPE: Shape = Shape::Digest;

    #[inline]
    fn encode(&self) -> Cell<'_> {
        Cell::Blob(Cow::Borrowed(self.as_bytes()))
    }

    #[inline]
    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        cell.array("the 32 bytes of a digest").map(Self::from_bytes)
    }
}

impl Field for StatedKey {
    const TYPE: SqlType = SqlType::Blob;
    const BYTES: Option<usize> = Some(32);

    #[inline]
    fn encode(&self) -> Cell<'_> {
        Cell::Blob(Cow::Borrowed(self.as_bytes()))
    }

    #[inline]
    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        cell.array("the 32 bytes of a digest's key").map(Self::from_bytes)
    }
}

impl Field for Stated {
    const TYPE: SqlType = SqlType::Text;

    #[inline]
    fn encode(&self) -> Cell<'_> {
        Cell::Text(Cow::Owned(self.to_string()))
    }

    #[inline]
    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        let text = cell.text("a digest as algorithm:hex")?;
        Self::parse(text).map_err(|_ignored| cell.instead_of("a digest as algorithm:hex"))
    }
}

impl Field for Timestamp {
    const TYPE: SqlType = SqlType::Integer;
    const SHAPE: Shape = Shape::Time;

    #[inline]
    fn encode(&self) -> Cell<'_> {
        Cell::Integer(self.0.cast_signed())
    }

    #[inline]
    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        u64::decode(cell).map(Self)
    }

    #[inline]
    fn decode_at<S: CellSource + ?Sized>(row: &S, position: usize) -> Result<Self, FieldError> {
        u64::decode_at(row, position).map(Self)
    }
}

impl Field for IpAddr {
    const TYPE: SqlType = SqlType::Text;
    const SHAPE: Shape = Shape::Address;

    #[inline]
    fn encode(&self) -> Cell<'_> {
        Cell::Text(Cow::Owned(self.to_string()))
    }

    #[inline]
    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        cell.text("an IP address")?.parse().map_err(|_ignored| cell.instead_of("an IP address"))
    }
}

impl<T: Field> Field for Option<T> {
    const TYPE: SqlType = T::TYPE;
    const NULLABLE: bool = true;
    const BYTES: Option<usize> = T::BYTES;
    const SHAPE: Shape = T::SHAPE;

    #[inline]
    fn encode(&self) -> Cell<'_> {
        self.as_ref().map_or(Cell::Null, T::encode)
    }

    #[inline]
    fn decode(cell: Cell<'_>) -> Result<Self, FieldError> {
        if cell == Cell::Null { Ok(None) } else { T::decode(cell).map(Some) }
    }
}

// === impl KeyParts ===

impl<A: Field> KeyParts for A {
    #[inline]
    fn with_parts<'k, T>(&'k self, ask: impl FnOnce(&[Cell<'k>]) -> T) -> T {
        ask(&[self.encode()])
    }
}

impl<A: Field, B: Field> KeyParts for (A, B) {
    #[inline]
    fn with_parts<'k, T>(&'k self, ask: impl FnOnce(&[Cell<'k>]) -> T) -> T {
        ask(&[self.0.encode(), self.1.encode()])
    }
}

impl<A: Field, B: Field, C: Field> KeyParts for (A, B, C) {
    #[inline]
    fn with_parts<'k, T>(&'k self, ask: impl FnOnce(&[Cell<'k>]) -> T) -> T {
        ask(&[self.0.encode(), self.1.encode(), self.2.encode()])
    }
}
