//! Debian archives: `by-hash` names index files by their digest; everything else under `dists/` and `pool/`
//! can be published anew under its old name.

use super::{Kind, is_hex, path_of};
use crate::digest::Digest;
use crate::http::Target;

pub(super) fn recognise(target: &Target) -> Option<Kind> {
    let parts: Vec<&str> = path_of(target).split('/').skip(1).collect();
    if let [.., "by-hash", algorithm, value] = parts.as_slice() {
        return match *algorithm {
            "SHA256" => Digest::from_hex(value).ok().map(|digest| Kind::of_digest("apt", digest)),
            // as strong, but not the address of a blob
            "SHA512" if is_hex(value, 128) => Some(Kind { immutable: true, digest: None, name: "apt" }),
            _ => Some(Kind::mutable("apt")),
        };
    }
    let index = parts.contains(&"dists") && parts.last().is_some_and(|name| is_index(name));
    let package = parts.last().is_some_and(|name| name.ends_with(".deb") || name.ends_with(".udeb"));
    (index || package).then_some(Kind::mutable("apt"))
}

fn is_index(name: &str) -> bool {
    ["InRelease", "Release", "Packages", "Sources", "Contents-", "Translation-", "Components-"]
        .iter()
        .any(|known| name.starts_with(known))
}
