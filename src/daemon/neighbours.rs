//! Joining the site: keys are derived behind the start, then neighbours are served, found and asked.

use std::net::{IpAddr, SocketAddr, TcpListener as StdListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::DaemonError;
use super::holdings::{Shared, shareable, shelf};
use super::orders::{self, Heard, SiteOrders};
use crate::ban::BanList;
use crate::cache::Cache;
use crate::catalogue::{self, Catalogue};
use crate::clock::SharedClock;
use crate::config::{Config, Environment};
use crate::digest::Digest;
use crate::discovery::{self, Discovery, Endpoint};
use crate::fetch::{Engine, Neighbours};
use crate::http::Uplink;
use crate::net::interface::{Interface, choose};
use crate::peer;
use crate::seal::{BootId, Grants, Sealer, Secret, SiteKeys};
use crate::shutdown::{Drain, Shutdown};
use crate::telemetry::Health;
use crate::tls::Identity;

/// The state folder takes nothing.
const UNWRITTEN: &str = "state-folder";
/// How soon it is tried again.
const AGAIN: Duration = Duration::from_secs(2);

/// What the site needs of the house.
pub(super) struct Site {
    pub(super) config: Arc<Config>,
    pub(super) secrets: Vec<Secret>,
    pub(super) identity: Identity,
    pub(super) listeners: Vec<TcpListener>,
    pub(super) interfaces: watch::Receiver<Vec<Interface>>,
    pub(super) engine: Engine,
    pub(super) cache: Cache,
    pub(super) orders: SiteOrders,
    pub(super) bans: BanList,
    pub(super) uplink: Uplink,
    pub(super) tally: peer::Tally,
    pub(super) clock: SharedClock,
    pub(super) health: Health,
    pub(super) seat: Seat,
    /// Asks and serves nobody.
    pub(super) is_guest: bool,
}

type Tasks = JoinSet<Result<(), DaemonError>>;

/// Why a membership ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// Somebody asked.
    Asked,
    /// Another node has the same id.
    Renew,
}

/// Where the rooms above find the site once it is joined; a cheap clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Seat(Arc<ArcSwapOption<Joined>>);

/// The site, joined.
pub(super) struct Joined {
    pub(super) discovery: Discovery,
    pub(super) fingerprint: String,
    pub(super) catalogue: Option<Catalogue>,
}

impl std::fmt::Debug for Joined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Joined").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

impl Seat {
    pub(super) fn joined(&self) -> Option<Arc<Joined>> {
        self.0.load_full()
    }
}

/// The keys and sockets that outlive a change of identity.
struct Lasting {
    keys: SiteKeys,
    listeners: Vec<StdListener>,
}

impl Site {
    /// Joins and stays until asked to stop. Where another live node turns out to have this node's id (two
    /// machines made from one image), this one takes a new one and joins again.
    pub(super) async fn run(mut self, stop: Shutdown, drain: Drain) -> Result<(), DaemonError> {
        let (site, secrets) = (self.config.site.clone(), std::mem::take(&mut self.secrets));
        let derived = tokio::task::spawn_blocking(move || SiteKeys::derive(&site, &secrets)).await;
        let keys = derived.map_err(DaemonError::broken)?.map_err(DaemonError::failed)?;
        let listeners = std::mem::take(&mut self.listeners).into_iter().map(TcpListener::into_std);
        let lasting =
            Lasting { keys, listeners: listeners.collect::<Result<_, _>>().map_err(DaemonError::failed)? };
        while !stop.is_requested() {
            if self.round(&lasting, stop.child(), &drain).await? == Ended::Asked {
                break;
            }
            let Some(renewed) = self.written(&stop, Identity::renew).await? else { break };
            self.identity = renewed;
            tracing::warn!(node = %self.identity.node(), "another node has this node's id: took a new one");
        }
        Ok(())
    }

