//! Bearer tokens: no text that nobody sealed opens.
#![no_main]

use larder_fuzz::keys;

libfuzzer_sys::fuzz_target!(|text: &str| assert!(keys().open_bearer(text).is_err()));
