//! What this node has to tell: everything neighbours may have, and what changed of it.

use std::collections::BTreeMap;

use crate::digest::Digest;
use crate::orm::{Cell, Feed, Field as _, News};

/// The length of a blob that neighbours may have; none if they may not, or it is not held.
pub type SizeOf = Box<dyn Fn(&Digest) -> Option<u64> + Send + Sync>;

/// What this node holds, as it is now.
pub struct Holdings {
    /// What of it neighbours may have.
    pub size: SizeOf,
    /// All blobs that are held.
    pub all: Box<dyn Fn() -> Vec<Digest> + Send + Sync>,
    /// Tells what changes: rows with a column `digest`.
    pub feed: Feed,
}

/// What is to be told next; none of a size is that it is gone.
pub(super) type Untold = BTreeMap<Digest, Option<u64>>;

/// Follows the feed.
#[derive(Debug)]
pub(super) struct Follower {
    /// The number of the last change that was seen.
    last: u64,
    /// What was told lately: a blob that is only read again is no news.
    told: BTreeMap<Digest, Option<u64>>,
}

/// How many changes are taken at once.
const AT_ONCE: usize = 2048;
/// How much is remembered of what was told.
const TOLD: usize = 16_384;

impl std::fmt::Debug for Holdings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Holdings").finish_non_exhaustive()
    }
}

impl Holdings {
    /// All that there is to tell, in order.
    pub(super) fn sorted(&self) -> Vec<Digest> {
        let mut all = (self.all)();
        all.sort_unstable();
        all
    }
}

impl Follower {
    /// From here on.
    pub(super) fn new(holdings: &Holdings) -> Self {
        Self { last: holdings.feed.last(), told: BTreeMap::new() }
    }

    /// What changed since the last time; none if some of it was missed, so that all has to be compared.
    pub(super) fn news(&mut self, holdings: &Holdings) -> Option<Untold> {
        let mut changed = BTreeMap::new();
        loop {
            let News { changes, missed, last } = holdings.feed.after(self.last, AT_ONCE);
            self.last = last;
            if missed {
                self.told.clear();
                self.last = holdings.feed.last();
                return None;
            }
            if changes.is_empty() {
                break;
            }
            for (_, change) in &changes {
                // of a resource the blob it led to: by it a blob can become one that neighbours may have
                let at = change.table.position("digest");
                let cells = change.row.as_deref().unwrap_or(&change.key);
                if let Some(Ok(digest)) = at.and_then(|at| cells.get(at)).map(|cell| digest(cell)) {
                    changed.insert(digest, (holdings.size)(&digest));
                }
            }
            if changed.len() >= AT_ONCE {
                break;
            }
        }
        changed.retain(|digest, size| self.told.get(digest) != Some(size));
        Some(changed)
    }

    /// All of this was told.
    pub(super) fn told(&mut self, news: Untold) {
        if self.told.len() + news.len() > TOLD {
            self.told.clear();
        }
        self.told.extend(news);
    }
}

fn digest(cell: &Cell<'_>) -> Result<Digest, crate::orm::FieldError> {
    Digest::decode(cell.borrowed())
}
