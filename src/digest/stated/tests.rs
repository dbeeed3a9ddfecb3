//! Tests of `digest::stated`.

use super::*;
use proptest::prelude::*;

/// The values of `abc`, as the algorithms' own papers or other programs give them.
const OF_ABC: [(&str, &str); 14] = [
    ("crc32", "352441c2"),
    ("crc32c", "364b3fb7"),
    ("md5", "900150983cd24fb0d6963f7d28e17f72"),
    ("sha1", "a9993e364706816aba3e25717850c26c9cd0d89d"),
    ("sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
        "sha384",
        "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
    ),
    (
        "sha512",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
    ),
    ("sha512-256", "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23"),
    ("sha3-256", "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"),
    (
        "sha3-384",
        "ec01498288516fc926459f58e2c6ad8df9b473cb0fc08c2596da7cf0e49be4b298d88cea927ac7f539f1edf228376d25",
    ),
    (
        "sha3-512",
        "b751850b1a57168a5693cd924b6b096e08f621827444f70d884f5d0240d2712e10e116e9192af3c91a7ec57647e3934057340b4cf408d5a56592f8274eec53f0",
    ),
    (
        "blake2b",
        "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d17d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923",
    ),
    ("blake2b-256", "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"),
    ("blake3", "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"),
];

fn of(algorithm: Algorithm, bytes: &[u8]) -> Stated {
    let mut hasher = StatedHasher::new(algorithm);
    hasher.update(bytes);
    hasher.finish()
}

#[test]
fn known_answers() {
    assert_eq!(OF_ABC.len(), Algorithm::ALL.len());
    for (name, value) in OF_ABC {
        let algorithm = Algorithm::named(name).unwrap();
        let stated = Stated::parse(&format!("{name}:{value}")).unwrap();
        assert_eq!(of(algorithm, b"abc"), stated, "{name}");
        assert_eq!((stated.to_string(), algorithm.name()), (format!("{name}:{value}"), name));
        assert!(!stated.matches(stated.hasher()), "{name}");
        assert_eq!(of(Algorithm::Sha256, b"abc") == stated, name == "sha256");
    }
}

#[test]
fn which_are_trusted() {
    let weak = ["crc32", "crc32c", "md5", "sha1"];
    for (algorithm, name, ..) in Algorithm::ALL {
        assert_eq!(algorithm.is_strong(), !weak.contains(&name), "{name}");
    }
}

#[test]
fn the_length_of_bare_hex_tells_the_algorithm() {
    for (length, name) in [(32, "md5"), (40, "sha1"), (64, "sha256"), (96, "sha384"), (128, "sha512")] {
        let stated = Stated::parse(&"0a".repeat(length / 2)).unwrap();
        assert_eq!(stated.algorithm().name(), name);
        assert_eq!(Stated::parse(&stated.to_string()).unwrap(), stated);
    }
    for wrong in ["", "abc", "sha256:00", "crc32:000000", "00000000", "zz", "sha224:00", ":", "blake3:"] {
        assert!(Stated::parse(wrong).is_err(), "{wrong}");
    }
    assert!("0a".repeat(32).parse::<Stated>().is_err());
}

#[test]
fn names_are_read_as_people_write_them() {
    for (written, name) in [
        ("SHA-512/256", "sha512-256"),
        ("sha512_256", "sha512-256"),
        ("SHA3-512", "sha3-512"),
        ("BLAKE2b-256", "blake2b-256"),
        ("BLAKE2B", "blake2b"),
        ("SHA", "sha1"),
        ("Sha-256", "sha256"),
    ] {
        assert_eq!(Algorithm::named(written).unwrap().name(), name);
    }
}

#[test]
fn a_key_tells_algorithm_and_value_apart() {
    let value = [7; 32];
    let key = |algorithm| Stated::new(algorithm, &value).unwrap().key();
    assert_eq!(key(Algorithm::Blake3), key(Algorithm::Blake3));
    assert_ne!(key(Algorithm::Blake3), key(Algorithm::Sha3_256));
    assert_ne!(key(Algorithm::Blake3), of(Algorithm::Blake3, b"").key());
    // what neighbours of every version ask by never changes
    assert_eq!(
        hex(key(Algorithm::Blake3).as_bytes()),
        "e650d5a37efc2d2ad4ce36b2186bbbb65ec34416d09a21b07101b481fa70d88d"
    );
}

proptest! {
    #[test]
    fn pieces_hash_like_the_whole(bytes: Vec<u8>, at: prop::sample::Index, which in 0..14_usize) {
        let algorithm = Algorithm::ALL[which].0;
        let (start, end) = bytes.split_at(at.index(bytes.len() + 1));
        let mut hasher = StatedHasher::new(algorithm);
        hasher.update(start);
        hasher.update(end);
        let stated = hasher.finish();
        prop_assert_eq!(stated, of(algorithm, &bytes));
        prop_assert_eq!(stated.to_string().parse::<Stated>(), Ok(stated));
        prop_assert_eq!(Stated::new(algorithm, stated.value()), Ok(stated));
    }

    #[test]
    fn no_text_panics(text: String) {
        let _unused = (Stated::parse(&text), Algorithm::named(&text));
    }
}

#[test]
fn strength_matching_and_names_are_those_of_the_algorithm() {
    let of = |name: &str| OF_ABC.iter().find(|(other, _)| *other == name).unwrap();
    for (name, value) in OF_ABC {
        let stated = Stated::parse(&format!("{name}:{value}")).unwrap();
        let is_weak = ["crc32", "crc32c", "md5", "sha1"].contains(&name);
        assert!(!(is_weak && stated.is_strong()), "{name}");
        let (mut right, mut wrong) = (stated.hasher(), stated.hasher());
        right.update(b"abc");
        wrong.update(b"abd");
        assert!(stated.matches(right) && !stated.matches(wrong), "{name}");
        assert_eq!(format!("{stated:?}"), stated.to_string());
    }
    let (name, value) = of("sha3-256");
    let stated = Stated::parse(&format!("{name}:{value}")).unwrap();
    assert!(stated.is_strong() && format!("{:?}", stated.key()).starts_with("StatedKey("));
    let kept = std::collections::HashSet::from([stated, Stated::from(Digest::of(b"abc")), stated]);
    assert_eq!(kept.len(), 2);
}

#[test]
fn different_values_have_different_hashes() {
    use std::hash::BuildHasher as _;
    let state = std::hash::RandomState::new();
    let of = |algorithm, byte| state.hash_one(Stated::new(algorithm, &[byte; 32]).unwrap());
    assert_eq!(of(Algorithm::Sha256, 1), of(Algorithm::Sha256, 1));
    assert_ne!(of(Algorithm::Sha256, 1), of(Algorithm::Sha256, 2));
    assert_ne!(of(Algorithm::Sha256, 1), of(Algorithm::Blake3, 1));
}

#[test]
fn a_hasher_shows_its_algorithm_alone() {
    assert_eq!(format!("{:?}", StatedHasher::new(Algorithm::Blake3)), "StatedHasher(blake3)");
}
