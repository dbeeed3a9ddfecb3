//! What a partial remembers of its thing, so that a later transfer can go on.

use serde::{Deserialize, Serialize};

use super::flight::FlightKey;
use crate::policy::{Answer, Variance};
use crate::store::PartialRecord;

/// The note kept with a partial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    /// The head that the bytes belong to.
    pub(super) answer: Answer,
    /// What selected it.
    pub(super) variance: Variance,
    /// The whole size, if it was known.
    pub(super) total: Option<u64>,
}

/// What is here of a thing, for a transfer to go on with.
#[derive(Debug, Clone)]
pub(super) struct Beginning {
    /// What is known of it.
    pub(super) note: Note,
    /// Its first bytes; none where only something further on is here.
    pub(super) kept: Option<PartialRecord>,
}

impl Beginning {
    /// Whether it may be of a thing of this size.
    pub(super) fn is_of(&self, size: u64) -> bool {
        self.note.total.is_none_or(|total| total == size)
    }

    /// How many bytes are here from the first one on.
    pub(super) fn length(&self) -> u64 {
        self.kept.as_ref().map_or(0, |record| record.offset)
    }
}

impl Note {
    pub(super) fn to_text(&self) -> String {
        // a note that cannot be written is one that cannot be read: the partial is dropped then
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn from_text(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// The name of a thing's partial.
pub(super) fn partial_key(key: FlightKey) -> String {
    match key {
        FlightKey::Url(url) => format!("url:{url}"),
        FlightKey::Stated(stated) => stated.to_string(),
    }
}
