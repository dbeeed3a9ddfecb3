//! The room's settings, and the words of the `[peers]` table it reads.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

/// What the discovery of one node is told.
#[derive(Debug, Clone)]
pub struct Config {
    /// What people call this node.
    pub node_name: String,
    /// The version of this program.
    pub version: String,
    /// The UDP port of the site.
    pub port: u16,
    /// Where this node serves neighbours over TCP; 0 if it does not.
    pub tcp_port: u16,
    /// Whether it serves HTTPS there.
    pub https: bool,
    /// Whether it serves plain HTTP there.
    pub http: bool,
    /// Where to speak and hear; may be replaced while running.
    pub endpoints: Vec<Endpoint>,
    /// Nodes reached by unicast.
    pub seeds: Vec<Seed>,
    /// The longest time a find waits.
    pub wait_max: Duration,
    /// The address to tell neighbours instead of the one they see.
    pub advertise: Option<Advertise>,
}

/// One address of this node on one network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Where frames are sent from and answers arrive. Port 0: an ephemeral one.
    pub local: SocketAddr,
    /// Where all nodes of the network hear: a broadcast or multicast address and the site's port. For an IPv6
    /// address with an interface, nothing means the group `ff02::4c44`; for IPv4 it means unicast only.
    pub broadcast: Option<SocketAddr>,
    /// The number of the interface; 0 where it does not matter.
    pub index: u32,
}

/// A node reached by unicast: a host name or address, with a port of its own or the site's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Seed {
    /// Name or address.
    pub host: String,
    /// Its UDP port, if not the site's.
    pub port: Option<u16>,
}

/// The address to tell neighbours: where this node serves over TCP, seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advertise {
    /// The address.
    pub ip: IpAddr,
    /// The port, if not the one this node listens on.
    pub port: Option<u16>,
}

/// Why a setting cannot be used: a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl Endpoint {
    /// Endpoints from written addresses: each `listen` address gets the `broadcast` address of its family that
    /// shares the most leading bits with it.
    pub fn pair(listen: &[SocketAddr], broadcast: &[SocketAddr]) -> Vec<Self> {
        let nearest = |local: &SocketAddr| {
            let candidates = broadcast.iter().filter(|b| b.is_ipv4() == local.is_ipv4());
            candidates.max_by_key(|b| common_bits(b.ip(), local.ip())).copied()
        };
        listen.iter().map(|local| Self { local: *local, broadcast: nearest(local), index: 0 }).collect()
    }
}

fn common_bits(a: IpAddr, b: IpAddr) -> u32 {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        _ => 0,
    }
}

impl FromStr for Seed {
    type Err = ConfigError;

    /// Reads `host`, `host:port`, an address, or `[v6]:port`.
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let wrong = |why: &str| ConfigError(format!("the seed `{text}` {why}"));
        if text.starts_with("srv:") {
            return Err(wrong("asks for DNS service records, which this build cannot read: name the hosts"));
        }
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Ok(Self { host: ip.to_string(), port: None });
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Self { host: address.ip().to_string(), port: Some(address.port()) }.checked(text);
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => {
                (host, Some(port.parse().map_err(|_no_number| wrong("has no usable port after the colon"))?))
            }
            None => (text, None),
        };
        let usable = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_');
        if host.is_empty() || host.len() > 253 || !host.chars().all(usable) {
            return Err(wrong("is no host name: write host, host:port or an address"));
        }
        Self { host: host.to_owned(), port }.checked(text)
    }
}

impl Seed {
    fn checked(self, text: &str) -> Result<Self, ConfigError> {
        if self.port == Some(0) {
            return Err(ConfigError(format!("the seed `{text}` has port 0, which nobody can listen on")));
        }
        Ok(self)
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) if self.host.contains(':') => write!(f, "[{}]:{port}", self.host),
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
}

impl FromStr for Advertise {
    type Err = ConfigError;

    /// Reads an address, or an address with a port.
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        if let Ok(ip) = text.parse() {
            return Ok(Self { ip, port: None });
        }
        let wrong = || {
            ConfigError(format!(
                "`{text}` is no address to tell peers: write an address or address:port, no name"
            ))
        };
        let address: SocketAddr = text.parse().map_err(|_no_address| wrong())?;
        Ok(Self { ip: address.ip(), port: Some(address.port()).filter(|port| *port != 0) })
    }
}

impl Advertise {
    /// As told in frames; port 0 means the TCP port that they name.
    pub(super) fn address(self) -> SocketAddr {
        SocketAddr::new(self.ip, self.port.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_hosts_with_or_without_ports() {
        for (text, host, port) in [
            ("box1", "box1", None),
            ("box1.example.org:9000", "box1.example.org", Some(9000)),
            ("10.0.0.7", "10.0.0.7", None),
            ("10.0.0.7:9", "10.0.0.7", Some(9)),
            ("fd00::1", "fd00::1", None),
            ("[fd00::1]:9000", "fd00::1", Some(9000)),
        ] {
            let seed: Seed = text.parse().unwrap();
            assert_eq!((seed.host.as_str(), seed.port), (host, port), "{text}");
            assert_eq!(seed.to_string(), text);
        }
        for text in ["", "a b", "box:0", "box:http", ":80", "srv:_larder._tcp.example.org", "http://x"] {
            let error = text.parse::<Seed>().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn listen_and_broadcast_addresses_find_each_other() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let listen = [address("127.0.0.2:8096"), address("10.0.0.3:8096"), address("[fd00::1]:8096")];
        let broadcast = [address("10.0.0.255:8096"), address("127.255.255.255:8096")];
        let pairs = Endpoint::pair(&listen, &broadcast);
        assert_eq!(pairs[0].broadcast, Some(broadcast[1]));
        assert_eq!(pairs[1].broadcast, Some(broadcast[0]));
        assert_eq!(pairs[2].broadcast, None);
    }

    #[test]
    fn an_advertised_address_is_no_name() {
        assert_eq!("10.1.2.3".parse::<Advertise>().unwrap().address(), "10.1.2.3:0".parse().unwrap());
        assert_eq!("10.1.2.3:99".parse::<Advertise>().unwrap().port, Some(99));
        assert!("box1".parse::<Advertise>().is_err());
    }
}
