//! Which blobs go when room is needed.
//!
//! Blobs that were asked for once go before those that were asked for again, so that one pass over many
//! things (a mirror run, a scan) does not wash out what is used every day; only where what was used again
//! fills more than four fifths of the room do all compete as equals. Among equals what neighbours say they hold too
//! goes before the last copy of the site ([`Copies`]); then the one that was used
//! longest ago goes first, and of two of the same moment the one with the lower digest: the same past always
//! gives the same choice. Pinned ones never go. Times of use in the future (a clock that was set back) count
//! as the oldest: they must not live for ever.
//!
//! A hit changes nothing here. The queues hold the places of the oldest blobs alone, a part of all, up to a horizon;
//! when one is empty all blobs are looked over for the next part, which costs a few looks for each that goes and keeps
//! the queues small. They are told of new blobs; what stands at their head is compared with what the blob is now and
//! goes back to its present place if it was used meanwhile, or if others have it or lost it. A blob goes back at most
//! once for each time it was looked for, so a step costs O(log n) on average. What was heard of other copies since the
//! queues were made moves what is deep in them only when they are made anew: not before a part of all has gone.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::digest::Digest;
use crate::index::{HeldBlob, Totals};

use super::spread::Copies;

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
    /// How many copies there are elsewhere, as far as is known.
    fn copies(&self, digest: &Digest) -> Copies;
    /// How often what is known of copies changed.
    fn changes(&self) -> u64;
}

/// The blobs in the order in which they go; empty until somebody asks.
#[derive(Debug)]
pub(super) struct Order {
    queues: Mutex<Option<Queues>>,
    least: usize,
}

/// When a blob was used last, and its name.
type Place = (Timestamp, Digest);

/// Blobs that are equals: whether they were used again, and how many copies there are.
type Class = (bool, Copies);

/// In the order in which they go, unless those that were used again compete with the others.
const CLASSES: [Class; 6] = [
    (false, Copies::Spare),
    (false, Copies::Kept),
    (false, Copies::Last),
    (true, Copies::Spare),
    (true, Copies::Kept),
    (true, Copies::Last),
];

#[derive(Debug)]
struct Queues {
    /// One for each of [`CLASSES`].
    queues: [Queue; 6],
    least: usize,
    /// What was known of copies when they were made, and how many blobs went since.
    changes: u64,
    gone: u64,
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
    pub(super) fn add(&self, blob: HeldBlob, rows: &impl Rows, now: Timestamp) {
        if let Some(queues) = self.lock().as_mut() {
            queues.push(&blob, rows, now);
        }
    }

    /// The blob that goes next. It is out of the queues then: whoever cannot remove it adds it again.
    pub(super) fn next(&self, rows: &impl Rows, now: Timestamp) -> Option<HeldBlob> {
        let mut order = self.lock();
        let queues = order.get_or_insert_with(|| Queues::of(rows, self.least, now));
        loop {
            queues.look_again(rows, now);
            let class = queues.next_class(rows.totals())?;
            let blob = queues.pop(class, rows, now)?;
            if blob.is_some() {
                queues.gone += 1;
                return blob;
            }
        }
    }

    /// A blob that was not used for longer than `max_age`, as [`Order::next`]; those from the future are left to that.
    pub(super) fn next_aged(&self, rows: &impl Rows, max_age: Duration, now: Timestamp) -> Option<HeldBlob> {
        let mut order = self.lock();
        let queues = order.get_or_insert_with(|| Queues::of(rows, self.least, now));
        queues.look_again(rows, now);
        for class in CLASSES {
            // those from the future lie at the head with the time 0
            let mut aside = Vec::new();
            let found = loop {
                let head = queues.head(class).map(|(used, _)| used);
                if head.is_none_or(|used| now.since(used) <= max_age) {
                    break None;
                }
                match queues.pop(class, rows, now).flatten() {
                    Some(blob) if blob.last_used > now => aside.push(blob),
                    Some(blob) => break Some(blob),
                    None => {}
                }
            };
            aside.iter().for_each(|blob| queues.push(blob, rows, now));
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
        let changes = rows.changes();
        let share = usize::try_from(rows.totals().blobs / SHARE).unwrap_or(usize::MAX);
        let lowest = || Lowest { places: BinaryHeap::new(), most: least.max(share), passed_over: false };
        let mut all = CLASSES.map(|_| lowest());
        rows.each(&mut |blob| {
            // one that is pinned comes when it is unpinned
            if !rows.is_pinned(&blob.digest)
                && let Some(lowest) = all.get_mut(number(class(&blob, rows)))
            {
                lowest.offer(place(&blob, now));
            }
        });
        Self { queues: all.map(Lowest::queue), least, changes, gone: 0 }
    }

    /// Looks over all blobs again where a queue is at its end and is not all there is, and where other copies came
    /// or went and so many blobs went since the last look that it costs each of them little.
    fn look_again(&mut self, rows: &impl Rows, now: Timestamp) {
        let is_at_end = |queue: &Queue| queue.places.is_empty() && queue.horizon.is_some();
        let is_outdated = self.gone >= rows.totals().blobs / SHARE && self.changes != rows.changes();
        if is_outdated || self.queues.iter().any(is_at_end) {
            *self = Self::of(rows, self.least, now);
        }
    }

    fn push(&mut self, blob: &HeldBlob, rows: &impl Rows, now: Timestamp) {
        if let Some(queue) = self.queues.get_mut(number(class(blob, rows))) {
            queue.push(place(blob, now));
        }
    }

    /// The first place of a queue.
    fn head(&self, class: Class) -> Option<Place> {
        self.queues.get(number(class))?.places.peek().map(|Reverse(place)| *place)
    }

    /// Where the next one comes from.
    fn next_class(&self, totals: Totals) -> Option<Class> {
        let first = |again: bool| {
            let heads = CLASSES.into_iter().filter(|class| class.0 == again);
            heads.filter_map(|class| Some((class.1, self.head(class)?))).next()
        };
        let (once, again) = (first(false), first(true));
        let protects = u128::from(totals.again_bytes) * 100 <= u128::from(totals.bytes) * PROTECTED;
        match (once, again) {
            (Some(once), Some(again)) if !protects && again < once => Some((true, again.0)),
            (Some((copies, _)), _) => Some((false, copies)),
            (None, again) => again.map(|(copies, _)| (true, copies)),
        }
    }

    /// Takes the head of a queue. None if the queue is empty; an inner none if its head was out of date, gone or
    /// pinned.
    fn pop(&mut self, from: Class, rows: &impl Rows, now: Timestamp) -> Option<Option<HeldBlob>> {
        let Reverse((used, digest)) = self.queues.get_mut(number(from))?.places.pop()?;
        // one that is pinned comes back when it is unpinned
        let Some(blob) = rows.row(&digest).filter(|_| !rows.is_pinned(&digest)) else { return Some(None) };
        if class(&blob, rows) != from || place(&blob, now).0 != used {
            self.push(&blob, rows, now);
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

fn class(blob: &HeldBlob, rows: &impl Rows) -> Class {
    (blob.again, rows.copies(&blob.digest))
}

/// Which of [`CLASSES`] it is.
fn number((again, copies): Class) -> usize {
    let offset = match copies {
        Copies::Spare => 0,
        Copies::Kept => 1,
        Copies::Last => 2,
    };
    offset + if again { 3 } else { 0 }
}
