//! From what the engine gives to a response; errors become responses here and only here.

use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode};
use http_body::Frame;

use super::stream::Abort;
use crate::fetch::{CacheStatus, FetchError, Given, Held, Reply};
use crate::http::{Body, BodyError, TargetError, boxed, empty, hop_by_hop_removed};
use crate::origin::OriginError;
use crate::policy::{self, Condition};
use crate::range::{ContentRange, RangeRequest};
use crate::rest::Problem;

const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// What most answers say of themselves.
const HIT: HeaderValue = HeaderValue::from_static("larder; hit");

/// Fields that a 304 repeats (RFC 9110 section 15.4.5).
const IN_304: [&str; 9] = [
    "cache-control",
    "content-location",
    "date",
    "etag",
    "expires",
    "vary",
    "last-modified",
    "age",
    "repr-digest",
];

/// The response to a request with these fields.
pub(super) fn response(
    reply: Reply,
    method: &Method,
    request: &HeaderMap,
    via: &HeaderValue,
    abort: &Abort,
) -> Response<Body> {
    let mut response = match reply.given {
        Given::Held(held) => from_held(&held, method, request),
        // nobody asked to speak another protocol: what follows could be anything
        Given::Passed(passed) if passed.status() == StatusCode::SWITCHING_PROTOCOLS => {
            return refuse(protocol_switched(), via);
        }
        Given::Passed(passed) => from_passed(passed),
    };
    sign(&mut response, &reply.status, via);
    let is_bounded = response.headers().contains_key(header::CONTENT_LENGTH);
    if is_bounded || *method == Method::HEAD {
        return response;
    }
    response.map(|body| unbounded(body, abort))
}

/// The response made of what is held.
pub(super) fn again(held: &Held, method: &Method, request: &HeaderMap, via: &HeaderValue) -> Response<Body> {
    let mut response = from_held(held, method, request);
    sign(&mut response, &CacheStatus::hit(), via);
    response
}

/// What [`sign`] adds to the answer that was held, as it stands on the wire.
pub(super) fn lines_of_hit(via: &HeaderValue) -> Vec<u8> {
    let mut lines = Vec::new();
    for (name, value) in [(CACHE_STATUS, &HIT), (header::VIA, via)] {
        lines.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    lines
}

/// A body without a declared length.
pub(super) fn unbounded(body: Body, abort: &Abort) -> Body {
    boxed(Unbounded { body, abort: abort.clone() })
}

/// An error made by Larder.
pub(super) fn refuse(problem: Problem, via: &HeaderValue) -> Response<Body> {
    let mut response = problem.into_response();
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    }
    sign(&mut response, &CacheStatus::default(), via);
    // what follows a request that could not be read cannot be read either
    if response.status() == StatusCode::BAD_REQUEST { closing(response) } else { response }
}

/// The last answer on its connection.
pub(super) fn closing(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

pub(super) fn sign(response: &mut Response<Body>, status: &CacheStatus, via: &HeaderValue) {
    let headers = response.headers_mut();
    if *status == CacheStatus::hit() {
        headers.append(CACHE_STATUS, HIT);
    } else if let Ok(status) = HeaderValue::try_from(status.to_string()) {
        headers.append(CACHE_STATUS, status);
    }
    headers.append(header::VIA, via.clone());
}

fn from_passed(passed: Response<Body>) -> Response<Body> {
    let (mut parts, body) = passed.into_parts();
    parts.headers = hop_by_hop_removed(&parts.headers);
    let mut response = Response::new(body);
    *response.status_mut() = parts.status;
    *response.headers_mut() = parts.headers;
    response
}

fn from_held(held: &Held, method: &Method, request: &HeaderMap) -> Response<Body> {
    match policy::evaluate(method, request, &held.head) {
        Condition::NotModified => return not_modified(held),
        Condition::PreconditionFailed => {
            let mut response = Response::new(empty());
            *response.status_mut() = StatusCode::PRECONDITION_FAILED;
            response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(0));
            return response;
        }
        Condition::Proceed => {}
    }
    if let (Some(size), Some(slice)) = (held.size, &held.slice) {
        return partial(held, slice.range.clone(), size);
    }
    if let (Some(size), Some(range)) = (held.size, applicable_range(held, method, request)) {
        return match range.resolve(size) {
            Ok(bytes) => partial(held, bytes, size),
            Err(_) => unsatisfiable(size),
        };
    }
    whole(held, method)
}

/// The one range asked for, where the thing is a whole 200 and `If-Range` holds.
fn applicable_range(held: &Held, method: &Method, request: &HeaderMap) -> Option<RangeRequest> {
    let mut fields = request.get_all(header::RANGE).iter();
    let field = fields.next().filter(|_| fields.next().is_none())?;
    let applies = *method == Method::GET
        && held.head.status == StatusCode::OK.as_u16()
        && policy::if_range_holds(request, &held.head);
    RangeRequest::parse(field.to_str().ok()?).filter(|_| applies)
}

fn whole(held: &Held, method: &Method) -> Response<Body> {
    let mut headers = held.fields();
    if let Some(size) = held.size {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(size));
    }
    let body = if *method == Method::HEAD { empty() } else { held.whole() };
    let mut response = Response::new(body);
    *response.status_mut() = held.head.status();
    *response.headers_mut() = headers;
    response
}

