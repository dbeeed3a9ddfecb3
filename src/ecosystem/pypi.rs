//! Python packages. PyPI's file hosts name a file by the BLAKE2b digest of its bytes; pages of the index, and
//! what stands beside a file (metadata, signatures, provenance), are made anew.

use super::{Kind, is_hex, path_of};
use crate::http::Target;

/// Hosts whose `/packages/` paths are known to be made from the content.
const FILE_HOSTS: [&str; 2] = ["files.pythonhosted.org", "test-files.pythonhosted.org"];

const FILES: [&str; 7] = [".whl", ".tar.gz", ".zip", ".tar.bz2", ".egg", ".exe", ".msi"];

pub(super) fn recognise(target: &Target) -> Option<Kind> {
    let parts: Vec<&str> = path_of(target).split('/').skip(1).collect();
    match parts.as_slice() {
        ["packages", first, second, rest, file]
            if is_hex(first, 2) && is_hex(second, 2) && is_hex(rest, 60) =>
        {
            let of_content =
                FILE_HOSTS.contains(&target.host()) && FILES.iter().any(|end| file.ends_with(end));
            Some(Kind { immutable: of_content, digest: None, name: "pypi" })
        }
        ["simple", ..] | ["pypi", .., "json"] => Some(Kind::mutable("pypi")),
        [.., file] if file.ends_with(".whl") || file.ends_with(".whl.metadata") => {
            Some(Kind::mutable("pypi"))
        }
        _ => None,
    }
}
