//! What neighbours are told of what is held here, and what they say they hold.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Cache;
use super::spread::{NAMES, Roll};
use crate::digest::Digest;
use crate::tls::NodeId;

/// How old what is told may be when its next part is asked for.
const FRESH: Duration = Duration::from_secs(300);

/// What is told, and when it was reckoned; empty while nobody is told anything.
#[derive(Debug, Default)]
pub(super) struct Telling(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    roll: Roll,
    reckoned: Option<Instant>,
    /// Somebody reckons it now.
    busy: bool,
}

impl Cache {
    /// This node joins a site under this id: what was heard before counts no longer.
    pub fn join(&self, me: NodeId) {
        self.0.spread.begin(me);
    }

    /// The next part of what neighbours are told; none before [`Cache::reckon_roll`] has reckoned it. True beside it
    /// where it is time to do so: whoever is told that does it, or nobody.
    pub fn tell(&self) -> (Option<Vec<u8>>, bool) {
        let mut told = self.told();
        let part = told.reckoned.is_some().then(|| told.roll.next());
        let now = self.0.clock.instant();
        let is_due = !told.busy && told.reckoned.is_none_or(|then| now.duration_since(then) >= FRESH);
        told.busy |= is_due;
        (part, is_due)
    }

    /// Reckons what neighbours are told: the largest blobs, but for what is guarded and what `may_be_told` withholds.
    /// Blocks.
    pub fn reckon_roll(&self, may_be_told: impl Fn(&Digest) -> bool) {
        self.0.index.wait_until_read(|| false);
        let mut largest = BinaryHeap::with_capacity(NAMES + 1);
        self.0.index.each_blob(|blob| {
            if !blob.guarded {
                largest.push(Reverse((blob.size, blob.digest)));
            }
            if largest.len() > NAMES {
                largest.pop();
            }
        });
        let held: Vec<Digest> = largest.into_iter().map(|Reverse((_, digest))| digest).collect();
        let held: Vec<&Digest> = held.iter().filter(|digest| may_be_told(digest)).collect();
        let mut told = self.told();
        told.roll.call(held.into_iter());
        told.reckoned = Some(self.0.clock.instant());
        told.busy = false;
    }

    /// A neighbour tells a part of what it holds: a hint for what goes first here, and nothing else.
    pub fn hear(&self, node: NodeId, part: &[u8]) {
        let before = self.0.spread.changes();
        if !self.0.spread.hear(node, part) {
            tracing::debug!(peer.node = %node, "a neighbour tells of its blobs what cannot be");
        } else if self.0.spread.changes() != before {
            tracing::debug!(peer.node = %node, "a neighbour told what it holds");
        }
    }

    /// A neighbour is gone: what it holds counts no longer.
    pub fn unhear(&self, node: &NodeId) {
        self.0.spread.forget(node);
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.0.telling.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
