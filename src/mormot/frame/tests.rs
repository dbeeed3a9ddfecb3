//! The vector of the original, and whatever else may arrive.

use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;
use crate::digest::{hex, unhex};
use crate::mormot::message::tests::any_message;
use crate::mormot::message::{Algorithm, Hardware, Hash, Kind};

const VECTOR: &str = "\
    000102030405060708090a0b0c0d0e0f898992e1604abe8498ca4c93187ae3b51226937c11e961ef10477ed5dce57f33cc27331c3bf2a48e\
    7d378528482ad8588dcfd6fe65220b27c33db6d9181daa8a4b5311524afc435b1a499e0913a2e46c7071dad2efbf63e90c9325c2f193996635\
    e32b6df1ab350c4d47721e1a132c95f27db892d04b97f72fb9c5d4b02f1435eb8b36ada53502d1667be110f39b7b3f1438fe55105693a0cd9f\
    7a5a4cdfb36dfe17dee43495b3160b8b12fde8221ab746ce400624980b35da18c219060a18bab17f62a0a926a07e9d554522285a4ddfa3bdc9\
    0b123c103147fc4e78d9cda2dde51281b7";
const VECTOR_TOKEN: &str = "\
    AAECAwQFBgcICQoLDA0OD4mJkuFgSr6EmMpMkxh647USJpN8Eelh7xBHftXc5X8zzCczHDvypI59N4UoSCrYWI3P1v5lIgsnwz222RgdqopLUxFSSvxDWxpJngkT\
    ouRscHHa0u-_Y-kMkyXC8ZOZZjXjK23xqzUMTUdyHhoTLJXyfbiS0EuX9y-5xdSwLxQ164s2raU1AtFme-EQ85t7PxQ4_lUQVpOgzZ96Wkzfs23-F97kNJWzFguLEv3o\
    Ihq3Rs5ABiSYCzXaGMIZBgoYurF_YqCpJqB-nVVFIihaTd-jvckLEjwQMUf8TnjZzaLd5RKBtw";

fn keys() -> Keys {
    Keys::derive(&Secret::parse(b"secret").unwrap()).unwrap()
}

fn counting<const N: usize>(first: u8) -> [u8; N] {
    std::array::from_fn(|at| first + u8::try_from(at).unwrap())
}

/// The message of the vector, field by field.
fn told() -> Message {
    Message {
        kind: Kind::Request,
        seq: 0x1122_3344,
        uuid: unhex("33221100554477668899aabbccddeeff").unwrap().try_into().unwrap(),
        os: [0x08, 0x01, 0x02, 0x06],
        address: Ipv4Addr::new(192, 168, 1, 10),
        to: Ipv4Addr::new(192, 168, 1, 255),
        mask: Ipv4Addr::new(255, 255, 255, 0),
        broadcast: Ipv4Addr::new(192, 168, 1, 255),
        speed: 1000,
        hardware: Hardware::Ethernet,
        timestamp: 0x11e1_a300,
        connections: 3,
        hash: Hash::of(Algorithm::Sha256, &counting::<32>(0)).unwrap(),
        size: 123_456_789,
        start: 1000,
        end: 0,
        opaque: 0,
        padding: (0, counting(0xc0)),
    }
}

#[test]
fn the_frame_of_the_original_opens_and_is_made_again() {
    let frame = unhex(VECTOR).unwrap();
    let message = keys().open(&frame).unwrap();
    assert_eq!(message, told());
    let mut again = [0xee; FRAME];
    keys().seal_with(&counting(0), &told(), &mut again).unwrap();
    assert_eq!(hex(&again), VECTOR);
    assert_eq!(keys().open_token(VECTOR_TOKEN).unwrap(), told());
    assert_eq!(URL_SAFE_NO_PAD.encode(frame), VECTOR_TOKEN);
    assert_eq!(keys().magic, 0xfab3_6c2b);
    assert_eq!(crc32c::crc32c_append(0x0102_0304, b"123456789"), 0xd9bb_e550);
}

