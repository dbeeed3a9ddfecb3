//! Named mirrors: package indexes and registries under a path of our own, so that programs which cannot use a
//! proxy, or speak https, come through us for everything they fetch.
//!
//! [`Mirrors`] turns the path of a request (`/m/<name>/…`, `/v2/…`) into the upstream's target and a [`Place`],
//! which knows the way back: a link to the same upstream leads to the same mirror, a link to the same server
//! but elsewhere on it to the URL prefix, a link to another server to `/m/@/<scheme>/<host>/…`, where no
//! credentials are sent on. A [`Rewriter`] leads the links inside a document back as it streams by.
//!
//! Promises: apart from `ns=`, path and query go on byte for byte; a rewritten document differs from the
//! upstream's in nothing but the links its preset names, and carries a tag of its own that gives the
//! upstream's back ([`Stamp`]). Pure: no input or output. Fails with [`Refusal`], a sentence for the client.

mod config;
mod door;
mod place;
mod preset;
mod rewrite;
mod tag;

pub use config::{Base, Config, MirrorError, Mirrors, Name};
pub use door::{Entry, Refusal};
pub use place::{Links, Place};
pub use preset::{Document, Preset};
pub use rewrite::Rewriter;
pub use tag::Stamp;
