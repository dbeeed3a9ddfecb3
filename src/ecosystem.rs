//! Which program's URL a target is, and what its shape alone promises.
//!
//! A shape promises a [`Digest`] where the URL contains it, and immutability where the URL is made from the
//! content, so that other bytes would have another URL. Versioned names promise neither: a package can be
//! rebuilt under its name, a release taken back and published again. Pure: no input or output, nothing learned.

mod apt;
mod cargo;
mod generic;
mod git;
mod npm;
mod oci;
mod pypi;

use crate::digest::Digest;
use crate::http::Target;

/// What a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// What the URL leads to never changes, because the URL is made from it.
    pub immutable: bool,
    /// The digest that the URL contains: whoever sends other bytes, the origin included, is refused.
    pub digest: Option<Digest>,
    /// A word for status and logs.
    pub name: &'static str,
}

/// The recognisers in the order they are asked; what none of them knows is generic.
const KNOWN: [fn(&Target) -> Option<Kind>; 6] =
    [oci::recognise, apt::recognise, pypi::recognise, cargo::recognise, npm::recognise, git::recognise];

/// Recognises a target by its shape.
pub fn classify(target: &Target) -> Kind {
    KNOWN.iter().find_map(|recognise| recognise(target)).unwrap_or(generic::KIND)
}

impl Kind {
    const fn mutable(name: &'static str) -> Self {
        Self { immutable: false, digest: None, name }
    }

    const fn of_digest(name: &'static str, digest: Digest) -> Self {
        Self { immutable: true, digest: Some(digest), name }
    }
}

/// The path without its query.
fn path_of(target: &Target) -> &str {
    target.path().split('?').next().unwrap_or("/")
}

/// Whether a text is so many hexadecimal digits.
fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests;