    /// What has to be on the disk before anybody is told of it; none where the program stops first. A disk that
    /// refuses costs the neighbours, and not the downloads: it is asked again until it takes it.
    async fn written<T, E>(
        &self,
        stop: &Shutdown,
        write: fn(&Path) -> Result<T, E>,
    ) -> Result<Option<T>, DaemonError>
    where
        T: Send + 'static,
        E: std::fmt::Display + Send + 'static,
    {
        while !stop.is_requested() {
            let state_dir = self.config.state_dir.clone();
            let written = tokio::task::spawn_blocking(move || write(&state_dir)).await;
            let error = match written.map_err(DaemonError::broken)? {
                Ok(written) => {
                    self.health.clear(UNWRITTEN);
                    return Ok(Some(written));
                }
                Err(error) => error,
            };
            let folder = self.config.state_dir.display();
            let fresh =
                self.health.raise(UNWRITTEN, format!("no neighbours: cannot write to {folder}: {error}"));
            if fresh {
                tracing::warn!(%error, "the state folder cannot be written: this node works alone until it can");
            }
            tokio::select! {
                () = tokio::time::sleep(AGAIN) => {}
                () = stop.requested() => {}
            }
        }
        Ok(None)
    }

    /// One membership under one identity.
    async fn round(&self, lasting: &Lasting, stop: Shutdown, drain: &Drain) -> Result<Ended, DaemonError> {
        let Some(boot) = self.written(&stop, BootId::next).await? else { return Ok(Ended::Asked) };
        let keys = &lasting.keys;
        let grants = Grants::new(Arc::clone(&self.clock));
        let server = self.server(keys, &grants)?;
        let (named, heard) = orders::waiting();
        self.cache.join(self.identity.node());
        let parts = self.discovery_parts((keys, boot), grants, &server, named)?;
        let config = self.discovery_config(&lasting.listeners);
        let (discovery, service) = Discovery::new(config, parts).map_err(DaemonError::failed)?;
        let catalogue = self.catalogue(keys.fingerprint(), boot)?;
        let client = peer::Client::new(
            &self.config.peers.transfers(),
            self.identity.clone(),
            keys.clone(),
            &self.clock,
            self.tally.clone(),
        );
        let (catalogue, telling) = catalogue.unzip();
        let neighbours = Neighbours::new(discovery.clone(), client.clone());
        let asking = (discovery.clone(), neighbours.clone());
        self.engine.set_neighbours(neighbours.consulting(catalogue.clone()));
        let joined = Joined { discovery: discovery.clone(), fingerprint: keys.fingerprint(), catalogue };
        tracing::info!(site.fingerprint = %joined.fingerprint, "joined the site");
        self.seat.0.store(Some(Arc::new(joined)));
        let mut tasks: Tasks = JoinSet::new();
        let until = stop.clone();
        tasks.spawn(async move {
            service.run(until).await;
            Ok(())
        });
        self.follow_orders(&mut tasks, heard, asking, &stop);
        if let Some(telling) = telling {
            let until = stop.clone();
            tasks.spawn(async move {
                telling.run(until).await;
                Ok(())
            });
        }
        if self.config.peers.listen.is_empty() {
            server.serve_only_at(addresses(&self.endpoints()));
        }
        self.spawn_listeners(&mut tasks, lasting, &server, &stop, drain)?;
        let ended = self.stay(tasks, &discovery, &server, &stop).await;
        if !client.close(Duration::from_secs(1)).await {
            tracing::debug!("some connections to neighbours did not close in time");
        }
        ended
    }

    fn discovery_parts(
        &self,
        (keys, boot): (&SiteKeys, BootId),
        grants: Grants,
        server: &peer::Server,
        named: mpsc::Sender<Heard>,
    ) -> Result<discovery::Parts, DaemonError> {
        let orders = (self.orders.clone(), named);
        let holdings = Shared::new(self.cache.clone(), self.engine.clone(), server.clone(), orders);
        Ok(discovery::Parts {
            node: self.identity.node(),
            pins: vec![self.identity.pin()],
            sealer: Sealer::new(keys.clone(), boot).map_err(DaemonError::failed)?,
            grants,
            holdings: Arc::new(holdings),
            clock: Arc::clone(&self.clock),
            health: self.health.clone(),
        })
    }

