//! Container registries (OCI distribution): blobs and manifests by digest never change; tags, tokens and
//! listings do.

use super::{Kind, path_of};
use crate::digest::Digest;
use crate::http::Target;

pub(super) fn recognise(target: &Target) -> Option<Kind> {
    let mut parts = path_of(target).split('/').skip_while(|part| *part != "v2").skip(1).peekable();
    parts.peek()?;
    let parts: Vec<&str> = parts.collect();
    match parts.as_slice() {
        // a repository name stands before: `/v2/blobs/…` alone is none
        [_, .., "blobs" | "manifests", reference] => {
            Some(digest(reference).map_or(Kind::mutable("oci"), |digest| Kind::of_digest("oci", digest)))
        }
        [_, .., "tags", "list"] | [_, .., "referrers", _] | [_, .., "blobs", "uploads", _] | [""] => {
            Some(Kind::mutable("oci"))
        }
        _ => None,
    }
}

/// `sha256:<hex>`, the colon perhaps percent-encoded.
fn digest(reference: &str) -> Option<Digest> {
    let value =
        ["sha256:", "sha256%3A", "sha256%3a"].iter().find_map(|start| reference.strip_prefix(start))?;
    Digest::from_hex(value).ok()
}
