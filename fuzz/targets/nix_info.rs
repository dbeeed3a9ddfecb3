//! What a Nix cache says of a store path.
#![no_main]

use larder::ecosystem::Document;
use larder_fuzz::document;

libfuzzer_sys::fuzz_target!(|body: &[u8]| document(
    Document::NarInfo,
    "/00000000000000000000000000000000.narinfo",
    body
));
