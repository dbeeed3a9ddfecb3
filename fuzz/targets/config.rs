//! Configurations: refused with a sentence or taken, never a panic; what is taken is written and taken again.
#![no_main]

use larder::config::Config;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = toml::from_str::<Config>(text) {
        assert!(!error.message().is_empty());
    }
});
