//! Documents that state digests, packed or not: every reader ends, in bounded memory, whatever it is given.
#![no_main]

use larder::ecosystem::{Document, Passing};
use larder::http::{StoredHead, Target};
use libfuzzer_sys::fuzz_target;

const DOCUMENTS: [(Document, &str); 10] = [
    (Document::Release, "/debian/dists/s/InRelease"),
    (Document::Packages, "/debian/dists/s/main/binary-amd64/Packages"),
    (Document::SimplePage, "/simple/x/"),
    (Document::SimpleJson, "/simple/x/"),
    (Document::Project, "/pypi/x/json"),
    (Document::Packument, "/x"),
    (Document::Crate, "/se/rd/serde"),
    (Document::Manifest, "/v2/a/b/manifests/latest"),
    (Document::NarInfo, "/00000000000000000000000000000000.narinfo"),
    (Document::Checksums, "/f/SHA256SUMS"),
];

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, body)) = bytes.split_first() else { return };
    let (document, path) = DOCUMENTS[usize::from(*kind) % DOCUMENTS.len()];
    let uri = format!("https://example.org{path}").parse().unwrap();
    let target = Target::from_uri(&uri).unwrap();
    let coding = if kind & 0x80 == 0 { "identity" } else { "br" };
    let fields = vec![("content-encoding".to_owned(), coding.to_owned())];
    let head = StoredHead { status: 200, fields };
    let passing = Passing { target: &target, head: &head, is_packument: true };
    let mut told = 0;
    let mut hear = |_| {
        told += 1;
        told < 10_000
    };
    drop(document.read(passing, body, Some((&head, body)), &mut hear));
});
