//! JavaScript packages with their versions.
#![no_main]

use larder::ecosystem::Document;
use larder_fuzz::document;

libfuzzer_sys::fuzz_target!(|body: &[u8]| document(Document::Packument, "/x", body));
