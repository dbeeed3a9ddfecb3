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
    /// Whether questions are passed on between the networks this node is on.
    pub gateway: bool,
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

/// Nodes reached by unicast.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Seed {
    /// A host, with a port of its own or the site's.
    Host {
        /// Name or address.
        host: String,
        /// Its port, if not the site's.
        port: Option<u16>,
    },
    /// The hosts and ports that DNS names for this service.
    Service(String),
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
    /// Whether both are on one network: on one interface, or where everybody hears both.
    pub(super) fn shares_network(&self, other: &Self) -> bool {
        let same_interface = self.index != 0 && self.index == other.index;
        self == other || same_interface || (self.broadcast.is_some() && self.broadcast == other.broadcast)
    }

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

    /// Reads `host`, `host:port`, an address, `[v6]:port`, or `srv:` and the name of a service.
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let wrong = |why: &str| ConfigError(format!("the seed `{text}` {why}"));
        if let Some(name) = text.strip_prefix("srv:") {
            return service(name).ok_or_else(|| {
                wrong("names no service: write srv:_larder._tcp.example.org, the name of its SRV records")
            });
        }
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Ok(Self::Host { host: ip.to_string(), port: None });
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Self::host(address.ip().to_string(), Some(address.port()), text);
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => {
                (host, Some(port.parse().map_err(|_no_number| wrong("has no usable port after the colon"))?))
            }
            None => (text, None),
        };
        if !is_name(host) {
            return Err(wrong("is no host name: write host, host:port or an address"));
        }
        Self::host(host.to_owned(), port, text)
    }
}

/// `_service._protocol.domain`, as RFC 2782 has it.
fn service(name: &str) -> Option<Seed> {
    let mut labels = name.trim_end_matches('.').split('.');
    let is_special =
        |label: Option<&str>| label.is_some_and(|label| label.len() > 1 && label.starts_with('_'));
    let is_service = is_special(labels.next()) && is_special(labels.next()) && labels.next().is_some();
    let labels_fit = name.trim_end_matches('.').split('.').all(|label| (1..=63).contains(&label.len()));
    (is_service && labels_fit && is_name(name)).then(|| Seed::Service(name.to_owned()))
}

fn is_name(name: &str) -> bool {
    let usable = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_');
    !name.is_empty() && name.len() <= 253 && name.chars().all(usable)
}

impl Seed {
    fn host(host: String, port: Option<u16>, text: &str) -> Result<Self, ConfigError> {
        if port == Some(0) {
            return Err(ConfigError(format!("the seed `{text}` has port 0, which nobody can listen on")));
        }
        Ok(Self::Host { host, port })
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { host, port: Some(port) } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Host { host, port: Some(port) } => write!(f, "{host}:{port}"),
            Self::Host { host, port: None } => f.write_str(host),
            Self::Service(name) => write!(f, "srv:{name}"),
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
            assert_eq!(seed, Seed::Host { host: host.into(), port }, "{text}");
            assert_eq!(seed.to_string(), text);
        }
        let service: Seed = "srv:_larder._tcp.example.org".parse().unwrap();
        assert_eq!(service, Seed::Service("_larder._tcp.example.org".into()));
        assert_eq!(service.to_string(), "srv:_larder._tcp.example.org");
        for text in [
            "",
            "a b",
            "box:0",
            "box:http",
            ":80",
            "http://x",
            "srv:",
            "srv:larder.example.org",
            "srv:_larder.example.org",
            "srv:_larder._tcp",
            "srv:_larder._tcp..org",
            "srv:_larder._tcp.example.org:8096",
        ] {
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
