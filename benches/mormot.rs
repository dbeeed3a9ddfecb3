//! How fast frames of the mORMot network are sealed and opened on one core, beside the cipher alone on as many bytes
//! in the same run, and that neither takes memory.
//!
//! `cargo bench --bench mormot` prints frames a second, the best of many short rounds of each, taken in turn.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, reads the real clock and ends by panicking"
)]

use std::alloc::System;
use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::Instant;

use aes_gcm::aead::AeadInOut as _;
use aes_gcm::{Aes128Gcm, KeyInit as _};
use larder::mormot::{Algorithm, FRAME, Hardware, Hash, Keys, Kind, Message, Secret};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const ROUNDS: usize = 200;
const IN_ONE: u32 = 5_000;
/// The message and the block that says nothing.
const ENCIPHERED: usize = 208;

fn message() -> Message {
    Message {
        kind: Kind::Request,
        seq: 1,
        uuid: [7; 16],
        os: [8, 1, 2, 6],
        address: Ipv4Addr::new(192, 168, 1, 10),
        to: Ipv4Addr::new(192, 168, 1, 255),
        mask: Ipv4Addr::new(255, 255, 255, 0),
        broadcast: Ipv4Addr::new(192, 168, 1, 255),
        speed: 1000,
        hardware: Hardware::Ethernet,
        timestamp: 0x11e1_a300,
        connections: 3,
        hash: Hash::of(Algorithm::Sha256, &[9; 32]).unwrap(),
        size: 123_456_789,
        start: 1000,
        end: 0,
        opaque: 0,
        padding: (0, [3; 42]),
    }
}

/// Runs a second.
fn rate(work: &mut dyn FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..IN_ONE {
        work();
    }
    f64::from(IN_ONE) / start.elapsed().as_secs_f64()
}

fn main() {
    let keys = Keys::derive(&Secret::parse(b"a secret of a network of peers").unwrap()).unwrap();
    let (message, cipher, nonce) = (message(), Aes128Gcm::new((&[5; 16]).into()), [1; 12]);
    let sealed = keys.seal(&message).unwrap();
    let (mut frame, mut plain) = ([0; FRAME], [0_u8; ENCIPHERED]);
    let mut enciphered = [6_u8; ENCIPHERED];
    let tag = cipher.encrypt_inout_detached((&nonce).into(), &[], enciphered.as_mut_slice().into()).unwrap();

    let mut encipher = || {
        let text = black_box(&mut plain).as_mut_slice().into();
        black_box(cipher.encrypt_inout_detached((&nonce).into(), &[], text).unwrap());
    };
    let mut decipher = || {
        let mut text = enciphered;
        let within = black_box(&mut text).as_mut_slice().into();
        cipher.decrypt_inout_detached((&nonce).into(), &[], within, &tag).unwrap();
        black_box(text);
    };
    let mut seal = || keys.seal_into(black_box(&message), black_box(&mut frame)).unwrap();
    let mut open = || {
        black_box(keys.open(black_box(&sealed)).unwrap());
    };

    let region = Region::new(MEMORY);
    let mut best = [0_f64; 4];
    for _ in 0..ROUNDS {
        let all: [&mut dyn FnMut(); 4] = [&mut encipher, &mut seal, &mut decipher, &mut open];
        for (best, work) in best.iter_mut().zip(all) {
            *best = best.max(rate(work));
        }
    }
    let taken = region.change().allocations;
    let [encipher, seal, decipher, open] = best;
    println!("a core, frames a second     frame       cipher alone   ratio");
    println!("encode                 {seal:>10.0}       {encipher:>10.0}    {:.2}", seal / encipher);
    println!("decode                 {open:>10.0}       {decipher:>10.0}    {:.2}", open / decipher);
    println!("allocations in {} frames: {taken}", u64::from(IN_ONE) * ROUNDS as u64 * 2);
    assert_eq!(taken, 0);
}
