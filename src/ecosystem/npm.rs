//! JavaScript packages: `/<name>/-/<file>.tgz`, and packuments at the public registry.

use super::{Kind, path_of};
use crate::http::Target;

pub(super) fn recognise(target: &Target) -> Option<Kind> {
    let path = path_of(target);
    let tarball = path.contains("/-/") && path.ends_with(".tgz");
    (tarball || target.host() == "registry.npmjs.org").then_some(Kind::mutable("npm"))
}
