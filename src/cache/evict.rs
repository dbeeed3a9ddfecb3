//! Which blobs go when room is needed.
//!
//! Blobs that were asked for once go before those that were asked for again, so that one pass over many
//! things (a mirror run, a scan) does not wash out what is used every day; only where what was used again
//! fills more than four fifths of the room do all compete as equals. Among equals the one that was used
//! longest ago goes first, and of two of the same moment the one with the lower digest: the same past always
//! gives the same choice. Pinned ones never go. Times of use in the future (a clock that was set back) count
//! as the oldest: they must not live for ever.
//!
//! A hit changes nothing here. The queues are told of new blobs alone; what stands at their head is compared
//! with the row it has now and goes back to its present place if it was used meanwhile. A blob goes back at
//! most once for each time it was looked for, so a step costs O(log n) on average, and no choice reads all rows.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::digest::Digest;
use crate::index::{BlobRecord, Totals};

/// Of the room that blobs take, the per cent that blobs used again may fill before they compete as equals.
const PROTECTED: u128 = 80;

/// What the choice is made from.
pub(super) trait Rows {
    /// The present row of a blob; none if it is gone.
    fn row(&self, digest: &Digest) -> Option<Arc<BlobRecord>>;
    /// All rows, in no order: asked for once.
    fn all(&self) -> Vec<Arc<BlobRecord>>;
    /// What they are together.
    fn totals(&self) -> Totals;
    /// Whether a blob must stay.
    fn is_pinned(&self, digest: &Digest) -> bool;
}

/// The blobs in the order in which they go; empty until somebody asks.
#[derive(Debug, Default)]
pub(super) struct Order(Mutex<Option<Queues>>);

/// The least recently used first.
type Queue = BinaryHeap<Reverse<(Timestamp, Digest)>>;

#[derive(Debug, Default)]
struct Queues {
    once: Queue,
    again: Queue,
}

impl Order {
    /// A blob is new, or may go again after it was pinned.
    pub(super) fn add(&self, blob: &BlobRecord, now: Timestamp) {
        if let Some(queues) = self.lock().as_mut() {
            queues.push(blob, now);
        }
    }

    /// The blob that goes next. It is out of the queues then: whoever cannot remove it adds it again.
    pub(super) fn next(&self, rows: &impl Rows, now: Timestamp) -> Option<Arc<BlobRecord>> {
        let mut order = self.lock();
        let queues = order.get_or_insert_with(|| Queues::of(rows, now));
        loop {
            let takes_again = queues.takes_again(rows.totals());
            let blob = queues.pop(takes_again, rows, now)?;
            if blob.is_some() {
                return blob;
            }
        }
    }

    /// A blob that was not used for longer than `max_age`, as [`Order::next`]; those from the future are left to that.
    pub(super) fn next_aged(
        &self,
        rows: &impl Rows,
        max_age: Duration,
        now: Timestamp,
    ) -> Option<Arc<BlobRecord>> {
        let mut order = self.lock();
        let queues = order.get_or_insert_with(|| Queues::of(rows, now));
        for again in [false, true] {
            // those from the future lie at the head with the time 0
            let mut aside = Vec::new();
            let found = loop {
                let head = queues.queue(again).peek().map(|Reverse((used, _))| *used);
                if head.is_none_or(|used| now.since(used) <= max_age) {
                    break None;
                }
                match queues.pop(again, rows, now).flatten() {
                    Some(blob) if blob.last_used > now => aside.push(blob),
                    Some(blob) => break Some(blob),
                    None => {}
                }
            };
            aside.iter().for_each(|blob| queues.push(blob, now));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Queues>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queues {
    fn of(rows: &impl Rows, now: Timestamp) -> Self {
        let (again, once): (Vec<_>, Vec<_>) = rows.all().into_iter().partition(|blob| blob.hits > 0);
        let queue =
            |blobs: Vec<Arc<BlobRecord>>| blobs.iter().map(|blob| Reverse(place(blob, now))).collect();
        Self { once: queue(once), again: queue(again) }
    }

    fn push(&mut self, blob: &BlobRecord, now: Timestamp) {
        self.queue(blob.hits > 0).push(Reverse(place(blob, now)));
    }

    fn queue(&mut self, again: bool) -> &mut Queue {
        if again { &mut self.again } else { &mut self.once }
    }

    /// Whether the next one comes from those that were used again.
    fn takes_again(&self, totals: Totals) -> bool {
        match (self.once.peek(), self.again.peek()) {
            (Some(Reverse(once)), Some(Reverse(again))) => {
                let protects = u128::from(totals.again_bytes) * 100 <= u128::from(totals.bytes) * PROTECTED;
                !protects && again < once
            }
            (once, _) => once.is_none(),
        }
    }

    /// Takes the head of a queue. None if the queue is empty; an inner none if its head was out of date, gone or
    /// pinned.
    fn pop(&mut self, again: bool, rows: &impl Rows, now: Timestamp) -> Option<Option<Arc<BlobRecord>>> {
        let Reverse((used, digest)) = self.queue(again).pop()?;
        // one that is pinned comes back when it is unpinned
        let Some(blob) = rows.row(&digest).filter(|_| !rows.is_pinned(&digest)) else { return Some(None) };
        if (blob.hits > 0) != again || place(&blob, now).0 != used {
            self.push(&blob, now);
            return Some(None);
        }
        Some(Some(blob))
    }
}

/// Where a blob stands among its equals.
fn place(blob: &BlobRecord, now: Timestamp) -> (Timestamp, Digest) {
    (if blob.last_used > now { Timestamp(0) } else { blob.last_used }, blob.digest)
}
