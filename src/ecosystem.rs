//! What targets are, and what documents and heads that pass say of other targets.
//!
//! A shape promises a digest where the URL contains it, and how long what it leads to lasts: for ever where the
//! URL is made from the content, as long as its version where it names one, or nothing. [`Document`] reads the
//! indexes of packages, pages, manifests and checksum files, however they are packed, and gives [`Statement`]s: this
//! URL has this digest. A statement speaks only for its own origin, in the folder its document is the index of, and
//! for the pairs of origins in a table that is built in; one that came in clear speaks for no https URL.
//!
//! Pure: no input or output of its own, nothing remembered. Input is read in pieces and bounded in every direction
//! (length, unpacked length, memory of a decoder, length of a line, number of statements); what cannot be read ends
//! with [`Unread`], and what was said until then was said.

mod apt;
mod cargo;
mod checksums;
mod document;
mod generic;
mod git;
mod go;
mod head;
mod huggingface;
mod lines;
mod maven;
mod nix;
mod npm;
mod oci;
mod pypi;
mod scope;
mod sidecar;
mod statement;
mod token;
mod unpack;

use crate::digest::Stated;
use crate::http::Target;

pub use checksums::Line as ChecksumLine;
pub use document::{Document, Passing};
pub use head::{said_elsewhere, said_of_itself};
pub use npm::asks_for_packument;
pub use scope::{speaks_for, spelling};
pub use sidecar::{Sidecars, sidecars};
pub use statement::{Statement, Unread};
pub use token::gives_tokens;

/// What a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// How long what the URL leads to stays what it is.
    pub lasts: Lasts,
    /// The strong digest that the URL contains: whoever sends other bytes, the origin included, is refused.
    pub digest: Option<Stated>,
    /// A word for status and logs.
    pub name: &'static str,
}

/// How long what a URL leads to stays what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasts {
    /// For ever: the URL is made from the content, so that other bytes would have another URL.
    Content,
    /// In the ordinary course for ever: the URL names a version. It can be built again under its name, so it is as
    /// good as the digest that its index states.
    Version,
    /// Until something else is published there.
    Nothing,
    /// For one client and a short while: a token.
    Moment,
    /// Until the set it belongs to is published anew: its parts fit together only if each is as new as the others.
    Set,
}

/// The recognisers in the order they are asked; what none of them knows is generic.
const KNOWN: [fn(&Target) -> Option<Kind>; 10] = [
    oci::recognise,
    apt::recognise,
    pypi::recognise,
    cargo::recognise,
    npm::recognise,
    git::recognise,
    go::recognise,
    nix::recognise,
    huggingface::recognise,
    maven::recognise,
];

/// Recognises a target by its shape.
pub fn classify(target: &Target) -> Kind {
    KNOWN.iter().find_map(|recognise| recognise(target)).unwrap_or(generic::KIND)
}

impl Lasts {
    /// Whether a digest stated for it is as good as the origin's word now.
    pub const fn outlives_questions(self) -> bool {
        matches!(self, Self::Content | Self::Version)
    }
}

impl Kind {
    const fn new(name: &'static str, lasts: Lasts) -> Self {
        Self { lasts, digest: None, name }
    }

    const fn mutable(name: &'static str) -> Self {
        Self::new(name, Lasts::Nothing)
    }

    const fn of_digest(name: &'static str, digest: Stated) -> Self {
        Self { lasts: Lasts::Content, digest: Some(digest), name }
    }
}

/// The path without its query.
fn path_of(target: &Target) -> &str {
    target.path().split('?').next().unwrap_or("/")
}

/// The parts of the path, the first slash taken away.
fn parts_of(target: &Target) -> Vec<&str> {
    path_of(target).split('/').skip(1).collect()
}

/// The path up to and with its last slash.
fn folder_of(path: &str) -> &str {
    path.rfind('/').and_then(|at| path.get(..=at)).unwrap_or("/")
}

/// What stands before a part of a path, with a slash at its end; the last such part counts.
fn root_before<'a>(path: &'a str, part: &str) -> Option<&'a str> {
    path.rfind(part).and_then(|at| path.get(..=at))
}

/// Whether a text is so many hexadecimal digits.
fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests;
