//! What a request needs: an answer from the store, a question to the origin, or a way past the cache
//! (RFC 9111 sections 4 and 5.2.1, RFC 5861, RFC 8246).
//!
//! Ranges and the client's own conditions play no part here: they are evaluated against the answer that is
//! then there. What is held in the wrong hands never goes out by mistake: requests with credentials pass by.

use std::fmt;
use std::time::Duration;

use http::Method;
use http::header::{self, HeaderMap};

use super::control::{RequestControl, ResponseControl};
use super::storable::has_content;
use super::validate::has_validator;
use super::{Answer, Caching, Rule, freshness};
use crate::clock::Timestamp;

/// What to do for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// Answer from the store.
    Serve {
        /// The value of `Age`.
        age: Duration,
    },
    /// Answer from the store at once, and revalidate behind the client's back (RFC 5861 section 3).
    ServeAndRevalidate {
        /// The value of `Age`.
        age: Duration,
    },
    /// Ask the origin whether what is kept still holds; where it has no validator, ask for it anew.
    Revalidate {
        /// Whether what is kept may go out when the origin cannot be reached or fails.
        stale_allowed: bool,
    },
    /// Nothing kept is of use: get it.
    Fetch,
    /// The client wants nothing but what is kept, and that is not there: 504.
    Unavailable,
    /// Past the cache: alone to the origin, joined by nobody, never from a neighbour.
    Pass(PassReason),
}

/// Why a request passes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PassReason {
    /// Neither GET nor HEAD.
    Method,
    /// A HEAD for what is not held: it makes no entry.
    Head,
    /// A request with a body, which may decide the answer.
    Content,
    /// The client wants nothing kept.
    NoStore,
    /// A `[[rule]]` says never.
    Rule,
    /// Credentials: the origin decides for this client alone.
    Authorization,
    /// A cookie, and nothing fresh is held.
    Cookie,
    /// A condition that only the origin can judge (RFC 9111 section 4.3.2).
    Condition,
}

/// Says what a request needs, given what is kept for it (the variant that matches, if there is one).
pub fn plan(
    method: &Method,
    request: &HeaderMap,
    stored: Option<&Answer>,
    rule: &Rule,
    now: Timestamp,
    stale_if_error: Duration,
) -> Plan {
    if method != Method::GET && method != Method::HEAD {
        return Plan::Pass(PassReason::Method);
    }
    let asked = RequestControl::of(request);
    let plan = match PassReason::of(request, &asked, rule) {
        Some(reason) => Plan::Pass(reason),
        None => from_store(method, request, &asked, stored, rule, now, stale_if_error),
    };
    match plan {
        Plan::Serve { .. } | Plan::ServeAndRevalidate { .. } => plan,
        Plan::Revalidate { .. } | Plan::Fetch | Plan::Unavailable | Plan::Pass(_) if asked.only_if_cached => {
            Plan::Unavailable
        }
        Plan::Revalidate { .. } | Plan::Fetch | Plan::Unavailable | Plan::Pass(_) => plan,
    }
}

/// Whether a request may attach to a transfer that another one leads, and be attached to: a GET without body,
/// credentials, cookie or `no-store`.
pub fn joins(method: &Method, request: &HeaderMap) -> bool {
    method == Method::GET
        && ![header::AUTHORIZATION, header::COOKIE].iter().any(|name| request.contains_key(name))
        && !has_content(request)
        && !RequestControl::of(request).no_store
}

/// Whether a request insists on an answer that the origin gives, or confirms, after it was asked.
pub fn insists(request: &HeaderMap) -> bool {
    let asked = RequestControl::of(request);
    asked.no_cache || asked.max_age == Some(0)
}

fn from_store(
    method: &Method,
    request: &HeaderMap,
    asked: &RequestControl,
    stored: Option<&Answer>,
    rule: &Rule,
    now: Timestamp,
    stale_if_error: Duration,
) -> Plan {
    let with_cookie = request.contains_key(header::COOKIE);
    let miss = match () {
        () if method == Method::HEAD => Plan::Pass(PassReason::Head),
        () if with_cookie => Plan::Pass(PassReason::Cookie),
        () => Plan::Fetch,
    };
    let Some(answer) = stored else { return miss };
    let held = Held::of(answer, rule, now);
    if held.satisfies(asked) {
        return Plan::Serve { age: held.age };
    }
    if held.serves_while_revalidating(asked) {
        return Plan::ServeAndRevalidate { age: held.age };
    }
    if with_cookie {
        return Plan::Pass(PassReason::Cookie);
    }
    let window = asked.stale_if_error.map_or(stale_if_error, |n| Duration::from_secs(n).min(stale_if_error));
    let stale_allowed = held.is_young_enough(asked)
        && held.in_client_window(asked)
        && freshness::stale_allowed(answer, rule, now, window);
    if has_validator(&answer.head) || (stale_allowed && held.lifetime.is_some()) {
        Plan::Revalidate { stale_allowed }
    } else {
        miss
    }
}

