//! Debian's `Release` and `InRelease`.
#![no_main]

use larder::ecosystem::Document;
use larder_fuzz::document;

libfuzzer_sys::fuzz_target!(|body: &[u8]| document(Document::Release, "/debian/dists/s/InRelease", body));
