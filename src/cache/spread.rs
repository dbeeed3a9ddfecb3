//! How the site's copies are spread, as far as neighbours say what they hold: for the order of eviction alone.
//!
//! Each node tells a [`Roll`] of what it holds, in parts that replace one another, range by range. A blob's name in it
//! is the first three bytes of its digest: among a hundred thousand blobs of a site about one in 170 is taken for
//! another, and goes a little earlier than it should. Nothing is believed that is told here: no blob is asked for,
//! given or served because of it, and who is not heard any more holds nothing.
//!
//! Of those that hold one thing one is its keeper, the first or the last of them by node id as the digest has it: two
//! that hear of each other do not both let it go at the same moment.
//!
//! *Invariant:* memory is bounded whatever is told; a blob of which nothing was heard counts as the last copy.

mod roll;
#[cfg(test)]
mod tests;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::{PoisonError, RwLock};

use crate::digest::Digest;
use crate::tls::NodeId;

pub(super) use roll::{NAMES, Roll};

/// How many names are remembered of all neighbours together: about ten megabytes.
const ALL: usize = 1 << 19;

/// How many copies of a blob the site has, as far as this node knows; what goes first comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Copies {
    /// A neighbour keeps another.
    Spare,
    /// There are others, and this node is the keeper.
    Kept,
    /// Nobody else is known to hold it.
    Last,
}

/// What neighbours say they hold.
#[derive(Debug, Default)]
pub(super) struct Spread(RwLock<Heard>);

#[derive(Debug, Default)]
struct Heard {
    /// Who this node is.
    me: Option<NodeId>,
    nodes: HashMap<NodeId, BTreeSet<u32>>,
    names: HashMap<u32, Others>,
    /// How many names all neighbours told.
    told: usize,
    /// How often something changed.
    changes: u64,
}

/// How many others hold what has this name, by how their ids compare with this node's.
#[derive(Debug, Clone, Copy, Default)]
struct Others {
    below: u16,
    above: u16,
}

impl Spread {
    /// This node is called so from now on; nothing was heard under that name yet.
    pub(super) fn begin(&self, me: NodeId) {
        let mut heard = self.write();
        let changes = heard.changes + 1;
        *heard = Heard { me: Some(me), changes, ..Heard::default() };
    }

    /// A neighbour tells a part of what it holds. False if it makes no sense; then nothing changes.
    pub(super) fn hear(&self, node: NodeId, part: &[u8]) -> bool {
        let Some(part) = roll::read(part) else { return false };
        self.write().hear(node, &part);
        true
    }

    /// A neighbour is gone, and what it holds with it.
    pub(super) fn forget(&self, node: &NodeId) {
        self.write().forget(node);
    }

    /// How many copies there are besides the one that is here.
    pub(super) fn copies(&self, digest: &Digest) -> Copies {
        let heard = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let Some(others) = heard.names.get(&name(digest)) else { return Copies::Last };
        let first_keeps = digest.as_bytes().last().is_some_and(|byte| byte % 2 == 0);
        let keeper = if first_keeps { others.below } else { others.above };
        if keeper > 0 { Copies::Spare } else { Copies::Kept }
    }

    /// How often what was heard changed.
    pub(super) fn changes(&self) -> u64 {
        self.0.read().unwrap_or_else(PoisonError::into_inner).changes
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Heard> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heard {
    fn hear(&mut self, node: NodeId, part: &roll::Part) {
        let Some(me) = self.me.filter(|me| *me != node) else { return };
        let mut theirs = self.nodes.remove(&node).unwrap_or_default();
        let before: Vec<u32> = theirs.range(part.range.clone()).copied().collect();
        let room = NAMES.saturating_sub(theirs.len() - before.len());
        let room = room.min(ALL.saturating_sub(self.told - before.len()));
        let now = part.names.get(..room.min(part.names.len())).unwrap_or_default();
        if before != now {
            self.changes += 1;
            for gone in &before {
                theirs.remove(gone);
                self.count(*gone, node < me, false);
            }
            for come in now {
                theirs.insert(*come);
                self.count(*come, node < me, true);
            }
            self.told = self.told - before.len() + now.len();
        }
        if !theirs.is_empty() {
            self.nodes.insert(node, theirs);
        }
    }

    fn forget(&mut self, node: &NodeId) {
        let (Some(me), Some(theirs)) = (self.me, self.nodes.remove(node)) else { return };
        self.changes += 1;
        self.told -= theirs.len();
        for gone in theirs {
            self.count(gone, *node < me, false);
        }
    }

    /// One more or one less holds what has this name.
    fn count(&mut self, name: u32, is_below: bool, comes: bool) {
        let mut entry = match self.names.entry(name) {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(entry) => entry.insert_entry(Others::default()),
        };
        let others = entry.get_mut();
        let side = if is_below { &mut others.below } else { &mut others.above };
        *side = if comes { side.saturating_add(1) } else { side.saturating_sub(1) };
        if others.below == 0 && others.above == 0 {
            entry.remove();
        }
    }
}

/// What a blob is called in what nodes tell each other.
fn name(digest: &Digest) -> u32 {
    let [first, second, third, ..] = *digest.as_bytes();
    u32::from_be_bytes([0, first, second, third])
}