/// What is kept, as it stands now.
struct Held {
    age: Duration,
    lifetime: Option<Duration>,
    said: ResponseControl,
    forced: bool,
}

impl Held {
    fn of(answer: &Answer, rule: &Rule, now: Timestamp) -> Self {
        let said = ResponseControl::kept(&answer.head);
        Self {
            age: freshness::age(answer, now),
            lifetime: freshness::lifetime(answer, &said, rule),
            forced: rule.cache == Caching::Force,
            said,
        }
    }

    fn is_fresh(&self) -> bool {
        self.lifetime.is_some_and(|lifetime| lifetime > self.age)
    }

    /// How long it has been stale; none where nobody ever said how long it is fresh.
    fn staleness(&self) -> Option<Duration> {
        self.lifetime.map(|lifetime| self.age.saturating_sub(lifetime))
    }

    /// Whether it may go out without asking.
    fn satisfies(&self, asked: &RequestControl) -> bool {
        if asked.no_cache {
            return false;
        }
        if self.is_fresh() {
            let left = self.lifetime.unwrap_or_default().saturating_sub(self.age);
            let lasts = asked.min_fresh.is_none_or(|wanted| left >= Duration::from_secs(wanted));
            // what never changes while it is fresh need not be asked for on a reload (RFC 8246)
            return lasts && (self.said.immutable || self.forced || self.is_young_enough(asked));
        }
        let accepted = asked.max_stale.zip(self.staleness());
        accepted.is_some_and(|(most, staleness)| staleness <= Duration::from_secs(most))
            && asked.min_fresh.is_none()
            && self.is_young_enough(asked)
            && (self.forced || !self.said.forbids_stale(None))
    }

    fn serves_while_revalidating(&self, asked: &RequestControl) -> bool {
        let window = self.said.stale_while_revalidate;
        window.zip(self.staleness()).is_some_and(|(most, staleness)| staleness <= Duration::from_secs(most))
            && !self.is_fresh()
            && !asked.no_cache
            && asked.min_fresh.is_none()
            && self.is_young_enough(asked)
            && !self.said.forbids_stale(window)
    }

    /// Whether the client's `max-age` allows it; zero allows nothing.
    fn is_young_enough(&self, asked: &RequestControl) -> bool {
        asked.max_age.is_none_or(|most| most > 0 && self.age <= Duration::from_secs(most))
    }

    /// Whether a client that names conditions would still take it when the origin fails.
    const fn in_client_window(&self, asked: &RequestControl) -> bool {
        !asked.no_cache && asked.min_fresh.is_none()
    }
}

impl PassReason {
    /// Why a GET or HEAD passes by whatever is kept, if it does.
    fn of(request: &HeaderMap, asked: &RequestControl, rule: &Rule) -> Option<Self> {
        let conditional = [header::IF_MATCH, header::IF_UNMODIFIED_SINCE];
        let reasons = [
            (has_content(request), Self::Content),
            (rule.cache == Caching::Never, Self::Rule),
            (request.contains_key(header::AUTHORIZATION), Self::Authorization),
            (conditional.iter().any(|name| request.contains_key(name)), Self::Condition),
            (asked.no_store && !asked.only_if_cached, Self::NoStore),
        ];
        reasons.into_iter().find(|(applies, _)| *applies).map(|(_, reason)| reason)
    }

    /// Whether the answer may still be kept where [`super::storable`] says so.
    pub const fn may_be_kept(self) -> bool {
        matches!(self, Self::Authorization | Self::Cookie)
    }
}

impl fmt::Display for PassReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Method => "the method is neither GET nor HEAD",
            Self::Head => "a HEAD for what is not held",
            Self::Content => "the request has a body",
            Self::NoStore => "the request says no-store",
            Self::Rule => "a rule says never",
            Self::Authorization => "the request carries Authorization",
            Self::Cookie => "the request carries a cookie",
            Self::Condition => "the request has a condition for the origin",
        })
    }
}

#[cfg(test)]
mod tests;
