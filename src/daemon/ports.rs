//! All listening sockets, bound before anything else happens: all or nothing.

use std::net::SocketAddr;
use std::path::Path;

use tokio::net::TcpListener;

use super::DaemonError;
use crate::admin::{AdminSocket, Listeners};
use crate::config::Config;
use crate::net::listener::{Inherited, bind_all};
use crate::net::socket::SocketFile;
use crate::tls;

/// The sockets of one node.
#[derive(Debug)]
pub(super) struct Ports {
    pub(super) proxy: Vec<TcpListener>,
    pub(super) admin: Listeners,
    /// Where `larder get` fetches files; none where it cannot be.
    pub(super) files: Option<SocketFile>,
    /// None where the node works alone.
    pub(super) peers: Vec<TcpListener>,
    /// For mORMot peers, where they are wanted and there is an interface.
    pub(super) mormot: Option<TcpListener>,
}

impl Ports {
    /// Binds what the configuration names, or takes what systemd hands over in its place.
    pub(super) fn bind(config: &Config, with_peers: bool) -> Result<Self, DaemonError> {
        let mut inherited = Inherited::take()?;
        let proxy = bind_all(&config.proxy.listen, "proxy.listen", "proxy", &mut inherited)?;
        let tcp = bind_all(&config.admin.listen, "admin.listen", "admin", &mut inherited)?;
        let peers = if with_peers {
            let addresses = peer_addresses(config);
            let key = if config.peers.listen.is_empty() { "peers.port" } else { "peers.listen" };
            bind_all(&addresses, key, "peers", &mut inherited)?
        } else {
            Vec::new()
        };
        inherited.finish()?;
        let mormot = if config.mormot.enabled { super::mormot::listener(config)? } else { None };
        let tls = if config.admin.tls_cert.as_os_str().is_empty() {
            None
        } else {
            Some(tls::listener(&config.admin.tls_cert, &config.admin.tls_key)?)
        };
        let path = &config.admin.socket;
        let socket = AdminSocket::bind(path).map_err(|error| {
            DaemonError::failed(format!("cannot listen on {} (admin.socket): {error}", path.display()))
        })?;
        let files = files(path);
        Ok(Self { proxy, admin: Listeners { tcp, tls, socket: Some(socket) }, files, peers, mormot })
    }

    /// Where the doors are.
    pub(super) fn proxy_addresses(&self) -> Vec<SocketAddr> {
        addresses(&self.proxy)
    }

    /// Where the administration listens.
    pub(super) fn admin_addresses(&self) -> Vec<SocketAddr> {
        addresses(&self.admin.tcp)
    }

    /// One line for each bound address.
    pub(super) fn announce(&self) {
        let mormot = self.mormot.as_slice();
        for (what, listeners) in [
            ("doors", self.proxy.as_slice()),
            ("admin", &self.admin.tcp),
            ("peers", &self.peers),
            ("mORMot peers", mormot),
        ] {
            for address in addresses(listeners) {
                tracing::info!(%address, "listening: {what}");
            }
        }
    }
}

/// A socket beside the admin's, open to everybody of this machine: it gives nothing without a ticket of a door.
/// Without it bytes go by the doors as ever.
fn files(admin: &Path) -> Option<SocketFile> {
    let stem = admin.file_stem()?.to_str()?;
    let path = admin.with_file_name(format!("{stem}-files.sock"));
    let bound = SocketFile::bind(&path).and_then(|socket| socket.set_mode(0o666).map(|()| socket));
    bound.inspect_err(|error| tracing::debug!(%error, path = %path.display(), "no socket for files")).ok()
}

fn addresses(listeners: &[TcpListener]) -> Vec<SocketAddr> {
    listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
}

/// Where neighbours connect to: what is named, else every address. Which of them are told to neighbours is
/// for discovery to decide; who gets anything is for grants.
fn peer_addresses(config: &Config) -> Vec<SocketAddr> {
    if config.peers.listen.is_empty() {
        let any = [std::net::Ipv4Addr::UNSPECIFIED.into(), std::net::Ipv6Addr::UNSPECIFIED.into()];
        return any.map(|address| SocketAddr::new(address, config.peers.port)).to_vec();
    }
    config.peers.listen.iter().map(|listen| listen.with_port(config.peers.port)).collect()
}
