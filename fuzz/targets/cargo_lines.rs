//! Crates with their versions, and the settings of their registry.
#![no_main]

use larder::ecosystem::Document;
use larder_fuzz::document;

libfuzzer_sys::fuzz_target!(|body: &[u8]| document(Document::Crate, "/se/rd/serde", body));