    fn follow_orders(
        &self,
        tasks: &mut Tasks,
        heard: mpsc::Receiver<Heard>,
        asking: (Discovery, Neighbours),
        stop: &Shutdown,
    ) {
        if self.orders.is_followed() && !self.is_guest {
            let is_gateway = self.config.peers.gateway;
            tasks.spawn(self.orders.clone().run(heard, asking, is_gateway, stop.clone()));
        }
    }

    fn spawn_listeners(
        &self,
        tasks: &mut Tasks,
        lasting: &Lasting,
        server: &peer::Server,
        stop: &Shutdown,
        drain: &Drain,
    ) -> Result<(), DaemonError> {
        for listener in &lasting.listeners {
            let listener =
                listener.try_clone().and_then(TcpListener::from_std).map_err(DaemonError::failed)?;
            let (server, stop, drain) = (server.clone(), stop.clone(), drain.clone());
            tasks
                .spawn(async move { server.run(listener, &stop, &drain).await.map_err(DaemonError::failed) });
        }
        Ok(())
    }

    /// Follows the interfaces until asked to stop, or until the id must be another one.
    async fn stay(
        &self,
        mut tasks: Tasks,
        discovery: &Discovery,
        server: &peer::Server,
        stop: &Shutdown,
    ) -> Result<Ended, DaemonError> {
        let follows = self.config.peers.listen.is_empty() && !self.is_guest;
        let mut interfaces = self.interfaces.clone();
        let mut ended = Ended::Asked;
        loop {
            tokio::select! {
                () = discovery.must_renew(), if ended == Ended::Asked => {
                    ended = Ended::Renew;
                    stop.request();
                }
                Ok(()) = interfaces.changed(), if follows => {
                    let now = endpoints(&self.config, &interfaces.borrow_and_update());
                    server.serve_only_at(addresses(&now));
                    discovery.set_endpoints(now).await;
                }
                task = tasks.join_next() => match task {
                    Some(task) => {
                        task.map_err(DaemonError::broken)??;
                        if !stop.is_requested() {
                            return Err(DaemonError::failed("a service of the site ended although nobody asked it to"));
                        }
                    }
                    None => return Ok(ended),
                },
            }
        }
    }

    fn server(&self, keys: &SiteKeys, grants: &Grants) -> Result<peer::Server, DaemonError> {
        let parts = peer::ServerParts {
            identity: self.identity.clone(),
            keys: keys.clone(),
            grants: grants.clone(),
            bans: self.bans.clone(),
            shelf: shelf(&self.cache, &self.engine, &self.clock, &self.orders),
            uplink: self.uplink.clone(),
            limits: peer::Limits::default(),
            tally: self.tally.clone(),
        };
        Ok(peer::Server::new(&self.config.peers.transfers(), parts)?)
    }

    /// The fleet's catalogue, where there is one: who this node is there, and what it tells of itself.
    fn catalogue(
        &self,
        site: String,
        boot: BootId,
    ) -> Result<Option<(Catalogue, catalogue::Service)>, DaemonError> {
        let pass_file = Environment::of_process().get("PGPASSFILE").map(PathBuf::from);
        let server = self.config.index.server(pass_file).map_err(DaemonError::failed)?;
        // who serves nobody has nothing to tell
        let Some(server) = server.filter(|_| !self.is_guest) else { return Ok(None) };
        let (config, interfaces) = (Arc::clone(&self.config), self.interfaces.clone());
        let me = catalogue::Me {
            node: self.identity.node(),
            boot,
            site,
            name: self.config.node_name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            addresses: Box::new(move || reached_at(&config, &interfaces.borrow())),
        };
        let (held, all, least) = (self.cache.clone(), self.cache.clone(), self.config.peers.min_size.bytes());
        let size = move |digest: &Digest| {
            shareable(&held, digest).map(|(size, ..)| size).filter(|size| *size >= least)
        };
        let holdings = catalogue::Holdings {
            size: Box::new(size),
            all: Box::new(move || all.index().blob_names()),
            feed: self.cache.index().feed().clone(),
        };
        let (clock, health) = (Arc::clone(&self.clock), self.health.clone());
        Ok(Some(catalogue::Service::new(server, me, holdings, clock, health)))
    }