fn partial(held: &Held, bytes: Range<u64>, size: u64) -> Response<Body> {
    let mut headers = held.fields();
    // these speak of the content that is sent, and the origin's are of the whole (RFC 9530 section 2)
    for name in ["content-digest", "content-md5", "digest"] {
        headers.remove(name);
    }
    if let Ok(range) = HeaderValue::try_from(ContentRange::satisfied(&bytes, size)) {
        headers.insert(header::CONTENT_RANGE, range);
    }
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.end - bytes.start));
    let mut response = Response::new(held.body(bytes));
    *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    *response.headers_mut() = headers;
    response
}

fn unsatisfiable(size: u64) -> Response<Body> {
    let mut response = Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "range", "Range not satisfiable")
        .detail(format!("the file has {size} bytes"))
        .into_response();
    if let Ok(range) = HeaderValue::try_from(ContentRange::unsatisfied(size)) {
        response.headers_mut().insert(header::CONTENT_RANGE, range);
    }
    response
}

fn not_modified(held: &Held) -> Response<Body> {
    let mut response = Response::new(empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    for (name, value) in &held.fields() {
        if IN_304.contains(&name.as_str()) {
            response.headers_mut().append(name, value.clone());
        }
    }
    response
}

/// A target that cannot be fetched.
pub(super) fn bad_target(error: &TargetError) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "bad-target", "Bad target")
        .detail(error.to_string())
        .hint("ask for http://host/path or https://host/path")
}

/// What a client is told of an error.
pub(super) fn problem(error: &FetchError) -> Problem {
    let detail = error.to_string();
    match error {
        FetchError::Origin(error) => of_origin(error).detail(detail),
        FetchError::Source(_) | FetchError::Again => {
            Problem::new(StatusCode::BAD_GATEWAY, "no-source", "No source could deliver it")
                .detail(detail)
                .hint("try again; if it persists, look at the origin server")
        }
        FetchError::Digest => Problem::new(StatusCode::BAD_GATEWAY, "digest-mismatch", "Digest mismatch")
            .detail(detail)
            .hint("check the digest with whoever published it"),
        FetchError::Cut => Problem::new(StatusCode::CONFLICT, "cut", "The partial file is wrong")
            .detail(detail)
            .hint("delete the partial file and download it from the start"),
        FetchError::Blocked(_) => Problem::new(StatusCode::FORBIDDEN, "blocked", "Blocked")
            .detail(detail)
            .hint("ask the administrator of this machine or site; `larder unblock` lifts it"),
        FetchError::NotHeld => Problem::new(StatusCode::GATEWAY_TIMEOUT, "not-held", "Not held")
            .detail(detail)
            .hint("ask without only-if-cached"),
        FetchError::Stopping => Problem::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "Stopping")
            .detail(detail)
            .hint("try again in a moment"),
    }
}

/// A document of a mirror that broke off before any of it went out.
pub(super) fn broken_document() -> Problem {
    Problem::new(StatusCode::BAD_GATEWAY, "no-source", "No source could deliver it")
        .detail("the document of the mirrored server broke off, or cannot be unpacked")
        .hint("try again; if it persists, look at the origin server")
}

fn protocol_switched() -> Problem {
    Problem::new(StatusCode::BAD_GATEWAY, "protocol", "The origin switched protocols")
        .detail("the origin answered 101 to a request that asked for no upgrade")
        .hint("use a tunnel (CONNECT) for other protocols")
}

fn of_origin(error: &OriginError) -> Problem {
    match error {
        OriginError::BadTarget(_) => Problem::new(StatusCode::BAD_REQUEST, "bad-target", "Bad target")
            .hint("ask for http://host/path or https://host/path"),
        OriginError::Denied { .. } => {
            Problem::new(StatusCode::FORBIDDEN, "address-denied", "Address not allowed").hint(
                "clients on other machines reach no private address of this one; see proxy.deny_private",
            )
        }
        OriginError::ConnectTimeout { .. } | OriginError::Stalled { .. } => {
            Problem::new(StatusCode::GATEWAY_TIMEOUT, "origin-timeout", "The origin did not answer in time")
                .hint("try again; see origin.connect_timeout and origin.stall_timeout")
        }
        OriginError::Dns { .. }
        | OriginError::Connect { .. }
        | OriginError::Protocol { .. }
        | OriginError::Redirects
        | OriginError::Setup(_) => {
            Problem::new(StatusCode::BAD_GATEWAY, "origin-unreachable", "The origin cannot be reached")
                .hint("check the URL and this machine's network")
        }
        OriginError::Tls { .. } => {
            Problem::new(StatusCode::BAD_GATEWAY, "origin-unreachable", "No secure connection to the origin").hint(
                "check the URL; a private authority goes into origin.ca_file; a server's certificate that is a CA is refused",
            )
        }
    }
}

/// A body without a declared length: where it breaks off, for whatever reason, the connection is reset, for a
/// plain close would look like its end.
struct Unbounded {
    body: Body,
    abort: Abort,
}

impl http_body::Body for Unbounded {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        match &frame {
            Poll::Ready(None) => self.abort.clear(),
            Poll::Ready(Some(_)) | Poll::Pending => self.abort.set(),
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
