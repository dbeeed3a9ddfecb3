//! Sockets that systemd bound for us (`sd_listen_fds(3)`).
//!
//! Each has a name (`FileDescriptorName=` in the socket unit) and an address. The configuration must ask
//! for both: a socket that nobody claims is an error, as connections would wait in it for ever.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use rustix::net::{AddressFamily, SocketType, sockopt};

/// What was handed over and not claimed yet.
#[derive(Debug, Default)]
pub struct Inherited(Vec<(String, SocketAddr, TcpListener)>);

/// Why what was handed over cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InheritError {
    /// The environment of the service manager makes no sense.
    #[error("cannot take over the sockets that systemd hands over: {0}")]
    Environment(io::Error),
    /// A descriptor that is no listening TCP socket.
    #[error("systemd hands over a socket named `{0}` that is no listening TCP socket")]
    NoListener(String),
    /// A socket the configuration does not ask for.
    #[error(
        "systemd hands over a socket named `{name}` on {address}, which the configuration does not ask for: \
         make ListenStream= and FileDescriptorName= of the socket unit agree with it"
    )]
    Stranger {
        /// `FileDescriptorName=`.
        name: String,
        /// `ListenStream=`.
        address: SocketAddr,
    },
}

impl Inherited {
    /// Takes what the service manager handed over; nothing where there is none.
    pub fn take() -> Result<Self, InheritError> {
        let handed = sd_notify::listen_fds_with_names().map_err(InheritError::Environment)?;
        handed.map(|(fd, name)| Self::adopt(fd, name)).collect::<Result<_, _>>().map(Self)
    }

    /// The listener with this name and address, if there is one.
    pub fn claim(&mut self, name: &str, address: SocketAddr) -> Option<TcpListener> {
        let at = self.0.iter().position(|(n, a, _)| n == name && *a == address)?;
        Some(self.0.swap_remove(at).2)
    }

    /// Ends the claiming: what is left is a stranger.
    pub fn finish(self) -> Result<(), InheritError> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((name, address, _listener)) => Err(InheritError::Stranger { name, address }),
        }
    }

    fn adopt(fd: RawFd, name: String) -> Result<(String, SocketAddr, TcpListener), InheritError> {
        let owned = duplicate(fd).map_err(InheritError::Environment)?;
        Self::named(name, owned)
    }

    fn named(name: String, socket: OwnedFd) -> Result<(String, SocketAddr, TcpListener), InheritError> {
        let family = sockopt::socket_domain(&socket);
        let internet = family == Ok(AddressFamily::INET) || family == Ok(AddressFamily::INET6);
        let listening = sockopt::socket_acceptconn(&socket) == Ok(true);
        if !internet || !listening || sockopt::socket_type(&socket) != Ok(SocketType::STREAM) {
            return Err(InheritError::NoListener(name));
        }
        let listener = TcpListener::from(socket);
        let address = listener.local_addr().map_err(InheritError::Environment)?;
        Ok((name, address, listener))
    }

    /// As if handed over: for tests of those who bind.
    #[cfg(test)]
    pub(super) fn with(name: &str, socket: OwnedFd) -> Result<Self, InheritError> {
        Self::named(name.to_owned(), socket).map(|one| Self(vec![one]))
    }
}

/// A descriptor of our own for the same socket. The handed one stays open and untouched, so that taking
/// twice gives two descriptors instead of two owners of one.
#[expect(unsafe_code, reason = "a descriptor handed over through the environment is known by number only")]
fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: `listen_fds_with_names` set FD_CLOEXEC on this very number without an error, so it is open
    // and not -1; it belongs to nobody in this process, because the service manager opened it before the
    // process began, and this room never closes it. The borrow ends with this statement.
    unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()
}
