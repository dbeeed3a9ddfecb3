//! The engine: one want in, one verified body out; the only room that chooses a source.
//!
//! Promises: for one thing exactly one transfer runs, and everybody who wants it reads from it; a client is
//! given nothing that does not belong to the answer it asked for; bytes from a neighbour are judged by a digest
//! that somebody with authority stated; a source that is slow, dead or lying is replaced at the byte reached,
//! and the client notices nothing but a little time. What may not be stored passes through untouched.
//!
//! Fails with [`FetchError`], a sentence for the client. A body that cannot be completed ends with an error,
//! never cleanly. Knows nothing of doors: ranges and conditions of a thing that is held are applied above.

mod again;
mod behind;
mod blocks;
mod crowd;
mod delivery;
mod engine;
mod error;
mod flight;
mod follow;
mod give;
mod guarded;
mod judge;
mod known;
mod lead;
mod learn;
mod lenders;
mod lend;
mod ledger;
mod line;
mod measures;
mod neighbours;
mod offer;
mod origin_side;
mod outcome;
mod parts;
mod piece;
mod prefetch;
mod reasons;
mod repair;
mod resume;
mod running;
mod settings;
mod share;
mod sidecar;
mod stand;
mod transfer;
mod view;
mod want;

pub use again::Again;
pub use delivery::Cuts;
pub use engine::{Engine, Parts};
pub use error::FetchError;
pub use ledger::{From, Ledger, Traffic};
pub use lend::Lending;
pub use measures::Measures;
pub use neighbours::Neighbours;
pub use outcome::{Bytes, CacheStatus, Given, Head, Held, HeldFile, Reply, Slice, Switched};
pub use prefetch::Fetched;
pub use reasons::{Explanation, Reason};
pub use running::Running;
pub use settings::{Config, Release, Trust};
pub use view::TransferView;
pub use want::Want;
