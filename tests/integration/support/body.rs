//! Bodies from a seed: any slice can be computed again, so no test keeps a reference file.
//!
//! [`Rng`] is the one source of chance in the suite; it prints its seed, and `LARDER_TEST_SEED` replays it.

use std::fmt::Write as _;
use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::Digest as _;

/// One mebibyte.
pub const MIB: u64 = 1 << 20;

/// The bytes `range` of the endless body with this seed: what BLAKE3 gives for it, which any place can be asked of
/// and which is quick in a build without optimisations too.
pub fn slice(seed: u64, range: Range<u64>) -> Vec<u8> {
    let mut body = blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof();
    body.set_position(range.start);
    let mut bytes = vec![0; (range.end - range.start) as usize];
    body.fill(&mut bytes);
    bytes
}

/// SHA-256 in lower-case hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    sha2::Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

/// SplitMix64.
fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A seeded generator of chance: which byte to flip, when to kill.
pub struct Rng(u64);

impl Rng {
    /// A generator for the test of this name; the seed is printed so that a failure can be replayed.
    pub fn new(name: &str) -> Self {
        let fresh = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let seed = std::env::var("LARDER_TEST_SEED").ok().and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or_else(fresh);
        println!("{name}: replay with LARDER_TEST_SEED={seed}");
        Self(seed)
    }

    /// The next number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0) % bound
    }
}

#[test]
fn a_slice_is_the_same_bytes_wherever_it_is_cut() {
    let whole = slice(7, 0..1000);
    assert_eq!(whole.len(), 1000);
    for (from, to) in [(0, 0), (0, 1), (3, 11), (8, 16), (7, 999), (992, 1000)] {
        assert_eq!(slice(7, from..to), whole[from as usize..to as usize], "{from}..{to}");
    }
    assert_ne!(slice(8, 0..64), whole[..64]);
}

#[test]
fn the_digest_is_the_one_everybody_computes() {
    assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
