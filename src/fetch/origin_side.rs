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

/// What of a thing is not here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Missing<'a> {
    /// From this byte on.
    pub(super) offset: u64,
    /// Up to this one, where what follows is here again.
    pub(super) until: Option<u64>,
    /// The strong tag of what is here.
    pub(super) tag: Option<&'a str>,
}

/// How the origin answered a request for the rest.
pub(super) enum Rest {
    /// The rest, from the byte that was asked for to the end, or as far as was asked; and the size of the whole.
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
        missing: Missing<'_>,
        is_judged: bool,
    ) -> Result<Rest, OriginError> {
        let mut upstream = self.clone();
        super::want::drop_conditions(&mut upstream.headers);
        let is_part = missing.offset > 0 || missing.until.is_some();
        let ask_range = is_part && (missing.tag.is_some() || is_judged);
        let fields = if ask_range { missing.fields() } else { HeaderMap::new() };
        Ok(missing.sort(upstream.send(origin, Method::GET, fields).await?))
    }
}

impl Missing<'_> {
    /// `Range` and `If-Range` for it.
    pub(super) fn fields(&self) -> HeaderMap {
        let mut fields = HeaderMap::new();
        let last = self.until.map(|until| until.saturating_sub(1).to_string()).unwrap_or_default();
        if let Ok(range) = HeaderValue::try_from(format!("bytes={}-{last}", self.offset)) {
            fields.insert(header::RANGE, range);
        }
        if let Some(Ok(tag)) = self.tag.map(HeaderValue::try_from) {
            fields.insert(header::IF_RANGE, tag);
        }
        fields
    }

    /// What an answer to a request for it is good for.
    pub(super) fn sort(&self, response: Response<Body>) -> Rest {
        let field = |name| response.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        match response.status() {
            StatusCode::OK => Rest::Whole(response),
            StatusCode::PARTIAL_CONTENT => {
                let sent = field(header::CONTENT_RANGE).and_then(ContentRange::parse);
                let same = self.tag.is_none() || field(header::ETAG).is_none_or(|now| Some(now) == self.tag);
                match sent {
                    // a part that ends before what was asked for, or an end nobody knows, could pass for the whole
                    Some(ContentRange { bytes, size: Some(size) }) if self.is_it(&bytes, size) && same => {
                        Rest::From(response, size)
                    }
                    Some(_) if !same => Rest::Unusable("the file changed at the origin".to_owned()),
                    _ => Rest::Unusable("the origin sent another range than the one asked for".to_owned()),
                }
            }
            status => Rest::Unusable(format!("the origin answered {status}")),
        }
    }

    fn is_it(&self, bytes: &std::ops::Range<u64>, size: u64) -> bool {
        bytes.start == self.offset && (bytes.end == size || Some(bytes.end) == self.until)
    }
}

/// The length that a response states.
pub(super) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
