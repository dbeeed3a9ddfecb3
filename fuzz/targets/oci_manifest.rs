//! Manifests, and indexes of manifests, of container registries.
#![no_main]

use larder::ecosystem::Document;
use larder_fuzz::document;

libfuzzer_sys::fuzz_target!(|body: &[u8]| document(Document::Manifest, "/v2/a/b/manifests/latest", body));
