//! Listening for connections: bound or inherited sockets, an accept loop that does not die, limits on how
//! many connections there are.
//!
//! [`Inherited::take`] receives what systemd hands over, [`bind_all`] makes the listeners of one
//! configuration key, [`Acceptor`] accepts. A bind that fails names address and key; a lack of descriptors
//! is waited out; everything else that `accept` can say about one connection is that connection's affair.

mod accept;
mod inherit;
mod limit;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

pub use accept::{Accepted, Acceptor};
pub use inherit::{InheritError, Inherited};
pub use limit::{ConnectionLimit, Permit};

/// Connections the kernel keeps while we are busy; it cuts this to its own `somaxconn`.
const BACKLOG: i32 = 1024;

/// An address that could not be bound.
#[derive(Debug)]
pub struct BindError {
    /// The address.
    pub address: SocketAddr,
    /// The configuration key that asked for it.
    pub key: &'static str,
    /// What the system said.
    pub source: io::Error,
}

/// Binds and listens. Takes over an address whose last connections still linger, never one in use.
pub fn bind(address: SocketAddr, key: &'static str) -> Result<TcpListener, BindError> {
    listen(address).and_then(|socket| TcpListener::from_std(socket.into())).map_err(|source| BindError {
        address,
        key,
        source,
    })
}

/// The listeners of one configuration key, in the order of its addresses. What systemd handed over under
/// `name` replaces the address it is bound to. An address of a family that this machine lacks is left out
/// as long as another one remains.
pub fn bind_all(
    addresses: &[SocketAddr],
    key: &'static str,
    name: &str,
    inherited: &mut Inherited,
) -> Result<Vec<TcpListener>, BindError> {
    let mut listeners = Vec::with_capacity(addresses.len());
    let mut lacking = None;
    for address in addresses {
        let taken = inherited.claim(name, *address).map(|listener| adopt(listener, *address, key));
        match taken.unwrap_or_else(|| bind(*address, key)) {
            Ok(listener) => listeners.push(listener),
            Err(error) if error.is_family_missing() => {
                tracing::debug!(key, "this machine lacks an address family: one listener is left out");
                lacking = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    match lacking {
        Some(error) if listeners.is_empty() => Err(error),
        Some(_) | None => Ok(listeners),
    }
}

/// Raises the number of files this process may open as far as it may raise it itself, and returns it.
pub fn raise_file_limit() -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    // No maximum means no limit at all; a service manager's infinity reads the same.
    let Some(maximum) = limit.maximum else { return Ok(u64::MAX) };
    if limit.current.is_some_and(|current| current < maximum) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(maximum), maximum: Some(maximum) })?;
    }
    Ok(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
}

fn listen(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // Each family is its own entry in the configuration: `[::]` must not take `0.0.0.0` with it.
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

fn adopt(listener: StdListener, address: SocketAddr, key: &'static str) -> Result<TcpListener, BindError> {
    listener
        .set_nonblocking(true)
        .and_then(|()| TcpListener::from_std(listener))
        .map_err(|source| BindError { address, key, source })
}

impl BindError {
    /// Somebody else has the address: exit status 69.
    pub fn is_taken(&self) -> bool {
        self.source.kind() == io::ErrorKind::AddrInUse
    }

    /// The machine has no IPv6 (or no IPv4) at all, or has it switched off.
    pub fn is_family_missing(&self) -> bool {
        let code = self.source.raw_os_error();
        let unsupported = [Errno::AFNOSUPPORT, Errno::PROTONOSUPPORT].map(|e| Some(e.raw_os_error()));
        let switched_off = self.source.kind() == io::ErrorKind::AddrNotAvailable
            && self.address.is_ipv6()
            && (self.address.ip().is_loopback() || self.address.ip().is_unspecified());
        unsupported.contains(&code) || switched_off
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, key, source } = self;
        if self.is_taken() {
            write!(f, "cannot listen on {address} ({key}): port {} is already in use", address.port())
        } else {
            write!(f, "cannot listen on {address} ({key}): {source}")
        }
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}
