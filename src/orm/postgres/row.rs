//! Cells of PostgreSQL's rows and parameters.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::orm::{Cell, CellSource};

/// One row as it came.
pub(super) struct Fields<'r>(pub(super) &'r Row);

/// Cells as parameters.
pub(super) fn values<'c>(cells: &'c [Cell<'_>]) -> Vec<&'c (dyn ToSql + Sync)> {
    cells.iter().map(|cell| -> &(dyn ToSql + Sync) { cell }).collect()
}

impl CellSource for Fields<'_> {
    /// What is of no type that a definition has is nothing.
    fn cell(&self, position: usize) -> Cell<'_> {
        let value = self.0.try_get::<_, Option<Value<'_>>>(position);
        value.ok().flatten().map_or(Cell::Null, |value| value.0)
    }
}

struct Value<'r>(Cell<'r>);

impl<'r> FromSql<'r> for Value<'r> {
    fn from_sql(of: &Type, raw: &'r [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(match *of {
            Type::INT8 => Cell::Integer(i64::from_sql(of, raw)?),
            Type::INT4 => Cell::Integer(i32::from_sql(of, raw)?.into()),
            Type::FLOAT8 => Cell::Real(f64::from_sql(of, raw)?),
            Type::TEXT | Type::VARCHAR => Cell::Text(<&str>::from_sql(of, raw)?.into()),
            _ => Cell::Blob(raw.into()),
        }))
    }

    fn accepts(of: &Type) -> bool {
        [Type::INT8, Type::INT4, Type::FLOAT8, Type::TEXT, Type::VARCHAR, Type::BYTEA].contains(of)
    }
}

impl ToSql for Cell<'_> {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match (self, of) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Integer(number), &Type::FLOAT8) => real(*number).to_sql(of, out),
            (Self::Integer(number), &Type::INT8) => number.to_sql(of, out),
            (Self::Integer(number), &Type::INT4) => i32::try_from(*number)?.to_sql(of, out),
            (Self::Real(number), &Type::FLOAT8) => number.to_sql(of, out),
            (Self::Text(text), &Type::TEXT | &Type::VARCHAR) => text.as_ref().to_sql(of, out),
            (Self::Blob(bytes), &Type::BYTEA) => bytes.as_ref().to_sql(of, out),
            _ => Err(format!("{} where {of} is wanted", self.instead_of("").found).into()),
        }
    }

    fn accepts(_of: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a whole number in a column of floating point ones is rounded"
)]
const fn real(number: i64) -> f64 {
    number as f64
}
