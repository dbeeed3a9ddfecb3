//! What administrators can do: the calls that change something, each with what it answers.
//!
//! [`Control`] is a set of actions that whoever builds the daemon fills in; a call that takes longer than
//! [`ACTION_DEADLINE`] is given up.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Path, Query, Request, State};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::BoxFuture;
use http::StatusCode;
use serde::Deserialize;

use super::given::Given;
use super::identify::From as Caller;
use super::server::Shared;
use super::views::{
    BanRequest, BlockRequest, BlockView, FetchesRequest, FetchesView, GcRequest, GivenBlob, ImportRequest,
    ImportedResource, ImportedView, LogRequest, LogView, PurgeRequest, PurgeView, ReloadView, StoredView,
    VerifyView,
};
use super::{BanView, GcView};
use crate::digest::Digest;
use crate::rest::Problem;

/// The longest an action may take: a large blob is read again at disk speed.
pub(super) const ACTION_DEADLINE: Duration = Duration::from_secs(15 * 60);

/// Something that can be done.
pub type Action<A, R> = Box<dyn Fn(A) -> BoxFuture<'static, Result<R, ActionError>> + Send + Sync>;

/// Why it was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// It must not be done now.
    #[error("{0}")]
    Refused(String),
    /// It cannot be understood.
    #[error("{0}")]
    Unreadable(String),
    /// The bytes are not those of the digest.
    #[error("{0}")]
    Mismatch(String),
    /// It was tried and failed.
    #[error("{0}")]
    Failed(String),
}

/// All that can be done.
pub struct Control {
    /// Refuses an address.
    pub ban: Action<BanRequest, BanView>,
    /// Blocks a thing.
    pub block: Action<BlockRequest, BlockView>,
    /// Reads the configuration again.
    pub reload: Action<(), ReloadView>,
    /// Changes what the log writes.
    pub log: Action<LogRequest, LogView>,
    /// Reads a blob again and compares.
    pub verify: Action<Digest, VerifyView>,
    /// Keeps a blob from eviction.
    pub pin: Action<Digest, ()>,
    /// Ends that.
    pub unpin: Action<Digest, ()>,
    /// Forgets what URLs led to.
    pub purge: Action<PurgeRequest, PurgeView>,
    /// Stores a blob that is given.
    pub store: Action<GivenBlob, StoredView>,
    /// Notes answers that are given.
    pub import: Action<ImportRequest, ImportedView>,
    /// Fetches things for later, for a client at this address.
    pub fetches: Action<(FetchesRequest, IpAddr), FetchesView>,
    /// Makes room.
    pub gc: Action<GcRequest, GcView>,
}

impl Control {
    /// An action from an async function.
    pub fn action<A, R, F, T>(act: F) -> Action<A, R>
    where
        F: Fn(A) -> T + Send + Sync + 'static,
        T: Future<Output = Result<R, ActionError>> + Send + 'static,
    {
        Box::new(move |argument| Box::pin(act(argument)))
    }
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Control")
    }
}

impl From<ActionError> for Problem {
    fn from(error: ActionError) -> Self {
        let (status, code, title) = match error {
            ActionError::NotFound(_) => (StatusCode::NOT_FOUND, "not-found", "There is no such thing"),
            ActionError::Refused(_) => (StatusCode::CONFLICT, "refused", "This cannot be done now"),
            ActionError::Unreadable(_) => {
                (StatusCode::BAD_REQUEST, "bad-request", "The request cannot be read")
            }
            ActionError::Mismatch(_) => {
                (StatusCode::UNPROCESSABLE_ENTITY, "wrong-digest", "The bytes are not those of the digest")
            }
            ActionError::Failed(_) => {
                (StatusCode::INTERNAL_SERVER_ERROR, "failed", "It was tried and failed")
            }
        };
        Self::new(status, code, title).detail(error.to_string())
    }
}

/// An answer or a problem.
pub(super) type Answer = Result<Response, Problem>;

