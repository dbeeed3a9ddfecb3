//! A message: 192 bytes, packed, little-endian; addresses as the four bytes of the network.
//!
//! Reading accepts any values of the numbers but kind, hardware and algorithm, whose known values end at a
//! number each; writing gives back the same bytes.

mod hash;

use std::net::Ipv4Addr;

pub use hash::{Algorithm, Hash};

/// Its length.
pub(super) const LENGTH: usize = 192;
/// Seconds from 1970 to the beginning of the protocol's time, in December 2016.
const EPOCH: u64 = 1_481_187_020;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Who is there?
    Ping,
    /// I am.
    Pong,
    /// Who has this?
    Request,
    /// Not I.
    ResponseNone,
    /// I have too much to do.
    ResponseOverloaded,
    /// I am receiving it.
    ResponsePartial,
    /// I have all of it.
    ResponseFull,
    /// The token of an HTTP request.
    Bearer,
    /// A token to have something fetched.
    BearerDirect,
    /// The same, to be kept for good.
    BearerDirectPermanent,
}

/// What carries the sender's network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
#[repr(u8)]
pub enum Hardware {
    Undefined,
    Ethernet,
    WiFi,
    Tunnel,
    Ppp,
    Cellular,
    Software,
}

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// What it is.
    pub kind: Kind,
    /// The asker's counter; answers repeat it.
    pub seq: u32,
    /// The sender's GUID, as its bytes are on the wire.
    pub uuid: [u8; 16],
    /// The sender's system: its family, then its version.
    pub os: [u8; 4],
    /// The sender's address.
    pub address: Ipv4Addr,
    /// In a request the broadcast address, in an answer the asker.
    pub to: Ipv4Addr,
    /// The sender's netmask.
    pub mask: Ipv4Addr,
    /// The sender's broadcast address.
    pub broadcast: Ipv4Addr,
    /// The sender's link, in Mbit/s.
    pub speed: u32,
    /// The sender's network.
    pub hardware: Hardware,
    /// Seconds since the beginning of the protocol's time; see [`timestamp`].
    pub timestamp: u32,
    /// HTTP connections that the sender serves.
    pub connections: u16,
    /// What is wanted, or held.
    pub hash: Hash,
    /// Its full size; 0 if unknown.
    pub size: i64,
    /// The first byte wanted.
    pub start: i64,
    /// The last byte wanted; 0 for all.
    pub end: i64,
    /// Of no use here.
    pub opaque: u64,
    /// Never read by the original: its version, and 42 bytes.
    pub padding: (u8, [u8; 42]),
}

/// The protocol's time at this number of seconds since 1970.
pub fn timestamp(seconds: u64) -> u32 {
    u32::try_from(seconds.saturating_sub(EPOCH)).unwrap_or(u32::MAX)
}

impl Message {
    /// Its bytes.
    pub fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        self.encode_into(&mut bytes);
        bytes
    }

    /// The same where they are to stand.
    #[inline]
    pub(super) fn encode_into(&self, bytes: &mut [u8; LENGTH]) {
        let mut to = Writer(bytes);
        to.put([self.kind as u8]);
        to.put(self.seq.to_le_bytes());
        to.put(self.uuid);
        to.put(self.os);
        for address in [self.address, self.to, self.mask, self.broadcast] {
            to.put(address.octets());
        }
        to.put(self.speed.to_le_bytes());
        to.put([self.hardware as u8]);
        to.put(self.timestamp.to_le_bytes());
        to.put(self.connections.to_le_bytes());
        to.put([self.hash.algorithm as u8]);
        to.put(self.hash.bytes);
        for number in [self.size, self.start, self.end] {
            to.put(number.to_le_bytes());
        }
        to.put(self.opaque.to_le_bytes());
        to.put([self.padding.0]);
        to.put(self.padding.1);
    }

    /// Reads it; none for a kind, hardware or algorithm that nobody knows.
    pub fn decode(bytes: &[u8; LENGTH]) -> Option<Self> {
        let mut from = Reader(bytes);
        let [kind] = from.take()?;
        let (seq, uuid, os) = (u32::from_le_bytes(from.take()?), from.take()?, from.take()?);
        let mut address = || from.take::<4>().map(Ipv4Addr::from);
        let (own, to, mask, broadcast) = (address()?, address()?, address()?, address()?);
        let speed = u32::from_le_bytes(from.take()?);
        let [hardware] = from.take()?;
        let timestamp = u32::from_le_bytes(from.take()?);
        let connections = u16::from_le_bytes(from.take()?);
        let [algorithm] = from.take()?;
        let digest = from.take()?;
        let mut number = || from.take().map(i64::from_le_bytes);
        let (size, start, end) = (number()?, number()?, number()?);
        let opaque = u64::from_le_bytes(from.take()?);
        let [version] = from.take()?;
        // in this order the first failure wins
        let kind = Kind::from_number(kind)?;
        let hardware = Hardware::from_number(hardware)?;
        let hash = Hash { algorithm: Algorithm::from_number(algorithm)?, bytes: digest };
        Some(Self {
            kind,
            seq,
            uuid,
            os,
            address: own,
            to,
            mask,
            broadcast,
            speed,
            hardware,
            timestamp,
            connections,
            hash,
            size,
            start,
            end,
            opaque,
            padding: (version, from.take()?),
        })
    }

    /// The size it tells, if it does.
    pub fn known_size(&self) -> Option<u64> {
        u64::try_from(self.size).ok().filter(|size| *size > 0)
    }

    /// Whether its sender hears only what is sent to its own address.
    pub const fn is_from_windows(&self) -> bool {
        self.os[0] == 1
    }
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Ping,
        Self::Pong,
        Self::Request,
        Self::ResponseNone,
        Self::ResponseOverloaded,
        Self::ResponsePartial,
        Self::ResponseFull,
        Self::Bearer,
        Self::BearerDirect,
        Self::BearerDirectPermanent,
    ];

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

