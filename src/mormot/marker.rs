//! The mark by which Larder nodes know each other among mORMot peers: in bytes that the original never reads.
//!
//! A mark nominates and nothing more: whoever has the peers' secret can make one, and whoever recorded a frame
//! can send it again. The address in it is where to say hello in Larder's own protocol, which then proves itself.

use crate::tls::NodeId;

/// The beginning of a mark; the last byte is its version.
const MAGIC: [u8; 8] = *b"larder\0\x01";

/// What one Larder node tells another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// Its id.
    pub node: NodeId,
    /// Its peer port, UDP; 0 if it has none.
    pub port: u16,
}

impl Marker {
    /// As the 42 unread bytes, the rest of which are `filler`.
    pub(super) fn encode(self, filler: [u8; 16]) -> [u8; 42] {
        let mut bytes = [0; 42];
        let parts = [&MAGIC[..], self.node.as_bytes(), &self.port.to_le_bytes(), &filler].concat();
        bytes.iter_mut().zip(parts).for_each(|(to, from)| *to = from);
        bytes
    }

    /// Reads it from there, if it is one.
    pub(super) fn decode(bytes: &[u8; 42]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (node, rest) = rest.split_first_chunk::<16>()?;
        let port = rest.first_chunk::<2>()?;
        (*magic == MAGIC).then(|| Self { node: NodeId::from_bytes(*node), port: u16::from_le_bytes(*port) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_mark_is_read_and_chance_is_none(node: [u8; 16], port: u16, filler: [u8; 16], other: [u8; 32]) {
            let marker = Marker { node: NodeId::from_bytes(node), port };
            prop_assert_eq!(Marker::decode(&marker.encode(filler)), Some(marker));
            let mut chance = [0; 42];
            chance[..32].copy_from_slice(&other);
            prop_assert_eq!(Marker::decode(&chance), None);
        }
    }
}