#[test]
fn a_hexadecimal_secret_is_its_bytes() {
    let (text, bytes) = (Secret::parse(b"secret\n").unwrap(), Secret::parse(b"hex:736563726574").unwrap());
    assert_eq!(text.bytes(), bytes.bytes());
    for wrong in [&b""[..], b"\n", b"hex:", b"hex:7", b"hex:zz"] {
        assert!(Secret::parse(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn the_first_failure_wins_and_nothing_else_is_looked_at() {
    let (keys, frame) = (keys(), unhex(VECTOR).unwrap());
    let sealed_again = |frame: &[u8]| {
        let body = &frame[..240];
        let checksum = crc32c::crc32c_append(keys.magic, body).to_le_bytes();
        [body, &checksum].concat()
    };
    for length in [0, 1, 243, 245, 1200] {
        assert_eq!(keys.open(&vec![0; length]), Err(Refusal::Length));
    }
    let other = Keys::derive(&Secret::parse(b"another").unwrap()).unwrap();
    assert_eq!(other.open(&frame), Err(Refusal::Checksum));
    for at in 0..FRAME {
        let mut wrong = frame.clone();
        wrong[at] ^= 0x40;
        assert_eq!(keys.open(&wrong), Err(Refusal::Checksum), "{at}");
        // the last four bytes of the vector are free, and covered by the checksum alone
        let forged = if (12..16).contains(&at) || at >= 240 { Ok(told()) } else { Err(Refusal::Forged) };
        assert_eq!(keys.open(&sealed_again(&wrong)), forged, "{at}");
    }
    let mut unknown = told().encode();
    unknown[0] = 10;
    let mut text = [unknown.as_slice(), &PAD].concat();
    let nonce = counting::<12>(0);
    let tag = keys.cipher.encrypt_inout_detached((&nonce).into(), &[], text.as_mut_slice().into()).unwrap();
    let sealed = [counting::<16>(0).as_slice(), &text, &tag].concat();
    assert_eq!(keys.open(&sealed_again(&sealed)), Err(Refusal::Unknown));
}

#[test]
fn no_nonce_comes_twice() {
    let (one, two) = (Nonces::new().unwrap(), Nonces::new().unwrap());
    let seen: std::collections::HashSet<_> =
        (0..1000).flat_map(|_| [one.next(), two.next()]).map(|iv| iv[..12].to_vec()).collect();
    assert_eq!(seen.len(), 2000);
}

/// Numbers without end, the same in every run.
fn numbers() -> impl FnMut() -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// Noise of any length, frames with a bit changed, frames with a right checksum over anything, and authentic
/// frames with any content.
fn anything(round: u32, keys: &Keys, valid: &Frame, next: &mut impl FnMut() -> u64, datagram: &mut Vec<u8>) {
    datagram.clear();
    let (drawn, other) = (next(), next());
    let mut noise =
        |length: usize| (0..length.div_ceil(8)).flat_map(|_| next().to_le_bytes()).take(length).collect();
    let bytes: Vec<u8> = match round % 32 {
        0..20 if drawn % 8 == 0 => noise(usize::try_from(other % 500).unwrap()),
        0..20 => noise(FRAME),
        20..30 => {
            let mut frame = valid.to_vec();
            frame[usize::try_from(drawn % 244).unwrap()] ^= 1 << (other % 8);
            frame
        }
        30 => {
            let body: Vec<u8> = noise(FRAME - 4);
            let checksum = crc32c::crc32c_append(keys.magic, &body).to_le_bytes();
            [body.as_slice(), &checksum].concat()
        }
        _ => {
            let mut text: Vec<u8> = noise(LENGTH);
            // numbers near the edge of what is known
            let edge = [(0, drawn % 12), (45, drawn % 9), (52, other % 17)];
            edge.into_iter().for_each(|(at, number)| text[at] = u8::try_from(number).unwrap());
            text.extend(if drawn % 64 == 0 { [15; 16] } else { PAD });
            let iv = keys.nonces.next();
            let nonce = iv.first_chunk::<12>().unwrap();
            let tag =
                keys.cipher.encrypt_inout_detached(nonce.into(), &[], text.as_mut_slice().into()).unwrap();
            let body = [iv.as_slice(), &text, &tag].concat();
            let checksum = crc32c::crc32c_append(keys.magic, &body).to_le_bytes();
            [body.as_slice(), &checksum].concat()
        }
    };
    datagram.extend_from_slice(&bytes);
}

#[test]
fn a_million_datagrams_of_all_sorts_are_refused_or_read() {
    let (keys, mut next, mut datagram) = (keys(), numbers(), Vec::new());
    let valid = keys.seal(&told()).unwrap();
    let mut counts = [0_u32; 5];
    for round in 0..1_000_000_u32 {
        anything(round, &keys, &valid, &mut next, &mut datagram);
        let at = match keys.open(&datagram) {
            Ok(message) => {
                if round % 64 == 31 {
                    assert_eq!(keys.open(&keys.seal(&message).unwrap()), Ok(message));
                }
                0
            }
            Err(Refusal::Length) => 1,
            Err(Refusal::Checksum) => 2,
            Err(Refusal::Forged) => 3,
            Err(Refusal::Unknown) => 4,
        };
        counts[at] += 1;
    }
    let [read, length, checksum, forged, unknown] = counts;
    println!(
        "1000000 datagrams: read {read}, length {length}, checksum {checksum}, forged {forged}, unknown {unknown}"
    );
    assert!(counts.iter().all(|count| *count > 1000), "{counts:?}");
}

proptest! {
    #[test]
    fn what_is_sealed_opens(message in any_message()) {
        let keys = keys();
        prop_assert_eq!(keys.open(&keys.seal(&message).unwrap()), Ok(message));
        prop_assert_eq!(keys.open_token(&keys.seal_token(&message).unwrap()), Ok(message));
    }

    #[test]
    fn no_token_panics(token: String, cut in 0..TOKEN + 4) {
        prop_assert!(keys().open_token(&token).is_err());
        let near: String = VECTOR_TOKEN.chars().cycle().take(cut).collect();
        prop_assert_eq!(keys().open_token(&near).is_ok(), cut == TOKEN);
    }
}
