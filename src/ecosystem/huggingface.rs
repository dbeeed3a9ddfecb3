//! Models and data sets: what a commit names stays; large files are behind a redirect to a signed URL, and the
//! redirect's head states their SHA-256 and size.

use super::{Kind, Lasts, Statement, head, is_hex, parts_of};
use crate::digest::{Digest, Stated};
use crate::http::{StoredHead, Target};

pub(super) fn recognise(target: &Target) -> Option<Kind> {
    let host = target.host();
    if host.ends_with(".hf.co") || host.ends_with(".huggingface.co") {
        // these hosts serve files by their content alone
        return Some(Kind::new("huggingface", Lasts::Version));
    }
    let parts = parts_of(target);
    let of_commit = parts.windows(2).any(|pair| matches!(pair, ["resolve", commit] if is_hex(commit, 40)));
    if of_commit {
        return Some(Kind::new("huggingface", Lasts::Version));
    }
    (host == "huggingface.co").then_some(Kind::mutable("huggingface"))
}

/// What a redirect says of the file it stands for: of its own URL and of the one it leads to.
pub(super) fn linked(target: &Target, head: &StoredHead) -> Vec<Statement> {
    let tag = head.get("x-linked-etag").map(|tag| tag.trim_start_matches("W/").trim_matches('"'));
    // a file that git holds itself has its object's name there, which is no digest of the file
    let Some(digest) = tag.and_then(|tag| Digest::from_hex(tag).ok()) else { return Vec::new() };
    let size = head.get("x-linked-size").and_then(|size| size.parse().ok());
    let own = head::statement(target, target, Stated::from(digest), size);
    let other = head::location(target, head).and_then(|to| head::statement(target, &to, digest.into(), size));
    own.into_iter().chain(other).collect()
}
