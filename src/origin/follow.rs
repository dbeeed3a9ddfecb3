//! Following redirects, for those who ask for a file and not for a response.

use std::time::Duration;

use http::header::{AUTHORIZATION, COOKIE, HeaderMap, LOCATION};
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;

use super::{Origin, OriginError, Reach};
use crate::http::{Body, Target};

/// A redirect's body is read up to this size, so that its connection can be used again.
const WORTH_READING: u64 = 16 * 1024;
/// And no longer than this.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) async fn follow(
    origin: &Origin,
    mut target: Target,
    mut headers: HeaderMap,
    reach: &Reach,
    max_redirects: usize,
) -> Result<(Target, http::Response<Body>), OriginError> {
    for _redirect in 0..=max_redirects {
        let mut request = http::Request::new(crate::http::empty());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = target.uri()?;
        request.headers_mut().clone_from(&headers);
        let response = origin.send(request, reach).await?;
        let Some(location) = location(&response) else { return Ok((target, response)) };
        let next = target.join(&location)?;
        if next.origin() != target.origin() {
            headers.remove(AUTHORIZATION);
            headers.remove(COOKIE);
        }
        discard(response.into_body()).await;
        target = next;
    }
    Err(OriginError::Redirects)
}

/// Where a redirect points, if this is one and says so. Bytes beyond ASCII are taken as UTF-8.
fn location(response: &http::Response<Body>) -> Option<String> {
    let redirect = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let value = response.headers().get(LOCATION).filter(|_| redirect)?;
    std::str::from_utf8(value.as_bytes()).ok().map(|text| text.trim().to_owned())
}

async fn discard(mut body: Body) {
    use http_body::Body as _;
    if body.size_hint().upper().is_none_or(|size| size > WORTH_READING) {
        return;
    }
    let read = async { while let Some(Ok(_)) = body.frame().await {} };
    if tokio::time::timeout(PATIENCE, read).await.is_err() {
        tracing::debug!("a redirect's body is not read to its end");
    }
}
