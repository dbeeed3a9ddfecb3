//! The network of this machine: which interfaces to use, sockets bound or inherited, connections counted,
//! bytes held to a rate, by the hours of the week and by who goes first.
//!
//! Promises: what is bound is named in its error together with the configuration key that asked for it; an
//! accept loop outlives a lack of descriptors; choosing interfaces is a pure function of a list. Nothing
//! here knows a protocol: what is sent and received belongs to the rooms above.
//!
//! *Invariant:* no room above this one opens a listening or datagram socket.

pub mod hours;
pub mod interface;
pub mod limits;
pub mod listener;
pub mod patience;
pub mod precedence;
pub mod sendfile;
pub mod socket;
pub mod srv;
pub mod throttle;
pub mod udp;
