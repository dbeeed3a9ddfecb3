//! What is asked for and what a node says it has.

use crate::digest::{Digest, StatedKey};
use crate::policy::{ResourceKey, UrlKey};
use crate::tls::NodeId;

/// The longest part of what a node tells of its holdings in one `Hello`.
pub(super) const TOLD: usize = 640;

/// What a `Find` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// Bytes with this digest.
    Blob(Digest),
    /// Bytes with this digest of another algorithm.
    Stated(StatedKey),
    /// What this URL led to.
    Url(UrlKey),
}

/// What a node has of a wanted thing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holding {
    /// Its digest, once known.
    pub digest: Option<Digest>,
    /// Its full size, once known.
    pub size: Option<u64>,
    /// The origin's entity tag.
    pub etag: Option<String>,
    /// The origin's date of last change.
    pub last_modified: Option<String>,
    /// Whether the node had the bytes from the origin itself.
    pub first_hand: bool,
    /// The name of the stored head.
    pub resource: Option<ResourceKey>,
    /// Whether it has all of it; else it has a part and more is coming.
    pub complete: bool,
    /// Whether it has no room for a further reader now.
    pub busy: bool,
    /// Whether it answered credentials: for those alone whom the origin lets in.
    pub guarded: bool,
    /// Where it stands among the nodes that receive it, while it has not got all of it.
    pub partial: Option<Partial>,
}

/// A thing that a node is still receiving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partial {
    /// The node that gets it from outside: the others read from it, or from each other.
    pub root: NodeId,
    /// How many nodes stand between: 0 is the root itself.
    pub depth: u8,
    /// How many bytes it has.
    pub received: u64,
    /// Who reads from it, where it has no room for more: they may have.
    pub readers: Vec<NodeId>,
}

/// Who asks what a node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asker {
    /// The node.
    pub node: NodeId,
    /// Whether it asks this node alone, and so means to read from it.
    pub direct: bool,
}

/// What this node has; asked on the discovery task, so it answers from memory and at once.
pub trait Holdings: Send + Sync {
    /// What this node has of it and may share. Where it is named, an asker who could read may be kept a place.
    fn lookup(&self, wanted: &Wanted, asker: Option<Asker>) -> Option<Holding>;

    /// How busy this node is with serving neighbours: 0 idle, 255 full.
    fn load(&self) -> u8 {
        0
    }

    /// The next part of what this node tells all neighbours that it holds, at most [`TOLD`] bytes; none: nothing now.
    /// What it says is between the nodes' holdings: discovery only carries it.
    fn tell(&self) -> Option<Vec<u8>> {
        None
    }

    /// A neighbour tells a part of what it holds.
    fn told(&self, _by: NodeId, _part: &[u8]) {}

    /// The name of the list of the site's orders here, told in each `Hello`; none where there are none.
    fn orders(&self) -> Option<[u8; 16]> {
        None
    }

    /// A node says that it has this list of orders. Nothing is proved: it is a reason to ask it. Must not block.
    fn orders_heard(&self, _node: NodeId, _list: [u8; 16]) {}

    /// A neighbour left, or was silent for too long.
    fn left(&self, _node: &NodeId) {}

    /// A neighbour read wrong bytes under this digest from here: the copy should be verified. Must not block;
    /// called at most once in ten minutes for one digest.
    fn doubted(&self, _digest: &Digest) {}
}
