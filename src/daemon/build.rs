//! Building the house bottom-up: each room from its own settings and the rooms below it.

use std::fs::DirBuilder;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::DaemonError;
use super::limits::Limits;
use super::orders::SiteOrders;
use super::usage::Counted;
use crate::ban::{Ban, BanList, Change};
use crate::cache::Cache;
use crate::clock::{SharedClock, SystemClock};
use crate::config::Config;
use crate::fetch::{self, Engine, Ledger};
use crate::http::Uplink;
use crate::index::{BanRecord, Index};
use crate::net::precedence::{Precedence, Share};
use crate::origin::Origin;
use crate::orm::FileKey;
use crate::peer::Tally;
use crate::proxy::{self, Interceptor, Proxy};
use crate::rest::Hosts;
use crate::shutdown::{Drain, Shutdown};
use crate::telemetry::Health;
use crate::tls::{Identity, NodeId};
use crate::unit::Rate;

/// All rooms of one node; a cheap clone.
#[derive(Clone)]
pub(super) struct House {
    pub(super) identity: Identity,
    pub(super) clock: SharedClock,
    pub(super) health: Health,
    pub(super) cache: Cache,
    pub(super) bans: BanList,
    pub(super) engine: Engine,
    /// What is blocked for the whole site.
    pub(super) orders: SiteOrders,
    pub(super) proxy: Proxy,
    pub(super) own_addresses: Arc<ArcSwap<Vec<IpAddr>>>,
    /// The way out to neighbours, by whatever protocol.
    pub(super) uplink: Uplink,
    /// How fast bytes may go now.
    pub(super) limits: Limits,
    /// Which neighbour gave and took how much.
    pub(super) tally: Tally,
    /// What of the traffic stands in the hourly sums already.
    pub(super) counted: Counted,
    /// Running bodies.
    pub(super) drain: Drain,
    /// Who still writes into the store.
    pub(super) storing: Drain,
}

impl House {
    /// Builds everything but the site's keys. Blocks on the disk.
    pub(super) fn build(
        config: &Config,
        key: Option<&FileKey>,
        admin: &[SocketAddr],
        stop: &Shutdown,
    ) -> Result<Self, DaemonError> {
        let (clock, health): (SharedClock, _) = (SystemClock::shared(), Health::new());
        let identity = Identity::load_or_create(&config.state_dir)?;
        let opened = Index::open_sealed(&config.state_dir, key, Arc::clone(&clock), health.clone());
        let (index, _opened) = opened.map_err(DaemonError::failed)?;
        let cache = Cache::open(config.cache.clone(), index.clone(), Arc::clone(&clock), health.clone())
            .map_err(DaemonError::failed)?;
        let bans = bans(config, &index, &clock);
        let origin = Origin::new(config.origin.clone(), Arc::clone(&clock)).map_err(DaemonError::failed)?;
        let (drain, storing, ledger) = (Drain::new(), Drain::new(), Ledger::new());
        let engine = Engine::new(fetch::Parts {
            cache: cache.clone(),
            origin: origin.clone(),
            config: config.engine(),
            rules: config.rule.clone(),
            clock: Arc::clone(&clock),
            ledger: ledger.clone(),
            drain: drain.clone(),
            stop: stop.clone(),
            storing: storing.clone(),
        });
        let uplink = config.peers.transfers().uplink(Some(own_clients_first(&ledger, &clock)));
        let own_addresses: Arc<ArcSwap<Vec<IpAddr>>> = Arc::default();
        let names = config.admin.hosts.iter().cloned().chain([config.node_name.clone()]);
        let proxy = Proxy::new(proxy::Parts {
            config: config.proxy.clone(),
            mirrors: config.mirror.clone(),
            engine: engine.clone(),
            origin: origin.clone(),
            interceptor: Interceptor::open(config.intercept.clone(), &config.state_dir, Arc::clone(&clock)),
            node: identity.node(),
            hosts: Hosts::new(names),
            own_addresses: Arc::clone(&own_addresses),
            admin: admin.to_vec(),
            clock: Arc::clone(&clock),
            drain: drain.clone(),
            stop: stop.clone(),
        });
        let limits = Limits::new(uplink.clone(), origin, Arc::clone(&clock));
        let me = format!("{} ({})", config.node_name, short(&identity.node()));
        let orders =
            SiteOrders::new(config.peers.site_orders, me, engine.clone(), cache.clone(), Arc::clone(&clock));
        Ok(Self {
            identity,
            clock,
            health,
            cache,
            bans,
            engine,
            orders,
            proxy,
            own_addresses,
            uplink,
            limits,
            tally: Tally::default(),
            counted: Counted::default(),
            drain,
            storing,
        })
    }
}

/// The beginning of a node's id, as people tell nodes apart.
fn short(node: &NodeId) -> String {
    node.to_string().chars().take(8).collect()
}

/// Neighbours have a quarter of the speed at which this machine's own clients are served from the store, and never
/// less than 32 MiB a second.
fn own_clients_first(ledger: &Ledger, clock: &SharedClock) -> Precedence {
    let (ledger, share) = (ledger.clone(), Share { part: 4, floor: Rate(32 << 20) });
    Precedence::new(move || ledger.traffic().bytes_from_cache, share, Arc::clone(clock))
}

fn bans(config: &Config, index: &Index, clock: &SharedClock) -> BanList {
    let bans = BanList::new(config.bans.clone(), Arc::clone(clock));
    bans.restore(index.bans().iter().map(|kept| Ban {
        address: kept.address,
        reason: kept.reason.clone(),
        since: kept.since,
        until: kept.until,
        count: kept.count,
    }));
    let index = index.clone();
    bans.on_change(move |change| match change {
        Change::Put(ban) => index.put_ban(BanRecord {
            address: ban.address,
            reason: ban.reason,
            since: ban.since,
            until: ban.until,
            count: ban.count,
        }),
        Change::Removed(address) => index.remove_ban(address),
    });
    bans
}

/// The folder of identity, index and token; the admin socket may lie in it, so it comes before the ports.
pub(super) fn make_state_dir(folder: &Path) -> Result<(), DaemonError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| {
        DaemonError::failed(format!("cannot make {} (state_dir): {error}", folder.display()))
    })
}
