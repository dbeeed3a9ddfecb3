//! Among mORMot peers: what they may have of this node's cache, and who introduces Larder nodes found there.

use std::sync::Arc;

use rustix::system::uname;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::DaemonError;
use super::build::House;
use super::holdings::shareable;
use super::neighbours::Seat;
use crate::cache::Cache;
use crate::config::Config;
use crate::digest::{Digest, Stated};
use crate::fetch::Engine;
use crate::mormot::{
    Client, Deadlines, Found, Hash, Held, Holdings, Keys, Limits, Marker, Me, Mormot, Parts, Secret, Server,
    ServerParts, Service, Shelf,
};
use crate::net::interface::{self, Interface};
use crate::net::listener::{BindError, bind};
use crate::{discovery, mormot};

/// What taking part needs of the house.
pub(super) struct Peerage<'a> {
    pub(super) config: &'a Config,
    pub(super) secret: &'a Secret,
    pub(super) house: &'a House,
    pub(super) interfaces: watch::Receiver<Vec<Interface>>,
    pub(super) listener: Option<TcpListener>,
    pub(super) site: Seat,
    /// Asks and serves nobody.
    pub(super) is_guest: bool,
}

/// The port of mORMot peers on the interface that is there now; a port that is taken stops the start.
pub(super) fn listener(config: &Config) -> Result<Option<TcpListener>, BindError> {
    let list = interface::list().unwrap_or_default();
    let Some(seat) = mormot::seat(&config.mormot, &list, interface::link) else { return Ok(None) };
    match bind(seat.peer(seat.address).into(), "mormot.port") {
        // an address that is not there yet may come
        Err(error) if !error.is_taken() => Ok(None),
        bound => bound.map(Some),
    }
}

impl Peerage<'_> {
    /// The handle, which the engine is told of, and the task to run.
    pub(super) fn take(self) -> Result<(Mormot, Service<discovery::Udp>), DaemonError> {
        let (config, house) = (self.config, self.house);
        let keys = Arc::new(Keys::derive(self.secret).map_err(DaemonError::failed)?);
        let server = Server::new(ServerParts {
            keys: Arc::clone(&keys),
            node: house.identity.node(),
            bans: house.bans.clone(),
            shelf: shelf(&house.cache, &house.engine),
            uplink: house.uplink.clone(),
            limits: Limits::default(),
            clock: Arc::clone(&house.clock),
        });
        let peer_port = if config.peers.enabled && !self.is_guest { config.peers.port } else { 0 };
        let marker = Marker { node: house.identity.node(), port: peer_port };
        let holdings =
            Stock { cache: house.cache.clone(), engine: house.engine.clone(), server: server.clone() };
        let site = self.site;
        let seat = mormot::seat(&config.mormot, &self.interfaces.borrow(), interface::link);
        let parts = Parts {
            keys: Arc::clone(&keys),
            me: Me { marker, os: system(), is_guest: self.is_guest },
            holdings: Arc::new(holdings),
            server: (!self.is_guest).then_some(server),
            listener: self.listener,
            seat,
            wait_max: config.peers.wait_max.into(),
            interfaces: self.interfaces,
            met: Box::new(move |_marker, address| {
                if let Some(joined) = site.joined() {
                    joined.discovery.nominate(address);
                }
            }),
            client: Client::new(keys, Deadlines::default()),
            clock: Arc::clone(&house.clock),
            health: house.health.clone(),
        };
        let (mormot, service) = Mormot::new(&config.mormot, parts);
        house.engine.set_mormot(mormot.clone());
        Ok((mormot, service))
    }
}

/// Answers peers' questions from memory.
struct Stock {
    cache: Cache,
    engine: Engine,
    server: Server,
}

impl Holdings for Stock {
    fn lookup(&self, hash: &Hash) -> Held {
        let Some(stated) = hash.stated() else { return Held::Nothing };
        let blob = blob_of(&self.cache, &stated);
        match blob.and_then(|digest| shareable_in_clear(&self.cache, &digest)) {
            Some(size) => Held::Whole(size),
            None => self.engine.lending(&stated).map_or(Held::Nothing, |lending| Held::Part(lending.size)),
        }
    }

    fn connections(&self) -> u16 {
        self.server.connections()
    }

    fn is_busy(&self) -> bool {
        self.server.uplink().is_busy()
    }
}

/// The blob that a digest names, as far as it is known.
fn blob_of(cache: &Cache, stated: &Stated) -> Option<Digest> {
    stated.sha256().or_else(|| cache.index().blob_of(&stated.key()))
}

/// What may cross the network in clear: not what the origin shows only to those it lets in.
fn shareable_in_clear(cache: &Cache, digest: &Digest) -> Option<u64> {
    shareable(cache, digest).filter(|(_, _, guarded)| !guarded).map(|(size, ..)| size)
}

/// What peers may have.
fn shelf(cache: &Cache, engine: &Engine) -> Shelf {
    let (cache, engine) = (cache.clone(), engine.clone());
    Shelf {
        open: Box::new(move |hash, size| {
            let (cache, engine) = (cache.clone(), engine.clone());
            Box::pin(async move {
                let stated = hash.stated()?;
                let blob = match blob_of(&cache, &stated) {
                    Some(digest) => open_blob(&cache, digest).await,
                    None => None,
                };
                let found = blob.or_else(|| open_lending(&engine, &stated))?;
                size.is_none_or(|size| size == found.size).then_some(found)
            })
        }),
    }
}

async fn open_blob(cache: &Cache, digest: Digest) -> Option<Found> {
    shareable_in_clear(cache, &digest)?;
    let records = cache.index().resources_of(&digest);
    let modified =
        records.iter().find_map(|record| record.answer.head.get("last-modified").map(str::to_owned));
    let blob = cache.open_proven(&digest).await?;
    let size = blob.size();
    Some(Found { size, digest: Some(digest), modified, body: Box::new(move |range| blob.body(range)) })
}

fn open_lending(engine: &Engine, stated: &Stated) -> Option<Found> {
    let lending = engine.lending(stated)?;
    let digest = lending.digest();
    let (size, modified) = (lending.size, lending.modified());
    Some(Found { size, digest, modified, body: Box::new(move |range| lending.body(range)) })
}

/// This system as the protocol tells it: its family, then the kernel's patch, minor and major number.
fn system() -> [u8; 4] {
    let family = match std::env::consts::OS {
        "linux" => 2,
        "macos" => 3,
        "freebsd" | "openbsd" | "netbsd" | "dragonfly" => 4,
        _ => 5,
    };
    let release = uname().release().to_string_lossy().into_owned();
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|text| text.parse().unwrap_or(u8::MAX));
    let mut next = || numbers.next().unwrap_or(0);
    let (major, minor, patch) = (next(), next(), next());
    [family, patch, minor, major]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_is_told_as_the_originals_do() {
        let [family, _, _, major] = system();
        assert!((2..=5).contains(&family) && major > 0);
    }
}
