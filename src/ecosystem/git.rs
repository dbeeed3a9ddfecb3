//! Git over HTTP: references move, packs are made for one client.

use super::{Kind, path_of};
use crate::http::Target;

pub(super) fn recognise(target: &Target) -> Option<Kind> {
    let path = path_of(target);
    ["/info/refs", "/git-upload-pack", "/git-receive-pack"]
        .iter()
        .any(|end| path.ends_with(end))
        .then_some(Kind::mutable("git"))
}
