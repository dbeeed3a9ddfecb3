//! What every HTTP answer of Larder's own shares: problem documents, and who may ask what.
//!
//! [`Problem`] is an error as RFC 9457 wants it, with a `hint` that says what to do. [`Token`] is the
//! administrator's bearer token, compared in constant time. [`Hosts`] and [`same_site`] are the checks against
//! DNS rebinding and forged requests. Nothing here knows a framework, a route or a cache.

mod auth;
mod problem;

pub use auth::{Hosts, Token, TokenError, same_site};
pub use problem::Problem;
