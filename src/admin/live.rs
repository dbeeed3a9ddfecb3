//! The status document as it changes: `GET /status` with `Accept: text/event-stream` sends it every second
//! (server-sent events, WHATWG HTML, section 9.2), for pages that show what goes on.
//!
//! Who may see more sees more for as long as his session lives. The number of those who follow is bounded, and
//! strangers have places of their own, so that they keep no administrator out.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::server::Shared;
use crate::rest::Problem;

/// How often it is sent.
const TICK: Duration = Duration::from_secs(1);
/// The most administrators, and the most strangers, that follow.
const PLACES: [usize; 2] = [64, 16];

/// Places for those who follow.
#[derive(Debug)]
pub(super) struct Places([Arc<Semaphore>; 2]);

struct Follower {
    shared: Arc<Shared>,
    /// The request's fields, where it was a session that opened the door.
    session: Option<HeaderMap>,
    administrator: bool,
    begun: bool,
    _place: OwnedSemaphorePermit,
}

impl Places {
    pub(super) fn new() -> Self {
        Self(PLACES.map(|most| Arc::new(Semaphore::new(most))))
    }

    fn take(&self, administrator: bool) -> Option<OwnedSemaphorePermit> {
        let [administrators, strangers] = &self.0;
        let places = if administrator { administrators } else { strangers };
        Arc::clone(places).try_acquire_owned().ok()
    }
}

/// Whether a request wants to follow.
pub(super) fn follows(fields: &HeaderMap) -> bool {
    let mut accepted = fields.get_all("accept").iter().filter_map(|field| field.to_str().ok());
    accepted.any(|field| field.contains("text/event-stream"))
}

pub(super) fn status(shared: &Arc<Shared>, administrator: bool, fields: &HeaderMap) -> Response {
    let Some(place) = shared.places.take(administrator) else {
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "Somebody else is at it");
        return problem.detail("enough clients follow the status already").into_response().into_response();
    };
    let by_session = administrator && shared.sessions.find(fields).is_some();
    let session = by_session.then(|| fields.clone());
    let follower =
        Follower { shared: Arc::clone(shared), session, administrator, begun: false, _place: place };
    let said = stream::unfold(follower, Follower::next);
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(said)).into_response()
}

impl Follower {
    /// The next event; none when the node stops or the session has ended.
    async fn next(mut self) -> Option<(Result<Bytes, std::convert::Infallible>, Self)> {
        if self.begun {
            tokio::select! {
                () = self.shared.stop.requested() => return None,
                () = tokio::time::sleep(TICK) => {}
            }
        }
        if self.session.as_ref().is_some_and(|fields| self.shared.sessions.find(fields).is_none()) {
            return None;
        }
        let retry = if self.begun { "" } else { "retry: 1000\n" };
        self.begun = true;
        let document = serde_json::to_string(&self.shared.sources.status(self.administrator)).ok()?;
        Some((Ok(Bytes::from(format!("{retry}event: status\ndata: {document}\n\n"))), self))
    }
}
