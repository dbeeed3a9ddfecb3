//! What the tables of this room's tests are written in.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::{Answer, Caching, Rule, date};
use crate::clock::Timestamp;
use crate::http::StoredHead;

/// 2026-11-30T12:00:00Z, the moment every table begins at.
pub(super) const START: Timestamp = Timestamp(1_796_040_000_000);

/// `START` and so many seconds.
pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp(START.0.checked_add_signed(seconds * 1000).unwrap())
}

/// Fields from lines `name: value`, several separated by `|`. In a value, `@n` is the date n seconds after the start.
pub(super) fn fields(lines: &str) -> HeaderMap {
    let mut map = HeaderMap::new();
    for line in lines.split('|').map(str::trim).filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').unwrap();
        let value = value.trim();
        let value = match value.strip_prefix('@').map(|n| n.parse::<i64>().unwrap()) {
            Some(seconds) => date::format(at(seconds)),
            None => value.to_owned(),
        };
        let bytes: Vec<u8> = value.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
        map.append(name.trim().parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(&bytes).unwrap());
    }
    map
}

/// An answer 200 with these fields, asked for and received at the start.
pub(super) fn answer(lines: &str) -> Answer {
    let head = StoredHead::keep(http::StatusCode::OK, &fields(lines));
    Answer { head, request_time: START, response_time: START, queried: false }
}

/// A rule that says nothing but this.
pub(super) fn rule(cache: Caching, ttl: Option<&str>, negative_ttl: &str) -> Rule {
    Rule {
        cache,
        ttl: ttl.map(|ttl| ttl.parse().unwrap()),
        negative_ttl: negative_ttl.parse().unwrap(),
        ..Rule::default()
    }
}
