//! Which blobs go when room is needed.
//!
//! Blobs that were asked for once go before those that were asked for again, so that one pass over many
//! things (a mirror run, a scan) does not wash out what is used every day; only where what was used again
//! fills more than four fifths of the room do all compete as equals. Among equals the one that was used
//! longest ago goes first, and of two of the same moment the one with the lower digest: the same past always
//! gives the same choice. Pinned ones never go. Times of use in the future (a clock that was set back) count
//! as the oldest: they must not live for ever.
//!
//! A hit changes nothing here. The queues hold the places of the oldest blobs alone, a part of all, up to a horizon;
//! when one is empty all blobs are looked over for the next part, which costs a few looks for each that goes and keeps
//! the queues small. They are told of new blobs; what stands at their head is compared with what the blob is now and
//! goes back to its present place if it was used meanwhile. A blob goes back at most once for each time it was looked
//! for, so a step costs O(log n) on average.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::digest::Digest;
use crate::index::{HeldBlob, Totals};

/// Of the room that blobs take, the per cent that blobs used again may fill before they compete as equals.
const PROTECTED: u128 = 80;

/// A queue takes in at least so many blobs at once, and at least one of [`SHARE`] of all.
const LEAST: usize = 4096;
const SHARE: u64 = 32;

/// What the choice is made from.
pub(super) trait Rows {
    /// What a blob is at present; none if it is gone.
    fn row(&self, digest: &Digest) -> Option<HeldBlob>;
    /// Shows all of them, in no order.
    fn each(&self, take: &mut dyn FnMut(HeldBlob));
    /// What they are together.
    fn totals(&self) -> Totals;
    /// Whether a blob must stay.
    fn is_pinned(&self, digest: &Digest) -> bool;
}

/// The blobs in the order in which they go; empty until somebody asks.
#[derive(Debug)]
pub(super) struct Order {
    queues: Mutex<Option<Queues>>,
    least: usize,
}

/// When a blob was used last, and its name.
type Place = (Timestamp, Digest);

#[derive(Debug)]
struct Queues {
    once: Queue,
    again: Queue,
    least: usize,
}

/// The least recently used first.
#[derive(Debug, Default)]
struct Queue {
    places: BinaryHeap<Reverse<Place>>,
    /// Beyond it there are blobs that are not in the queue.
    horizon: Option<Place>,
}

/// Looks for the first of many places.
struct Lowest {
    places: BinaryHeap<Place>,
    most: usize,
    passed_over: bool,
}

impl Default for Order {
    fn default() -> Self {
        Self { queues: Mutex::default(), least: LEAST }
    }
}

impl Order {
    /// A blob is new, or may go again after it was pinned.
    pub(super) fn add(&self, blob: HeldBlob, now: Timestamp) {
        if let Some(queues) = self.lock().as_mut() {
            queues.push(&blob, now);
        }
    }

    /// The blob that goes next. It is out of the queues then: whoever cannot remove it adds it again.
    pub(super) fn next(&self, rows: &impl Rows, now: Timestamp) -> Option<HeldBlob> {
        let mut order = self.lock();
        let queues = order.get_or_insert_with(|| Queues::of(rows, self.least, now));
        loop {
            queues.look_beyond(rows, now);
            let takes_again = queues.takes_again(rows.totals());
            let blob = queues.pop(takes_again, rows, now)?;
            if blob.is_some() {
                return blob;
            }
        }
    }

    /// A blob that was not used for longer than `max_age`, as [`Order::next`]; those from the future are left to that.
    pub(super) fn next_aged(&self, rows: &impl Rows, max_age: Duration, now: Timestamp) -> Option<HeldBlob> {
        let mut order = self.lock();
        let queues = order.get_or_insert_with(|| Queues::of(rows, self.least, now));
        queues.look_beyond(rows, now);
        for again in [false, true] {
            // those from the future lie at the head with the time 0
            let mut aside = Vec::new();
            let found = loop {
                let head = queues.queue(again).places.peek().map(|Reverse((used, _))| *used);
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
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queues {
    fn of(rows: &impl Rows, least: usize, now: Timestamp) -> Self {
        let share = usize::try_from(rows.totals().blobs / SHARE).unwrap_or(usize::MAX);
        let lowest = || Lowest { places: BinaryHeap::new(), most: least.max(share), passed_over: false };
        let (mut once, mut again) = (lowest(), lowest());
        rows.each(&mut |blob| {
            // one that is pinned comes when it is unpinned
            if !rows.is_pinned(&blob.digest) {
                (if blob.again { &mut again } else { &mut once }).offer(place(&blob, now));
            }
        });
        Self { once: once.queue(), again: again.queue(), least }
    }

    /// Looks over all blobs again where a queue is at its end and is not all there is.
    fn look_beyond(&mut self, rows: &impl Rows, now: Timestamp) {
        let is_at_end = |queue: &Queue| queue.places.is_empty() && queue.horizon.is_some();
        if is_at_end(&self.once) || is_at_end(&self.again) {
            *self = Self::of(rows, self.least, now);
        }
    }

    fn push(&mut self, blob: &HeldBlob, now: Timestamp) {
        self.queue(blob.again).push(place(blob, now));
    }

    fn queue(&mut self, again: bool) -> &mut Queue {
        if again { &mut self.again } else { &mut self.once }
    }

    /// Whether the next one comes from those that were used again.
    fn takes_again(&self, totals: Totals) -> bool {
        match (self.once.places.peek(), self.again.places.peek()) {
            (Some(Reverse(once)), Some(Reverse(again))) => {
                let protects = u128::from(totals.again_bytes) * 100 <= u128::from(totals.bytes) * PROTECTED;
                !protects && again < once
            }
            (once, _) => once.is_none(),
        }
    }

    /// Takes the head of a queue. None if the queue is empty; an inner none if its head was out of date, gone or
    /// pinned.
    fn pop(&mut self, again: bool, rows: &impl Rows, now: Timestamp) -> Option<Option<HeldBlob>> {
        let Reverse((used, digest)) = self.queue(again).places.pop()?;
        // one that is pinned comes back when it is unpinned
        let Some(blob) = rows.row(&digest).filter(|_| !rows.is_pinned(&digest)) else { return Some(None) };
        if blob.again != again || place(&blob, now).0 != used {
            self.push(&blob, now);
            return Some(None);
        }
        Some(Some(blob))
    }
}

impl Queue {
    /// What lies beyond the horizon is found when the queue is at its end.
    fn push(&mut self, place: Place) {
        if self.horizon.is_none_or(|horizon| place <= horizon) {
            self.places.push(Reverse(place));
        }
    }
}

impl Lowest {
    fn offer(&mut self, place: Place) {
        if self.places.len() < self.most {
            self.places.push(place);
            return;
        }
        self.passed_over = true;
        if self.places.peek().is_some_and(|last| place < *last) {
            self.places.pop();
            self.places.push(place);
        }
    }

    fn queue(self) -> Queue {
        let horizon = self.places.peek().copied().filter(|_| self.passed_over);
        Queue { places: self.places.into_iter().map(Reverse).collect(), horizon }
    }
}

/// Where a blob stands among its equals.
fn place(blob: &HeldBlob, now: Timestamp) -> Place {
    (if blob.last_used > now { Timestamp(0) } else { blob.last_used }, blob.digest)
}
