//! Whether a response may be kept, and what of it neighbours may have (RFC 9111 sections 3 and 3.5).

use http::header::{self, HeaderMap};
use http::{Method, StatusCode};

use super::control::{RequestControl, ResponseControl};
use super::{Caching, Rule, Variance, date, freshness, list};
use crate::clock::Timestamp;
use crate::http::StoredHead;

/// A response may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storable {
    /// Whether neighbours may have it: false for what answered `Authorization` or a cookie, for answers that
    /// are no content, and where a rule says so.
    pub shareable: bool,
}

/// Why a response is not kept: a short reason for `info` and the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NoStore {
    /// Only answers to GET are kept.
    #[error("the method is not GET")]
    Method,
    /// The request had a body, which may have decided the answer.
    #[error("the request had a body")]
    Content,
    /// A status that is never kept.
    #[error("answers with this status are not kept")]
    Status,
    /// The status is kept only with a stated lifetime, and there is none.
    #[error("the origin states no lifetime for this status")]
    NoLifetime,
    /// The client asked that nothing be kept.
    #[error("the request says no-store")]
    RequestNoStore,
    /// The origin asked that nothing be kept.
    #[error("the response says no-store")]
    NoStore,
    /// Meant for one user.
    #[error("the response says private")]
    Private,
    /// The request carried `Authorization`, and the origin did not allow sharing.
    #[error("the request carried Authorization")]
    Authorization,
    /// The request carried `Cookie`, and the origin did not say `public`.
    #[error("the request carried a cookie")]
    Cookie,
    /// The response sets a cookie.
    #[error("the response sets a cookie")]
    SetCookie,
    /// A part of a thing in answer to one client's credentials or cookie.
    #[error("a part for one client alone")]
    Personal,
    /// `Vary` holds `*`, or something that is no field name: no request can select it again.
    #[error("the response varies on everything")]
    VaryStar,
    /// `Vary` names a field with credentials that the request carried.
    #[error("the response varies on credentials")]
    VarySecret,
    /// A `[[rule]]` says never.
    #[error("a rule says never")]
    Rule,
    /// A key to a registry, for the one who asked for it.
    #[error("the answer is a registry's token")]
    Token,
}

/// Whether a response to this request may be kept. After a 304 the same question, asked with the freshened
/// head, says whether the kept answer may stay.
pub fn storable(
    method: &Method,
    request: &HeaderMap,
    status: StatusCode,
    response: &HeaderMap,
    rule: &Rule,
) -> Result<Storable, NoStore> {
    let said = ResponseControl::of(response);
    refusal(method, request, response, &said, rule)?;
    Variance::of(response, request)?;
    if said.must_understand && !is_understood(status) {
        return Err(NoStore::Status);
    }
    match Kept::of(status) {
        Kept::Never => return Err(NoStore::Status),
        Kept::WithLifetime if !lives(status, response, &said, rule) => return Err(NoStore::NoLifetime),
        Kept::Plainly | Kept::WithLifetime => {}
    }
    let content = matches!(status, StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION);
    Ok(Storable { shareable: rule.share && content && !is_personal(request) })
}

/// Whether a 206 may be kept as the part it is (section 3.3): by the rules of the whole, for a request that is
/// not personal. Parts are never shared with neighbours; a whole made of them is what `shareable` says.
pub fn storable_part(
    method: &Method,
    request: &HeaderMap,
    response: &HeaderMap,
    rule: &Rule,
) -> Result<Storable, NoStore> {
    let said = ResponseControl::of(response);
    refusal(method, request, response, &said, rule)?;
    Variance::of(response, request)?;
    if is_personal(request) {
        return Err(NoStore::Personal);
    }
    Ok(Storable { shareable: rule.share })
}

/// Whether a request shows whose it is.
fn is_personal(request: &HeaderMap) -> bool {
    request.contains_key(header::AUTHORIZATION) || request.contains_key(header::COOKIE)
}

