//! Messages between neighbours: what is understood is written and understood again as the same.
#![no_main]

use larder::discovery::Message;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = Message::decode(bytes) {
        let written = message.encode();
        assert_eq!(Message::decode(&written).as_ref(), Ok(&message));
    }
});
