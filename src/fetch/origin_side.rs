//! Requests to the origin: the first one, and the one for the rest.

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode};

use crate::http::{Background, Body, Interim, Target, empty};
use crate::origin::{Origin, OriginError, Reach};
use crate::range::ContentRange;

/// What is asked of the origin, as often as needed.
#[derive(Debug, Clone)]
pub(super) struct Upstream {
    pub(super) target: Target,
    pub(super) headers: HeaderMap,
    pub(super) reach: Reach,
    pub(super) interim: Option<Interim>,
    pub(super) background: Option<Background>,
}

/// How the origin answered a request for the rest.
pub(super) enum Rest {
    /// The rest, from the byte that was asked for to the end, and the size of the whole.
    From(Response<Body>, u64),
    /// The whole, from byte 0.
    Whole(Response<Body>),
    /// Something else: why it cannot be used.
    Unusable(String),
}

impl Upstream {
    /// Sends a request with these further fields.
    pub(super) async fn send(
        &self,
        origin: &Origin,
        method: Method,
        more: HeaderMap,
    ) -> Result<Response<Body>, OriginError> {
        let mut request = Request::new(empty());
        *request.method_mut() = method;
        *request.uri_mut() = self.target.uri().map_err(OriginError::BadTarget)?;
        *request.headers_mut() = self.headers.clone();
        if let Some(interim) = self.interim.clone() {
            request.extensions_mut().insert(interim);
        }
        if let Some(background) = self.background.clone() {
            request.extensions_mut().insert(background);
        }
        for (name, value) in &more {
            request.headers_mut().insert(name, value.clone());
        }
        origin.send(request, &self.reach).await
    }

    /// Asks for what comes after `offset`. Without a strong tag and without a digest that may refuse the result the
    /// whole is asked for: two halves of different things must never be joined.
    pub(super) async fn rest(
        &self,
        origin: &Origin,
        offset: u64,
        tag: Option<&str>,
        is_judged: bool,
    ) -> Result<Rest, OriginError> {
        let mut upstream = self.clone();
        super::want::drop_conditions(&mut upstream.headers);
        let ask_range = offset > 0 && (tag.is_some() || is_judged);
        let response =
            upstream.send(origin, Method::GET, range_fields(ask_range.then_some(offset), tag)).await?;
        Ok(sort(response, offset, tag))
    }
}

/// `Range` and `If-Range` for the rest of a thing.
pub(super) fn range_fields(offset: Option<u64>, tag: Option<&str>) -> HeaderMap {
    let mut fields = HeaderMap::new();
    let Some(offset) = offset else { return fields };
    if let Ok(range) = HeaderValue::try_from(format!("bytes={offset}-")) {
        fields.insert(header::RANGE, range);
    }
    if let Some(Ok(tag)) = tag.map(HeaderValue::try_from) {
        fields.insert(header::IF_RANGE, tag);
    }
    fields
}

/// What an answer to a request for the rest is good for.
pub(super) fn sort(response: Response<Body>, offset: u64, tag: Option<&str>) -> Rest {
    let field = |name| response.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    match response.status() {
        StatusCode::OK => Rest::Whole(response),
        StatusCode::PARTIAL_CONTENT => {
            let starts = field(header::CONTENT_RANGE).and_then(ContentRange::parse);
            let same = tag.is_none() || field(header::ETAG).is_none_or(|now| Some(now) == tag);
            match starts {
                // a part that ends before the end, or an end nobody knows, could pass for the whole
                Some(ContentRange { bytes, size: Some(size) }) if bytes == (offset..size) && same => {
                    Rest::From(response, size)
                }
                Some(_) if !same => Rest::Unusable("the file changed at the origin".to_owned()),
                _ => Rest::Unusable("the origin sent another range than the one asked for".to_owned()),
            }
        }
        status => Rest::Unusable(format!("the origin answered {status}")),
    }
}

/// The length that a response states.
pub(super) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
