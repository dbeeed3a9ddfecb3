//! Debian's `Packages` and `Sources`, packed or not.
#![no_main]

use larder::ecosystem::Document;
use larder_fuzz::document;

libfuzzer_sys::fuzz_target!(|body: &[u8]| document(
    Document::Packages,
    "/debian/dists/s/main/binary-amd64/Packages",
    body
));