pub(super) async fn block(State(shared): State<Arc<Shared>>, Given(request): Given<BlockRequest>) -> Answer {
    let made = (shared.control.block)(request).await?;
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

pub(super) async fn ban(State(shared): State<Arc<Shared>>, Given(request): Given<BanRequest>) -> Answer {
    let made = (shared.control.ban)(request).await?;
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

pub(super) async fn reload(State(shared): State<Arc<Shared>>) -> Answer {
    Ok(Json((shared.control.reload)(()).await?).into_response())
}

pub(super) async fn log_level(State(shared): State<Arc<Shared>>) -> Response {
    Json((shared.sources.log)()).into_response()
}

pub(super) async fn set_log_level(
    State(shared): State<Arc<Shared>>,
    Given(request): Given<LogRequest>,
) -> Answer {
    Ok(Json((shared.control.log)(request).await?).into_response())
}

pub(super) async fn gc(State(shared): State<Arc<Shared>>, Given(request): Given<GcRequest>) -> Answer {
    Ok(Json((shared.control.gc)(request).await?).into_response())
}

pub(super) async fn purge(State(shared): State<Arc<Shared>>, Given(request): Given<PurgeRequest>) -> Answer {
    Ok(Json((shared.control.purge)(request).await?).into_response())
}

pub(super) async fn fetches(
    State(shared): State<Arc<Shared>>,
    caller: Option<Extension<Caller>>,
    Given(request): Given<FetchesRequest>,
) -> Answer {
    // whoever comes by the Unix socket is on this machine
    let client =
        caller.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |Extension(Caller(from))| from.ip().to_canonical());
    Ok(Json((shared.control.fetches)((request, client)).await?).into_response())
}

/// Which URL to look up.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResourceQuery {
    url: String,
}

pub(super) async fn explanation(
    State(shared): State<Arc<Shared>>,
    query: Result<Query<ResourceQuery>, QueryRejection>,
) -> Answer {
    let Query(query) = query.map_err(|error| bad_request(error.body_text()))?;
    let explained = (shared.sources.explain)(&query.url);
    let explained =
        explained.ok_or_else(|| bad_request(format!("`{}` is no http or https URL", query.url)))?;
    Ok(Json(explained).into_response())
}

pub(super) async fn configuration(State(shared): State<Arc<Shared>>) -> Response {
    Json(&*(shared.sources.settings)()).into_response()
}

pub(super) async fn verify(State(shared): State<Arc<Shared>>, Path(text): Path<String>) -> Answer {
    Ok(Json((shared.control.verify)(digest(&text)?).await?).into_response())
}

/// Takes a blob; its bytes are hashed as they come, however many they are.
pub(super) async fn store(
    State(shared): State<Arc<Shared>>,
    Path(text): Path<String>,
    request: Request,
) -> Answer {
    let digest = digest(&text)?;
    let size = crate::http::length(request.headers());
    let given = GivenBlob { digest, size, body: crate::http::boxed(request.into_body()) };
    let stored = (shared.control.store)(given).await?;
    Ok((StatusCode::CREATED, Json(stored)).into_response())
}

pub(super) async fn import(
    State(shared): State<Arc<Shared>>,
    Given(request): Given<ImportRequest>,
) -> Answer {
    let no_status = |given: &ImportedResource| !(100..600).contains(&given.answer.head.status);
    if request.resources.iter().any(no_status) {
        return Err(bad_request("the status of an answer is from 100 to 599".to_owned()));
    }
    Ok(Json((shared.control.import)(request).await?).into_response())
}

pub(super) async fn pin(State(shared): State<Arc<Shared>>, Path(text): Path<String>) -> Answer {
    (shared.control.pin)(digest(&text)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn unpin(State(shared): State<Arc<Shared>>, Path(text): Path<String>) -> Answer {
    (shared.control.unpin)(digest(&text)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn digest(text: &str) -> Result<Digest, Problem> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    Digest::from_hex(hex).map_err(|_ignored| bad_request(format!("`{text}` is not a SHA-256 digest")))
}

pub(super) fn bad_request(detail: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "bad-request", "The request cannot be read").detail(detail)
}
