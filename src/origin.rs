//! The internet: requests to origin servers over HTTP/1.1 and HTTP/2, with pooled connections.
//!
//! What comes back is what the origin sent: redirects are not followed (but by [`Origin::follow`]), nothing
//! is decoded, path and query go out byte for byte. Every wait has a deadline: `connect_timeout` for finding
//! and connecting a host, `stall_timeout` for the response head and for each silence in a body. A body that
//! ends before its length, its last chunk or its TLS close is an error, never an end. `download_rate` holds all
//! bodies together to one rate; tunnels and other protocols are not slowed.
//!
//! At most `connections_per_host` HTTP/1 connections lead to one authority. Who waits for one longer than
//! `connect_timeout` gets one beyond that number: a few long downloads must not shut out everybody else. An
//! HTTP/2 connection is shared by all requests of its authority.
//!
//! A request without a body and without effect that was sent over a pooled connection which the origin
//! closed at that very moment is repeated silently; any other only if none of it was sent.
//!
//! [`Reach::Public`] is for clients that are not on this machine: loopback, link-local and our own addresses
//! are refused after the name was resolved, for the very addresses that are then connected, and such
//! connections are pooled apart. Behind a parent proxy names are resolved by it, so only literal addresses
//! and `localhost` can be refused here. The environment's proxy variables are never read.
//!
//! Errors are sentences for the client that name the host and never path or query.
//!
//! Why the pool is our own: hyper-util's counts requests, not connections, repeats only what was not sent
//! at all, and hides whether a failure was one of connecting or of answering.

mod body;
mod client;
mod config;
mod dial;
mod error;
mod follow;
mod interim;
mod pool;
mod rate;
mod reach;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::clock::SharedClock;
use crate::http::{Body, Pace, Target};
use crate::net::precedence::{Precedence, Share};
use crate::unit::Rate;

pub use config::{Config, ParentProxy, ParentProxyError};
pub use error::OriginError;
pub use reach::Reach;

/// What bodies that nobody waits for take beside those that somebody does.
const LEFT: Share = Share { part: 8, floor: Rate(64 * 1024) };

/// The way to all origins. Cheap to clone; the connections close when the last clone is gone.
#[derive(Debug, Clone)]
pub struct Origin(Arc<Inner>);

/// Response extension: who answered, the parent proxy where there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remote(pub SocketAddr);

/// What an origin did with a request for another protocol.
#[derive(Debug)]
pub enum Switched {
    /// It agreed: its head, and the stream of what follows.
    To(http::Response<()>, hyper::upgrade::Upgraded),
    /// It answered as to any request.
    Not(http::Response<Body>),
}

#[derive(Debug)]
struct Inner {
    dialer: dial::Dialer,
    pool: pool::Pool,
    rates: rate::Rates,
    pace: Pace,
    foreground: Arc<AtomicU64>,
    behind: Precedence,
    stall: Duration,
    max_redirects: usize,
}

impl Origin {
    /// Reads the certificate authorities; connects nothing yet. Blocks on files.
    pub fn new(config: Config, clock: SharedClock) -> Result<Self, OriginError> {
        let per_host = config.connections_per_host;
        if per_host == 0 {
            return Err(OriginError::Setup("origin.connections_per_host must be at least 1".to_owned()));
        }
        let (stall, max_redirects) = (config.stall_timeout.0, config.max_redirects);
        let pace = Pace::new(config.download_rate);
        let foreground = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&foreground);
        let behind = Precedence::new(move || counted.load(Ordering::Relaxed), LEFT, Arc::clone(&clock));
        let dialer = dial::Dialer::new(config)?;
        let pool = pool::Pool::new(per_host, clock);
        Ok(Self(Arc::new(Inner {
            dialer,
            pool,
            rates: rate::Rates::default(),
            pace,
            foreground,
            behind,
            stall,
            max_redirects,
        })))
    }

    /// Sends a request with an absolute URI; `Host` is made from it, fields of the client's own connection
    /// and `Expect` (we never wait before sending a body) stay behind. The response carries [`Remote`] and no
    /// field of the origin's connection. Its body fails with an [`OriginError`]. Interim answers of an HTTP/1.1
    /// origin go to the [`Interim`](crate::http::Interim) among the request's extensions.
    pub async fn send(
        &self,
        request: http::Request<Body>,
        reach: &Reach,
    ) -> Result<http::Response<Body>, OriginError> {
        client::send(&self.0, request, reach).await
    }

    /// GETs a target, following at most `max_redirects` redirects; `Authorization` and `Cookie` do not go
    /// to another scheme, host or port than the first. Returns the target that answered.
    pub async fn follow(
        &self,
        target: Target,
        headers: HeaderMap,
        reach: &Reach,
    ) -> Result<(Target, http::Response<Body>), OriginError> {
        follow::follow(self, target, headers, reach, self.0.max_redirects).await
    }

    /// Whether a client may have what this target leads to, also when it is held and nothing is asked. A name
    /// that cannot be resolved now is no reason to refuse what is held.
    pub async fn check(&self, target: &Target, reach: &Reach) -> Result<(), OriginError> {
        if *reach == Reach::Anywhere {
            return Ok(());
        }
        match self.0.dialer.check(target.bare_host(), target.port(), reach).await {
            Err(OriginError::Dns { .. }) => Ok(()),
            checked @ (Ok(()) | Err(_)) => checked,
        }
    }

    /// A connection for `CONNECT`: straight to the host, or through the parent proxy.
    pub async fn tunnel(&self, host: &str, port: u16, reach: &Reach) -> Result<TcpStream, OriginError> {
        self.0.dialer.tunnel(host, port, reach).await
    }

    /// Sends a request that asks for another protocol (RFC 9110 section 7.8), over HTTP/1.1 on a connection of
    /// its own.
    pub async fn switch(
        &self,
        request: http::Request<Body>,
        protocol: &HeaderValue,
        reach: &Reach,
    ) -> Result<Switched, OriginError> {
        client::switch(&self.0, request, protocol, reach).await
    }

    /// A connection over TLS, verified as any other, for bytes that are no HTTP.
    pub async fn secure(&self, target: &Target, reach: &Reach) -> Result<TlsStream<TcpStream>, OriginError> {
        self.0.dialer.bare(target, reach).await
    }

    /// From now on all bodies together take so many bytes a second, running ones as well; 0 for no limit.
    pub fn set_download_rate(&self, rate: Rate) {
        self.0.pace.set(rate);
    }

    /// Bytes a second that this authority was seen to give, if it was seen at all.
    pub fn learned_rate(&self, authority: &str) -> Option<u64> {
        self.0.rates.learned(authority)
    }

    /// Notes how fast an authority was; what is too short to tell is ignored.
    pub fn note_rate(&self, authority: &str, bytes: u64, elapsed: Duration) {
        self.0.rates.note(authority, bytes, elapsed);
    }
}
