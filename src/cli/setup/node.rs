//! How programs on this machine reach the node of a configuration.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::cli::{Exit, Failure};
use crate::config::Config;
use crate::mirror::{Mirrors, Preset};

/// The node as a program sees it.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// The host as it stands in a URL is that of `authority`; here without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// `host:port`.
    pub(super) authority: String,
    pub(super) address: SocketAddr,
    pub(super) is_loopback: bool,
    /// Whether it listens to other machines by every address.
    pub(super) is_everywhere: bool,
    pub(super) mirrors: Mirrors,
}

impl Node {
    /// By the listener that is surest to be reached: on loopback, and IPv4.
    pub(super) fn of(config: &Config) -> Result<Self, Failure> {
        let rank = |address: &&SocketAddr| {
            let near = address.ip().is_loopback() || address.ip().is_unspecified();
            (!near, !address.is_ipv4())
        };
        let listen = config.proxy.listen.iter().min_by_key(rank);
        let listen = listen.ok_or_else(|| {
            Failure::new(Exit::Configuration, "proxy.listen is empty: no program can reach this node")
                .hint("name an address, such as \"127.0.0.1:8098\"")
        })?;
        if listen.port() == 0 {
            return Err(Failure::new(
                Exit::Configuration,
                "proxy.listen has port 0, which is another at each start",
            )
            .hint("name a port, so that settings can name it"));
        }
        let ip = match listen.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
        };
        let address = SocketAddr::new(ip, listen.port());
        Ok(Self {
            host: ip.to_string(),
            port: listen.port(),
            authority: address.to_string(),
            address,
            is_loopback: ip.is_loopback(),
            is_everywhere: listen.ip().is_unspecified(),
            mirrors: config.mirror.clone(),
        })
    }

    /// The mirror that a setting names.
    pub(super) fn mirror(&self, preset: Preset) -> Result<&str, Failure> {
        self.mirrors.name_for(preset).ok_or_else(|| {
            Failure::new(Exit::Failed, format!("this node has no mirror with preset = \"{preset}\""))
                .hint("take `enabled = false` out of its [[mirror]], or add one")
        })
    }
}
