//! Why a neighbour gave nothing, told apart by what the caller does next.

use std::fmt::Display;
use std::io;

use http::StatusCode;

use crate::http::{BodyError, WatchError};
use crate::tls;

/// Why a neighbour gave nothing, or no more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PullError {
    /// No connection: it is not there, or a firewall is in between.
    #[error("the neighbour cannot be reached: {0}")]
    Unreachable(String),
    /// It was silent for too long.
    #[error("the neighbour was silent for too long: waited for {0}")]
    Timeout(&'static str),
    /// It serves all it can at the moment, or has trouble of its own.
    #[error("the neighbour is busy")]
    Busy,
    /// It does not hold the thing any more.
    #[error("the neighbour does not hold it any more")]
    Gone,
    /// What it was about to receive cannot be shared: everybody asks the origin.
    #[error("what the neighbour fetches is not to be shared")]
    Left,
    /// The grant has ended: ask for a new one.
    #[error("the neighbour's grant has ended")]
    AskAgain,
    /// It has another key than it was known by: its next greeting will tell.
    #[error("the neighbour has another key than it was known by")]
    PinMismatch,
    /// It speaks only in clear, and this node wants encrypted transfers.
    #[error("the neighbour speaks only plain HTTP, and peers.tls is \"pinned\"")]
    InClear,
    /// It does not keep to what was agreed.
    #[error("the neighbour's answer is not as agreed: {0}")]
    Protocol(String),
    /// This node itself could not ask.
    #[error("cannot ask the neighbour: {0}")]
    Own(String),
}

impl From<WatchError> for PullError {
    fn from(error: WatchError) -> Self {
        match error {
            WatchError::Stalled => Self::Timeout("more bytes"),
            WatchError::Early | WatchError::Broken(_) => Self::Protocol(error.to_string()),
        }
    }
}

impl PullError {
    pub(super) fn own(error: impl Display) -> Self {
        Self::Own(error.to_string())
    }

    /// What a status other than success says.
    pub(super) fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::NOT_FOUND => Self::Gone,
            StatusCode::GONE => Self::Left,
            StatusCode::FORBIDDEN => Self::AskAgain,
            StatusCode::TOO_MANY_REQUESTS => Self::Busy,
            other if other.is_server_error() => Self::Busy,
            other => Self::Protocol(format!("status {}", other.as_u16())),
        }
    }

    pub(super) fn of_tls(error: &io::Error) -> Self {
        if tls::is_pin_mismatch(error) {
            return Self::PinMismatch;
        }
        Self::Unreachable(format!("no TLS: {error}"))
    }

    /// A connection that ends before the answer counts like one that never stood.
    pub(super) fn of_http(error: hyper::Error) -> Self {
        if error.is_parse() {
            return Self::Protocol(error.to_string());
        }
        Self::Unreachable(error.to_string())
    }

    /// What ended a body early.
    pub(super) fn of_body(error: BodyError) -> Self {
        match error.downcast::<Self>() {
            Ok(own) => *own,
            Err(other) => Self::Protocol(other.to_string()),
        }
    }
}
