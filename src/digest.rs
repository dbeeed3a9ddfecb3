//! Digests: SHA-256, the address of everything stored, and the other algorithms that clients state.
//!
//! [`Digest`] is always SHA-256. [`Stated`] is an algorithm with a value as somebody wrote it down; a stated
//! SHA-256 is a [`Digest`]. Parsing is strict (exact length, hexadecimal) and says what was wrong; comparing
//! takes the same time whatever the bytes are.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Digest as _;
use subtle::ConstantTimeEq as _;

/// A SHA-256 value.
#[derive(Clone, Copy, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// A hash algorithm that a client may state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// MD5, 128 bits: compared, never trusted.
    Md5,
    /// SHA-1, 160 bits: compared, never trusted.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

/// A digest as somebody stated it: algorithm and value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stated {
    algorithm: Algorithm,
    bytes: Vec<u8>,
}

/// Why a digest could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// Not an algorithm we know.
    #[error("unknown algorithm: use md5, sha1, sha256, sha384 or sha512")]
    Algorithm,
    /// Not hexadecimal, or not of the algorithm's length.
    #[error("not a hexadecimal value of the algorithm's length")]
    Value,
}

impl Digest {
    /// From the 32 bytes of the value.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes of the value.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Of bytes at hand.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(bytes);
        hasher.finish()
    }

    /// 64 lower-case hexadecimal characters.
    pub fn hex(&self) -> String {
        hex(&self.0)
    }

    /// From 64 hexadecimal characters.
    pub fn from_hex(text: &str) -> Result<Self, DigestError> {
        let bytes = unhex(text)?;
        bytes.try_into().map(Self).map_err(|_ignored: Vec<u8>| DigestError::Value)
    }

    /// The value of a `Repr-Digest` field (RFC 9530 section 3): `sha-256=:<base64>:`.
    pub fn repr_digest(&self) -> String {
        format!("sha-256=:{}:", BASE64.encode(self.0))
    }

    /// Reads the `sha-256` member of a `Repr-Digest` field; none if it has none or is malformed.
    pub fn from_repr_digest(field: &str) -> Option<Self> {
        let member = field.split(',').map(str::trim).find_map(|m| m.strip_prefix("sha-256=:"))?;
        let bytes = BASE64.decode(member.split(':').next()?).ok()?;
        bytes.try_into().map(Self).ok()
    }
}

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Digest {}

impl std::hash::Hash for Digest {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    /// Reads `sha256:<64 hex>`.
    fn from_str(text: &str) -> Result<Self, DigestError> {
        let (algorithm, value) = text.split_once(':').ok_or(DigestError::Algorithm)?;
        if !algorithm.eq_ignore_ascii_case("sha256") {
            return Err(DigestError::Algorithm);
        }
        Self::from_hex(value)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// SHA-256 of a stream; a clone goes on from the same point.
#[derive(Clone)]
pub struct Hasher {
    state: sha2::Sha256,
    length: u64,
}

impl Hasher {
    /// Of nothing yet.
    pub fn new() -> Self {
        Self { state: sha2::Sha256::new(), length: 0 }
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
        self.length += bytes.len() as u64;
    }

    /// How many bytes were added.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// The digest of all that was added.
    pub fn finish(self) -> Digest {
        Digest(self.state.finalize().into())
    }

    /// The digest of what was added so far; more may follow.
    pub fn so_far(&self) -> Digest {
        self.clone().finish()
    }
}

impl Default for Hasher {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hasher").field("length", &self.length).finish_non_exhaustive()
    }
}

impl Algorithm {
    const ALL: [(Self, &'static str, usize); 5] = [
        (Self::Md5, "md5", 16),
        (Self::Sha1, "sha1", 20),
        (Self::Sha256, "sha256", 32),
        (Self::Sha384, "sha384", 48),
        (Self::Sha512, "sha512", 64),
    ];

    /// The name as in `algorithm:hex`.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(a, _, _)| *a == self).map_or("", |(_, name, _)| name)
    }

    /// Whether bytes from a peer may be accepted against it.
    pub const fn is_strong(self) -> bool {
        matches!(self, Self::Sha256 | Self::Sha384 | Self::Sha512)
    }
}

impl Stated {
    /// Reads `algorithm:hex`, or bare hex whose length tells the algorithm.
    pub fn parse(text: &str) -> Result<Self, DigestError> {
        let (algorithm, bytes) = match text.split_once(':') {
            Some((name, value)) => {
                let name = name.to_ascii_lowercase().replace('-', "");
                let found =
                    Algorithm::ALL.iter().find(|(_, n, _)| *n == name).ok_or(DigestError::Algorithm)?;
                let bytes = unhex(value)?;
                if bytes.len() != found.2 {
                    return Err(DigestError::Value);
                }
                (found.0, bytes)
            }
            None => {
                let bytes = unhex(text)?;
                let found = Algorithm::ALL.iter().find(|(_, _, n)| *n == bytes.len());
                (found.ok_or(DigestError::Value)?.0, bytes)
            }
        };
        Ok(Self { algorithm, bytes })
    }

