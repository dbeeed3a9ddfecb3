//! Pins as they are shown. They are kept beside the blobs, so that they outlive the index.

use crate::digest::Digest;

crate::record! {
    /// A blob that is kept from eviction.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct PinRecord in "pins" [without_rowid], columns PinColumns {
        key {
            /// The blob.
            digest: Digest [relates = "blobs(digest)"],
        }
    }
}
