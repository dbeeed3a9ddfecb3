//! The fleet's catalogue: which nodes hold what, beyond the networks a node can hear, in a PostgreSQL database
//! that all of them share.
//!
//! Each node tells who it is and where it hears ([`NodeRecord`]), and what neighbours may have of it
//! ([`HoldingRecord`]); any node may ask who holds a digest. An answer only nominates: whoever is found there is
//! met, asked and read from like any other neighbour, with nothing but the site's secret to prove itself by. So a
//! database that lies costs a few datagrams, and no byte is believed because of it.
//!
//! [`Catalogue`] is the handle: [`Catalogue::holders`] answers within the time it is given or not at all.
//! [`Service`] is the task: it keeps the session, says every half minute that this node is there, tells changes in
//! batches, sweeps up behind nodes that never came back. What is to be told waits in the feed of the index, which
//! is bounded; where some of it was missed, all is compared.
//!
//! It promises that nothing waits for it: a database that is gone, hangs, is full, is read-only or is somebody
//! else's is a trouble in [`Health`](crate::telemetry::Health) and no more, and it is tried again after a pause
//! that grows and is drawn by lot, so that a fleet does not come back in one moment. Clocks are never compared:
//! the time is the database's.

mod desk;
mod handle;
mod held;
mod records;
mod service;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use handle::{Catalogue, CatalogueView, Known};
pub use held::{Holdings, SizeOf};
pub use records::{HoldingColumns, HoldingRecord, NodeColumns, NodeRecord};
pub use service::{Me, Service};

/// A node that was silent for longer is not offered.
const LIVE: Duration = Duration::from_secs(90);
/// One that was silent for longer is swept up.
const REMEMBERED: Duration = Duration::from_secs(86_400);
