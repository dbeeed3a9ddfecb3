//! What stands in the catalogue.

use crate::clock::Timestamp;
use crate::digest::Digest;
use crate::orm::{Record as _, Schema};

crate::record! {
    /// A node of the fleet.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct NodeRecord in "larder_nodes", columns NodeColumns {
        key {
            /// Its id, the bytes of a UUID.
            node: [u8; 16],
        }
        /// The fingerprint of its site's secret: others can do nothing for each other.
        site: String [index],
        /// What it is called.
        name: String,
        /// The version of its program.
        program: String,
        /// How many runs it has had.
        boot_counter: u64,
        /// The random part of this run.
        boot_random: u64,
        /// Where it hears, as `address:port` of UDP.
        addresses: Vec<String> [json],
        /// Tells what it told from what was swept up behind it.
        registration: u64,
        /// When it last said that it is there, by the database's clock.
        seen_at: Timestamp [index],
        /// Counts the changes of this row.
        changes: u64 [version],
    }
}

crate::record! {
    /// That a node holds a blob which neighbours may have.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct HoldingRecord in "larder_holdings", columns HoldingColumns {
        key {
            /// Which node.
            node: [u8; 16],
            /// Which blob.
            digest: Digest [index],
        }
        /// The fingerprint of the node's site's secret.
        site: String,
        /// The blob's length in bytes.
        size: u64,
        /// The registration of the node under which this was told.
        registration: u64,
    }
}

/// The tables of the catalogue.
pub(super) const SCHEMA: Schema =
    Schema { application_id: 0x4c44_0003, tables: &[NodeRecord::TABLE, HoldingRecord::TABLE], steps: &[] };
