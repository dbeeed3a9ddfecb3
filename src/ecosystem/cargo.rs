//! Rust crates. A crate's version can be deleted and published again, so its file is only as good as the
//! checksum its index line states.

use super::{Kind, path_of};
use crate::http::Target;

pub(super) fn recognise(target: &Target) -> Option<Kind> {
    let parts: Vec<&str> = path_of(target).split('/').skip(1).collect();
    let known = match parts.as_slice() {
        [.., "crates", _, _, "download"] => true,
        [.., file] if file.ends_with(".crate") => true,
        _ => target.host() == "index.crates.io",
    };
    known.then_some(Kind::mutable("cargo"))
}
