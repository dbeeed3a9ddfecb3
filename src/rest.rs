//! Any record as a REST resource, and what every HTTP answer of Larder's own shares: problem documents, and who
//! may ask what.
//!
//! An [`Api`] is a set of [`Resource`]s: a record, the engine that keeps its rows, and who changes them. From
//! the record's definition come the list with filters, order, fields, other resources along the references and
//! cursors in the manner of PostgREST; the single row with its entity tag; adding, replacing, changing and
//! deleting where that is allowed; batches that are whole or nothing; and the OpenAPI description of it all.
//!
//! [`Problem`] is an error as RFC 9457 wants it, with a `hint` that says what to do and, of a request, the
//! `field` that is wrong and what is `allowed` there. [`Token`] is the administrator's bearer token, compared in
//! constant time. [`Hosts`] and [`same_site`] are the checks against DNS rebinding and forged requests.
//!
//! Promises: no text of a request becomes text of a statement; every answer is bounded in rows, depth and time.
//! Nothing here knows a framework, a route or a cache.

mod action;
mod api;
mod auth;
mod batch;
mod events;
mod field;
mod filter;
mod format;
mod item;
mod list;
mod openapi;
mod problem;
mod question;
mod repeat;
mod select;
mod socket;
mod sql;
mod tag;
#[cfg(test)]
mod tests;
mod write;

pub use action::ActionDoc;
pub use api::{Api, Ask, Delete, Resource, Rows};
pub use auth::{Hosts, Token, TokenError, same_site};
pub use problem::Problem;
pub use sql::Inquiry;
