//! Words for quantities an operator writes and reads: sizes, rates and spans of time.
//!
//! One reading of each notation for configuration, command line and output: `KB`, `MB` are powers of 1000,
//! `KiB`, `MiB` powers of 1024; a rate is a size a second; a span is a number with a unit (`30s`, `4m`, `7d`).
//! Parsing fails with a sentence that names the accepted forms; printing can be parsed again.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of bytes, written `10GiB`, `500MB` or `4096`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize(pub u64);

/// A number of bytes a second, written like a size, `/s` allowed; `0` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(pub u64);

/// A span of time, written `250ms`, `30s`, `4m`, `1h 30m`, `7d`; a day has 24 hours, a week 7 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub Duration);

/// Why a quantity could not be read: a sentence that shows the accepted forms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnitError(String);

impl UnitError {
    /// With this sentence.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl ByteSize {
    /// `n` mebibytes.
    pub const fn mib(n: u64) -> Self {
        Self(n * 1024 * 1024)
    }

    /// The number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let size: bytesize::ByteSize = text.trim().parse().map_err(|_ignored: String| {
            UnitError(format!(
                "`{text}` is not a size: write bytes or a number with KB, MB, GB, KiB, MiB, GiB"
            ))
        })?;
        Ok(Self(size.as_u64()))
    }
}

impl fmt::Display for ByteSize {
    /// Exact where a binary unit divides it, else one decimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 4] =
            [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        for (name, unit) in UNITS {
            if self.0 >= unit {
                if self.0.is_multiple_of(unit) {
                    return write!(f, "{}{name}", self.0 / unit);
                }
                let tenths = u128::from(self.0) * 10 / u128::from(unit);
                return write!(f, "{}.{}{name}", tenths / 10, tenths % 10);
            }
        }
        write!(f, "{}B", self.0)
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let size: ByteSize = text.trim().trim_end_matches("/s").parse().map_err(|_ignored: UnitError| {
            UnitError(format!(
                "`{text}` is not a rate: write a size a second such as 10MB, or 0 for no limit"
            ))
        })?;
        Ok(Self(size.0))
    }
}

impl Rate {
    /// Bytes a second, or none where there is no limit.
    pub const fn limit(self) -> Option<u64> {
        if self.0 == 0 { None } else { Some(self.0) }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { f.write_str("0") } else { write!(f, "{}/s", ByteSize(self.0)) }
    }
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong =
            || UnitError(format!("`{text}` is not a duration: write a number with ms, s, m, h, d or w"));
        let span: jiff::Span = text.trim().parse().map_err(|_ignored| wrong())?;
        let whole =
            span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).map_err(|_ignored| wrong())?;
        Duration::try_from(whole).map(Self).map_err(|_ignored| wrong())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u128); 4] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)];
        let ms = self.0.as_millis();
        match UNITS.iter().find(|(_, unit)| ms >= *unit && ms.is_multiple_of(*unit)) {
            Some((name, unit)) => write!(f, "{}{name}", ms / unit),
            None => write!(f, "{ms}ms"),
        }
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        span.0
    }
}

/// Text in configuration and JSON for a type that has `FromStr` and `Display`.
macro_rules! as_text {
    ($($type:ty),+) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }
    )+};
}
as_text!(ByteSize, Rate, Span);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sizes_in_both_systems() {
        for (text, bytes) in
            [("0", 0), ("4096", 4096), ("10MB", 10_000_000), ("10MiB", 10 << 20), ("2KiB", 2048)]
        {
            assert_eq!(text.parse::<ByteSize>().unwrap().bytes(), bytes, "{text}");
        }
        assert!("ten".parse::<ByteSize>().is_err());
        assert!("-1".parse::<ByteSize>().is_err());
    }

    #[test]
    fn prints_what_it_can_read() {
        for bytes in [0, 1, 1023, 1024, 2048, 20 << 30, 5 << 20] {
            let size = ByteSize(bytes);
            assert_eq!(size.to_string().parse::<ByteSize>().unwrap(), size);
        }
        assert_eq!(ByteSize(1536).to_string(), "1.5KiB");
    }

    #[test]
    fn reads_rates_and_spans() {
        assert_eq!("10MB/s".parse::<Rate>().unwrap(), Rate(10_000_000));
        assert_eq!("0".parse::<Rate>().unwrap().limit(), None);
        for (text, ms) in
            [("250ms", 250), ("30s", 30_000), ("4m", 240_000), ("7d", 604_800_000), ("1h 30m", 5_400_000)]
        {
            assert_eq!(text.parse::<Span>().unwrap().0.as_millis(), ms, "{text}");
        }
        for text in ["", "4", "-3s", "soon"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
        assert_eq!("90s".parse::<Span>().unwrap().to_string(), "90s");
    }
}
