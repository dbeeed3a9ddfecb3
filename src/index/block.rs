//! Things that nobody gets here, because an administrator of this node or of its site says so.

use crate::clock::Timestamp;
use crate::digest::Digest;
use crate::policy::UrlKey;

/// More things than this are not blocked: every request would pay for the list.
pub const BLOCKS: usize = 10_000;

crate::record! {
    /// A thing that nobody gets here.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct BlockRecord in "blocks" [without_rowid], columns BlockColumns {
        key {
            /// `sha256:` or `url:` and 64 hexadecimal digits.
            thing: String,
        }
        /// The digest, or the URL without its query.
        shown: String,
        /// Why, for whoever is refused it.
        reason: String,
        /// When it was blocked.
        since: Timestamp,
        /// The blocked blob that a URL led to, where it is blocked for that alone; empty where it was ordered.
        because_of: String,
    }
}

impl BlockRecord {
    /// The name of a blob among what is blocked.
    pub fn blob(digest: &Digest) -> String {
        digest.to_string()
    }

    /// The name of a URL among what is blocked.
    pub fn url(url: &UrlKey) -> String {
        format!("url:{url}")
    }
}
