//! Digests in any algorithm, as clients, indexes of packages and checksum files state them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Digest as _;
use subtle::ConstantTimeEq as _;

use super::{Digest, DigestError, hex, unhex};

/// The longest value, in bytes.
const LONGEST: usize = 64;

/// A hash algorithm that may be stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// CRC-32 as in zip and gzip: compared, never trusted.
    Crc32,
    /// CRC-32C (Castagnoli): compared, never trusted.
    Crc32c,
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
    /// SHA-512/256 (FIPS 180-4 section 5.3.6), which is not the beginning of a SHA-512.
    Sha512_256,
    /// SHA3-256.
    Sha3_256,
    /// SHA3-384.
    Sha3_384,
    /// SHA3-512.
    Sha3_512,
    /// BLAKE2b, 512 bits.
    Blake2b,
    /// BLAKE2b of 256 bits, which is not the beginning of the longer one.
    Blake2b256,
    /// BLAKE3, 256 bits.
    Blake3,
}

/// A digest as somebody stated it: algorithm and value.
#[derive(Clone, Copy)]
pub struct Stated {
    algorithm: Algorithm,
    /// The value, and zeros behind it.
    bytes: [u8; LONGEST],
}

/// Names a [`Stated`] in a fixed length: what neighbours ask for, whatever the algorithm.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatedKey([u8; 32]);

impl Algorithm {
    /// All of them with name and length; of equal lengths bare hexadecimal means the first `true`.
    const ALL: [(Self, &'static str, usize, bool); 14] = [
        (Self::Crc32, "crc32", 4, false),
        (Self::Crc32c, "crc32c", 4, false),
        (Self::Md5, "md5", 16, true),
        (Self::Sha1, "sha1", 20, true),
        (Self::Sha256, "sha256", 32, true),
        (Self::Sha384, "sha384", 48, true),
        (Self::Sha512, "sha512", 64, true),
        (Self::Sha512_256, "sha512-256", 32, false),
        (Self::Sha3_256, "sha3-256", 32, false),
        (Self::Sha3_384, "sha3-384", 48, false),
        (Self::Sha3_512, "sha3-512", 64, false),
        (Self::Blake2b, "blake2b", 64, false),
        (Self::Blake2b256, "blake2b-256", 32, false),
        (Self::Blake3, "blake3", 32, false),
    ];

    /// Other names in use, without their hyphens.
    const ALSO: [(&'static str, Self); 2] = [("blake2b512", Self::Blake2b), ("sha", Self::Sha1)];

    /// The algorithm of this name in any case, with or without hyphens (`SHA-512/256`, `sha512256`, `SHA3_256`).
    pub fn named(name: &str) -> Result<Self, DigestError> {
        let plain = |name: &str| name.to_ascii_lowercase().replace(['-', '_', '/'], "");
        let (name, all) = (plain(name), Self::ALL.iter().map(|(it, own, ..)| (plain(own), *it)));
        let also = Self::ALSO.iter().map(|(own, it)| ((*own).to_owned(), *it));
        all.chain(also).find(|(own, _)| *own == name).map(|(_, it)| it).ok_or(DigestError::Algorithm)
    }

    /// The name as in `algorithm:hex`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The length of its values in bytes.
    pub fn length(self) -> usize {
        self.row().2
    }

    /// Whether bytes from a peer may be accepted against it.
    pub const fn is_strong(self) -> bool {
        !matches!(self, Self::Crc32 | Self::Crc32c | Self::Md5 | Self::Sha1)
    }

    fn row(self) -> &'static (Self, &'static str, usize, bool) {
        const NONE: (Algorithm, &str, usize, bool) = (Algorithm::Sha256, "sha256", 32, true);
        Self::ALL.iter().find(|(it, ..)| *it == self).unwrap_or(&NONE)
    }
}

impl Stated {
    /// An algorithm with the bytes of a value, if they are as many as it has.
    pub fn new(algorithm: Algorithm, value: &[u8]) -> Result<Self, DigestError> {
        let mut bytes = [0; LONGEST];
        let room = bytes.get_mut(..value.len()).filter(|_| value.len() == algorithm.length());
        room.ok_or(DigestError::Value)?.copy_from_slice(value);
        Ok(Self { algorithm, bytes })
    }

    /// Reads `algorithm:hex`, or bare hex whose length tells the algorithm.
    pub fn parse(text: &str) -> Result<Self, DigestError> {
        if let Some((name, value)) = text.split_once(':') {
            return Self::new(Algorithm::named(name)?, &unhex(value)?);
        }
        let bytes = unhex(text)?;
        let of_length = |(_, _, length, bare): &&(_, _, usize, bool)| *length == bytes.len() && *bare;
        let (algorithm, ..) = Algorithm::ALL.iter().find(of_length).ok_or(DigestError::Value)?;
        Self::new(*algorithm, &bytes)
    }

    /// The algorithm.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The value.
    pub fn value(&self) -> &[u8] {
        self.bytes.get(..self.algorithm.length()).unwrap_or_default()
    }

    /// Whether bytes from a peer may be accepted against it.
    pub const fn is_strong(&self) -> bool {
        self.algorithm.is_strong()
    }

    /// The SHA-256 value, if that is what was stated.
    pub fn sha256(&self) -> Option<Digest> {
        let value = self.bytes.first_chunk().filter(|_| self.algorithm == Algorithm::Sha256);
        value.map(|value| Digest(*value))
    }

    /// Its name of fixed length: SHA-256 of a label, the algorithm's name and the value.
    pub fn key(&self) -> StatedKey {
        let mut hasher = sha2::Sha256::new();
        for part in [b"larder stated v1".as_slice(), &[0], self.algorithm.name().as_bytes(), &[0]] {
            hasher.update(part);
        }
        hasher.update(self.value());
        StatedKey(hasher.finalize().into())
    }

    /// A hasher of its algorithm.
    pub fn hasher(&self) -> StatedHasher {
        StatedHasher::new(self.algorithm)
    }

    /// Whether what `hasher` saw has this digest.
    pub fn matches(&self, hasher: StatedHasher) -> bool {
        hasher.finish() == *self
    }
}

impl PartialEq for Stated {
    fn eq(&self, other: &Self) -> bool {
        self.algorithm == other.algorithm && bool::from(self.bytes.ct_eq(&other.bytes))
    }
}

impl Eq for Stated {}

impl std::hash::Hash for Stated {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.algorithm.hash(state);
        self.value().hash(state);
    }
}

impl From<Digest> for Stated {
    fn from(digest: Digest) -> Self {
        let mut bytes = [0; LONGEST];
        if let Some(start) = bytes.first_chunk_mut() {
            *start = digest.0;
        }
        Self { algorithm: Algorithm::Sha256, bytes }
    }
}

impl fmt::Display for Stated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.name(), hex(self.value()))
    }
}

