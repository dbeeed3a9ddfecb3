//! TLS: one provider, this node's identity, and the configurations of all listeners and clients.
//!
//! Neighbours know each other by the key alone. Both ends present a self-signed certificate; what counts is
//! the pin, SHA-256 over its public key, and the proof in the handshake that the other end holds that key.
//! Names and validity dates are not judged, so that a machine with a wrong clock still works. Towards origins
//! the ordinary rules hold: the system's authorities, those of `ca_file`, names and dates.
//!
//! For interception a machine has an authority of its own ([`LocalAuthority`]), which nobody else trusts.
//!
//! Errors name the file that could not be used. Nothing here opens a socket, and no key is ever printed.
//!
//! *Invariant:* every configuration is built with [`provider`]; two providers in one process would fail at
//! run time.

mod authority;
mod client;
mod files;
mod identity;
mod local;
mod server;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};

pub use authority::pin_of_certificate;
pub use client::{has_system_authorities, is_pin_mismatch, origin_client, peer_client};
pub use identity::{Identity, NodeId, Pin};
pub use local::LocalAuthority;
pub use server::{is_no_tls, listener, peer_server, pin_of_peer};

/// Why TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file could not be read or written.
    #[error("cannot use {path}: {source}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{path} holds no {what}", path = path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
    },
    /// A key or certificate could not be made.
    #[error("cannot make a key and certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// The certificate and its key do not go together, or are of a kind TLS cannot use.
    #[error("cannot use the certificate: {0}")]
    Use(#[from] rustls::Error),
}

/// The cryptography of every TLS connection and of every node's key: the one place that names it.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Which signatures a handshake may be proved with.
fn algorithms() -> WebPkiSupportedAlgorithms {
    provider().signature_verification_algorithms
}

impl TlsError {
    fn file(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::File { path: path.to_owned(), source }
    }
}
