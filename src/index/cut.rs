//! Downloads that were cut because their bytes were wrong: whoever asks for the rest must be told so.

use std::net::IpAddr;

use crate::clock::Timestamp;
use crate::policy::UrlKey;

/// More cuts than this are not kept; those that end first go first.
pub(super) const CUTS: usize = 100_000;

crate::record! {
    /// One client's download of one URL, cut because its bytes were wrong.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct CutRecord in "cuts" [without_rowid], columns CutColumns {
        key {
            /// Who was downloading.
            client: IpAddr,
            /// The name of the URL.
            url_key: UrlKey,
        }
        /// How many bytes had been given out.
        at: u64,
        /// Until when this is remembered.
        until: Timestamp,
    }
}
