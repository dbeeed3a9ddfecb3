//! Maven repositories: `<group…>/<artifact>/<version>/<artifact>-<version>…`; snapshots and metadata change. The
//! checksums beside each file are lists of checksums like any other.

use super::{Kind, Lasts, parts_of};
use crate::http::Target;

pub(super) fn recognise(target: &Target) -> Option<Kind> {
    match parts_of(target).as_slice() {
        [_, .., artifact, version, file] => {
            let rest = file.strip_prefix(artifact)?.strip_prefix('-')?.strip_prefix(version)?;
            let is_file = rest.starts_with(['.', '-']) && version.starts_with(|c: char| c.is_ascii_digit());
            let lasts = if version.ends_with("-SNAPSHOT") { Lasts::Nothing } else { Lasts::Version };
            is_file.then_some(Kind::new("maven", lasts))
        }
        _ => None,
    }
}
