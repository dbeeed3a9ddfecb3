//! The rules of a shared cache (RFC 9111, RFC 9110 sections 13 and 14, RFC 5861, RFC 8246): under which key a
//! thing is kept, whether it may be kept, whether it is fresh, and what a request needs.
//!
//! Larder stands between several users and machines, so it is a *shared* cache: what carried `Authorization`
//! or sets a cookie is nobody else's. Everything here is a pure function of what it is given: no input, no
//! output, no clock, no state; the same question has the same answer. Nothing fails: a malformed field is
//! read the way that leads to more asking of the origin, never to less.
//!
//! Refused on purpose, though a cache might: answers that set a cookie, for a cookie is one client's; errors
//! about one client's credentials, connection or request; temporary redirects and errors for which the origin
//! itself states no lifetime, because the target of the one expires before long and the other may be over the
//! next second (404 above all: what is missing now may be published then); answers to POST; and choosing or
//! reordering languages in place of the origin. An answer in a transfer coding that nobody asked for never comes this
//! far: the connection to the origin ends with it, for where it ends is guesswork.

mod control;
mod date;
mod freshness;
mod glob;
mod invalidate;
mod key;
mod list;
mod plan;
mod rule;
#[cfg(test)]
mod support;
mod storable;
mod validate;
mod vary;

pub use freshness::{Answer, age, freshness_lifetime, must_confirm, stale_allowed};
pub use invalidate::invalidated;
pub use key::{ResourceKey, UrlKey};
pub use plan::{PassReason, Plan, insists, joins, plan};
pub use rule::{Caching, Pattern, PatternError, Rule, Rules};
pub use storable::{NoStore, Storable, shared_fields, storable, storable_part};
pub use validate::{Condition, evaluate, freshen, if_range_holds, last_modified, validators};
pub use vary::Variance;
