//! The `[proxy]` settings.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

use crate::unit::Span;

/// Where the doors are, and for whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where programs connect to.
    pub listen: Vec<SocketAddr>,
    /// Who may use the doors.
    pub allow: Vec<IpNet>,
    /// Ports that a tunnel may lead to.
    pub connect_ports: Vec<u16>,
    /// Whether clients on other machines are kept from loopback, link-local and administration addresses.
    pub deny_private: bool,
    /// How long a stale answer may be given out when the origin cannot be reached.
    pub stale_if_error: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![
                SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8098),
                SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 8098),
            ],
            allow: vec![
                IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8)),
                IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::LOCALHOST, 128)),
            ],
            connect_ports: vec![443, 563],
            deny_private: true,
            stale_if_error: Span(Duration::from_secs(7 * 86_400)),
        }
    }
}
