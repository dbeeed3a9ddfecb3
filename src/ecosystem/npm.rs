//! JavaScript packages: tarballs at `/<name>/-/<file>-<version>.tgz`, and packuments, which state the digest of each
//! version's tarball as subresource integrity (SHA-512, mostly) or as a bare SHA-1.

use std::collections::HashMap;
use std::io::BufRead;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::HeaderMap;
use serde::Deserialize;

use super::statement::{Speaker, Unread, best};
use super::{Kind, Lasts, folder_of, path_of};
use crate::digest::{Algorithm, Stated, unhex};
use crate::http::Target;

pub(super) fn recognise(target: &Target) -> Option<Kind> {
    let path = path_of(target);
    if path.contains("/-/") && path.ends_with(".tgz") {
        return Some(Kind::new("npm", Lasts::Version));
    }
    (target.host() == "registry.npmjs.org").then_some(Kind::mutable("npm"))
}

/// Whether a request asks for a package with its versions: by what it accepts, or by what npm says of it.
pub fn asks_for_packument(request: &HeaderMap) -> bool {
    let says = |name, part: &str| {
        request.get_all(name).iter().any(|line| line.to_str().is_ok_and(|line| line.contains(part)))
    };
    says("accept", "application/vnd.npm.install-v1+json") || says("pacote-req-type", "packument")
}

/// A package with its versions, or one version of it.
#[derive(Deserialize)]
struct Packument {
    #[serde(default)]
    name: String,
    #[serde(default)]
    versions: HashMap<String, Version>,
    dist: Option<Dist>,
}

#[derive(Deserialize)]
struct Version {
    dist: Option<Dist>,
}

#[derive(Deserialize)]
struct Dist {
    tarball: Option<String>,
    integrity: Option<String>,
    shasum: Option<String>,
}

pub(super) fn read_packument(path: &str, body: impl BufRead, to: &mut Speaker<'_>) -> Result<(), Unread> {
    let packument: Packument = serde_json::from_reader(body)?;
    to.within(root_of(path, &packument.name));
    let versions = packument.versions.values().filter_map(|version| version.dist.as_ref());
    for dist in versions.chain(&packument.dist) {
        let target = dist.tarball.as_deref().and_then(|url| to.by().join(url).ok());
        if let (Some(target), Some(digest)) = (target, dist.digest()) {
            to.say(&target, digest, None)?;
        }
    }
    Ok(())
}

impl Dist {
    fn digest(&self) -> Option<Stated> {
        let integrity = self.integrity.iter().flat_map(|text| text.split_ascii_whitespace());
        let sha1 =
            self.shasum.as_deref().and_then(|hex| Stated::new(Algorithm::Sha1, &unhex(hex).ok()?).ok());
        best(integrity.filter_map(of_integrity).chain(sha1))
    }
}

/// `sha512-<base64>`, options behind a question mark (Subresource Integrity section 3.5).
fn of_integrity(text: &str) -> Option<Stated> {
    let (name, value) = text.split('?').next()?.split_once('-')?;
    Stated::new(Algorithm::named(name).ok()?, &BASE64.decode(value).ok()?).ok()
}

/// The registry's own folder: the path without the name of the package, whose slash may be escaped.
fn root_of<'a>(path: &'a str, name: &str) -> &'a str {
    let names = [name.to_owned(), name.replace('/', "%2f"), name.replace('/', "%2F")];
    let at = |name: &String| path.strip_suffix(name.as_str()).filter(|root| root.ends_with('/'));
    let root = names.iter().filter(|name| !name.is_empty()).find_map(at);
    root.unwrap_or_else(|| folder_of(path))
}
