//! What several targets share: the keys they open with, and how a document that states digests is read.

use std::sync::OnceLock;

use larder::ecosystem::{Document, Passing};
use larder::http::{StoredHead, Target};
use larder::seal::{Secret, SiteKeys};

/// The most statements that are heard of one document.
const MOST: usize = 10_000;

/// Keys of a site that nobody else has.
pub fn keys() -> &'static SiteKeys {
    static KEYS: OnceLock<SiteKeys> = OnceLock::new();
    KEYS.get_or_init(|| {
        let secret = Secret::parse(b"a secret for fuzzing only").unwrap();
        SiteKeys::derive("fuzz", &[secret]).unwrap()
    })
}

/// A target of https://example.org, or none where this is no path.
pub fn target(path: &str) -> Option<Target> {
    Target::from_uri(&format!("https://example.org{path}").parse().ok()?).ok()
}

/// Reads a document as it came, packed or not. The reader ends, in bounded memory, and when it is told to; what it
/// states it may state.
pub fn document(document: Document, path: &str, body: &[u8]) {
    let target = target(path).unwrap();
    for coding in ["identity", "br"] {
        let fields = vec![("content-encoding".to_owned(), coding.to_owned())];
        let head = StoredHead { status: 200, fields };
        let passing = Passing { target: &target, head: &head, is_packument: true };
        let mut told = 0;
        let mut hear = |_| {
            told += 1;
            assert!(told <= MOST, "it goes on when it was told to end");
            told < MOST
        };
        drop(document.read(passing, body, Some((&head, body)), &mut hear));
    }
}
