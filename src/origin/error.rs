//! Why an origin could not be asked, or did not answer.

use std::fmt;
use std::io;

use crate::http::TargetError;

/// A failure on the way to an origin: a sentence for the client, which names the host and nothing else of
/// the URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// The name has no address, or nobody tells it.
    #[error("cannot find the address of {host}: {why}")]
    Dns {
        /// The host.
        host: String,
        /// What the resolver said.
        why: String,
    },
    /// No address of the host takes a connection.
    #[error("cannot connect to {host}: {why}")]
    Connect {
        /// The host.
        host: String,
        /// What the system or the parent proxy said.
        why: String,
    },
    /// Connecting took longer than `origin.connect_timeout`.
    #[error("cannot connect to {host}: no answer in time (origin.connect_timeout)")]
    ConnectTimeout {
        /// The host.
        host: String,
    },
    /// The host cannot be trusted, or speaks no TLS we know.
    #[error("cannot make a secure connection to {host}: {why}")]
    Tls {
        /// The host.
        host: String,
        /// What TLS said.
        why: String,
    },
    /// The origin was silent longer than `origin.stall_timeout`.
    #[error("{host} stalled: it sent nothing in time (origin.stall_timeout)")]
    Stalled {
        /// The host.
        host: String,
    },
    /// What the origin sent is no whole HTTP response.
    #[error("{host} broke the protocol: {why}")]
    Protocol {
        /// The host.
        host: String,
        /// In which way.
        why: String,
    },
    /// The address is one that clients from elsewhere do not reach through us.
    #[error("{host} is an address of this machine or link, which clients from elsewhere may not reach")]
    Denied {
        /// The host.
        host: String,
    },
    /// More redirects than `origin.max_redirects`.
    #[error("too many redirects (origin.max_redirects)")]
    Redirects,
    /// The request names nothing that can be fetched.
    #[error("{0}")]
    BadTarget(#[from] TargetError),
    /// The configuration cannot be used.
    #[error("{0}")]
    Setup(String),
}

impl OriginError {
    /// Whether the origin could not be asked, so that a stale answer may take its place (RFC 5861).
    pub const fn is_unreachable(&self) -> bool {
        match self {
            Self::Dns { .. }
            | Self::Connect { .. }
            | Self::ConnectTimeout { .. }
            | Self::Tls { .. }
            | Self::Stalled { .. }
            | Self::Protocol { .. } => true,
            Self::Denied { .. } | Self::Redirects | Self::BadTarget(_) | Self::Setup(_) => false,
        }
    }

    pub(super) fn stalled(host: &str) -> Self {
        Self::Stalled { host: host.to_owned() }
    }

    pub(super) fn protocol(host: &str, why: impl fmt::Display) -> Self {
        Self::Protocol { host: host.to_owned(), why: why.to_string() }
    }

    pub(super) fn connect(host: &str, why: impl fmt::Display) -> Self {
        Self::Connect { host: host.to_owned(), why: why.to_string() }
    }

    /// What hyper says, in the words of whoever waits for the answer.
    pub(super) fn of_hyper(host: &str, error: &hyper::Error) -> Self {
        if error.is_timeout() {
            return Self::stalled(host);
        }
        if error.is_parse_too_large() {
            return Self::protocol(host, "the header fields of its answer are too large");
        }
        if error.is_parse() {
            return Self::protocol(host, "its answer is not valid HTTP");
        }
        if error.is_incomplete_message() {
            return Self::protocol(host, "it closed the connection before its answer was complete");
        }
        if error.is_user() {
            return Self::protocol(host, "the body of the request ended early");
        }
        Self::protocol(host, root(error))
    }
}

/// The innermost cause, where the specific reason is.
fn root(error: &hyper::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
        Some(io::ErrorKind::UnexpectedEof) => {
            "it closed the connection before its answer was complete".to_owned()
        }
        Some(_) | None => cause.to_string(),
    }
}
