//! Conditional requests (RFC 9110 section 13): those we make from a kept answer, those that clients make
//! against it, and what a 304 changes (RFC 9111 sections 3.2 and 4.3).

use http::Method;
use http::header::{self, HeaderMap, HeaderName};

use super::freshness::kept_fields;
use super::{Answer, date};
use crate::clock::Timestamp;
use crate::http::StoredHead;

/// What a conditional request comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// The answer goes out as if nothing had been asked.
    Proceed,
    /// 304.
    NotModified,
    /// 412.
    PreconditionFailed,
}

/// Fields that a 304 never changes: they describe the kept bytes, not the empty body of the 304; and a cookie
/// is one client's.
const UNCHANGED: [&str; 5] =
    ["content-length", "content-encoding", "content-range", "content-digest", "set-cookie"];

/// How far `Last-Modified` must lie before `Date` to be a strong validator (RFC 9110 section 8.8.2.2).
const STRONG_AFTER: u64 = 60;

/// Makes a request ask whether the kept answer still holds (RFC 9111 section 4.3.1). The client's own
/// conditions and its range go: they are evaluated against what the origin then says.
pub fn validators(head: &StoredHead, request: &mut HeaderMap) {
    let own = [
        header::IF_MATCH,
        header::IF_NONE_MATCH,
        header::IF_MODIFIED_SINCE,
        header::IF_UNMODIFIED_SINCE,
        header::IF_RANGE,
        header::RANGE,
    ];
    for name in own {
        request.remove(name);
    }
    let kept = head.headers();
    if let Some(tag) = kept.get(header::ETAG) {
        request.insert(header::IF_NONE_MATCH, tag.clone());
    }
    if let Some(time) = kept.get(header::LAST_MODIFIED)
        && last_modified(head).is_some()
    {
        request.insert(header::IF_MODIFIED_SINCE, time.clone());
    }
}

/// Whether the origin can be asked about this head.
pub(super) fn has_validator(head: &StoredHead) -> bool {
    head.get("etag").is_some() || last_modified(head).is_some()
}

/// Renews a kept answer by a 304: its fields replace ours, times are those of this exchange. False, and nothing
/// changed, where the 304 names another version than ours (RFC 9111 section 4.3.4): then the answer is not
/// confirmed, and only a request without conditions helps.
pub fn freshen(
    answer: &mut Answer,
    response_304: &HeaderMap,
    request_time: Timestamp,
    response_time: Timestamp,
) -> bool {
    let kept_tag = answer.head.get("etag");
    let new_tag = first(response_304, &header::ETAG);
    if let (Some(ours), Some(theirs)) = (kept_tag, &new_tag)
        && opaque(ours) != opaque(theirs)
    {
        return false;
    }
    let update = StoredHead::keep(http::StatusCode::NOT_MODIFIED, &kept_fields(response_304, response_time));
    let changes = |name: &str| !UNCHANGED.contains(&name) && update.get(name).is_some();
    // an age belongs to one response: the old one says nothing of the new times
    answer.head.fields.retain(|(name, _)| !changes(name) && name != "age");
    let new = update.fields.iter().filter(|(name, _)| changes(name)).cloned();
    answer.head.fields.extend(new);
    answer.request_time = request_time;
    answer.response_time = response_time;
    true
}

