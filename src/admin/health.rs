//! Alive and ready: for whoever restarts the daemon, and whoever sends it work.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;

use super::server::Shared;

/// Whether the doors can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Readiness {
    /// Not yet.
    #[default]
    Starting,
    /// Yes.
    Ready,
    /// The disk cannot be used.
    NoDisk,
    /// Not any more: running downloads end.
    Draining,
}

impl Readiness {
    /// One word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::NoDisk => "no-disk",
            Self::Draining => "draining",
        }
    }
}

pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

pub(super) async fn readyz(State(shared): State<Arc<Shared>>) -> Response {
    let readiness = *shared.sources.readiness.borrow();
    let (status, ready) = match readiness {
        Readiness::Ready => (StatusCode::OK, true),
        Readiness::Starting | Readiness::NoDisk | Readiness::Draining => {
            (StatusCode::SERVICE_UNAVAILABLE, false)
        }
    };
    (status, Json(serde_json::json!({"ready": ready, "reason": readiness.word()}))).into_response()
}
