//! What response heads state: the digest of what they came with, or of what they lead to.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::statement::best;
use super::{Statement, classify, huggingface, speaks_for, spelling};
use crate::digest::{Algorithm, Stated};
use crate::http::{StoredHead, Target};

/// The best digest that a head states of the thing it came with: `Repr-Digest` and `Content-Digest` (RFC 9530),
/// `Digest` (RFC 3230), `x-amz-checksum-*`, `x-goog-hash`, `Content-MD5`, `Docker-Content-Digest`. Those that are of
/// the message count only where it is the whole thing.
pub fn said_of_itself(head: &StoredHead) -> Option<Stated> {
    if !matches!(head.status, 200 | 203 | 206) {
        return None;
    }
    let whole = head.status != 206;
    // sums of the parts of an upload are no digest of the whole
    let composite =
        head.get("x-amz-checksum-type").is_some_and(|kind| kind.eq_ignore_ascii_case("composite"));
    let said = head.fields.iter().flat_map(|(name, value)| match name.as_str() {
        "repr-digest" => dictionary(value),
        "content-digest" if whole => dictionary(value),
        "digest" | "x-goog-hash" => pairs(value),
        "content-md5" if whole => of_base64("md5", value).into_iter().collect(),
        "docker-content-digest" => value.trim().parse().into_iter().collect(),
        _ => match name.strip_prefix("x-amz-checksum-") {
            Some(algorithm) if !composite => of_base64(algorithm, value).into_iter().collect(),
            _ => Vec::new(),
        },
    });
    let said: Vec<Stated> = said.collect();
    // of two that contradict each other neither counts
    let disputed = |one: &Stated| said.iter().any(|s| s.algorithm() == one.algorithm() && s != one);
    best(said.iter().copied().filter(|one| !disputed(one)))
}

/// What a redirect states of the thing it stands for.
pub fn said_elsewhere(target: &Target, head: &StoredHead) -> Vec<Statement> {
    if !matches!(head.status, 301 | 302 | 303 | 307 | 308) {
        return Vec::new();
    }
    let mut said = huggingface::linked(target, head);
    // the thing whose digest its URL contains is where the redirect leads
    if let (Some(digest), Some(to)) = (classify(target).digest, location(target, head)) {
        said.extend(statement(target, &to, digest, None));
    }
    said
}

/// Where a redirect leads.
pub(super) fn location(target: &Target, head: &StoredHead) -> Option<Target> {
    target.join(head.get("location")?).ok()
}

/// A statement that `by` makes of `of`, if it may.
pub(super) fn statement(by: &Target, of: &Target, digest: Stated, size: Option<u64>) -> Option<Statement> {
    speaks_for(by, of).then(|| Statement { target: spelling(of), digest, size })
}

/// A dictionary of byte sequences (RFC 8941 sections 3.2 and 3.3.5): `sha-256=:…:, sha-512=:…:`.
fn dictionary(field: &str) -> Vec<Stated> {
    let member = |member: &str| {
        let (name, value) = member.trim().split_once('=')?;
        let value = value.trim().strip_prefix(':')?;
        of_base64(name, value.split_once(':')?.0)
    };
    field.split(',').filter_map(member).collect()
}

/// `SHA-256=…,MD5=…` in base64.
fn pairs(field: &str) -> Vec<Stated> {
    let pair = |pair: &str| {
        let (name, value) = pair.trim().split_once('=')?;
        of_base64(name, value)
    };
    field.split(',').filter_map(pair).collect()
}

fn of_base64(algorithm: &str, value: &str) -> Option<Stated> {
    let bytes = BASE64.decode(value.trim()).ok()?;
    Stated::new(Algorithm::named(algorithm).ok()?, &bytes).ok()
}