/// Evaluates a client's conditions against a kept head, in the order of RFC 9110 section 13.2.2.
pub fn evaluate(method: &Method, request: &HeaderMap, head: &StoredHead) -> Condition {
    if !(200..300).contains(&head.status) {
        return Condition::Proceed;
    }
    let tag = head.get("etag");
    if request.contains_key(header::IF_MATCH) {
        let strong = |theirs: &str| head.strong_etag() == Some(theirs);
        if !names_version(request, &header::IF_MATCH, strong) {
            return Condition::PreconditionFailed;
        }
    } else if let Some(limit) = time_in(request, &header::IF_UNMODIFIED_SINCE)
        && last_modified(head).is_some_and(|changed| changed > limit)
    {
        return Condition::PreconditionFailed;
    }
    let reads = method == Method::GET || method == Method::HEAD;
    if request.contains_key(header::IF_NONE_MATCH) {
        let weak = |theirs: &str| tag.is_some_and(|ours| opaque(ours) == opaque(theirs));
        return match names_version(request, &header::IF_NONE_MATCH, weak) {
            true if reads => Condition::NotModified,
            true => Condition::PreconditionFailed,
            false => Condition::Proceed,
        };
    }
    // most requests have none, and reading the dates of a head costs as much as sending a small file
    let Some(since) = time_in(request, &header::IF_MODIFIED_SINCE).filter(|_| reads) else {
        return Condition::Proceed;
    };
    // without `Last-Modified` the time of the answer stands in for it (RFC 9111 section 4.3.2)
    match last_modified(head).or_else(|| time_of(head, "date")) {
        Some(changed) if changed <= since => Condition::NotModified,
        Some(_) | None => Condition::Proceed,
    }
}

/// Whether a `Range` may be answered from this head as far as `If-Range` goes (RFC 9110 section 13.1.5): true
/// without one; else only for the same strong validator. False means that the whole goes out.
pub fn if_range_holds(request: &HeaderMap, head: &StoredHead) -> bool {
    if !request.contains_key(header::IF_RANGE) {
        return true;
    }
    let Some(value) = only(request, &header::IF_RANGE) else { return false };
    if value.contains('"') {
        return head.strong_etag() == Some(value.trim());
    }
    let (Some(asked), Some(changed)) = (parse(value.trim()), last_modified(head)) else { return false };
    let strong = time_of(head, "date").is_some_and(|sent| sent.since(changed).as_secs() >= STRONG_AFTER);
    strong && asked == changed
}

/// Whether a list of entity tags holds `*` or a tag of which `same` is true.
fn names_version(request: &HeaderMap, name: &HeaderName, same: impl Fn(&str) -> bool) -> bool {
    let lines: Vec<String> = request.get_all(name).iter().map(|value| latin1(value.as_bytes())).collect();
    lines.iter().any(|line| line.trim() == "*" || tags(line).any(&same))
}

/// The entity tags of a list. A tag may hold commas, and a backslash in it is only a backslash.
fn tags(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return None;
        }
        let quoted = rest.strip_prefix("W/").unwrap_or(rest).strip_prefix('"');
        let end = quoted.and_then(|inner| {
            let inner_at = rest.len() - inner.len();
            inner.find('"').map(|at| inner_at + at + 1)
        });
        let (tag, after) = rest.split_at_checked(end.or_else(|| rest.find(',')).unwrap_or(rest.len()))?;
        rest = after;
        Some(tag.trim_end())
    })
}

/// A tag as weak comparison sees it (RFC 9110 section 8.8.3.2).
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

/// When the thing was last changed, by its own head (RFC 9110 section 8.8.2).
pub fn last_modified(head: &StoredHead) -> Option<Timestamp> {
    time_of(head, "last-modified")
}

fn time_of(head: &StoredHead, name: &str) -> Option<Timestamp> {
    head.get(name).and_then(parse)
}

fn time_in(request: &HeaderMap, name: &HeaderName) -> Option<Timestamp> {
    only(request, name).and_then(|value| parse(&value))
}

/// Dates of the last century are told from those of this one without asking a clock.
fn parse(text: &str) -> Option<Timestamp> {
    const YEAR_2026: Timestamp = Timestamp::from_seconds(1_767_225_600);
    date::parse(text, YEAR_2026)
}

/// The value of a field that stands there once.
fn only(fields: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut lines = fields.get_all(name).iter();
    let line = lines.next()?;
    lines.next().is_none().then(|| latin1(line.as_bytes()))
}

fn first(fields: &HeaderMap, name: &HeaderName) -> Option<String> {
    fields.get(name).map(|value| latin1(value.as_bytes()))
}

/// Each byte as one character, as a kept head holds it.
fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests;