impl Hardware {
    const ALL: [Self; 7] = [
        Self::Undefined,
        Self::Ethernet,
        Self::WiFi,
        Self::Tunnel,
        Self::Ppp,
        Self::Cellular,
        Self::Software,
    ];

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The place in the order of preference: the lower the better.
    pub const fn rank(self) -> u8 {
        match self {
            Self::Ethernet => 0,
            Self::WiFi => 1,
            Self::Undefined => 2,
            Self::Ppp => 3,
            Self::Tunnel => 4,
            Self::Cellular => 5,
            Self::Software => 6,
        }
    }
}

/// Fills bytes from the front; the lengths of all fields are those of a message.
struct Writer<'a>(&'a mut [u8]);

impl Writer<'_> {
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some((place, rest)) = std::mem::take(&mut self.0).split_first_chunk_mut::<N>() {
            *place = bytes;
            self.0 = rest;
        }
    }
}

/// Takes bytes from the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*bytes)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn any_message() -> impl Strategy<Value = Message> {
        let numbers = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u16>(), any::<u64>());
        let places = (any::<[u32; 4]>(), any::<[i64; 3]>());
        let bytes = (any::<[u8; 16]>(), any::<[u8; 4]>(), any::<[u8; 32]>(), any::<[u8; 32]>());
        let padding = (any::<u8>(), any::<[u8; 32]>(), any::<[u8; 10]>());
        (0..10_u8, 0..7_u8, 0..15_u8, numbers, places, bytes, padding).prop_map(
            |(kind, hardware, algorithm, numbers, (addresses, sizes), bytes, padding)| {
                let mut hash = [0; 64];
                hash[..32].copy_from_slice(&bytes.2);
                hash[32..].copy_from_slice(&bytes.3);
                let mut filler = [0; 42];
                filler[..32].copy_from_slice(&padding.1);
                filler[32..].copy_from_slice(&padding.2);
                let [address, to, mask, broadcast] = addresses.map(Ipv4Addr::from_bits);
                Message {
                    kind: Kind::from_number(kind).unwrap(),
                    seq: numbers.0,
                    uuid: bytes.0,
                    os: bytes.1,
                    address,
                    to,
                    mask,
                    broadcast,
                    speed: numbers.1,
                    hardware: Hardware::from_number(hardware).unwrap(),
                    timestamp: numbers.2,
                    connections: numbers.3,
                    hash: Hash { algorithm: Algorithm::from_number(algorithm).unwrap(), bytes: hash },
                    size: sizes[0],
                    start: sizes[1],
                    end: sizes[2],
                    opaque: numbers.4,
                    padding: (padding.0, filler),
                }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(message in any_message()) {
            prop_assert_eq!(Message::decode(&message.encode()), Some(message));
        }

        #[test]
        fn what_is_read_is_written_as_it_was(low: [u8; 32], filler: u8) {
            let mut bytes = [filler; LENGTH];
            bytes[..32].copy_from_slice(&low);
            if let Some(message) = Message::decode(&bytes) {
                prop_assert_eq!(message.encode(), bytes);
            }
        }
    }

    #[test]
    fn known_numbers_end_where_the_page_says() {
        let with = |at: usize, number: u8| {
            let mut bytes = [0; LENGTH];
            bytes[at] = number;
            Message::decode(&bytes).is_some()
        };
        for (at, last) in [(0, 9), (45, 6), (52, 14)] {
            assert!((0..=last).all(|number| with(at, number)));
            assert!((last + 1..=255).all(|number| !with(at, number)));
        }
    }

    #[test]
    fn time_begins_in_december_2016() {
        assert_eq!(timestamp(EPOCH + 1), 1);
        assert_eq!(timestamp(0), 0);
        assert_eq!(timestamp(u64::MAX), u32::MAX);
    }
}
