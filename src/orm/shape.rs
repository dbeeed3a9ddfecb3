//! What the values of a column are to the outside: how they stand in JSON, in a query and in a table.
//!
//! A cell says how a value is kept, its shape says what it means: 32 bytes are shown as `sha256:…` where they
//! are a digest, a whole number as a date where it is a time. Reading takes what writing gives.

use std::net::IpAddr;

use serde_json::Value;

use super::{Cell, Field as _, SqlType};
use crate::clock::Timestamp;
use crate::digest::{Digest, hex, push_hex, unhex};

/// 9999-12-29: later days are none to those who read times.
const LAST_DAY: u64 = 2_932_894;

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
            (Self::Integer, Cell::Integer(number)) => put_json(to, number),
            (Self::Unsigned, Cell::Integer(number)) => put_json(to, &number.cast_unsigned()),
            (Self::Number, Cell::Real(number)) if number.is_finite() => put_json(to, number),
            (Self::Time, Cell::Integer(number)) => {
                to.push(b'"');
                put_time(to, number.cast_unsigned());
                to.push(b'"');
            }
            (Self::Text | Self::Address, Cell::Text(text)) => put_json(to, text),
            (Self::Number, Cell::Real(_)) => to.extend_from_slice(b"null"),
            (Self::Digest, Cell::Blob(bytes)) => {
                to.extend_from_slice(b"\"sha256:");
                push_hex(bytes, to);
                to.push(b'"');
            }
            (Self::Wide, Cell::Blob(_)) => match i128::decode(cell.borrowed()).map(i64::try_from) {
                Ok(Ok(number)) => put_json(to, &number),
                Ok(Err(_)) | Err(_) => put_json(to, &self.text(cell)),
            },
            _ => put_json(to, &self.text(cell)),
        }
    }

    /// Appends a cell as text.
    pub fn write_text(self, cell: &Cell<'_>, to: &mut Vec<u8>) {
        match (self, cell) {
            (Self::Time, Cell::Integer(number)) => put_time(to, number.cast_unsigned()),
            (Self::Integer, Cell::Integer(number)) => put_json(to, number),
            (Self::Unsigned, Cell::Integer(number)) => put_json(to, &number.cast_unsigned()),
            _ => to.extend_from_slice(self.text(cell).as_bytes()),
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

/// What is written as JSON.
pub(super) fn put_json(to: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    // writing into memory does not fail
    serde_json::to_writer(to, value).unwrap_or_default();
}

/// RFC 3339, or `@` and the milliseconds where the year has too many digits.
fn time_text(ms: u64) -> String {
    let mut text = Vec::with_capacity(24);
    put_time(&mut text, ms);
    String::from_utf8(text).unwrap_or_default()
}

/// By hand: a formatter that knows all calendars takes most of the time that a list of rows takes.
fn put_time(to: &mut Vec<u8>, ms: u64) {
    let (seconds, fraction) = (ms / 1000, ms % 1000);
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    if days > LAST_DAY {
        to.push(b'@');
        return put_json(to, &ms);
    }
    let (year, month, day) = date(days);
    let mut text = *b"0000-00-00T00:00:00.000Z";
    let [y0, y1, y2, y3, _, m0, m1, _, d0, d1, _, h0, h1, _, n0, n1, _, s0, s1, _, f0, f1, f2, _] = &mut text;
    put_digits(year, [y0, y1, y2, y3]);
    put_digits(month, [m0, m1]);
    put_digits(day, [d0, d1]);
    put_digits(of_day / 3600, [h0, h1]);
    put_digits(of_day / 60 % 60, [n0, n1]);
    put_digits(of_day % 60, [s0, s1]);
    put_digits(fraction, [f0, f1, f2]);
    to.extend_from_slice(&text);
    // zeros at the end of a fraction are not written, nor is one that is zero
    let zeros = if fraction == 0 { 4 } else { [10, 100].iter().filter(|ten| fraction % **ten == 0).count() };
    if zeros > 0 {
        to.truncate(to.len() - 1 - zeros);
        to.push(b'Z');
    }
}

fn put_digits<const N: usize>(mut number: u64, places: [&mut u8; N]) {
    for place in places.into_iter().rev() {
        *place = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
    }
}

/// Year, month and day of a day after 1970-01-01, by the calendar of today; counted in years that begin in March, so
/// that the day that is not always there is their last.
const fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + (month <= 2) as u64, month, day)
}

fn time(text: &str) -> Option<u64> {
    if let Some(ms) = text.strip_prefix('@') {
        return ms.parse().ok();
    }
    if let Some(ms) = own_time(text.as_bytes()) {
        return Some(ms);
    }
    let time = text.parse::<jiff::Timestamp>().ok()?;
    u64::try_from(time.as_millisecond()).ok().map(Timestamp).map(|time| time.0)
}

/// A time as we write it; none where somebody else wrote it in another way.
fn own_time(text: &[u8]) -> Option<u64> {
    let (head, rest) = text.split_at_checked(19)?;
    let number = |from: usize, to: usize| {
        head.get(from..to)?.iter().try_fold(0_u64, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0'))
        })
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if !marks.iter().all(|(at, mark)| head.get(*at) == Some(mark)) {
        return None;
    }
    let fraction = match rest {
        b"Z" => 0,
        [b'.', a, b, c, b'Z'] if [a, b, c].iter().all(|digit| digit.is_ascii_digit()) => {
            [a, b, c].iter().fold(0, |number, digit| number * 10 + u64::from(*digit - b'0'))
        }
        _ => return None,
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let days = days_until(year, month, day).filter(|_| hour < 24 && minute < 60 && second < 60)?;
    Some((days * 86_400 + hour * 3600 + minute * 60 + second) * 1000 + fraction)
}

/// Days from 1970-01-01; none if there is no such day.
fn days_until(year: u64, month: u64, day: u64) -> Option<u64> {
    let (year_from_march, month_from_march) =
        if month > 2 { (year, month.checked_sub(3)?) } else { (year.checked_sub(1)?, month + 9) };
    let (era, of_era) = (year_from_march / 400, year_from_march % 400);
    let of_year = (153 * month_from_march + 2) / 5 + day.checked_sub(1)?;
    let days = (era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year).checked_sub(719_468)?;
    (days <= LAST_DAY && date(days) == (year, month, day)).then_some(days)
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
            (Shape::Time, "2025-02-29T00:00:00Z"),
            (Shape::Time, "2025-13-01T00:00:00Z"),
            (Shape::Time, "2025-00-01T00:00:00Z"),
            (Shape::Time, "2025-12-01T24:00:00Z"),
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
        fn times_are_written_as_the_calendar_has_them(ms in 0..253_402_000_000_000_u64, round: bool) {
            let ms = if round { ms / 100_000 * 100_000 + ms % 7 * 10 } else { ms };
            let theirs = jiff::Timestamp::from_millisecond(ms.cast_signed()).unwrap().to_string();
            prop_assert_eq!(&time_text(ms), &theirs);
            prop_assert_eq!(time(&theirs), Some(ms));
        }

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
