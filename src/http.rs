//! HTTP in one place: the body type every door and source speaks, request targets, the header fields the
//! rules read, and the look at what comes in on a connection before it is taken for HTTP.
//!
//! Bodies are streams of raw frames: nothing here decodes, compresses or rewrites a byte. Targets keep the
//! path and query exactly as they came (RFC 9110 section 4.2.3 allows, but does not need, normalising).

mod background;
mod body;
mod headers;
pub mod inspect;
mod interim;
mod paced;
mod part;
mod target;
mod uplink;
mod watched;

pub use background::Background;
pub use body::{Body, BodyError, FileBody, Piece, boxed, empty, full};
pub use headers::{StoredHead, hop_by_hop_removed, is_hop_by_hop};
pub use interim::{Interim, InterimOutlet, InterimStream};
pub use paced::{Pace, Paced};
pub use part::{length, part};
pub use target::{Scheme, Target, TargetError};
pub use uplink::{Place, Uplink, Upload};
pub use watched::{WatchError, Watched};
