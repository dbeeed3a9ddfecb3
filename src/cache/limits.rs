//! The `[cache]` settings.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::unit::{ByteSize, Rate, Span, UnitError};

/// How much is kept, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The folder.
    pub dir: PathBuf,
    /// The most bytes that blobs and running transfers may take.
    pub max_size: ByteSize,
    /// Space of the filesystem that stays free for others.
    pub min_free: MinFree,
    /// How long a blob may lie unused.
    pub max_age: Span,
    /// The largest thing that is kept; 0 for no limit but `max_size`.
    pub max_object: ByteSize,
    /// Serve and share what is held, store nothing new.
    pub read_only: bool,
    /// How often everything that is kept is read again, in search of rot; 0 for never.
    pub scrub_every: Span,
    /// The most bytes a second that are read for that.
    pub scrub_rate: Rate,
}

/// Space that stays free: a share of the filesystem, or a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MinFree {
    /// Per cent, 0 to 99.
    Percent(u8),
    /// Bytes.
    Size(ByteSize),
}

impl Default for Config {
    fn default() -> Self {
        Self {
            dir: PathBuf::from("/var/cache/larder"),
            max_size: ByteSize(20 << 30),
            min_free: MinFree::Percent(5),
            max_age: Span(Duration::from_secs(90 * 86_400)),
            max_object: ByteSize(0),
            read_only: false,
            scrub_every: Span(Duration::from_secs(30 * 86_400)),
            scrub_rate: Rate(10_000_000),
        }
    }
}

impl Config {
    /// Whether a thing of this size may be kept at all.
    pub(super) fn admits(&self, size: u64) -> bool {
        size <= self.max_size.bytes() && (self.max_object.bytes() == 0 || size <= self.max_object.bytes())
    }
}

impl MinFree {
    /// In bytes, of a filesystem of this size.
    pub(super) fn of(self, total: u64) -> u64 {
        match self {
            Self::Percent(percent) => total / 100 * u64::from(percent),
            Self::Size(size) => size.bytes(),
        }
    }
}

impl FromStr for MinFree {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        match text.trim().strip_suffix('%').map(str::parse) {
            Some(Ok(percent)) if percent < 100 => Ok(Self::Percent(percent)),
            Some(_) => Err(UnitError::new(format!("`{text}` is not a share: write 0% to 99%, or a size"))),
            None => text.parse().map(Self::Size),
        }
    }
}

impl fmt::Display for MinFree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent(percent) => write!(f, "{percent}%"),
            Self::Size(size) => size.fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for MinFree {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for MinFree {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
