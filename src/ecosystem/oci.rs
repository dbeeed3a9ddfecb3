//! Container registries (OCI distribution): blobs and manifests by digest never change; tags, tokens and listings do.
//! A manifest, asked for by tag or by digest, states the digests of its configuration and layers, an index those of
//! its manifests.

use std::io::BufRead;

use serde::Deserialize;

use super::statement::{Speaker, Unread};
use super::{Kind, Lasts, parts_of, path_of, root_before};
use crate::digest::{Digest, Stated};
use crate::http::Target;

const MANIFESTS: [&str; 4] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];

pub(super) fn recognise(target: &Target) -> Option<Kind> {
    if is_token(target) {
        return Some(Kind::new("oci", Lasts::Moment));
    }
    let parts = parts_of(target);
    let at = parts.iter().position(|part| *part == "v2")?;
    match parts.get(at + 1..)? {
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

/// A token service (Distribution registry token authentication): a token belongs to whoever asked for it.
fn is_token(target: &Target) -> bool {
    let Some((path, query)) = target.path().split_once('?') else { return false };
    let mut names = query.split('&').map(|pair| pair.split('=').next().unwrap_or_default());
    let is_place = ["/token", "/auth", "/oauth2/token", "/jwt/auth"].iter().any(|end| path.ends_with(end));
    is_place && names.any(|name| matches!(name, "service" | "scope"))
}

/// `sha256:<hex>`, the colon perhaps percent-encoded.
fn digest(reference: &str) -> Option<Stated> {
    let value =
        ["sha256:", "sha256%3A", "sha256%3a"].iter().find_map(|start| reference.strip_prefix(start))?;
    Digest::from_hex(value).ok().map(Stated::from)
}

/// Whether a media type is that of a manifest or of an index of manifests.
pub(super) fn is_manifest(kind: &str) -> bool {
    MANIFESTS.contains(&kind)
}

#[derive(Deserialize)]
struct Manifest {
    config: Option<Descriptor>,
    #[serde(default)]
    layers: Vec<Descriptor>,
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Descriptor {
    digest: String,
    size: Option<u64>,
}

pub(super) fn read_manifest(body: impl BufRead, to: &mut Speaker<'_>) -> Result<(), Unread> {
    let Some(repository) = root_before(path_of(to.by()), "/manifests/").map(str::to_owned) else {
        return Ok(());
    };
    let query = to.by().path().split_once('?').map_or_else(String::new, |(_, query)| format!("?{query}"));
    to.within(&repository);
    let manifest: Manifest = serde_json::from_reader(body)?;
    let blobs = manifest.config.iter().chain(&manifest.layers).map(|it| ("blobs", it));
    for (place, it) in blobs.chain(manifest.manifests.iter().map(|it| ("manifests", it))) {
        let target = to.by().join(&format!("{repository}{place}/{}{query}", it.digest));
        if let (Ok(target), Ok(digest)) = (target, it.digest.parse::<Stated>()) {
            to.say(&target, digest, it.size)?;
        }
    }
    Ok(())
}
