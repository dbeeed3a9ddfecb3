//! Tests of `seal::frame`.

use super::*;
use crate::digest::{hex, unhex};
use crate::seal::Secret;
use proptest::prelude::*;
use std::sync::LazyLock;

static KEYS: LazyLock<SiteKeys> = LazyLock::new(|| keys("lab", &["a secret of the tests"]));

fn keys(site: &str, secrets: &[&str]) -> SiteKeys {
    let secrets: Vec<Secret> = secrets.iter().map(|s| Secret::parse(s.as_bytes()).unwrap()).collect();
    SiteKeys::derive(site, &secrets).unwrap()
}

fn sealer(keys: &SiteKeys, random: u64) -> Sealer {
    Sealer::new(keys.clone(), BootId { counter: 1, random }).unwrap()
}

#[test]
fn the_vectors_of_version_1_hold() {
    let text = include_str!("../../../tests/fixtures/frames/frame-v1.json");
    let vectors: serde_json::Value = serde_json::from_str(text).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let keys = keys(&text(&vectors["site"]), &[&text(&vectors["secret"])]);
    assert_eq!(keys.fingerprint(), text(&vectors["fingerprint"]));
    let reader = sealer(&keys, 0);
    for vector in vectors["frames"].as_array().unwrap() {
        let number = |name: &str| text(&vector[name]).parse::<u64>().unwrap();
        let bytes = |name: &str| unhex(&text(&vector[name])).unwrap();
        let boot = BootId { counter: number("boot_counter"), random: number("boot_random") };
        let opened = reader.open(&bytes("frame")).unwrap();
        assert_eq!(opened, Opened { boot, body: bytes("body"), key: 0 });
        let writer = Sealer::new(keys.clone(), boot).unwrap();
        let nonce: [u8; 12] = bytes("nonce").try_into().unwrap();
        assert_eq!(hex(&writer.0.seal_with(nonce, &bytes("body")).unwrap()), text(&vector["frame"]));
    }
}

#[test]
fn frames_are_whole_blocks_and_never_too_long() {
    let sealer = sealer(&KEYS, 1);
    for length in [0, 1, 5, 6, 7, 63, 64, 500, MAX_BODY - 1, MAX_BODY] {
        let frame = sealer.seal(&vec![7; length]).unwrap();
        assert!(frame.len().is_multiple_of(64) && frame.len() <= MAX_FRAME, "{length}: {}", frame.len());
        assert_eq!(sealer.open(&frame).unwrap().body, vec![7; length]);
    }
    assert_eq!(sealer.seal(&[0; MAX_BODY + 1]).err(), Some(SealError::TooLong(MAX_BODY + 1)));
    assert_eq!(sealer.seal(&[0; 70_000]).err(), Some(SealError::TooLong(70_000)));
}

#[test]
fn nonces_differ_over_frames_and_sealers_of_one_run() {
    let (a, b) = (sealer(&KEYS, 1), sealer(&KEYS, 1));
    let frames: Vec<Vec<u8>> =
        (0..100).flat_map(|_| [a.seal(b"x").unwrap(), b.seal(b"x").unwrap()]).collect();
    let nonces: std::collections::HashSet<&[u8]> = frames.iter().map(|frame| &frame[28..40]).collect();
    assert_eq!(nonces.len(), frames.len());
}

#[test]
fn every_accepted_secret_opens_and_another_site_does_not() {
    let old = sealer(&keys("lab", &["the old secret of the lab"]), 1);
    let new = sealer(&keys("lab", &["the new secret of the lab", "the old secret of the lab"]), 2);
    assert_eq!(new.open(&old.seal(b"x").unwrap()).unwrap().key, 1);
    assert_eq!(new.open(&new.seal(b"x").unwrap()).unwrap().key, 0);
    assert_eq!(old.open(&new.seal(b"x").unwrap()).err(), Some(OpenError::UnknownKey));
    let other = sealer(&keys("office", &["the old secret of the lab"]), 3);
    assert_eq!(other.open(&old.seal(b"x").unwrap()).err(), Some(OpenError::UnknownKey));
}