    fn discovery_config(&self, listeners: &[StdListener]) -> discovery::Config {
        let peers = &self.config.peers;
        let in_clear = peers.tls == peer::Tls::Off;
        discovery::Config {
            node_name: self.config.node_name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            port: peers.port,
            tcp_port: listeners.first().and_then(|l| l.local_addr().ok()).map_or(0, |address| address.port()),
            https: !in_clear,
            http: in_clear,
            endpoints: self.endpoints(),
            seeds: peers.seeds.clone(),
            wait_max: peers.wait_max.into(),
            gateway: peers.gateway && !self.is_guest,
            advertise: peers.advertise,
        }
    }

    /// Where nobody is served, frames leave from an ephemeral port: the site's own may be a daemon's.
    fn endpoints(&self) -> Vec<Endpoint> {
        let mut endpoints = endpoints(&self.config, &self.interfaces.borrow());
        if self.is_guest {
            endpoints.iter_mut().for_each(|endpoint| endpoint.local.set_port(0));
        }
        endpoints
    }
}

/// Where to speak and hear: the addresses that are named, else those of the usable interfaces.
pub(super) fn endpoints(config: &Config, interfaces: &[Interface]) -> Vec<Endpoint> {
    let peers = &config.peers;
    if !peers.listen.is_empty() {
        let listen: Vec<_> = peers.listen.iter().map(|listen| listen.with_port(peers.port)).collect();
        let mut endpoints = Endpoint::pair(&listen, &peers.broadcast);
        for endpoint in &mut endpoints {
            let own = interfaces.iter().find(|interface| interface.address == endpoint.local.ip());
            endpoint.index = own.map_or(0, |interface| interface.index);
            if endpoint.broadcast.is_none() && peers.broadcast.is_empty() {
                endpoint.broadcast =
                    own.and_then(|own| own.broadcast).map(|b| (IpAddr::V4(b), peers.port).into());
            }
        }
        return endpoints;
    }
    let usable = choose(interfaces.to_vec(), &peers.interfaces).into_iter().filter(|choice| choice.usable);
    let found = usable.map(|choice| {
        let interface = choice.interface;
        let local = address(&interface, peers.port);
        let own = interface.broadcast.map(|broadcast| (IpAddr::V4(broadcast), peers.port).into());
        let named = Endpoint::pair(&[local], &peers.broadcast).pop().and_then(|pair| pair.broadcast);
        Endpoint { local, broadcast: named.or(own), index: interface.index }
    });
    found.collect()
}

/// Where nodes of other networks reach this one: what it tells neighbours, else all its endpoints that have a
/// meaning elsewhere.
fn reached_at(config: &Config, interfaces: &[Interface]) -> Vec<SocketAddr> {
    if let Some(advertised) = config.peers.advertise {
        return vec![(advertised.ip, advertised.port.unwrap_or(config.peers.port)).into()];
    }
    let local = endpoints(config, interfaces).into_iter().map(|endpoint| endpoint.local);
    let only_here = |address: &SocketAddr| match address.ip() {
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
        IpAddr::V4(ip) => ip.is_link_local(),
    };
    local.filter(|address| !only_here(address)).collect()
}

/// The addresses of these endpoints.
fn addresses(endpoints: &[Endpoint]) -> Vec<IpAddr> {
    endpoints.iter().map(|endpoint| endpoint.local.ip().to_canonical()).collect()
}

/// A link-local IPv6 address is one only together with its interface.
fn address(interface: &Interface, port: u16) -> SocketAddr {
    match interface.address {
        IpAddr::V6(v6) if v6.is_unicast_link_local() => {
            std::net::SocketAddrV6::new(v6, port, 0, interface.index).into()
        }
        address @ (IpAddr::V4(_) | IpAddr::V6(_)) => (address, port).into(),
    }
}
