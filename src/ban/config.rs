//! The settings `[bans]`.

use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize};

use crate::unit::Span;

/// The settings `[bans]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Whether offences have consequences at all.
    pub enabled: bool,
    /// How many offences within the window lead to a ban.
    pub strikes: u32,
    /// The window.
    pub window: Span,
    /// How long the first ban lasts; each further one twice as long.
    pub duration: Span,
    /// How long a ban lasts at most.
    pub max_duration: Span,
    /// Networks and addresses that are never banned, besides the exact addresses this node listens on.
    #[serde(deserialize_with = "networks")]
    pub never: Vec<IpNet>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: true,
            strikes: 3,
            window: Span(Duration::from_secs(60)),
            duration: Span(Duration::from_secs(240)),
            max_duration: Span(Duration::from_secs(3600)),
            never: [IpNet::new(IpAddr::from([127, 0, 0, 0]), 8), IpNet::new(IpAddr::from(LOOPBACK_6), 128)]
                .into_iter()
                .flatten()
                .collect(),
        }
    }
}

const LOOPBACK_6: [u16; 8] = [0, 0, 0, 0, 0, 0, 0, 1];

impl Config {
    /// Whether the `never` list names the address (in its canonical form).
    pub(super) fn spares(&self, address: IpAddr) -> bool {
        self.never.iter().any(|network| network.contains(&address))
    }

    /// How long the `count`th ban in a row lasts.
    pub(super) fn length(&self, count: u32) -> Duration {
        let doubled = 2u32.saturating_pow(count.saturating_sub(1));
        self.duration.0.saturating_mul(doubled).min(self.max_duration.0.max(self.duration.0))
    }
}

/// A network, or a bare address for that address alone; mapped IPv4 becomes IPv4.
fn networks<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<IpNet>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    texts.iter().map(|text| network(text).map_err(serde::de::Error::custom)).collect()
}

fn network(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    let net = match text.parse::<IpAddr>() {
        Ok(address) => IpNet::from(address.to_canonical()),
        Err(_) => text
            .parse::<IpNet>()
            .map_err(|_ignored| format!("`{text}` is neither an address nor a network such as 10.0.0.0/8"))?,
    };
    match (net.addr().to_canonical(), net.prefix_len()) {
        // a prefix that long is only of a mapped address
        (IpAddr::V4(address), prefix @ 96..) => {
            IpNet::new(address.into(), prefix - 96).map_err(|error| format!("`{text}`: {error}"))
        }
        _ => Ok(net),
    }
}