#[test]
fn a_changed_byte_is_noise_and_a_fitted_checksum_is_forged() {
    let sealer = sealer(&KEYS, 1);
    let frame = sealer.seal(b"body").unwrap();
    for place in 0..frame.len() {
        let mut changed = frame.clone();
        changed[place] ^= 0x40;
        assert!(sealer.open(&changed).is_err(), "byte {place}");
        let (head, rest) = changed.split_at(HEADER);
        let set = sealer.0.keys.sending().unwrap();
        let fitted = checksum(set, head, &rest[4..16], &rest[16..]);
        changed[24..28].copy_from_slice(&fitted.to_be_bytes());
        let why = match place {
            0 | 1 => Some(OpenError::Noise),
            2 => Some(OpenError::Newer(0x41)),
            4..8 => Some(OpenError::UnknownKey),
            // the fitted checksum is the right one
            24..28 => None,
            _ => Some(OpenError::Forged),
        };
        assert_eq!(sealer.open(&changed).err(), why, "byte {place}");
    }
}

/// A frame of any length and version whose checksum fits: only the cheap checks can know it.
fn fitted(sealer: &Sealer, length: usize, version: u8) -> Vec<u8> {
    let mut frame = sealer.seal(b"").unwrap();
    frame.resize(length, 0);
    frame[2] = version;
    let (head, rest) = frame.split_at(HEADER);
    let fitted = checksum(sealer.0.keys.sending().unwrap(), head, &rest[4..16], &rest[16..]);
    frame[24..28].copy_from_slice(&fitted.to_be_bytes());
    frame
}

#[test]
fn length_and_version_are_judged_before_the_cipher_is_asked() {
    let sealer = sealer(&KEYS, 1);
    let why = |length, version| sealer.open(&fitted(&sealer, length, version)).err();
    assert_eq!(why(MAX_FRAME / BLOCK * BLOCK, VERSION), Some(OpenError::Forged));
    assert_eq!(why(MAX_FRAME.next_multiple_of(BLOCK), VERSION), Some(OpenError::Noise));
    assert_eq!(why(64, VERSION - 1), Some(OpenError::Noise));
    assert_eq!(why(65, VERSION), Some(OpenError::Noise));
    // a later version may fill a frame to its last byte
    assert_eq!(why(MAX_FRAME, VERSION + 1), Some(OpenError::Newer(VERSION + 1)));
}

#[test]
fn what_is_shown_of_them_names_the_run_and_no_key() {
    let sealer = sealer(&KEYS, 7);
    let frame = sealer.seal(b"x").unwrap();
    let boot = format!("{:?}", sealer.boot());
    assert_eq!(format!("{sealer:?}"), format!("Sealer {{ boot: {boot}, .. }}"));
    assert_eq!(format!("{:?}", sealer.check(&frame).unwrap()), format!("Checked {{ boot: {boot}, .. }}"));
    assert_eq!(format!("{:?}", *KEYS), "SiteKeys(1)");
}

#[test]
fn a_run_is_familiar_once_a_frame_of_it_opened() {
    let (reader, writer) = (sealer(&KEYS, 1), sealer(&KEYS, 2));
    let frame = writer.seal(b"x").unwrap();
    let mut forged = writer.seal(b"x").unwrap();
    let last = forged.len() - 1;
    forged[last] ^= 1;
    let (head, rest) = forged.split_at(HEADER);
    let fitted = checksum(reader.0.keys.sending().unwrap(), head, &rest[4..16], &rest[16..]);
    forged[24..28].copy_from_slice(&fitted.to_be_bytes());
    assert_eq!(reader.open(&forged).err(), Some(OpenError::Forged));
    assert!(!reader.check(&frame).unwrap().is_familiar());
    reader.open(&frame).unwrap();
    assert!(reader.check(&frame).unwrap().is_familiar());
}

#[test]
fn the_memory_of_foreign_runs_is_bounded() {
    let reader = sealer(&KEYS, 0);
    for random in 1..=KEPT_BOOTS as u64 + 10 {
        reader.open(&sealer(&KEYS, random).seal(b"x").unwrap()).unwrap();
    }
    let met = reader.0.met();
    assert!(met.ciphers.len() == KEPT_BOOTS && met.order.len() == KEPT_BOOTS);
}

proptest! {
    #[test]
    fn bodies_round_trip(body in prop::collection::vec(any::<u8>(), 0..=MAX_BODY)) {
        let sealer = sealer(&KEYS, 1);
        prop_assert_eq!(sealer.open(&sealer.seal(&body).unwrap()).unwrap().body, body);
    }

    #[test]
    fn no_bytes_open_or_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..1400), ours: bool) {
        let sealer = sealer(&KEYS, 1);
        if ours && bytes.len() > 8 {
            bytes[..4].copy_from_slice(b"LD\x01\x00");
            bytes[4..8].copy_from_slice(&sealer.0.keys.sending().unwrap().id);
        }
        prop_assert!(sealer.open(&bytes).is_err());
    }
}
