//! How old a kept answer is, and how long it is fresh (RFC 9111 section 4.2).

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::http::StoredHead;

/// A kept answer: what freshness is reckoned from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Status and end-to-end fields as the origin sent them last.
    pub head: StoredHead,
    /// When the request that brought it, or last confirmed it, was sent.
    pub request_time: Timestamp,
    /// When its head arrived.
    pub response_time: Timestamp,
    /// The URL has a query: no freshness is guessed for it.
    #[serde(default)]
    pub queried: bool,
}
