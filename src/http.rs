//! HTTP in one place: the body type every door and source speaks, request targets, and the header fields
//! the rules read.
//!
//! Bodies are streams of raw frames: nothing here decodes, compresses or rewrites a byte. Targets keep the
//! path and query exactly as they came (RFC 9110 section 4.2.3 allows, but does not need, normalising).

mod body;
mod headers;
mod target;

pub use body::{Body, BodyError, boxed, empty, full};
pub use headers::{StoredHead, hop_by_hop_removed, is_hop_by_hop};
pub use target::{Scheme, Target, TargetError};
