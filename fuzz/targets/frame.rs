//! Sealed frames: what opens was sealed here and unaltered; nothing else does, whatever it looks like.
#![no_main]

use std::sync::OnceLock;

use larder::seal::{BootId, MAX_BODY, Sealer};
use larder_fuzz::keys;
use libfuzzer_sys::fuzz_target;

fn sealer() -> &'static Sealer {
    static SEALER: OnceLock<Sealer> = OnceLock::new();
    SEALER.get_or_init(|| Sealer::new(keys().clone(), BootId::ephemeral().unwrap()).unwrap())
}

fuzz_target!(|bytes: &[u8]| {
    assert!(sealer().open(bytes).is_err(), "nobody sealed this");
    let Some((at, body)) = bytes.split_first_chunk::<2>() else { return };
    let body = &body[..body.len().min(MAX_BODY)];
    let mut frame = sealer().seal(body).unwrap();
    assert_eq!(sealer().open(&frame).unwrap().body, body);
    let at = usize::from(u16::from_be_bytes(*at));
    let (length, bit) = (frame.len(), at % 8);
    frame[at / 8 % length] ^= 1 << bit;
    assert!(sealer().open(&frame).is_err(), "a changed bit goes unnoticed");
});
