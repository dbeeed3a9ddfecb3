//! Which addresses a client may reach through us.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// How far a request may go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Reach {
    /// Wherever this machine can go: for clients on it.
    #[default]
    Anywhere,
    /// Not to this machine and not to what only it can see.
    Public {
        /// This machine's own addresses, besides loopback and link-local ones.
        refuse: Arc<[IpAddr]>,
    },
}

impl Reach {
    /// Whether this address may be connected.
    pub fn permits(&self, address: IpAddr) -> bool {
        let Self::Public { refuse } = self else { return true };
        let address = plain(address);
        !is_private_to_this_machine(address) && !refuse.iter().any(|own| plain(*own) == address)
    }

    /// What can be told from the host's text alone, when somebody else resolves it.
    pub(super) fn permits_name(&self, host: &str) -> bool {
        if *self == Self::Anywhere {
            return true;
        }
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        if let Ok(address) = host.parse::<IpAddr>() {
            return self.permits(address);
        }
        // `127.1`, `0x7f000001` and the like are addresses to many resolvers: only the usual form is taken.
        let last = host.rsplit('.').next().unwrap_or_default();
        !last.starts_with(|c: char| c.is_ascii_digit()) && last != "localhost" && last != "localdomain"
    }

    pub(super) const fn is_public(&self) -> bool {
        matches!(self, Self::Public { .. })
    }
}

/// The IPv4 address inside a mapped (`::ffff:a.b.c.d`) or compatible (`::a.b.c.d`) one.
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    match v6.to_ipv4() {
        // `::` and `::1` have the shape of compatible addresses without being any.
        Some(_) if v6 == Ipv6Addr::LOCALHOST || v6 == Ipv6Addr::UNSPECIFIED => address,
        Some(v4) => IpAddr::V4(v4),
        None => address,
    }
}

fn is_private_to_this_machine(address: IpAddr) -> bool {
    match address {
        // All of 0.0.0.0/8 means "this host" (RFC 1122 section 3.2.1.3).
        IpAddr::V4(v4) => {
            let [first, ..] = v4.octets();
            first == 0
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4 == Ipv4Addr::BROADCAST
        }
        IpAddr::V6(v6) => {
            v6.is_loopback() || v6.is_unspecified() || v6.is_unicast_link_local() || v6.is_multicast()
        }
    }
}
