//! The hourly sums: adding what came since the last time, and what they say was saved.

use std::sync::{Arc, Mutex, PoisonError};

use super::build::House;
use super::sources;
use crate::admin::SavedView;
use crate::clock::Timestamp;
use crate::fetch::Traffic;
use crate::index::{Index, UsageRecord};

/// A day in milliseconds.
const DAY: u64 = 86_400_000;

/// What of the traffic stands in the hourly sums already; a cheap clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Counted(Arc<Mutex<Traffic>>);

impl Counted {
    /// Adds what came since the last time to the sums of this hour.
    pub(super) fn settle(&self, house: &House) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = sources::traffic(house);
        let more = since(&now, &counted);
        if more != UsageRecord::default() {
            house.cache.index().add_usage(more, house.clock.now());
        }
        *counted = now;
    }
}

/// What did not have to come from origin servers.
pub(super) fn saved(house: &House) -> SavedView {
    house.counted.settle(house);
    of_hours(house.cache.index(), house.clock.now())
}

fn of_hours(index: &Index, now: Timestamp) -> SavedView {
    let midnight = now.0 - now.0 % DAY;
    let mut saved = SavedView::default();
    for hour in index.usage() {
        let bytes = hour.saved();
        let since = [(&mut saved.today, midnight), (&mut saved.week, midnight.saturating_sub(6 * DAY))];
        for (sum, _) in since.into_iter().filter(|(_, from)| hour.hour.0 >= *from) {
            *sum = sum.saturating_add(bytes);
        }
        saved.ever = saved.ever.saturating_add(bytes);
    }
    saved
}

fn since(now: &Traffic, before: &Traffic) -> UsageRecord {
    let (mut sums, before) = (sums(now), sums(before));
    for (sum, before) in sums.iter_mut().zip(before) {
        *sum = sum.saturating_sub(before);
    }
    UsageRecord::of_sums(Timestamp::default(), sums)
}

/// The traffic in the order of the sums of an hour.
fn sums(traffic: &Traffic) -> [u64; 7] {
    [
        traffic.requests,
        traffic.bytes_to_clients,
        traffic.bytes_from_cache,
        traffic.bytes_from_peers,
        traffic.bytes_from_origin,
        traffic.bytes_to_peers,
        traffic.bytes_discarded,
    ]
}
