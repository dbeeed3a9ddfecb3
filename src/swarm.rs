//! A crowd that wants one thing: who goes to the origin for all, who reads from whom, and whose bytes are right.
//!
//! Small rules without sockets, tasks or clocks; times and what was heard go in, what to do comes out: [`Search`] finds
//! somebody to read from, [`Claim`] within it says who fetches, [`Place`] and [`Branches`] make a tree of those who read
//! from each other, [`Board`] compares what came with what those who had it from the origin say it is.
//!
//! *Invariants:* of those who heard each other's claims exactly one goes; every search ends; no chain of readers ever closes to a ring,
//! however old what they know of each other is; nobody serves more than [`BRANCHES`] readers, or [`CROWDED`] where some lost theirs; a piece
//! counts as proved only when its hash was told by a node that got it from the origin itself.

mod claim;
mod pieces;
mod search;
mod seat;
mod tree;

pub use claim::{Claim, Rank, Step};
pub use pieces::{Board, Judged};
pub use search::{Next, Search};
pub use seat::{At, Room, Seat};
pub use tree::{BRANCHES, Branches, CROWDED, Place, Turn};
