//! How old a kept answer is, how long it is fresh, and whether it may be used stale (RFC 9111 section 4.2).
//!
//! Ages are reckoned from our own clock and from what the origin's head says, never by comparing two clocks
//! for equality. An entry that our clock says comes from the future has no known age: it counts as older
//! than anything, is asked for again, and gets a right time by that; so no jump of the clock makes a thing
//! immortal. A step back of a few minutes, as time synchronisation makes it, changes nothing.

use std::time::Duration;

use http::StatusCode;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use super::control::ResponseControl;
use super::{Caching, Rule, date, list};
use crate::clock::Timestamp;
use crate::http::{StoredHead, Target, hop_by_hop_removed};

/// How far back the clock may step before what was stored after that moment has no known age.
const STEP_BACK: Duration = Duration::from_secs(5 * 60);

/// The longest lifetime that is guessed.
const GUESS_MOST: Duration = Duration::from_secs(24 * 60 * 60);

/// A kept answer: what freshness is reckoned from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Status and end-to-end fields as the origin sent them last.
    pub head: StoredHead,
    /// When the request that brought it, or last confirmed it, was sent.
    pub request_time: Timestamp,
    /// When its head arrived.
    pub response_time: Timestamp,
    /// The URL has a query: no freshness is guessed for it.
    #[serde(default)]
    pub queried: bool,
}

impl Answer {
    /// Keeps a response to a GET of `target`: without the fields of one connection, those that
    /// `Cache-Control` keeps out of a shared cache, and with a `Date` if it had none (RFC 9110 section 6.6.1).
    pub fn keep(
        target: &Target,
        status: StatusCode,
        response: &HeaderMap,
        request_time: Timestamp,
        response_time: Timestamp,
    ) -> Self {
        let kept = kept_fields(response, response_time);
        let head = StoredHead::keep(status, &kept);
        Self { head, request_time, response_time, queried: target.path().contains('?') }
    }
}

/// The fields of a response that a shared cache may keep, `Date` among them.
pub(super) fn kept_fields(response: &HeaderMap, response_time: Timestamp) -> HeaderMap {
    let mut kept = hop_by_hop_removed(response);
    kept.remove("proxy-authentication-info");
    for name in ResponseControl::of(response).withheld {
        if let Ok(name) = name.parse::<HeaderName>() {
            kept.remove(name);
        }
    }
    if !kept.contains_key(header::DATE) {
        // what is `Age` old left the origin that much earlier
        let age = first_line(&kept, &header::AGE).and_then(age_value).unwrap_or(0);
        let sent = Timestamp::from_seconds(response_time.seconds().saturating_sub(age));
        if let Ok(date) = HeaderValue::try_from(date::format(sent)) {
            kept.insert(header::DATE, date);
        }
    }
    kept
}

/// Whether the origin said that this answer is good for those who had asked when it was given, and for nobody
/// later without asking again: `no-cache`, a lifetime of nothing, or an `Expires` that has passed.
pub fn must_confirm(answer: &Answer, rule: &Rule) -> bool {
    let headers = answer.head.headers();
    let said = ResponseControl::of(&headers);
    let stated = said.no_cache
        || said.max_age.is_some()
        || said.s_maxage.is_some()
        || headers.contains_key(header::EXPIRES);
    said.no_cache || (stated && freshness_lifetime(answer, rule).is_zero())
}

/// How old an answer is (RFC 9111 section 4.2.3); at most 2^31 seconds, which also means "not known".
pub fn age(answer: &Answer, now: Timestamp) -> Duration {
    let most = Duration::from_secs(list::FOREVER);
    if answer.response_time > now.plus(STEP_BACK) {
        return most;
    }
    let apparent = date_of(answer).map_or(Duration::ZERO, |date| answer.response_time.since(date));
    let told = answer.head.get("age").map(str::as_bytes).and_then(age_value).unwrap_or(0);
    let delay = answer.response_time.since(answer.request_time);
    let initial = apparent.max(Duration::from_secs(told).saturating_add(delay));
    initial.saturating_add(now.since(answer.response_time)).min(most)
}

/// How long an answer is fresh from its origin's moment on; zero where it must always be asked for.
pub fn freshness_lifetime(answer: &Answer, rule: &Rule) -> Duration {
    lifetime(answer, &ResponseControl::kept(&answer.head), rule).unwrap_or_default()
}

