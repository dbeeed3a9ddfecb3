//! What administrators write on blobs. Labels outlive the blob: it may come again.

use std::collections::BTreeMap;

use crate::digest::Digest;

crate::record! {
    /// The labels of one blob.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct LabelRecord in "labels" [without_rowid], columns LabelColumns {
        key {
            /// The blob; it need not be held.
            digest: Digest [relates = "blobs(digest)"],
        }
        /// Names and values.
        labels: BTreeMap<String, String> [json, default = "'{}'", member_index = "team", schema = r#"{"type":"object","additionalProperties":{"type":"string"}}"#],
        /// Counts the changes.
        version: u64 [version],
    }
}
