//! Models and data sets: what their hub says of a file that lies on another server.
//!
//! The hub answers for such a file with a redirect whose own fields tell commit, digest and size. Its programs ask
//! with HEAD, follow redirects that stay on the server, and read those fields off the last answer: seen from a
//! mirror every redirect stays, and the last answer would be the other server's, which has none of them.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode};

use crate::http::{Body, Target, empty};

const LINKED_TAG: HeaderName = HeaderName::from_static("x-linked-etag");
const LINKED_SIZE: HeaderName = HeaderName::from_static("x-linked-size");
/// By this a program would fetch the file from a third place, past us.
const XET: HeaderName = HeaderName::from_static("x-xet-hash");

/// Answers a HEAD for a file on another server with what the hub says of the file.
pub(super) fn settle(response: &mut Response<Body>, method: &Method, target: &Target) {
    response.headers_mut().remove(XET);
    let fields = response.headers();
    let leaves = fields
        .get(header::LOCATION)
        .and_then(|location| target.join(location.to_str().ok()?).ok())
        .is_some_and(|to| to.origin() != target.origin());
    let is_linked = response.status().is_redirection() && fields.contains_key(LINKED_TAG) && leaves;
    if *method != Method::HEAD || !is_linked {
        return;
    }
    *response.status_mut() = StatusCode::OK;
    *response.body_mut() = empty();
    of_file(response.headers_mut());
}

fn of_file(fields: &mut HeaderMap) {
    for name in [header::LOCATION, header::CONTENT_TYPE, header::CONTENT_LENGTH] {
        fields.remove(name);
    }
    let size = fields.get(LINKED_SIZE).and_then(|size| size.to_str().ok()?.trim().parse::<u64>().ok());
    if let Some(size) = size {
        fields.insert(header::CONTENT_LENGTH, HeaderValue::from(size));
    }
    if let Some(tag) = fields.get(LINKED_TAG).cloned() {
        fields.insert(header::ETAG, tag);
    }
    fields.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
}
