//! Why the daemon does not start, or ended unasked.

use crate::net::listener::{BindError, InheritError};
use crate::tls::TlsError;

/// Why the daemon does not start, or ended unasked.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// An address cannot be listened on.
    #[error("{0}")]
    Bind(#[from] BindError),
    /// What systemd handed over cannot be used.
    #[error("{0}")]
    Inherited(#[from] InheritError),
    /// A key or certificate cannot be used.
    #[error("{0}")]
    Tls(#[from] TlsError),
    /// Something else, as a sentence.
    #[error("{0}")]
    Failed(String),
}

impl DaemonError {
    /// From anything that says a sentence.
    pub(super) fn failed(error: impl std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }

    /// A task of ours broke.
    #[expect(clippy::needless_pass_by_value, reason = "used as a function in map_err")]
    pub(super) fn broken(error: tokio::task::JoinError) -> Self {
        Self::Failed(format!("a task ended early: {error}"))
    }

    /// Whether somebody else has one of our ports: exit status 69.
    pub fn is_port_taken(&self) -> bool {
        matches!(self, Self::Bind(error) if error.is_taken())
    }
}
