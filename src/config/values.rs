//! Values that only configuration has, and how other rooms' values are written in it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An address to listen on, with a port where it differs from the section's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAt {
    /// The address.
    pub address: IpAddr,
    /// Its own port.
    pub port: Option<u16>,
}

/// Why a value was refused: a sentence with the accepted forms.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(String);

impl ListenAt {
    /// The whole address.
    pub fn with_port(self, default: u16) -> SocketAddr {
        SocketAddr::new(self.address, self.port.unwrap_or(default))
    }
}

impl FromStr for ListenAt {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        if let Ok(socket) = text.parse::<SocketAddr>() {
            return Ok(Self { address: socket.ip(), port: Some(socket.port()) });
        }
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        match bare.parse() {
            Ok(address) => Ok(Self { address, port: None }),
            Err(_) => Err(ValueError(format!(
                "`{text}` is not an address: write 10.0.0.7, [fd00::7] or 10.0.0.7:8096"
            ))),
        }
    }
}

impl fmt::Display for ListenAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => SocketAddr::new(self.address, port).fmt(f),
            None => self.address.fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for ListenAt {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for ListenAt {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// A list of texts, for things that have `FromStr` and `Display`.
pub(super) mod texts {
    use super::*;

    pub(in crate::config) fn serialize<T: fmt::Display, S: Serializer>(
        list: &[T],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(list.iter().map(ToString::to_string))
    }

    pub(in crate::config) fn deserialize<'de, T, D>(from: D) -> Result<Vec<T>, D::Error>
    where
        T: FromStr<Err: fmt::Display>,
        D: Deserializer<'de>,
    {
        let list = Vec::<String>::deserialize(from)?;
        list.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
    }
}

/// The address to tell neighbours; an empty text for none.
pub(super) mod advertise {
    use super::*;
    use crate::discovery::Advertise;

    pub(in crate::config) fn serialize<S: Serializer>(
        at: &Option<Advertise>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match at {
            None => to.serialize_str(""),
            Some(at) => to.collect_str(&ListenAt { address: at.ip, port: at.port }),
        }
    }

    pub(in crate::config) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Advertise>, D::Error> {
        let text = String::deserialize(from)?;
        if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(D::Error::custom) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_take_the_sections_port() {
        let at: ListenAt = "127.0.0.2".parse().unwrap();
        assert_eq!(at.with_port(8096).to_string(), "127.0.0.2:8096");
        assert_eq!("[::1]:5".parse::<ListenAt>().unwrap().with_port(8096).to_string(), "[::1]:5");
        assert!("localhost".parse::<ListenAt>().is_err());
    }

    proptest! {
        #[test]
        fn whatever_reads_prints_back(text in "\\PC{0,24}") {
            if let Ok(at) = text.parse::<ListenAt>() {
                prop_assert_eq!(at.to_string().parse::<ListenAt>().unwrap(), at);
            }
        }
    }
}
