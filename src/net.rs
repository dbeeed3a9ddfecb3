//! The network of this machine: which interfaces to use, sockets bound or inherited, connections counted,
//! bytes held to a rate.
//!
//! Promises: what is bound is named in its error together with the configuration key that asked for it; an
//! accept loop outlives a lack of descriptors; choosing interfaces is a pure function of a list. Nothing
//! here knows a protocol: what is sent and received belongs to the rooms above.
//!
//! *Invariant:* no room above this one opens a listening or datagram socket.

pub mod interface;
pub mod listener;
pub mod patience;
pub mod throttle;
pub mod udp;
