//! What the values of a column are to the outside: how they stand in JSON, in a query and in a table.
//!
//! A cell says how a value is kept, its shape says what it means: 32 bytes are shown as `sha256:…` where they
//! are a digest, a whole number as a date where it is a time. Reading takes what writing gives.

use std::io::Write as _;
use std::net::IpAddr;

use serde_json::Value;

use super::{Cell, Field as _, SqlType};
use crate::clock::Timestamp;
use crate::digest::{Digest, hex, unhex};

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A whole number.
    Integer,
    /// A whole number that is never negative.
    Unsigned,
    /// A whole number of up to 128 bits; a text in JSON where it has more than 64.
    Wide,
    /// A floating point number.
    Number,
    /// True or false.
    Boolean,
    /// Text.
    Text,
    /// Bytes, in hexadecimal.
    Bytes,
    /// A SHA-256 digest, `sha256:` and 64 hexadecimal digits.
    Digest,
    /// A time, RFC 3339 in UTC with milliseconds.
    Time,
    /// An IP address.
    Address,
    /// Any JSON value.
    Json,
}

impl Shape {
    /// The shape of a type that says no more than how it is kept.
    pub const fn of(sql_type: SqlType) -> Self {
        match sql_type {
            SqlType::Integer => Self::Integer,
            SqlType::Real => Self::Number,
            SqlType::Text => Self::Text,
            SqlType::Blob => Self::Bytes,
        }
    }

    /// What a value should be, for who gave another.
    pub const fn wanted(self) -> &'static str {
        match self {
            Self::Integer | Self::Wide => "a whole number",
            Self::Unsigned => "a whole number that is not negative",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::Text => "a text",
            Self::Bytes => "bytes in hexadecimal",
            Self::Digest => "sha256: and 64 hexadecimal digits",
            Self::Time => "a time such as 2026-11-30T08:00:00Z",
            Self::Address => "an IP address",
            Self::Json => "a JSON value",
        }
    }

    /// Whether it stands as a number in JSON.
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Unsigned | Self::Wide | Self::Number)
    }

    /// Appends a cell as JSON.
    pub fn write_json(self, cell: &Cell<'_>, to: &mut Vec<u8>) {
        match (self, cell) {
            (_, Cell::Null) => to.extend_from_slice(b"null"),
            (Self::Boolean, Cell::Integer(number)) => {
                to.extend_from_slice(if *number == 0 { b"false" } else { b"true" });
            }
            (Self::Json, Cell::Text(text)) => to.extend_from_slice(text.as_bytes()),
            (Self::Integer, Cell::Integer(number)) => put(to, number),
            (Self::Unsigned, Cell::Integer(number)) => put(to, &number.cast_unsigned()),
            (Self::Number, Cell::Real(number)) if number.is_finite() => put(to, &Value::from(*number)),
            (Self::Number, Cell::Real(_)) => to.extend_from_slice(b"null"),
            (Self::Wide, Cell::Blob(_)) => {
                let text = self.text(cell);
                if text.parse::<i64>().is_ok() { put(to, &text) } else { put_text(to, &text) }
            }
            _ => put_text(to, &self.text(cell)),
        }
    }

    /// A cell as text: for a path, a table, a comma-separated file. Nothing is empty.
    pub fn text(self, cell: &Cell<'_>) -> String {
        match (self, cell) {
            (_, Cell::Null) => String::new(),
            (Self::Boolean, Cell::Integer(number)) => (*number != 0).to_string(),
            (Self::Unsigned, Cell::Integer(number)) => number.cast_unsigned().to_string(),
            (Self::Time, Cell::Integer(number)) => time_text(number.cast_unsigned()),
            (Self::Digest, Cell::Blob(bytes)) => format!("sha256:{}", hex(bytes)),
            (Self::Wide, Cell::Blob(_)) => {
                i128::decode(cell.borrowed()).map_or_else(|_| String::new(), |number| number.to_string())
            }
            (_, Cell::Integer(number)) => number.to_string(),
            (_, Cell::Real(number)) => number.to_string(),
            (_, Cell::Text(text)) => text.to_string(),
            (_, Cell::Blob(bytes)) => hex(bytes),
        }
    }

    /// A cell from text; what should stand there if it is something else.
    pub fn parse(self, text: &str) -> Result<Cell<'static>, &'static str> {
        let parsed = match self {
            Self::Integer => text.parse().ok().map(Cell::Integer),
            Self::Unsigned => text.parse::<u64>().ok().map(|number| Cell::Integer(number.cast_signed())),
            Self::Wide => text.parse::<i128>().ok().map(|number| number.encode().into_owned()),
            Self::Number => text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Cell::Real),
            Self::Boolean => match text {
                "true" => Some(Cell::Integer(1)),
                "false" => Some(Cell::Integer(0)),
                _ => None,
            },
            Self::Text => Some(Cell::Text(text.to_owned().into())),
            Self::Bytes => unhex(text).ok().map(|bytes| Cell::Blob(bytes.into())),
            Self::Digest => {
                let digits = text.strip_prefix("sha256:").unwrap_or(text);
                Digest::from_hex(digits).ok().map(|digest| digest.encode().into_owned())
            }
            Self::Time => time(text).map(|ms| Cell::Integer(ms.cast_signed())),
            Self::Address => {
                let address = text.parse::<IpAddr>().ok();
                address.map(|address| address.to_canonical().encode().into_owned())
            }
            Self::Json => serde_json::from_str::<Value>(text).ok().map(|v| Cell::Text(v.to_string().into())),
        };
        parsed.ok_or(self.wanted())
    }

    /// A cell from a JSON value; what should stand there if it is something else.
    pub fn take(self, value: &Value) -> Result<Cell<'static>, &'static str> {
        match (self, value) {
            (Self::Json, value) => Ok(Cell::Text(value.to_string().into())),
            (_, Value::Null) => Ok(Cell::Null),
            (Self::Boolean, Value::Bool(truth)) => Ok(Cell::Integer(i64::from(*truth))),
            (shape, Value::Number(number)) if shape.is_number() => {
                // 5.0 is the same number as 5 (RFC 8259 section 6 knows no whole ones)
                let text = number.to_string();
                shape.parse(text.strip_suffix(".0").filter(|_| shape != Self::Number).unwrap_or(&text))
            }
            (Self::Wide, Value::String(text)) => self.parse(text),
            (shape, Value::String(text)) if !shape.is_number() && shape != Self::Boolean => shape.parse(text),
            _ => Err(self.wanted()),
        }
    }
}

