//! What sort of link an interface is, told by sysfs.
//!
//! A process that entered a network namespace without a sysfs of its own sees the interfaces of another
//! namespace there, even under the same names: an entry counts only if number and hardware address agree.
//! Without one, flags and the usual names decide.

use std::fs;
use std::path::{Path, PathBuf};

use getifaddrs::InterfaceFlags;
use serde::Serialize;

/// A sort of link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A network card, or what stands for one: a VLAN, a bond, a macvlan, a container's own end of a veth.
    Physical,
    /// A bridge made by software.
    Bridge,
    /// This machine's end of a container's link.
    Veth,
    /// A VPN or another link that goes through other links.
    Tunnel,
    /// This machine itself.
    Loopback,
    /// Something without a network of its own: a bridge's port, a dummy.
    Other,
}

/// What the system tells of an interface's link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Link {
    /// Mbit/s; 0 if it does not tell.
    pub speed: u32,
    /// By radio.
    pub wireless: bool,
    /// The way to other networks leads there.
    pub gateway: bool,
}

/// Asks sysfs and the table of routes: for a blocking thread. What cannot be read is not known.
pub fn link(name: &str) -> Link {
    let folder = Path::new("/sys/class/net").join(name);
    let speed = fs::read_to_string(folder.join("speed")).ok().and_then(|text| text.trim().parse().ok());
    // interface, destination (zero for the default route), and so on
    let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
    let gateway = routes.lines().any(|line| {
        let mut fields = line.split_whitespace();
        fields.next() == Some(name) && fields.next() == Some("00000000")
    });
    Link { speed: speed.unwrap_or(0), wireless: folder.join("wireless").exists(), gateway }
}

/// What is known of an interface besides its addresses.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) index: u32,
    pub(super) name: String,
    pub(super) flags: InterfaceFlags,
    pub(super) sysfs: Option<Sysfs>,
}

/// What sysfs tells of an interface.
#[derive(Debug, Clone, Default)]
pub(super) struct Sysfs {
    /// ARPHRD_…: 1 is Ethernet, 32 InfiniBand.
    pub(super) hardware_type: u32,
    /// The number of the interface below or at the other end; its own number if there is none.
    pub(super) link: u32,
    /// `bridge`, `vlan`, `wireguard`…; empty for a card, a veth, a dummy.
    pub(super) device_type: String,
    /// Answers no ARP: nothing is behind it.
    pub(super) no_arp: bool,
    pub(super) is_bridge: bool,
    pub(super) is_port: bool,
    pub(super) is_tun: bool,
    pub(super) has_device: bool,
}

const IFF_NOARP: u32 = 0x80;
const ETHERNET: u32 = 1;
const INFINIBAND: u32 = 32;

impl Known {
    pub(super) fn read(name: &str, index: u32, flags: InterfaceFlags, mac: Option<&[u8; 6]>) -> Self {
        let sysfs = Sysfs::read(&Path::new("/sys/class/net").join(name), index, mac);
        Self { index, name: name.to_owned(), flags, sysfs }
    }

    /// The kind, seen among all links of this namespace.
    pub(super) fn kind(&self, all: &[Self]) -> Kind {
        if self.flags.contains(InterfaceFlags::LOOPBACK) {
            return Kind::Loopback;
        }
        match &self.sysfs {
            Some(sysfs) => self.kind_by_sysfs(sysfs, all),
            None => self.kind_by_name(),
        }
    }

    fn kind_by_sysfs(&self, sysfs: &Sysfs, all: &[Self]) -> Kind {
        let ethernet = matches!(sysfs.hardware_type, ETHERNET | INFINIBAND);
        if sysfs.is_bridge || sysfs.device_type == "bridge" {
            return Kind::Bridge;
        }
        if sysfs.is_tun || !ethernet || self.flags.contains(InterfaceFlags::POINTTOPOINT) {
            return Kind::Tunnel;
        }
        match sysfs.device_type.as_str() {
            "wireguard" | "ppp" | "vxlan" | "geneve" | "gretap" | "ip6gretap" => return Kind::Tunnel,
            "wlan" | "vlan" | "bond" | "team" | "macvlan" | "ipvlan" => return Kind::Physical,
            _ => {}
        }
        if sysfs.has_device {
            return Kind::Physical;
        }
        if sysfs.is_port || sysfs.no_arp {
            return Kind::Other;
        }
        if self.is_container_side_of_host(sysfs, all) { Kind::Veth } else { Kind::Physical }
    }

    /// A veth is a container's link seen from the host if its other end is here as well, or if it has a
    /// name that container software gives and this machine has a card of its own. The lone end inside a
    /// namespace is that namespace's network card.
    fn is_container_side_of_host(&self, sysfs: &Sysfs, all: &[Self]) -> bool {
        if sysfs.link == self.index {
            return false;
        }
        let peer_here = all.iter().any(|other| {
            other.index == sysfs.link && other.sysfs.as_ref().is_some_and(|s| s.link == self.index)
        });
        let card_here = all.iter().any(|other| other.sysfs.as_ref().is_some_and(|s| s.has_device));
        let named_so = ["veth", "cali", "lxc", "vnet"].iter().any(|start| self.name.starts_with(start));
        peer_here || (card_here && named_so)
    }

    fn kind_by_name(&self) -> Kind {
        let starts = |names: &[&str]| names.iter().any(|start| self.name.starts_with(start));
        if self.flags.contains(InterfaceFlags::POINTTOPOINT)
            || starts(&["tun", "tap", "wg", "ppp", "tailscale", "utun", "vxlan", "gre"])
        {
            Kind::Tunnel
        } else if starts(&["docker", "br-", "virbr", "lxcbr", "lxdbr", "cni", "podman"]) {
            Kind::Bridge
        } else if starts(&["dummy", "ifb"]) {
            Kind::Other
        } else {
            Kind::Physical
        }
    }
}

impl Sysfs {
    fn read(folder: &Path, index: u32, mac: Option<&[u8; 6]>) -> Option<Self> {
        let text = |name: &str| fs::read_to_string(folder.join(name)).ok().map(|t| t.trim().to_owned());
        let has = |name: &str| PathBuf::from(folder).join(name).exists();
        if text("ifindex")?.parse() != Ok(index) {
            return None;
        }
        if let (Some(mac), Some(shown)) = (mac, text("address"))
            && !shown.starts_with(&mac.map(|byte| format!("{byte:02x}")).join(":"))
        {
            return None;
        }
        let flags = text("flags").and_then(|f| u32::from_str_radix(f.trim_start_matches("0x"), 16).ok());
        let uevent = text("uevent").unwrap_or_default();
        let device_type = uevent.lines().find_map(|line| line.strip_prefix("DEVTYPE="));
        Some(Self {
            hardware_type: text("type")?.parse().ok()?,
            link: text("iflink").and_then(|link| link.parse().ok()).unwrap_or(index),
            device_type: device_type.unwrap_or_default().to_owned(),
            no_arp: flags.is_some_and(|flags| flags & IFF_NOARP != 0),
            is_bridge: has("bridge"),
            is_port: has("brport"),
            is_tun: has("tun_flags"),
            has_device: has("device") || has("wireless"),
        })
    }
}
