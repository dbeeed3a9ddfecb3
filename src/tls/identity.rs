//! Who a node is: its id and the pin of its key.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A node's id: the first 16 bytes of SHA-256 over its public key (SPKI), as a UUIDv8.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(uuid::Uuid);

/// SHA-256 over a node's public key (SubjectPublicKeyInfo, DER).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pin(pub [u8; 32]);

impl NodeId {
    /// The id that belongs to a pin.
    pub fn of(pin: &Pin) -> Self {
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(pin.0).for_each(|(to, from)| *to = from);
        Self(uuid::Uuid::new_v8(bytes))
    }

    /// From the 16 bytes on the wire.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(uuid::Uuid::from_bytes(bytes))
    }

    /// The 16 bytes on the wire.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The first 8 hexadecimal characters, for `Via`.
    pub fn short(&self) -> String {
        self.0.simple().to_string().chars().take(8).collect()
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for NodeId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(Self)
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::digest::hex(&self.0))
    }
}
