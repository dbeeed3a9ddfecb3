//! Digests: SHA-256, the address of everything stored, and the other algorithms that clients state.
//!
//! [`Digest`] is always SHA-256. [`Stated`] is an algorithm with a value as somebody wrote it down; a stated
//! SHA-256 is a [`Digest`]. A [`Hasher`] reckons SHA-256 and, where a value of another algorithm was stated, that
//! one beside it. Parsing is strict (exact length, hexadecimal) and says what was wrong; comparing takes the same
//! time whatever the bytes are.

mod stated;

pub use stated::{Algorithm, Stated, StatedHasher, StatedKey};

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Digest as _;
use subtle::ConstantTimeEq as _;

/// A SHA-256 value. The default one is that of nothing known: it stands where a whole is made before its name is.
#[derive(Clone, Copy, Default, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// Why a digest could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// Not an algorithm we know.
    #[error(
        "unknown algorithm: use sha256, sha384, sha512, sha512-256, sha3-256, sha3-384, sha3-512, blake2b, \
         blake2b-256, blake3, md5, sha1, crc32 or crc32c"
    )]
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

/// SHA-256 of a stream, and another algorithm beside it where one was asked for; a clone goes on from the same
/// point.
#[derive(Clone)]
pub struct Hasher {
    state: sha2::Sha256,
    length: u64,
    beside: Option<StatedHasher>,
}

impl Hasher {
    /// Of nothing yet.
    pub fn new() -> Self {
        Self { state: sha2::Sha256::new(), length: 0, beside: None }
    }

    /// Of nothing yet, with another algorithm beside SHA-256.
    pub fn beside(algorithm: Option<Algorithm>) -> Self {
        let other = algorithm.filter(|algorithm| *algorithm != Algorithm::Sha256);
        Self { beside: other.map(StatedHasher::new), ..Self::new() }
    }

    /// The other algorithm that is reckoned.
    pub fn algorithm(&self) -> Option<Algorithm> {
        self.beside.as_ref().map(StatedHasher::algorithm)
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
        self.length += bytes.len() as u64;
        if let Some(beside) = &mut self.beside {
            beside.update(bytes);
        }
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

    /// What was reckoned of all that was added: SHA-256, and the value of the other algorithm.
    pub fn found(&self) -> Found {
        Found { digest: self.so_far(), beside: self.beside.clone().map(StatedHasher::finish) }
    }
}

/// The digests of the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Their address.
    pub digest: Digest,
    /// Their value in another algorithm, where one was asked for.
    pub beside: Option<Stated>,
}

impl Found {
    /// Whether these are the bytes that somebody stated; false where that algorithm was not reckoned.
    pub fn is(&self, stated: &Stated) -> bool {
        match stated.sha256() {
            Some(digest) => digest == self.digest,
            None => self.beside == Some(*stated),
        }
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

/// Lower-case hexadecimal of any bytes.
pub fn hex(bytes: &[u8]) -> String {
    let mut digits = Vec::with_capacity(bytes.len() * 2);
    push_hex(bytes, &mut digits);
    String::from_utf8(digits).unwrap_or_default()
}

/// Appends bytes in lower-case hexadecimal.
pub fn push_hex(bytes: &[u8], to: &mut Vec<u8>) {
    let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
    to.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]));
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
    fn a_clone_of_a_hasher_goes_on_alone() {
        let mut hasher = Hasher::new();
        hasher.update(b"a");
        let fork = hasher.so_far();
        hasher.update(b"bc");
        assert_eq!(fork, Digest::of(b"a"));
        assert_eq!(hasher.finish(), Digest::of(b"abc"));
    }

    #[test]
    fn one_digest_is_no_other_and_is_written_the_same_everywhere() {
        let (one, other) = (Digest::of(b"abc"), Digest::of(b"abd"));
        assert!(one == Digest::of(b"abc") && one != other);
        let kept = std::collections::HashSet::from([one, other, one]);
        assert!(kept.len() == 2 && kept.contains(&other));
        let hashed = |digest: &Digest| {
            use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
            BuildHasherDefault::<DefaultHasher>::default().hash_one(digest)
        };
        assert_ne!(hashed(&one), hashed(&other), "a table of them is no list");
        assert_eq!(format!("{one:?}"), format!("sha256:{ABC}"));
        let json = serde_json::to_string(&one).unwrap();
        assert_eq!(json, format!("\"sha256:{ABC}\""));
        assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), one);
        assert!(serde_json::from_str::<Digest>("\"sha256:00\"").is_err());
    }

    #[test]
    fn a_hasher_knows_its_length_and_its_algorithm() {
        let mut hasher = Hasher::beside(Some(Algorithm::Sha512));
        assert_eq!((hasher.length(), hasher.algorithm()), (0, Some(Algorithm::Sha512)));
        hasher.update(b"abc");
        hasher.update(b"de");
        assert_eq!(hasher.length(), 5);
        assert!(format!("{hasher:?}").contains("length: 5"));
    }

    #[test]
    fn another_algorithm_is_reckoned_beside_and_survives_a_clone() {
        let mut hasher = Hasher::beside(Some(Algorithm::Md5));
        hasher.update(b"a");
        let mut fork = hasher.clone();
        fork.update(b"bc");
        let found = fork.found();
        assert!(found.is(&Stated::parse("md5:900150983cd24fb0d6963f7d28e17f72").unwrap()));
        assert!(found.is(&Digest::of(b"abc").into()));
        assert!(!found.is(&Stated::parse(&format!("sha1:{}", "00".repeat(20))).unwrap()));
        assert_eq!(Hasher::beside(Some(Algorithm::Sha256)).algorithm(), None);
    }

    proptest! {
        #[test]
        fn hex_round_trips(bytes: Vec<u8>) {
            prop_assert_eq!(unhex(&hex(&bytes)).unwrap(), bytes);
        }

        #[test]
        fn no_text_panics(text: String) {
            let _unused = (text.parse::<Digest>(), Digest::from_repr_digest(&text));
        }
    }
}
