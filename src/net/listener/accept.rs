//! Accepting connections for as long as the service lives.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rustix::io::Errno;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};

use super::{ConnectionLimit, Permit};
use crate::shutdown::Shutdown;

/// How long the first pause lasts when the machine lacks descriptors or memory; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// When to ask a silent client whether it still lives.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// A listener with its limit.
#[derive(Debug)]
pub struct Acceptor {
    listener: TcpListener,
    limit: ConnectionLimit,
}

/// A connection that came in.
#[derive(Debug)]
pub enum Accepted {
    /// It may be served while the permit is held.
    Admitted {
        /// The connection, without delay of small writes.
        stream: TcpStream,
        /// From where, v4-mapped addresses as IPv4.
        from: SocketAddr,
        /// To be dropped with the connection.
        permit: Permit,
    },
    /// Its address has too many already: say so, briefly, and close.
    Crowded {
        /// The connection.
        stream: TcpStream,
        /// From where.
        from: SocketAddr,
    },
}

impl Acceptor {
    /// Accepts from `listener` within `limit`, which several acceptors may share.
    pub const fn new(listener: TcpListener, limit: ConnectionLimit) -> Self {
        Self { listener, limit }
    }

    /// The address connections come to.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The next connection. At the total limit none is accepted: clients queue in the kernel. Fails only
    /// when the listener itself is unusable.
    pub async fn accept(&self) -> io::Result<Accepted> {
        let place = self.limit.place().await;
        let mut pause = Duration::ZERO;
        loop {
            match self.listener.accept().await {
                Ok((stream, from)) => {
                    if !pause.is_zero() {
                        tracing::info!("accepting connections again");
                    }
                    let from = SocketAddr::new(from.ip().to_canonical(), from.port());
                    settle(&stream);
                    return Ok(match self.limit.admit(from.ip(), place) {
                        Some(permit) => Accepted::Admitted { stream, from, permit },
                        None => Accepted::Crowded { stream, from },
                    });
                }
                Err(error) => match trouble(&error) {
                    Trouble::Connection => {
                        tracing::debug!(error = %error, "a connection ended before it was accepted");
                    }
                    Trouble::Machine => {
                        if pause.is_zero() {
                            tracing::warn!(error = %error, "cannot accept connections: trying again");
                        }
                        pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
                        tokio::time::sleep(pause).await;
                    }
                    Trouble::Listener => return Err(error),
                },
            }
        }
    }

    /// Hands every connection to `serve`, which spawns and does not wait, until asked to stop.
    pub async fn run(self, shutdown: &Shutdown, mut serve: impl FnMut(Accepted)) -> io::Result<()> {
        loop {
            tokio::select! {
                biased;
                () = shutdown.requested() => return Ok(()),
                accepted = self.accept() => serve(accepted?),
            }
        }
    }
}

/// Whom an error of `accept` concerns.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    Connection,
    Machine,
    Listener,
}

pub(super) fn trouble(error: &io::Error) -> Trouble {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => Trouble::Machine,
        Some(Errno::BADF | Errno::INVAL | Errno::NOTSOCK | Errno::OPNOTSUPP | Errno::FAULT) | None => {
            Trouble::Listener
        }
        // Linux passes on what was pending on the new connection: aborted, unreachable, refused by a filter.
        Some(_) => Trouble::Connection,
    }
}

/// Answers leave at once; a client that vanished is noticed one day.
fn settle(stream: &TcpStream) {
    let set = stream
        .set_nodelay(true)
        .and_then(|()| SockRef::from(stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE)));
    if let Err(error) = set {
        tracing::debug!(error = %error, "a connection does not take its options");
    }
}
