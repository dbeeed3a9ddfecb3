//! The rules of a shared cache (RFC 9111, RFC 9110 sections 13 and 14, RFC 5861, RFC 8246): under which key a
//! thing is kept, whether it may be kept, whether it is fresh, and what a request needs.
//!
//! Larder stands between several users and machines, so it is a *shared* cache: what carried `Authorization`
//! or sets a cookie is nobody else's. Everything here is a pure function of what it is given: no input, no
//! output, no clock, no state; the same question has the same answer. Nothing fails: a malformed field is
//! read the way that leads to more asking of the origin, never to less.
//!
//! Refused on purpose, though a cache might: answers that set a cookie; redirects other than 301 and 308,
//! because their targets expire before they do; errors other than 404 and 410, because one client's broken
//! request would then be everybody's answer; and 404 without a stated lifetime, because what is missing now
//! may be published the next second.

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
pub use storable::{NoStore, Storable, shared_fields, storable};
pub use validate::{Condition, evaluate, freshen, if_range_holds, validators};
pub use vary::Variance;
