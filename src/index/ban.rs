//! Addresses that misbehaved, as they outlive a restart. When a ban begins and ends is for the room `ban`.

use std::net::IpAddr;

use crate::clock::Timestamp;

/// More bans than this are not kept; those that end first go first.
pub(super) const BANS: usize = 10_000;

crate::record! {
    /// One banned address.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct BanRecord in "bans" [without_rowid], columns BanColumns {
        key {
            /// The address.
            address: IpAddr,
        }
        /// Why, for the administrator.
        reason: String,
        /// When it began.
        since: Timestamp,
        /// When it ends.
        until: Timestamp,
        /// How often the address was banned.
        count: u32,
    }
}
