//! TLS: one provider, this node's identity, and the configurations of all listeners and clients.

mod identity;

pub use identity::{NodeId, Pin};
