//! The interfaces of this machine, and which of them neighbours are looked for on.
//!
//! [`list`] asks the kernel (one entry an address), [`choose`] judges the list by the operator's patterns
//! and says why, [`watch`] tells when the list changes. Listing fails only where the kernel refuses it,
//! which under systemd means `RestrictAddressFamilies` without `AF_NETLINK`.

mod kind;
mod watch;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use getifaddrs::{Address, InterfaceFlags};
use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use kind::{Kind, Link, link};
pub use watch::watch;

/// One address of one interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// The kernel's name.
    pub name: String,
    /// The kernel's number, the scope of link-local addresses.
    pub index: u32,
    /// The address.
    pub address: IpAddr,
    /// How many of its bits name the network.
    pub prefix: u8,
    /// Where a broadcast on this network goes; none on IPv6, /31, /32 and links between two points.
    pub broadcast: Option<Ipv4Addr>,
    /// Up and running.
    pub up: bool,
    /// Able to send and receive multicast.
    pub multicast: bool,
    /// What sort of link it is.
    pub kind: Kind,
}

/// What [`choose`] thinks of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// Of which.
    pub interface: Interface,
    /// Whether neighbours are looked for there.
    pub usable: bool,
    /// Why, or why not, in a few words.
    pub why: &'static str,
}

/// An entry of `peers.interfaces`: a name (`*` at its end stands for any ending), an address or a network;
/// `!` before it excludes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    excludes: bool,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Name(String),
    Starts(String),
    Network(IpNet),
}

/// A text that is no [`Pattern`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no interface: write a name, an address or a network, with `!` before it to exclude")]
pub struct PatternError(String);

/// All addresses of all interfaces, loopback included. Reads sysfs: for a blocking thread.
pub fn list() -> io::Result<Vec<Interface>> {
    let all: Vec<getifaddrs::Interface> = getifaddrs::getifaddrs()?.collect();
    let macs: HashMap<&str, [u8; 6]> = all
        .iter()
        .filter_map(|entry| entry.address.mac_addr().map(|mac| (entry.name.as_str(), mac)))
        .collect();
    let mut links: Vec<kind::Known> = Vec::new();
    for entry in &all {
        let Some(index) = entry.index else { continue };
        if !links.iter().any(|link| link.index == index) {
            links.push(kind::Known::read(&entry.name, index, entry.flags, macs.get(entry.name.as_str())));
        }
    }
    Ok(all.iter().filter_map(|entry| one(entry, &links)).collect())
}

/// Judges every interface: usable are those that are up, can broadcast or multicast, are no bridge, veth
/// or tunnel, and have a private or link-local address. A pattern that names an interface lifts the last
/// two conditions; once anything is named, only what is named is usable; what is excluded never is.
pub fn choose(list: Vec<Interface>, patterns: &[Pattern]) -> Vec<Choice> {
    list.into_iter()
        .map(|interface| {
            let (usable, why) = judge(&interface, patterns);
            Choice { interface, usable, why }
        })
        .collect()
}

fn judge(interface: &Interface, patterns: &[Pattern]) -> (bool, &'static str) {
    let matching = |excludes| patterns.iter().any(|p| p.excludes == excludes && p.matches(interface));
    if matching(true) {
        return (false, "excluded by peers.interfaces");
    }
    let named = matching(false);
    if !named && patterns.iter().any(|p| !p.excludes) {
        return (false, "not among peers.interfaces");
    }
    if !interface.up {
        return (false, "not up and running");
    }
    if interface.broadcast.is_none() && !interface.multicast {
        return (false, "can neither broadcast nor multicast");
    }
    if named {
        return (true, "named in peers.interfaces");
    }
    match interface.kind {
        Kind::Physical if is_local(interface.address) => (true, "a local network"),
        Kind::Physical => (false, "a public address: name it in peers.interfaces to use it"),
        Kind::Loopback => (false, "loopback"),
        Kind::Bridge => (false, "a bridge"),
        Kind::Veth => (false, "a container's link"),
        Kind::Tunnel => (false, "a tunnel"),
        Kind::Other => (false, "no network of its own"),
    }
}

/// Private (RFC 1918, RFC 4193) or link-local.
fn is_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_private() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

fn one(entry: &getifaddrs::Interface, links: &[kind::Known]) -> Option<Interface> {
    let (address, index) = (entry.address.ip_addr()?, entry.index?);
    let prefix = ipnet::ip_mask_to_prefix(entry.address.netmask()?).ok()?;
    let kind = links.iter().find(|link| link.index == index).map_or(Kind::Other, |link| link.kind(links));
    let flags = entry.flags;
    Some(Interface {
        name: entry.name.clone(),
        index,
        address,
        prefix,
        broadcast: broadcast_of(&entry.address, prefix, flags),
        up: flags.contains(InterfaceFlags::UP | InterfaceFlags::RUNNING),
        multicast: flags.contains(InterfaceFlags::MULTICAST),
        kind,
    })
}

/// The kernel's broadcast address where it tells one; else the network's last address, which the kernel
/// routes as broadcast even for an address that was added without one.
fn broadcast_of(address: &Address, prefix: u8, flags: InterfaceFlags) -> Option<Ipv4Addr> {
    let Address::V4(v4) = address else { return None };
    let told = v4.associated_address.filter(|told| !told.is_unspecified() && *told != v4.address);
    last_address(v4.address, prefix, flags).map(|last| match told {
        Some(told) if flags.contains(InterfaceFlags::BROADCAST) => told,
        Some(_) | None => last,
    })
}

fn last_address(address: Ipv4Addr, prefix: u8, flags: InterfaceFlags) -> Option<Ipv4Addr> {
    let able = flags.intersects(InterfaceFlags::BROADCAST | InterfaceFlags::LOOPBACK);
    if prefix > 30 || !able {
        return None;
    }
    ipnet::Ipv4Net::new(address, prefix).ok().map(|net| net.broadcast())
}

impl Pattern {
    /// Whether it speaks of this interface, excluding or not.
    pub fn matches(&self, interface: &Interface) -> bool {
        match &self.what {
            What::Name(name) => interface.name == *name,
            What::Starts(start) => interface.name.starts_with(start.as_str()),
            What::Network(net) => net.contains(&interface.address),
        }
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let trimmed = text.trim();
        let (excludes, what) = trimmed.strip_prefix('!').map_or((false, trimmed), |rest| (true, rest.trim()));
        let what = if let Ok(address) = what.parse::<IpAddr>() {
            What::Network(IpNet::from(address))
        } else if let Ok(net) = what.parse::<IpNet>() {
            What::Network(net)
        } else {
            name(what).ok_or_else(|| PatternError(text.to_owned()))?
        };
        Ok(Self { excludes, what })
    }
}

/// What the kernel takes as a name: neither `/` nor blanks, at most 15 bytes.
fn name(text: &str) -> Option<What> {
    let (start, any) = text.strip_suffix('*').map_or((text, false), |start| (start, true));
    let wrong = |c: char| c.is_whitespace() || "/*!,".contains(c);
    if (start.is_empty() && !any) || start.len() > 15 || start.contains(wrong) {
        return None;
    }
    Some(if any { What::Starts(start.to_owned()) } else { What::Name(start.to_owned()) })
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.excludes { "!" } else { "" };
        match &self.what {
            What::Name(name) => write!(f, "{mark}{name}"),
            What::Starts(start) => write!(f, "{mark}{start}*"),
            What::Network(net) if net.prefix_len() == net.max_prefix_len() => {
                write!(f, "{mark}{}", net.addr())
            }
            What::Network(net) => write!(f, "{mark}{net}"),
        }
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