impl fmt::Debug for Stated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Stated {
    type Err = DigestError;

    /// Reads `algorithm:hex`; bare hexadecimal is no digest here.
    fn from_str(text: &str) -> Result<Self, DigestError> {
        if text.contains(':') { Self::parse(text) } else { Err(DigestError::Algorithm) }
    }
}

impl Serialize for Stated {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Stated {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl StatedKey {
    /// From its 32 bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for StatedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatedKey({})", hex(&self.0))
    }
}

/// A running hash of one algorithm.
#[derive(Clone)]
pub struct StatedHasher {
    algorithm: Algorithm,
    state: State,
}

/// The two checksums are kept as they stand; one variant for each length of the others' state would say no more.
#[derive(Clone)]
enum State {
    Crc32(crc32fast::Hasher),
    Crc32c(u32),
    Md5(md5::Md5),
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
    Sha384(sha2::Sha384),
    Sha512(sha2::Sha512),
    Sha512_256(sha2::Sha512_256),
    Sha3_256(sha3::Sha3_256),
    Sha3_384(sha3::Sha3_384),
    Sha3_512(sha3::Sha3_512),
    Blake2b(blake2::Blake2b512),
    Blake2b256(blake2::Blake2b256),
    Blake3(Box<blake3::Hasher>),
}

/// One line for each algorithm of the family that shares a trait.
macro_rules! each {
    ($state:expr, $hash:ident => $of_trait:expr, $crc32:pat => $of_crc32:expr, $crc32c:pat => $of_crc32c:expr,
     $blake3:pat => $of_blake3:expr) => {
        match $state {
            State::Crc32($crc32) => $of_crc32,
            State::Crc32c($crc32c) => $of_crc32c,
            State::Blake3($blake3) => $of_blake3,
            State::Md5($hash) => $of_trait,
            State::Sha1($hash) => $of_trait,
            State::Sha256($hash) => $of_trait,
            State::Sha384($hash) => $of_trait,
            State::Sha512($hash) => $of_trait,
            State::Sha512_256($hash) => $of_trait,
            State::Sha3_256($hash) => $of_trait,
            State::Sha3_384($hash) => $of_trait,
            State::Sha3_512($hash) => $of_trait,
            State::Blake2b($hash) => $of_trait,
            State::Blake2b256($hash) => $of_trait,
        }
    };
}

impl StatedHasher {
    /// Of nothing yet.
    pub fn new(algorithm: Algorithm) -> Self {
        let state = match algorithm {
            Algorithm::Crc32 => State::Crc32(crc32fast::Hasher::new()),
            Algorithm::Crc32c => State::Crc32c(0),
            Algorithm::Md5 => State::Md5(md5::Md5::new()),
            Algorithm::Sha1 => State::Sha1(sha1::Sha1::new()),
            Algorithm::Sha256 => State::Sha256(sha2::Sha256::new()),
            Algorithm::Sha384 => State::Sha384(sha2::Sha384::new()),
            Algorithm::Sha512 => State::Sha512(sha2::Sha512::new()),
            Algorithm::Sha512_256 => State::Sha512_256(sha2::Sha512_256::new()),
            Algorithm::Sha3_256 => State::Sha3_256(sha3::Sha3_256::new()),
            Algorithm::Sha3_384 => State::Sha3_384(sha3::Sha3_384::new()),
            Algorithm::Sha3_512 => State::Sha3_512(sha3::Sha3_512::new()),
            Algorithm::Blake2b => State::Blake2b(blake2::Blake2b512::new()),
            Algorithm::Blake2b256 => State::Blake2b256(blake2::Blake2b256::new()),
            Algorithm::Blake3 => State::Blake3(Box::new(blake3::Hasher::new())),
        };
        Self { algorithm, state }
    }

    /// Which algorithm it is of.
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        each!(&mut self.state, hash => hash.update(bytes),
            hash => hash.update(bytes),
            sum => *sum = crc32c::crc32c_append(*sum, bytes),
            hash => { hash.update(bytes); });
    }

    /// The value of all that was added.
    pub fn finish(self) -> Stated {
        let mut bytes = [0; LONGEST];
        let mut put = |value: &[u8]| bytes.iter_mut().zip(value).for_each(|(to, from)| *to = *from);
        each!(self.state, hash => put(&hash.finalize()),
            hash => put(&hash.finalize().to_be_bytes()),
            sum => put(&sum.to_be_bytes()),
            hash => put(hash.finalize().as_bytes()));
        Stated { algorithm: self.algorithm, bytes }
    }
}

impl fmt::Debug for StatedHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatedHasher({})", self.algorithm.name())
    }
}

#[cfg(test)]
mod tests;
