//! Documents whose links are led back: what comes out does not depend on how they are cut.
#![no_main]

use larder::mirror::{Document, Mirrors, Rewriter};

const DOCUMENTS: [(Document, &str); 4] = [
    (Document::Html, "/m/pypi/simple/pip/"),
    (Document::PypiJson, "/m/pypi/simple/pip/"),
    (Document::NpmJson, "/m/npm/x"),
    (Document::CratesJson, "/m/crates/config.json"),
];

fn rewritten(document: Document, path: &str, text: &[u8], piece: usize) -> Vec<u8> {
    let entry = Mirrors::default().enter(path).unwrap().unwrap();
    let (mut rewriter, mut out) =
        (Rewriter::new(document, entry.place.links("box:8098", &entry.target)), Vec::new());
    text.chunks(piece).for_each(|piece| rewriter.push(piece, &mut out));
    rewriter.finish(&mut out);
    out
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((kind, text)) = bytes.split_first() else { return };
    let (document, path) = DOCUMENTS[usize::from(*kind) % DOCUMENTS.len()];
    let whole = rewritten(document, path, text, 1 << 16);
    for piece in [1, 7] {
        assert_eq!(rewritten(document, path, text, piece), whole, "in pieces of {piece}");
    }
});
