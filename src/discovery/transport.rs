//! How datagrams leave and arrive: over UDP, or in memory for tests. Both pass the same suite.

mod memory;
mod udp;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use serde::Serialize;

pub use memory::{Memory, Network};
pub use udp::Udp;

use super::Endpoint;

/// One open endpoint; never used again after it was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Link(pub u32);

/// Something that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// Its bytes; one that is longer than any frame is cut, and so no frame.
    pub bytes: Vec<u8>,
    /// The address it seems to come from.
    pub from: SocketAddr,
    /// The endpoint it came to.
    pub link: Link,
    /// Whether it was sent to everybody.
    pub broadcast: bool,
}

/// One endpoint as status and doctor show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InterfaceView {
    /// Where frames are sent from.
    pub local: SocketAddr,
    /// Where everybody hears, if this network has such a place.
    pub broadcast: Option<SocketAddr>,
    /// Why it does not work; it is tried again.
    pub error: Option<String>,
    /// Whether that is because another program has the port.
    pub taken: bool,
}

/// Where datagrams go.
pub trait Transport: Send {
    /// Replaces the endpoints. What stays the same stays open; what cannot be opened is tried again by
    /// [`Transport::maintain`].
    fn set_endpoints(&mut self, endpoints: &[Endpoint], now: Instant);

    /// Opens what is not open and whose time for another try has come; returns when to be called again.
    fn maintain(&mut self, now: Instant) -> Option<Instant>;

    /// The next datagram; none where an endpoint failed and [`Transport::maintain`] should be called. Dropping the
    /// future loses nothing.
    fn receive(&mut self) -> impl Future<Output = Option<Datagram>> + Send;

    /// Sends to one address, from this endpoint or, if it is none or closed, from any that fits. Never waits:
    /// what the system cannot take now is lost, as datagrams are.
    fn send(&mut self, to: SocketAddr, link: Option<Link>, frame: &[u8]) -> io::Result<()>;

    /// Sends to everybody on every network, or on every other than that of this endpoint.
    fn broadcast(&mut self, frame: &[u8], but: Option<Link>);

    /// The endpoints as they are.
    fn view(&self) -> Vec<InterfaceView>;
}

#[cfg(test)]
mod tests;
