//! Neighbours as they are shown. They are known by hearing alone: nothing of them is kept on disk.

crate::record! {
    /// A neighbour heard lately.
    #[derive(Debug, Clone, PartialEq)]
    pub struct PeerRecord in "peers", columns PeerColumns {
        key {
            /// Its id, a UUID.
            node: String,
        }
        /// What it is called.
        name: String,
        /// Where its blobs are.
        address: String,
        /// Seconds since it was heard.
        last_seen_seconds: f64,
        /// The version of its program.
        version: String,
        /// Body bytes received from it since the start.
        bytes_received: u64,
        /// Body bytes given to it since the start.
        bytes_given: u64,
        /// Why it is not asked, where it is not.
        skipped: Option<String>,
    }
}