/// Whether an answer that is not fresh may be used because the origin cannot be reached or fails: inside the
/// window the origin states, else inside `stale_if_error`, and never where the origin forbids it.
pub fn stale_allowed(answer: &Answer, rule: &Rule, now: Timestamp, stale_if_error: Duration) -> bool {
    let said = ResponseControl::kept(&answer.head);
    // an old error is no better than the new one
    if answer.head.status >= 400 {
        return false;
    }
    let window = said.stale_if_error.map_or(stale_if_error, Duration::from_secs);
    if rule.forced_ttl().is_none() && said.forbids_stale(said.stale_if_error) {
        return false;
    }
    let fresh = lifetime(answer, &said, rule).unwrap_or_default();
    age(answer, now).saturating_sub(fresh) <= window
}

/// The lifetime; none where neither origin nor rule says anything it could be made of. A rule speaks for things
/// and for permanent redirects; of a temporary redirect or an error only the origin says how long it is good.
pub(super) fn lifetime(answer: &Answer, said: &ResponseControl, rule: &Rule) -> Option<Duration> {
    let negative = matches!(answer.head.status, 404 | 410);
    let ruled = matches!(answer.head.status, 200..=299 | 301 | 308);
    if let Some(ttl) = rule.forced_ttl().filter(|_| ruled) {
        return Some(ttl);
    }
    if said.no_cache {
        return Some(Duration::ZERO);
    }
    let by_rule = match () {
        () if negative => negative_ttl(rule),
        () if ruled => rule.ttl.map(Duration::from),
        () => None,
    };
    if negative && rule.cache == Caching::Force {
        return by_rule.or_else(|| stated(answer, said));
    }
    stated(answer, said).or(by_rule).or_else(|| guessed(answer, said))
}

fn negative_ttl(rule: &Rule) -> Option<Duration> {
    Some(rule.negative_ttl.into()).filter(|ttl: &Duration| !ttl.is_zero())
}

/// What the origin states (RFC 9111 section 4.2.1): `s-maxage`, else `max-age`, else `Expires`.
fn stated(answer: &Answer, said: &ResponseControl) -> Option<Duration> {
    if let Some(seconds) = said.s_maxage.or(said.max_age) {
        return Some(Duration::from_secs(seconds));
    }
    let mut lines = answer.head.fields.iter().filter(|(name, _)| name == "expires");
    let (_, first) = lines.next()?;
    // more than one line that do not agree, or no date: already expired (section 5.3)
    let valid = lines.all(|(_, other)| other == first);
    let expires = if valid { date::parse(first, answer.response_time) } else { None };
    let sent = date_of(answer).unwrap_or(answer.response_time);
    let most = Duration::from_secs(list::FOREVER);
    Some(expires.map_or(Duration::ZERO, |expires| expires.since(sent).min(most)))
}

/// A tenth of the time since the last change (section 4.2.2), where an answer may be guessed at all: by its
/// status, or because it says `public`. Never what is missing or has moved for a while: that may be over the
/// next second.
fn guessed(answer: &Answer, said: &ResponseControl) -> Option<Duration> {
    let guessable = match answer.head.status {
        200 | 203 | 204 | 206 | 405 | 410 | 414 | 501 => true,
        302 | 303 | 307 | 404 => false,
        _ => said.public,
    } && !answer.queried;
    // an origin of HTTP/1.0 means this as `no-cache`, and says nothing that overrides it
    let pragma = answer.head.get("pragma").is_some_and(|value| value.eq_ignore_ascii_case("no-cache"));
    if !guessable || pragma {
        return None;
    }
    let changed = date::parse(answer.head.get("last-modified")?, answer.response_time)?;
    let sent = date_of(answer).unwrap_or(answer.response_time).min(answer.response_time);
    Some((sent.since(changed) / 10).min(GUESS_MOST))
}

fn date_of(answer: &Answer) -> Option<Timestamp> {
    date::parse(answer.head.get("date")?, answer.response_time)
}

/// The first member of the first line, if it is a number (section 5.1).
fn age_value(line: &[u8]) -> Option<u64> {
    list::seconds(line.split(|byte| *byte == b',').next()?.trim_ascii())
}

fn first_line<'a>(fields: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    fields.get(name).map(HeaderValue::as_bytes)
}

#[cfg(test)]
mod tests;
