//! The rest of an answer for a client that cannot be given what was received: the disk does not read it back.
//!
//! The transfer runs on, and so does the client: the origin sends it the rest of the very same version, which a strong
//! tag shows. Where a digest must hold, bytes of a neighbour went out before their proof or anything is blocked, the
//! end waits for a judgement of the whole, which nobody passes on such a rest: then the client is cut.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http_body::Frame;
use http_body_util::StreamBody;

use super::engine::{Case, Engine};
use super::ledger::From;
use super::origin_side::{Missing, Rest, Upstream, content_length};
use super::piece::Pieces;
use super::running::Running;
use crate::http::{Body, BodyError, boxed};

/// A way to the origin for the client of a running transfer.
#[derive(Clone)]
pub struct Again(Arc<Inner>);

struct Inner {
    engine: Engine,
    upstream: Upstream,
}

impl Again {
    pub(super) fn new(engine: &Engine, case: &Case) -> Self {
        let upstream = case.upstream(case.want.headers_for_whole());
        Self(Arc::new(Inner { engine: engine.clone(), upstream }))
    }

    /// What follows on `at`, up to `end` or the thing's own; none where nothing shows that it belongs there.
    pub(super) async fn rest(&self, running: &Running, at: u64, end: Option<u64>) -> Option<Body> {
        let is_judged = running.judge().bound().is_some() || self.0.engine.0.cache.index().has_blocks();
        if is_judged || running.was_unproven() {
            return None;
        }
        let (answer, total) = (running.answer(), running.growing().progress().total);
        let tag = answer.head.strong_etag()?;
        let until = end.filter(|_| end != total);
        let missing = Missing { offset: at, until, tag: Some(tag) };
        let rest = self.0.upstream.rest(&self.0.engine.0.origin, missing, false).await.ok()?;
        let (response, size) = match rest {
            Rest::From(response, size) => (response, size),
            Rest::Whole(response) if at == 0 && until.is_none() => {
                let size = content_length(response.headers())?;
                (response, size)
            }
            Rest::Whole(_) | Rest::Unusable(_) => return None,
        };
        let now = response.headers().get(http::header::ETAG).and_then(|now| now.to_str().ok());
        if now.is_some_and(|now| now != tag) || total.is_some_and(|total| total != size) {
            return None;
        }
        tracing::debug!(from = at, "what was received cannot be read back: the origin sends the rest");
        let left = end.unwrap_or(size).saturating_sub(at);
        Some(super::delivery::counted(
            exactly(response.into_body(), left),
            self.0.engine.0.ledger.clone(),
            From::Origin,
        ))
    }
}

impl std::fmt::Debug for Again {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Again").finish_non_exhaustive()
    }
}

/// So many bytes of a body, and an error where it has fewer.
fn exactly(body: Body, left: u64) -> Body {
    boxed(StreamBody::new(stream::try_unfold((Pieces::new(body), left), |(mut body, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let Some(mut bytes) = body.next().await? else {
            return Err(BodyError::from("the origin sent less than it said"));
        };
        bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        let left = left - bytes.len() as u64;
        Ok::<_, BodyError>(Some((Frame::<Bytes>::data(bytes), (body, left))))
    })))
}