/// What is written as it stands.
fn put(to: &mut Vec<u8>, value: &dyn std::fmt::Display) {
    // writing into memory does not fail
    write!(to, "{value}").unwrap_or_default();
}

/// What is written as a JSON text.
pub(super) fn put_text(to: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(to, text).unwrap_or_default();
}

/// RFC 3339, or `@` and the milliseconds where the year has too many digits.
fn time_text(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| format!("@{ms}"), |time| time.to_string())
}

fn time(text: &str) -> Option<u64> {
    if let Some(ms) = text.strip_prefix('@') {
        return ms.parse().ok();
    }
    let time = text.parse::<jiff::Timestamp>().ok()?;
    u64::try_from(time.as_millisecond()).ok().map(Timestamp).map(|time| time.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json(shape: Shape, cell: &Cell<'_>) -> String {
        let mut to = Vec::new();
        shape.write_json(cell, &mut to);
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn each_shape_reads_what_it_writes() {
        let digest = Digest::of(b"x");
        let table = [
            (Shape::Integer, Cell::Integer(-5), "-5"),
            (Shape::Unsigned, Cell::Integer(-1), "18446744073709551615"),
            (Shape::Wide, (-7_i128).encode().into_owned(), "-7"),
            (Shape::Wide, i128::MAX.encode().into_owned(), "\"170141183460469231731687303715884105727\""),
            (Shape::Number, Cell::Real(0.5), "0.5"),
            (Shape::Boolean, Cell::Integer(1), "true"),
            (Shape::Text, Cell::Text("a\"\u{1}".into()), r#""a\"\u0001""#),
            (Shape::Bytes, Cell::Blob(vec![1, 255].into()), "\"01ff\""),
            (Shape::Digest, digest.encode(), &format!("\"{digest}\"")),
            (Shape::Time, Cell::Integer(1_796_040_000_123), "\"2026-11-30T12:00:00.123Z\""),
            (Shape::Time, Cell::Integer(i64::MAX), "\"@9223372036854775807\""),
            (Shape::Address, Cell::Text("10.0.0.9".into()), "\"10.0.0.9\""),
            (Shape::Json, Cell::Text("{\"a\":1}".into()), "{\"a\":1}"),
        ];
        for (shape, cell, expected) in table {
            assert_eq!(json(shape, &cell), expected);
            let value: Value = serde_json::from_str(expected).unwrap();
            assert_eq!(shape.take(&value), Ok(cell.clone()), "{expected}");
            assert_eq!(shape.parse(&shape.text(&cell)), Ok(cell), "{expected}");
        }
    }

    #[test]
    fn another_thing_is_refused_with_what_is_wanted() {
        for (shape, text) in [
            (Shape::Integer, "five"),
            (Shape::Unsigned, "-1"),
            (Shape::Number, "NaN"),
            (Shape::Boolean, "1"),
            (Shape::Bytes, "0g"),
            (Shape::Digest, "sha256:12"),
            (Shape::Time, "yesterday"),
            (Shape::Time, "1960-01-01T00:00:00Z"),
            (Shape::Address, "here"),
            (Shape::Json, "{"),
        ] {
            assert_eq!(shape.parse(text), Err(shape.wanted()), "{text}");
        }
        assert_eq!(Shape::Unsigned.take(&Value::from(5.0)), Ok(Cell::Integer(5)));
        assert_eq!(Shape::Unsigned.take(&Value::from(5.5)), Err(Shape::Unsigned.wanted()));
        assert_eq!(Shape::Text.take(&Value::from(5)), Err("a text"));
        assert_eq!(Shape::Integer.take(&Value::from("5")), Err("a whole number"));
        assert_eq!(Shape::Boolean.take(&Value::from("true")), Err("true or false"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            for shape in [Shape::Integer, Shape::Wide, Shape::Number, Shape::Bytes, Shape::Digest, Shape::Time] {
                if let Ok(cell) = shape.parse(&text) {
                    prop_assert_eq!(shape.parse(&shape.text(&cell)), Ok(cell));
                }
            }
        }
    }
}
