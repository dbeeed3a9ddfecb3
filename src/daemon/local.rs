//! The same engine in this process, for one command: no listener, no lasting folder, nobody is served.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::DuplexStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::DaemonError;
use super::build::House;
use super::mormot::Peerage;
use super::neighbours::{Seat, Site};
use crate::cache::MinFree;
use crate::config::Config;
use crate::mormot;
use crate::net::interface;
use crate::proxy::InterceptConfig;
use crate::seal::Secret;
use crate::shutdown::Shutdown;
use crate::unit::ByteSize;

/// What passes between a command and the engine at once.
const BUFFER: usize = 1024 * 1024;

/// Where it works.
#[derive(Debug, Clone)]
pub enum Folder {
    /// Its own, removed at the end.
    Passing(PathBuf),
    /// What it holds stays there, within the configured limits.
    Kept(PathBuf),
}

/// A node that lives as long as a command.
pub struct Local {
    house: House,
    stop: Shutdown,
    site: Option<JoinHandle<Result<(), DaemonError>>>,
    mormot: Option<JoinHandle<()>>,
    folder: Folder,
}

impl Local {
    /// Builds one in `folder`.
    pub async fn open(
        mut config: Config,
        secrets: Vec<Secret>,
        mormot: Option<mormot::Secret>,
        folder: Folder,
    ) -> Result<Self, DaemonError> {
        config.intercept = InterceptConfig::default();
        match &folder {
            Folder::Kept(kept) => {
                (config.state_dir, config.cache.dir) = (kept.join("state"), kept.join("cache"));
            }
            Folder::Passing(own) => {
                (config.state_dir, config.cache.dir) = (own.clone(), own.join("cache"));
                config.cache.max_size = ByteSize(u64::MAX / 4);
                config.cache.min_free = MinFree::Size(ByteSize(0));
            }
        }
        config.cache.read_only = false;
        let stop = Shutdown::new();
        let (settings, asked) = (config.clone(), stop.clone());
        super::build::make_state_dir(&config.state_dir)?;
        let built = tokio::task::spawn_blocking(move || House::build(&settings, None, &[], &asked)).await;
        let house = built.map_err(DaemonError::broken)??;
        let mut local = Self { house, stop, site: None, mormot: None, folder };
        if let Some(secret) = mormot {
            local.ask_mormot(&config, &secret).await?;
        }
        if config.peers.enabled && !secrets.is_empty() {
            local.join(config, secrets).await;
        }
        Ok(local)
    }

    /// Asks neighbours from an ephemeral port; waits once for the first of them.
    async fn join(&mut self, config: Config, secrets: Vec<Secret>) {
        let patience: Duration = config.peers.wait_max.into();
        let (list, seat) = (interface::list().unwrap_or_default(), Seat::default());
        let site = Site {
            config: Arc::new(config),
            secrets,
            identity: self.house.identity.clone(),
            listeners: Vec::new(),
            interfaces: watch::Sender::new(list).subscribe(),
            engine: self.house.engine.clone(),
            cache: self.house.cache.clone(),
            orders: self.house.orders.clone(),
            bans: self.house.bans.clone(),
            uplink: self.house.uplink.clone(),
            tally: self.house.tally.clone(),
            clock: Arc::clone(&self.house.clock),
            health: self.house.health.clone(),
            seat: seat.clone(),
            is_guest: true,
        };
        self.site = Some(tokio::spawn(site.run(self.stop.clone(), self.house.drain.clone())));
        let heard = async {
            while !seat.joined().is_some_and(|joined| joined.discovery.heard_lately()) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        // keys take a while to derive, and neighbours a while to answer: once
        if tokio::time::timeout(Duration::from_secs(1) + patience, heard).await.is_err() {
            tracing::debug!("no neighbour was heard");
        }
    }

    /// Asks mORMot peers too; waits a moment for an interface.
    async fn ask_mormot(&mut self, config: &Config, secret: &mormot::Secret) -> Result<(), DaemonError> {
        let interfaces = watch::Sender::new(interface::list().unwrap_or_default()).subscribe();
        let (house, site, listener) = (&self.house, Seat::default(), None);
        let peerage = Peerage { config, secret, house, interfaces, listener, site, is_guest: true };
        let (handle, service) = peerage.take()?;
        self.mormot = Some(tokio::spawn(service.run(self.stop.clone(), self.house.drain.clone())));
        let seated = async {
            while !handle.is_seated() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        if tokio::time::timeout(Duration::from_millis(500), seated).await.is_err() {
            tracing::debug!("there is no interface with mORMot peers");
        }
        Ok(())
    }

    /// A connection to the doors of this node.
    pub fn connect(&self) -> DuplexStream {
        let (near, far) = tokio::io::duplex(BUFFER);
        let (proxy, stop) = (self.house.proxy.clone(), self.stop.clone());
        // joined by the drain
        drop(self.house.drain.spawn(proxy.serve_local(far, IpAddr::V4(Ipv4Addr::LOCALHOST), stop)));
        near
    }

    /// Ends it, and removes its folder unless that is kept.
    pub async fn close(mut self) {
        self.stop.request();
        if let Some(site) = self.site.take()
            && tokio::time::timeout(Duration::from_secs(1), site).await.is_err()
        {
            tracing::debug!("the site did not let go in time");
        }
        if let Some(mormot) = self.mormot.take()
            && tokio::time::timeout(Duration::from_secs(1), mormot).await.is_err()
        {
            tracing::debug!("the task among mORMot peers did not end in time");
        }
        if !self.house.drain.wait(Duration::from_secs(1)).await {
            tracing::debug!("some transfers did not end in time");
        }
        if !self.house.storing.wait(Duration::from_secs(10)).await {
            tracing::debug!("some downloads were not committed in time");
        }
        let (cache, folder) = (self.house.cache.clone(), self.folder.clone());
        let removed = tokio::task::spawn_blocking(move || {
            cache.index().close();
            cache.close();
            match folder {
                Folder::Passing(own) => std::fs::remove_dir_all(own),
                Folder::Kept(_) => Ok(()),
            }
        });
        if let Ok(Err(error)) = removed.await {
            tracing::warn!(%error, "failed to remove a working folder");
        }
    }
}
