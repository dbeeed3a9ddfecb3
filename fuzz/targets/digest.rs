//! Digests as people and servers write them: what is read is written and read again as the same.
#![no_main]

use larder::digest::{Digest, Stated};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(digest) = text.parse::<Digest>() {
        assert_eq!(digest.to_string().parse(), Ok(digest));
    }
    if let Ok(stated) = Stated::parse(text) {
        assert_eq!(Stated::parse(&stated.to_string()), Ok(stated));
    }
});
