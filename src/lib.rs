//! Larder: a download comes once from the origin server, then from the neighbour.
//!
//! The rooms of the house, bottom-up. **A room may use only rooms listed above it in this file**; the
//! `tidy` test holds that floor. What each room owns, promises and how it fails stands in its first lines.
//!
//! The path of a download goes down the stairs once and up once: `proxy` (a door) turns a request into a
//! `fetch::Want`; `fetch` alone chooses a source: `cache` (the only room that touches `store` and `index`),
//! a neighbour (`discovery` finds it, `peer` reads from it) or `origin`; the bytes are written once to
//! `store`, read by every client that waits for them, and committed when their digest is right.
//!
//! Declared absences: nothing but `clock` reads time; nothing but `cache` deletes a blob; `proxy` never
//! writes to disk; `policy` and `ecosystem` do no input or output; there are no global statics but
//! tracing's own.

// ground: words
pub mod unit;
pub mod clock;
pub mod digest;
pub mod range;
// first floor: tools
pub mod shutdown;
pub mod telemetry;
pub mod net;
pub mod tls;
pub mod seal;
pub mod http;
pub mod orm;
pub mod rest;
// second floor: rules
pub mod policy;
pub mod ecosystem;
pub mod mirror;
// third floor: holdings
pub mod store;
pub mod index;
pub mod ban;
pub mod cache;
// fourth floor: sources
pub mod origin;
pub mod catalogue;
pub mod discovery;
pub mod peer;
pub mod mormot;
pub mod swarm;
// fifth floor: the engine
pub mod fetch;
// sixth floor: faces
pub mod proxy;
pub mod admin;
// roof
pub mod config;
pub mod daemon;
pub mod cli;