/// Why an answer is not kept whatever its status.
fn refusal(
    method: &Method,
    request: &HeaderMap,
    response: &HeaderMap,
    said: &ResponseControl,
    rule: &Rule,
) -> Result<(), NoStore> {
    let asked = RequestControl::of(request);
    let (authorized, with_cookie) =
        (request.contains_key(header::AUTHORIZATION), request.contains_key(header::COOKIE));
    let silenced = said.no_store && !said.must_understand && rule.cache != Caching::Force;
    // in the order of who decides: the operator, the client, the origin
    let refusals = [
        (method != Method::GET, NoStore::Method),
        (has_content(request), NoStore::Content),
        (rule.cache == Caching::Never, NoStore::Rule),
        (asked.no_store, NoStore::RequestNoStore),
        (said.private, NoStore::Private),
        (response.contains_key(header::SET_COOKIE), NoStore::SetCookie),
        // before what is said of credentials, for some of that is kept all the same
        (silenced, NoStore::NoStore),
        (authorized && !said.allows_authorized(), NoStore::Authorization),
        (with_cookie && !said.public, NoStore::Cookie),
    ];
    refusals.into_iter().find(|(refused, _)| *refused).map_or(Ok(()), |(_, why)| Err(why))
}

/// Whether a request has a body (RFC 9112 section 6.3).
pub(super) fn has_content(request: &HeaderMap) -> bool {
    let length = request.get(header::CONTENT_LENGTH);
    request.contains_key(header::TRANSFER_ENCODING)
        || length.is_some_and(|length| list::seconds(length.as_bytes()) != Some(0))
}

/// How answers of a status are kept.
enum Kept {
    Plainly,
    WithLifetime,
    Never,
}

impl Kept {
    const fn of(status: StatusCode) -> Self {
        match status.as_u16() {
            200 | 203 | 204 => Self::Plainly,
            // parts are asked for by `storable_part`; a delta and a 304 are no answers by themselves
            206 | 226 | 304 => Self::Never,
            // about one client's credentials, connection or request, not about the thing
            401 | 407 | 408 | 411..=413 | 415..=417 | 421..=431 | 511 => Self::Never,
            // an unknown status counts as the first of its class (RFC 9110 section 15)
            201..=599 => Self::WithLifetime,
            _ => Self::Never,
        }
    }
}

/// Whether what a status asks of caches is known and done here (RFC 9111 section 5.2.2.3): those of RFC 9110.
const fn is_understood(status: StatusCode) -> bool {
    matches!(status.as_u16(), 200..=206 | 300..=305 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 500..=505)
}

/// Whether an answer has a lifetime that origin or rule state.
fn lives(status: StatusCode, response: &HeaderMap, said: &ResponseControl, rule: &Rule) -> bool {
    // only the difference between the origin's own dates counts, so any time will do
    let time = response
        .get(header::DATE)
        .and_then(|value| date::parse(value.to_str().ok()?, Timestamp::default()))
        .unwrap_or_default();
    let answer = freshness::Answer {
        head: StoredHead::keep(status, response),
        request_time: time,
        response_time: time,
        queried: false,
    };
    freshness::lifetime(&answer, said, rule).is_some_and(|lifetime| !lifetime.is_zero())
}

/// Fields of a kept head that a neighbour gets: what describes the bytes and how long they are good.
const SHARED: [&str; 31] = [
    "accept-ranges",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-security-policy",
    "content-type",
    "cross-origin-embedder-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "digest",
    "docker-content-digest",
    "docker-distribution-api-version",
    "etag",
    "expires",
    "last-modified",
    "link",
    "referrer-policy",
    "repr-digest",
    "vary",
    "x-content-type-options",
    "x-frame-options",
    "x-goog-hash",
    "x-pypi-last-serial",
    "x-repo-commit",
    "x-robots-tag",
];

/// What a neighbour gets of a kept head: status and an allow-list of fields. No cookie, no `Location`, nothing
/// of one connection, no `Date` and no `Age` (whoever sends it adds its age in seconds).
pub fn shared_fields(head: &StoredHead) -> StoredHead {
    let allowed = |name: &str| {
        SHARED.contains(&name) || name.starts_with("x-amz-checksum-") || name.starts_with("x-checksum-")
    };
    let fields = head.fields.iter().filter(|(name, _)| allowed(name)).cloned().collect();
    StoredHead { status: head.status, fields }
}

#[cfg(test)]
mod tests;