    /// The algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The SHA-256 value, if that is what was stated.
    pub fn sha256(&self) -> Option<Digest> {
        if self.algorithm != Algorithm::Sha256 {
            return None;
        }
        self.bytes.as_slice().try_into().ok().map(Digest)
    }

    /// A hasher of its algorithm.
    pub fn hasher(&self) -> StatedHasher {
        match self.algorithm {
            Algorithm::Md5 => StatedHasher::Md5(md5::Md5::new()),
            Algorithm::Sha1 => StatedHasher::Sha1(sha1::Sha1::new()),
            Algorithm::Sha256 => StatedHasher::Sha256(sha2::Sha256::new()),
            Algorithm::Sha384 => StatedHasher::Sha384(sha2::Sha384::new()),
            Algorithm::Sha512 => StatedHasher::Sha512(sha2::Sha512::new()),
        }
    }

    /// Whether what `hasher` saw has this digest.
    pub fn matches(&self, hasher: StatedHasher) -> bool {
        hasher.finish().ct_eq(&self.bytes).into()
    }
}

impl From<Digest> for Stated {
    fn from(digest: Digest) -> Self {
        Self { algorithm: Algorithm::Sha256, bytes: digest.0.to_vec() }
    }
}

impl fmt::Display for Stated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.name(), hex(&self.bytes))
    }
}

/// A running hash of a [`Stated`] digest's algorithm.
#[derive(Clone)]
#[expect(missing_docs, reason = "one variant an algorithm, named like it")]
pub enum StatedHasher {
    Md5(md5::Md5),
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
    Sha384(sha2::Sha384),
    Sha512(sha2::Sha512),
}

impl StatedHasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Md5(h) => h.update(bytes),
            Self::Sha1(h) => h.update(bytes),
            Self::Sha256(h) => h.update(bytes),
            Self::Sha384(h) => h.update(bytes),
            Self::Sha512(h) => h.update(bytes),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Self::Md5(h) => h.finalize().to_vec(),
            Self::Sha1(h) => h.finalize().to_vec(),
            Self::Sha256(h) => h.finalize().to_vec(),
            Self::Sha384(h) => h.finalize().to_vec(),
            Self::Sha512(h) => h.finalize().to_vec(),
        }
    }
}

impl fmt::Debug for StatedHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StatedHasher")
    }
}

/// Lower-case hexadecimal of any bytes.
pub fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits.filter_map(|nibble| char::from_digit(u32::from(nibble), 16)).collect()
}

/// Bytes from hexadecimal of either case.
pub fn unhex(text: &str) -> Result<Vec<u8>, DigestError> {
    let nibble =
        |c: u8| char::from(c).to_digit(16).and_then(|d| u8::try_from(d).ok()).ok_or(DigestError::Value);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return Err(DigestError::Value);
    }
    pairs.iter().map(|[high, low]| Ok(nibble(*high)? << 4 | nibble(*low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn known_answer_in_every_notation() {
        let digest = Digest::of(b"abc");
        assert_eq!(digest.hex(), ABC);
        assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
        assert_eq!(Digest::from_repr_digest(&digest.repr_digest()), Some(digest));
        assert_eq!(Stated::parse(ABC).unwrap().sha256(), Some(digest));
    }

    #[test]
    fn the_length_of_bare_hex_tells_the_algorithm() {
        for (length, name) in [(32, "md5"), (40, "sha1"), (64, "sha256"), (96, "sha384"), (128, "sha512")] {
            let stated = Stated::parse(&"0a".repeat(length / 2)).unwrap();
            assert_eq!(stated.algorithm().name(), name);
            assert_eq!(Stated::parse(&stated.to_string()).unwrap(), stated);
        }
        for wrong in ["", "abc", "sha256:00", "crc32:00000000", "zz"] {
            assert!(Stated::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn stated_digests_are_compared_by_their_own_algorithm() {
        for stated in
            ["md5:900150983cd24fb0d6963f7d28e17f72", "sha1:a9993e364706816aba3e25717850c26c9cd0d89d"]
        {
            let stated = Stated::parse(stated).unwrap();
            let mut hasher = stated.hasher();
            hasher.update(b"abc");
            assert!(stated.matches(hasher));
            assert!(!stated.matches(stated.hasher()));
        }
    }

    #[test]
    fn a_clone_of_a_hasher_goes_on_alone() {
        let mut hasher = Hasher::new();
        hasher.update(b"a");
        let fork = hasher.so_far();
        hasher.update(b"bc");
        assert_eq!(fork, Digest::of(b"a"));
        assert_eq!(hasher.finish(), Digest::of(b"abc"));
    }

    proptest! {
        #[test]
        fn hex_round_trips(bytes: Vec<u8>) {
            prop_assert_eq!(unhex(&hex(&bytes)).unwrap(), bytes);
        }

        #[test]
        fn no_text_panics(text: String) {
            let _unused = (Stated::parse(&text), text.parse::<Digest>(), Digest::from_repr_digest(&text));
        }
    }
}
