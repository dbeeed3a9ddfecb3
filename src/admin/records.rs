//! The records of the house over REST: one handler for all of them, and the audit of what administrators do.
//!
//! What a question costs is bounded by the room `rest`; here it is kept off the runtime's threads, for it reads
//! the disk.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::rejection::BytesRejection;
use axum::extract::{OriginalUri, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{Extensions, HeaderMap, Method, StatusCode};

use super::access::{Caller, writes};
use super::server::{Door, Shared};
use crate::rest::{Api, Ask, Problem};

/// Where the API lies.
pub(super) const API: &str = "/api/v1";

/// Something an administrator did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deed {
    /// By which door.
    pub door: Door,
    /// Who.
    pub who: String,
    /// How.
    pub method: Method,
    /// On what.
    pub path: String,
    /// What came of it.
    pub status: StatusCode,
}

/// Answers for every record.
pub(super) async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    extensions: Extensions,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(refused) => {
            let problem = Problem::new(refused.status(), "bad-body", "The body cannot be read");
            return problem.detail(refused.body_text()).into_response().map(Body::new);
        }
    };
    let events = format!("{API}/events");
    let (path, query) = (uri.path(), uri.query().unwrap_or_default());
    let ask = Ask { method: &method, path, query, headers: &headers, body: &body };
    if path == events && Api::wants_socket(&headers) {
        let upgrade = extensions.get().cloned();
        return shared.api.socket(&ask, upgrade, shared.stop.clone(), &shared.guests).map(Body::new);
    }
    if path == events && Api::follows(&ask) {
        return shared.api.events(&ask, shared.stop.clone()).map(Body::new);
    }
    let answered = tokio::task::spawn_blocking(move || {
        let (path, query) = (uri.path(), uri.query().unwrap_or_default());
        let ask = Ask { method: &method, path, query, headers: &headers, body: &body };
        shared.api.answer(path.strip_prefix(API).unwrap_or(path), &ask)
    });
    answered.await.map_or_else(
        |_| {
            let problem =
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", "It was tried and failed");
            problem.into_response().map(Body::new)
        },
        |response| response.map(Body::new),
    )
}

/// Notes what an administrator did, once it is known what came of it.
pub(super) async fn audit(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let who = match request.extensions().get() {
        Some(Caller(Some(who))) => Some(who.name.clone()),
        _ => None,
    };
    let path =
        request.extensions().get::<OriginalUri>().map_or(request.uri().path(), |uri| uri.path()).to_owned();
    let door = request.extensions().get::<Door>().copied().unwrap_or(Door::Port);
    let response = next.run(request).await;
    if let Some(who) = who.filter(|_| writes(&method)) {
        (shared.sources.deed)(Deed { door, who, method, path, status: response.status() });
    }
    response.into_response()
}
