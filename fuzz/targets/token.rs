//! Bearer tokens: no text that nobody sealed opens.
#![no_main]

use std::sync::OnceLock;

use larder::seal::{Secret, SiteKeys};
use libfuzzer_sys::fuzz_target;

fn keys() -> &'static SiteKeys {
    static KEYS: OnceLock<SiteKeys> = OnceLock::new();
    KEYS.get_or_init(|| {
        let secret = Secret::parse(b"a secret for fuzzing only").unwrap();
        SiteKeys::derive("fuzz", &[secret]).unwrap()
    })
}

fuzz_target!(|text: &str| assert!(keys().open_bearer(text).is_err()));
