//! The hashes of a thing's pieces: a quick one for each mebibyte, so that a part can be judged before the whole is
//! there. They say what somebody had, not what is right: that is for whoever compares them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::digest::{hex, unhex};

/// The length of a piece; the last one may be shorter.
pub const PIECE_SIZE: u64 = 1024 * 1024;

/// The BLAKE3 hash of one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieceHash([u8; 32]);

/// Hashes what comes piece by piece.
#[derive(Debug, Clone, Default)]
pub struct PieceHasher {
    current: blake3::Hasher,
    done: Vec<PieceHash>,
}

impl PieceHasher {
    /// Adds bytes.
    pub fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = PIECE_SIZE.saturating_sub(self.current.count());
            let most = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
            let Some((now, rest)) = bytes.split_at_checked(most) else { return };
            self.current.update(now);
            bytes = rest;
            if self.current.count() >= PIECE_SIZE {
                self.done.push(PieceHash(*self.current.finalize().as_bytes()));
                self.current.reset();
            }
        }
    }

    /// The hashes of the whole pieces so far.
    pub(super) fn done(&self) -> &[PieceHash] {
        &self.done
    }

    /// The hashes of all pieces, the last one as far as it goes.
    pub fn all(&self) -> Vec<PieceHash> {
        self.done.iter().copied().chain(self.rest()).collect()
    }

    /// The hash of what follows on the last whole piece; none if nothing does.
    pub(super) fn rest(&self) -> Option<PieceHash> {
        (self.current.count() > 0).then(|| PieceHash(*self.current.finalize().as_bytes()))
    }
}

impl Serialize for PieceHash {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for PieceHash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = unhex(&text).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| serde::de::Error::custom("a piece's hash is 64 hexadecimal characters"))
    }
}

impl From<[u8; 32]> for PieceHash {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn pieces_do_not_depend_on_how_bytes_come(cuts in prop::collection::vec(0_usize..3_000_000, 0..6)) {
            let whole: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
            let mut hasher = PieceHasher::default();
            let mut cuts = cuts;
            cuts.sort_unstable();
            cuts.push(whole.len());
            let mut at = 0;
            for cut in cuts {
                hasher.update(&whole[at..cut]);
                at = cut;
            }
            let wanted: Vec<_> =
                whole.chunks(1 << 20).map(|piece| PieceHash(*blake3::hash(piece).as_bytes())).collect();
            prop_assert_eq!(hasher.done(), &wanted[..2]);
            prop_assert_eq!(hasher.rest(), Some(wanted[2]));
        }
    }
}
