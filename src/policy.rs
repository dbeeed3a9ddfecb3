//! The rules of a shared cache (RFC 9111, RFC 9110 sections 13 and 14, RFC 5861): under which key a thing is
//! kept, whether it may be kept, whether it is fresh, and what a request needs.
//!
//! Larder stands between several users and machines, so it is a *shared* cache: what carried `Authorization`
//! or sets a cookie is nobody else's. Everything here is a pure function of what it is given: no input, no
//! output, no clock, no state; the same question has the same answer. Nothing fails: a malformed field is
//! read the way that leads to more asking of the origin, never to less.

mod freshness;
mod glob;
mod key;
mod storable;
mod vary;

pub use freshness::Answer;
pub use key::{ResourceKey, UrlKey};
pub use storable::NoStore;
pub use vary::Variance;
