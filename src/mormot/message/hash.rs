//! What things are called: an algorithm and its value in a field of 64 bytes.

use crate::digest::{self, Stated};

/// How a value was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
#[repr(u8)]
pub enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
    Sha512To256,
    Sha3To256,
    Sha3To512,
    Sha224,
    Sha3To224,
    Sha3To384,
    Shake128,
    Shake256,
    /// The first 128 bits of a SHA-256.
    Sha256To128,
    /// The first 160 bits of a SHA-256.
    Sha256To160,
}

/// The name of a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash {
    /// How it was computed.
    pub algorithm: Algorithm,
    /// The value, then zeros.
    pub bytes: [u8; 64],
}

impl Algorithm {
    /// Each with the bytes of its values.
    const ALL: [(Self, usize); 15] = [
        (Self::Md5, 16),
        (Self::Sha1, 20),
        (Self::Sha256, 32),
        (Self::Sha384, 48),
        (Self::Sha512, 64),
        (Self::Sha512To256, 32),
        (Self::Sha3To256, 32),
        (Self::Sha3To512, 64),
        (Self::Sha224, 28),
        (Self::Sha3To224, 28),
        (Self::Sha3To384, 48),
        (Self::Shake128, 16),
        (Self::Shake256, 32),
        (Self::Sha256To128, 16),
        (Self::Sha256To160, 20),
    ];

    pub(super) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).map(|(algorithm, _)| *algorithm)
    }

    fn length(self) -> usize {
        Self::ALL.iter().find(|(algorithm, _)| *algorithm == self).map_or(0, |(_, length)| *length)
    }
}

impl Hash {
    /// No name, as in a ping.
    pub const NONE: Self = Self { algorithm: Algorithm::Md5, bytes: [0; 64] };

    /// By this algorithm; none if the value has another length.
    pub fn of(algorithm: Algorithm, value: &[u8]) -> Option<Self> {
        let mut bytes = [0; 64];
        (value.len() == algorithm.length()).then_some(())?;
        bytes.get_mut(..value.len())?.copy_from_slice(value);
        Some(Self { algorithm, bytes })
    }

    /// The value.
    pub fn value(&self) -> &[u8] {
        self.bytes.get(..self.algorithm.length()).unwrap_or_default()
    }

    /// What is stated in an algorithm that the protocol knows.
    pub fn of_stated(stated: &Stated) -> Option<Self> {
        let (algorithm, _) = SHARED.iter().find(|(_, shared)| *shared == stated.algorithm())?;
        Self::of(*algorithm, stated.value())
    }

    /// As a statement, in an algorithm that is known outside the protocol.
    pub fn stated(&self) -> Option<Stated> {
        let (_, shared) = SHARED.iter().find(|(algorithm, _)| *algorithm == self.algorithm)?;
        Stated::new(*shared, self.value()).ok()
    }
}

/// Algorithms that are known outside the protocol too.
const SHARED: [(Algorithm, digest::Algorithm); 9] = [
    (Algorithm::Md5, digest::Algorithm::Md5),
    (Algorithm::Sha1, digest::Algorithm::Sha1),
    (Algorithm::Sha256, digest::Algorithm::Sha256),
    (Algorithm::Sha384, digest::Algorithm::Sha384),
    (Algorithm::Sha512, digest::Algorithm::Sha512),
    (Algorithm::Sha512To256, digest::Algorithm::Sha512_256),
    (Algorithm::Sha3To256, digest::Algorithm::Sha3_256),
    (Algorithm::Sha3To384, digest::Algorithm::Sha3_384),
    (Algorithm::Sha3To512, digest::Algorithm::Sha3_512),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_lengths_are_those_of_the_page() {
        let lengths = [16, 20, 32, 48, 64, 32, 32, 64, 28, 28, 48, 16, 32, 16, 20];
        for (number, length) in (0..).zip(lengths) {
            let algorithm = Algorithm::from_number(number).unwrap();
            assert_eq!((algorithm as u8, algorithm.length()), (number, length));
            assert!(
                Hash::of(algorithm, &vec![7; length]).is_some_and(|hash| hash.value() == vec![7; length])
            );
            assert!(Hash::of(algorithm, &vec![7; length + 1]).is_none());
        }
        assert!(Algorithm::from_number(15).is_none());
    }

    #[test]
    fn a_statement_comes_back() {
        for (algorithm, shared) in SHARED {
            let stated = Stated::new(shared, &vec![5; algorithm.length()]).unwrap();
            let hash = Hash::of_stated(&stated).unwrap();
            assert_eq!((hash.algorithm, hash.stated()), (algorithm, Some(stated)));
        }
        let unknown = Stated::new(digest::Algorithm::Blake3, &[5; 32]).unwrap();
        assert_eq!(Hash::of_stated(&unknown), None);
        assert_eq!(Hash::of(Algorithm::Sha256To128, &[5; 16]).unwrap().stated(), None);
    }
}
