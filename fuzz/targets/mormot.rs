//! Frames and tokens of mORMot peers: nothing opens that was not sealed, and a message is read as it was written.
#![no_main]

use std::sync::OnceLock;

use larder::mormot::{Keys, Message, Secret};
use libfuzzer_sys::fuzz_target;

fn keys() -> &'static Keys {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    KEYS.get_or_init(|| Keys::derive(&Secret::parse(b"a secret for fuzzing only").unwrap()).unwrap())
}

fuzz_target!(|bytes: &[u8]| {
    assert!(keys().open(bytes).is_err(), "nobody sealed this");
    if let Ok(text) = str::from_utf8(bytes) {
        assert!(keys().open_token(text).is_err(), "nobody sealed this");
    }
    if let Some((plain, _)) = bytes.split_first_chunk()
        && let Some(message) = Message::decode(plain)
    {
        let written = message.encode();
        assert_eq!(Message::decode(&written).map(|message| message.encode()), Some(written));
    }
});
