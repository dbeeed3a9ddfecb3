//! What was received, from where and how it ended: a history that is bounded and ages away.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::digest::Digest;

/// More transfers than this are not kept; those that ended first go first.
pub(super) const TRANSFERS: usize = 10_000;
/// How long a transfer is remembered.
pub(super) const REMEMBERED: Duration = Duration::from_secs(30 * 86_400);

crate::record! {
    /// One transfer from the origin or from a neighbour, running or ended.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct TransferRecord in "transfers" [without_rowid], columns TransferColumns {
        key {
            /// Its name.
            id: String,
        }
        /// What was fetched, query values as `…`.
        url: String,
        /// Whose bytes came last: `origin`, or `peer` and its address.
        source: String,
        /// The blob it became or should become, where that is known.
        digest: Option<Digest> [relates = "blobs(digest)"],
        /// The whole size in bytes, once known.
        size: Option<u64>,
        /// Bytes received.
        received: u64,
        /// How many readers follow it now.
        readers: u64,
        /// `running`, `complete`, or why it failed: `digest`, `changed`, `source`, `abandoned`.
        state: String,
        /// When it began.
        started_at: Timestamp,
        /// When it ended.
        ended_at: Option<Timestamp> [index],
    }
}
