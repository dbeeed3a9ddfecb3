//! Where this node stands among the peers: one IPv4 address of one interface, as the protocol wants it.

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};

use super::{Config, Hardware};
use crate::discovery::Endpoint;
use crate::net::interface::{Interface, Kind, Link, choose};

/// One place on one network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    /// The address where files are given.
    pub address: Ipv4Addr,
    /// Its netmask.
    pub mask: Ipv4Addr,
    /// Where all peers hear.
    pub broadcast: Ipv4Addr,
    /// The port of all peers.
    pub port: u16,
    /// The interface's number.
    pub index: u32,
    /// Mbit/s.
    pub speed: u32,
    /// What sort of network it is.
    pub hardware: Hardware,
}

/// The place that the settings name, or the best there is; none while there is no such interface. `link` tells
/// what else is known of an interface.
pub fn seat(config: &Config, interfaces: &[Interface], link: impl Fn(&str) -> Link) -> Option<Seat> {
    if let Ok(address) = config.interface.parse::<Ipv4Addr>() {
        let here = |interface: &&Interface| match interface.address {
            IpAddr::V4(own) => (own.to_bits() ^ address.to_bits()) & mask(interface.prefix).to_bits() == 0,
            IpAddr::V6(_) => false,
        };
        let exact = interfaces.iter().find(|interface| interface.address == IpAddr::V4(address));
        let interface = exact.or_else(|| interfaces.iter().find(here))?;
        return at(config, interface, address, &link(&interface.name));
    }
    if !config.interface.is_empty() {
        let named = interfaces.iter().filter(|interface| interface.name == config.interface);
        return named.filter_map(|one| at(config, one, v4(one)?, &link(&one.name))).next();
    }
    let usable = choose(interfaces.to_vec(), &[]).into_iter().filter(|choice| choice.usable);
    let mut seats: Vec<(Link, Seat)> = usable
        .filter_map(|choice| {
            let link = link(&choice.interface.name);
            Some((link, at(config, &choice.interface, v4(&choice.interface)?, &link)?))
        })
        .collect();
    seats.sort_by_key(|(link, seat)| {
        (!link.gateway, seat.hardware.rank(), std::cmp::Reverse(seat.speed), seat.index)
    });
    seats.first().map(|(_, seat)| *seat)
}

fn at(config: &Config, interface: &Interface, address: Ipv4Addr, link: &Link) -> Option<Seat> {
    let hardware = match interface.kind {
        Kind::Physical if link.wireless => Hardware::WiFi,
        Kind::Physical | Kind::Veth => Hardware::Ethernet,
        Kind::Tunnel => Hardware::Tunnel,
        Kind::Loopback | Kind::Bridge => Hardware::Software,
        Kind::Other => Hardware::Undefined,
    };
    Some(Seat {
        address,
        mask: mask(interface.prefix),
        broadcast: config.broadcast.or(interface.broadcast)?,
        port: config.port,
        index: interface.index,
        speed: link.speed,
        hardware,
    })
}

fn v4(interface: &Interface) -> Option<Ipv4Addr> {
    match interface.address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

fn mask(prefix: u8) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0))
}

impl Seat {
    /// Where all peers hear.
    pub fn everybody(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.broadcast, self.port)
    }

    /// Where a peer serves.
    pub fn peer(&self, address: Ipv4Addr) -> SocketAddrV4 {
        SocketAddrV4::new(address, self.port)
    }

    /// Where datagrams leave and arrive. Who only asks leaves the port to others: answers go to everybody.
    pub(super) fn endpoint(&self, is_guest: bool) -> Endpoint {
        let port = if is_guest { 0 } else { self.port };
        Endpoint {
            local: SocketAddrV4::new(self.address, port).into(),
            broadcast: Some(self.everybody().into()),
            index: self.index,
        }
    }
}

/// A broadcast address, or an empty text for the interface's own.
pub(super) mod broadcast {
    use std::net::Ipv4Addr;

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(in crate::mormot) fn serialize<S: Serializer>(
        address: &Option<Ipv4Addr>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match address {
            Some(address) => to.collect_str(address),
            None => to.serialize_str(""),
        }
    }

    pub(in crate::mormot) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Ipv4Addr>, D::Error> {
        let text = String::deserialize(from)?;
        if text.is_empty() {
            return Ok(None);
        }
        let wrong = |_| D::Error::custom(format!("`{text}` is no IPv4 address: write 192.168.1.255"));
        text.parse().map(Some).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, index: u32, address: &str, prefix: u8, kind: Kind) -> Interface {
        let address: Ipv4Addr = address.parse().unwrap();
        let last = Ipv4Addr::from_bits(address.to_bits() | !mask(prefix).to_bits());
        Interface {
            name: name.to_owned(),
            index,
            address: address.into(),
            prefix,
            broadcast: Some(last),
            up: true,
            multicast: true,
            kind,
        }
    }

    #[test]
    fn the_best_interface_is_found_and_a_named_one_is_taken() {
        let all = [
            interface("lo", 1, "127.0.0.1", 8, Kind::Loopback),
            interface("wlan0", 2, "192.168.2.5", 24, Kind::Physical),
            interface("eth0", 3, "192.168.1.5", 24, Kind::Physical),
            interface("eth1", 4, "10.1.2.3", 16, Kind::Physical),
            interface("docker0", 5, "172.17.0.1", 16, Kind::Bridge),
        ];
        let link = |gateway: &'static str| {
            move |name: &str| Link {
                speed: if name == "eth1" { 10_000 } else { 1000 },
                wireless: name.starts_with("wlan"),
                gateway: name == gateway,
            }
        };
        let found = |interface: &str, gateway| {
            let config = Config { interface: interface.to_owned(), ..Config::default() };
            seat(&config, &all, link(gateway)).map(|seat| {
                (seat.address.to_string(), seat.mask.to_string(), seat.broadcast.to_string(), seat.hardware)
            })
        };
        let answer =
            |a: &str, m: &str, b: &str, hardware| Some((a.to_owned(), m.to_owned(), b.to_owned(), hardware));
        let eth0 = answer("192.168.1.5", "255.255.255.0", "192.168.1.255", Hardware::Ethernet);
        let eth1 = answer("10.1.2.3", "255.255.0.0", "10.1.255.255", Hardware::Ethernet);
        assert_eq!(found("", "none"), eth1, "the faster of two wires");
        assert_eq!(found("", "eth0"), eth0, "the one that leads out");
        assert_eq!(found("", "wlan0").unwrap().3, Hardware::WiFi);
        assert_eq!(found("eth0", "none"), eth0);
        assert_eq!(found("10.1.2.3", "none"), eth1);
        let loopback = answer("127.0.0.2", "255.0.0.0", "127.255.255.255", Hardware::Software);
        assert_eq!(found("127.0.0.2", "none"), loopback);
        assert_eq!(found("eth7", "none"), None);
        assert_eq!(found("8.8.8.8", "none"), None);
        assert_eq!(mask(0).to_bits(), 0);
        let named = Config { broadcast: Some(Ipv4Addr::new(10, 1, 2, 255)), ..Config::default() };
        assert_eq!(seat(&named, &all, link("eth1")).unwrap().broadcast.to_string(), "10.1.2.255");
    }
}
