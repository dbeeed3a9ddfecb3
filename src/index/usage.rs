//! How much went through this node, hour by hour.

use std::time::Duration;

use crate::clock::Timestamp;

/// More hours than this are not kept one by one, about a year; those before are one sum.
pub(super) const HOURS: usize = 24 * 366;
/// The hour that stands for all that was before.
pub(super) const BEFORE: Timestamp = Timestamp(0);
const HOUR: Duration = Duration::from_secs(3600);

crate::record! {
    /// The sums of one hour; that of the year 1970 is what was longer ago than is kept by the hour.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct UsageRecord in "usage" [without_rowid], columns UsageColumns {
        key {
            /// When the hour began.
            hour: Timestamp,
        }
        /// Requests answered by the doors.
        requests: u64,
        /// Body bytes given to clients.
        bytes_to_clients: u64,
        /// Of these, from the store.
        bytes_from_cache: u64,
        /// Received from neighbours.
        bytes_from_peers: u64,
        /// Received from origin servers.
        bytes_from_origin: u64,
        /// Given to neighbours.
        bytes_to_peers: u64,
        /// Received and never delivered.
        bytes_discarded: u64,
    }
}

impl UsageRecord {
    /// The beginning of the hour of this time.
    pub(super) fn hour_of(time: Timestamp) -> Timestamp {
        let hour = u64::try_from(HOUR.as_millis()).unwrap_or(u64::MAX);
        Timestamp(time.0 - time.0 % hour)
    }

    /// Body bytes that programs got and no origin server had to send.
    pub fn saved(&self) -> u64 {
        self.bytes_to_clients.saturating_sub(self.bytes_from_origin)
    }

    /// What its sums are called, in their order.
    pub const SUMS: [&'static str; 7] = [
        "requests",
        "bytes_to_clients",
        "bytes_from_cache",
        "bytes_from_peers",
        "bytes_from_origin",
        "bytes_to_peers",
        "bytes_discarded",
    ];

    /// Of an hour and its sums, in the order of [`Self::SUMS`].
    pub fn of_sums(hour: Timestamp, sums: [u64; 7]) -> Self {
        let [
            requests,
            bytes_to_clients,
            bytes_from_cache,
            bytes_from_peers,
            bytes_from_origin,
            bytes_to_peers,
            bytes_discarded,
        ] = sums;
        Self {
            hour,
            requests,
            bytes_to_clients,
            bytes_from_cache,
            bytes_from_peers,
            bytes_from_origin,
            bytes_to_peers,
            bytes_discarded,
        }
    }

    /// Its sums, in the order of [`Self::SUMS`].
    pub fn sums(&self) -> [u64; 7] {
        [
            self.requests,
            self.bytes_to_clients,
            self.bytes_from_cache,
            self.bytes_from_peers,
            self.bytes_from_origin,
            self.bytes_to_peers,
            self.bytes_discarded,
        ]
    }

    /// The sums of both.
    pub fn add(&mut self, more: &Self) {
        let mut sums = self.sums();
        for (sum, more) in sums.iter_mut().zip(more.sums()) {
            *sum = sum.saturating_add(more);
        }
        *self = Self::of_sums(self.hour, sums);
    }
}
