//! Projects in PyPI's own JSON.
#![no_main]

use larder::ecosystem::Document;
use larder_fuzz::document;

libfuzzer_sys::fuzz_target!(|body: &[u8]| document(Document::Project, "/pypi/x/json", body));
