//! Go modules: what a proxy has of a version never changes; lists of versions and `@latest` do. The checksum
//! database states digests of trees, not of files, so nothing is learned there.

use super::{Kind, Lasts, parts_of};
use crate::http::Target;

pub(super) fn recognise(target: &Target) -> Option<Kind> {
    match parts_of(target).as_slice() {
        [_, .., "@v", "list"] | [_, .., "@latest"] => Some(Kind::mutable("go")),
        [_, .., "@v", file] if file.starts_with('v') => {
            let versioned = [".info", ".mod", ".zip"].iter().any(|end| file.ends_with(end));
            versioned.then_some(Kind::new("go", Lasts::Version))
        }
        _ => None,
    }
}
