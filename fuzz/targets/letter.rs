//! Letters: none that nobody sealed opens, and one that was sealed opens as long as nothing of it is changed.
#![no_main]

use larder_fuzz::keys;

libfuzzer_sys::fuzz_target!(|input: (u16, &[u8])| {
    let (at, bytes) = input;
    assert!(keys().open_letter(bytes).is_err(), "nobody sealed this");
    let mut letter = keys().seal_letter(bytes).unwrap();
    assert_eq!(keys().open_letter(&letter).unwrap(), bytes);
    let at = usize::from(at) % (letter.len() * 8);
    letter[at / 8] ^= 1 << (at % 8);
    assert!(keys().open_letter(&letter).is_err(), "a changed bit goes unnoticed");
});
