//! From settings to a running node, and to its end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::build::{House, make_state_dir};
use super::mormot::Peerage;
use super::neighbours::{Seat, Site};
use super::ports::Ports;
use super::reload::Reloader;
use super::settings::Settings;
use super::sources::{self, ReloadRequest};
use super::{DaemonError, Notifier, Signal, Signals, chores, records, scrub};
use crate::admin::{self, About, Listeners, Readiness};
use crate::config::{Config, Sources};
use crate::mormot;
use crate::net::interface::{self, Interface};
use crate::net::listener::raise_file_limit;
use crate::net::socket::SocketFile;
use crate::orm::FileKey;
use crate::rest::Token;
use crate::seal::Secret;
use crate::shutdown::Shutdown;
use crate::telemetry::Logging;

/// How long transfers have to part with their files before the folder is given up.
const PART: Duration = Duration::from_secs(10);
/// How often the disk is looked at.
const LOOK: Duration = Duration::from_secs(5);
/// How long a stopping node answers that it is draining.
const SAID: Duration = Duration::from_secs(3);
/// How long services have to end after the last body.
const END: Duration = Duration::from_secs(3);

/// What the daemon starts from.
#[derive(Debug)]
pub struct Start {
    /// The settings.
    pub config: Config,
    /// Where each of them came from.
    pub origins: Sources,
    /// The file they came from, to read it again.
    pub file: Option<PathBuf>,
    /// The site's secrets; none: the node works alone.
    pub secrets: Vec<Secret>,
    /// The secret of mORMot peers; none: they are left alone.
    pub mormot: Option<mormot::Secret>,
    /// What the index is sealed with.
    pub index_key: Option<FileKey>,
    /// The log, to change its level.
    pub logging: Logging,
}

/// Runs until a signal asks to stop.
pub fn run(start: Start) -> Result<(), DaemonError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("larder").build();
    let runtime = runtime.map_err(DaemonError::failed)?;
    let ended = runtime.block_on(serve(start));
    runtime.shutdown_timeout(END);
    ended
}

type Services = JoinSet<Result<(), DaemonError>>;

struct Running {
    house: House,
    services: Services,
    signals: Signals,
    notifier: Notifier,
    readiness: watch::Sender<Readiness>,
    reloader: Reloader,
    reloads: mpsc::Receiver<ReloadRequest>,
    stop: Shutdown,
    /// Ends what stays up until the last body is gone: the administration.
    end: Shutdown,
}

async fn serve(start: Start) -> Result<(), DaemonError> {
    let mut running = begin(start)?;
    let verdict = running.until_asked().await;
    running.finish().await;
    verdict
}

/// Needs the runtime, but waits for nothing but the disk: nobody is served yet.
fn begin(start: Start) -> Result<Running, DaemonError> {
    let signals = Signals::new().map_err(DaemonError::failed)?;
    raise_limits();
    let (stop, end) = (Shutdown::new(), Shutdown::new());
    let with_peers = start.config.peers.enabled && !start.secrets.is_empty();
    make_state_dir(&start.config.state_dir)?;
    let ports = Ports::bind(&start.config, with_peers)?;
    let house = House::build(&start.config, start.index_key.as_ref(), &ports.admin_addresses(), &stop)?;
    let token = Token::load_or_create(&start.config.token_file()).map_err(DaemonError::failed)?;
    let (readiness, ready) = watch::channel(Readiness::Starting);
    let (reload, reloads) = mpsc::channel(4);
    let (seat, mormot): (Seat, Arc<ArcSwapOption<mormot::Mormot>>) = Default::default();
    let settings = Settings::of(&start.config, &start.origins);
    let about = about(&start.config, &house);
    let sources = sources::sources(&house, about, ready, &seat, &mormot, &settings, &start.logging);
    let control = sources::control(&house, &start.config, reload, &start.logging);
    let parts = (sources, control, records::api(&house, &seat));
    let server = admin::Server::new(&start.config.admin, token, parts, end.clone());
    ports.announce();
    tracing::info!(proxy = ?ports.proxy_addresses(), node = %house.identity.node(), "ready");
    let Ports { proxy, admin, files, peers, mormot: listener } = ports;
    let config = Arc::new(start.config);
    let interfaces = interfaces(&house, &config);
    let mut services = Services::new();
    house.limits.prepare(config.rates(), config.limits.clone());
    spawn_services(&mut services, &house, (proxy, files), &interfaces, &stop);
    spawn_own_addresses(&mut services, &house, &config, &interfaces, &stop);
    spawn_admin(&mut services, server, admin, end.clone());
    if with_peers {
        let site = Site {
            config: Arc::clone(&config),
            secrets: start.secrets,
            identity: house.identity.clone(),
            listeners: peers,
            interfaces: interfaces.subscribe(),
            engine: house.engine.clone(),
            cache: house.cache.clone(),
            orders: house.orders.clone(),
            bans: house.bans.clone(),
            uplink: house.uplink.clone(),
            tally: house.tally.clone(),
            clock: Arc::clone(&house.clock),
            health: house.health.clone(),
            seat: seat.clone(),
            is_guest: false,
        };
        services.spawn(site.run(stop.clone(), house.drain.clone()));
    }
    if let Some(secret) = &start.mormot {
        let interfaces = interfaces.subscribe();
        let (config, house, site) = (&*config, &house, seat);
        let peerage = Peerage { config, secret, house, interfaces, listener, site, is_guest: false };
        spawn_mormot(&mut services, peerage, &mormot, &stop)?;
    }
    let notifier = Notifier::from_env();
    spawn_watchers(&mut services, &notifier, &start.logging, &end);
    readiness.send_replace(readiness_of(&house));
    spawn_readiness(&mut services, &house, &readiness, &stop);
    notifier.ready();
    let reloader = Reloader::new(config, start.file, start.logging, house.clone(), settings);
    Ok(Running { house, services, signals, notifier, readiness, reloader, reloads, stop, end })
}

fn raise_limits() {
    match raise_file_limit() {
        Ok(limit) => tracing::debug!(files.limit = limit, "raised the limit on open files"),
        Err(error) => tracing::warn!(%error, "failed to raise the limit on open files"),
    }
}

fn about(config: &Config, house: &House) -> About {
    About {
        node: house.identity.node(),
        name: config.node_name.clone(),
        site: config.site.clone(),
        version: env!("CARGO_PKG_VERSION"),
        started_at: house.clock.now(),
        started: house.clock.instant(),
    }
}

/// The interfaces as they are now; watched from here on.
fn interfaces(house: &House, config: &Config) -> watch::Sender<Vec<Interface>> {
    let list = interface::list().unwrap_or_else(|error| {
        tracing::warn!(%error, "failed to list the network interfaces");
        Vec::new()
    });
    note_own_addresses(house, config, &list);
    watch::Sender::new(list)
}

/// Which addresses are this machine's: loops lead to them, and none of those we listen on is ever banned.
fn note_own_addresses(house: &House, config: &Config, list: &[Interface]) {
    let own: Vec<_> = list.iter().map(|interface| interface.address.to_canonical()).collect();
    let named: Vec<_> = config.peers.listen.iter().map(|listen| listen.address.to_canonical()).collect();
    house.bans.set_own_addresses(if named.is_empty() { own.clone() } else { named });
    house.own_addresses.store(Arc::new(own));
}

fn spawn_services(
    services: &mut Services,
    house: &House,
    (proxy, files): (Vec<tokio::net::TcpListener>, Option<SocketFile>),
    interfaces: &watch::Sender<Vec<Interface>>,
    stop: &Shutdown,
) {
    let (doors, closing, drain) = (house.proxy.clone(), stop.clone(), house.drain.clone());
    services.spawn(async move { doors.run(proxy, closing, drain).await.map_err(DaemonError::failed) });
    if let Some(files) = files {
        let (doors, closing, drain) = (house.proxy.clone(), stop.clone(), house.drain.clone());
        services.spawn(async move {
            doors.hand_over(files, closing, drain).await;
            Ok(())
        });
    }
    let (keeper, until) = (house.clone(), stop.clone());
    services.spawn(async move {
        chores::run(keeper, until).await;
        Ok(())
    });
    let (limits, until) = (house.limits.clone(), stop.clone());
    services.spawn(async move {
        limits.run(until).await;
        Ok(())
    });
    let (keeper, until) = (house.clone(), stop.clone());
    services.spawn(async move {
        scrub::run(keeper, until).await;
        Ok(())
    });
    let (seen, until) = (interfaces.clone(), stop.clone());
    services.spawn(async move {
        interface::watch(seen, until).await;
        Ok(())
    });
}

/// What lives until the last body is gone: signs of life, and the summing up of repeated messages.
fn spawn_watchers(services: &mut Services, notifier: &Notifier, logging: &Logging, end: &Shutdown) {
    let (log, until) = (logging.clone(), end.clone());
    services.spawn(async move {
        log.run(until).await;
        Ok(())
    });
    let (alive, until) = (notifier.clone(), end.clone());
    services.spawn(async move {
        alive.keep_alive(|| true, until).await;
        Ok(())
    });
}

fn readiness_of(house: &House) -> Readiness {
    if house.cache.has_disk() { Readiness::Ready } else { Readiness::NoDisk }
}

/// A disk that fails while running is said as well.
fn spawn_readiness(
    services: &mut Services,
    house: &House,
    readiness: &watch::Sender<Readiness>,
    stop: &Shutdown,
) {
    let (house, readiness, stop) = (house.clone(), readiness.clone(), stop.clone());
    services.spawn(async move {
        while tokio::time::timeout(LOOK, stop.requested()).await.is_err() {
            let now = readiness_of(&house);
            readiness.send_if_modified(|said| std::mem::replace(said, now) != now);
        }
        Ok(())
    });
}

/// Which addresses are this machine's changes with its network.
fn spawn_own_addresses(
    services: &mut Services,
    house: &House,
    config: &Arc<Config>,
    interfaces: &watch::Sender<Vec<Interface>>,
    stop: &Shutdown,
) {
    let (house, config, stop) = (house.clone(), Arc::clone(config), stop.clone());
    let mut seen = interfaces.subscribe();
    services.spawn(async move {
        loop {
            tokio::select! {
                () = stop.requested() => return Ok(()),
                Ok(()) = seen.changed() => note_own_addresses(&house, &config, &seen.borrow_and_update()),
            }
        }
    });
}

/// Takes part among mORMot peers, and lets `shown` show it.
fn spawn_mormot(
    services: &mut Services,
    peerage: Peerage<'_>,
    shown: &ArcSwapOption<mormot::Mormot>,
    stop: &Shutdown,
) -> Result<(), DaemonError> {
    let (until, drain) = (stop.clone(), peerage.house.drain.clone());
    let (handle, service) = peerage.take()?;
    shown.store(Some(Arc::new(handle)));
    services.spawn(async move {
        service.run(until, drain).await;
        Ok(())
    });
    Ok(())
}

fn spawn_admin(services: &mut Services, server: admin::Server, listeners: Listeners, end: Shutdown) {
    services.spawn(async move { server.run(listeners, end).await.map_err(DaemonError::failed) });
}

impl Running {
    /// Serves until somebody asks to stop, or a service ends by itself.
    async fn until_asked(&mut self) -> Result<(), DaemonError> {
        loop {
            tokio::select! {
                signal = self.signals.next() => match signal {
                    Signal::Stop => return Ok(()),
                    Signal::Reload => self.reload(None).await,
                },
                Some(request) = self.reloads.recv() => self.reload(Some(request)).await,
                Some(ended) = self.services.join_next() => {
                    ended.map_err(DaemonError::broken)??;
                    return Err(DaemonError::failed("a service ended although nobody asked it to"));
                }
            }
        }
    }

    async fn reload(&mut self, request: Option<ReloadRequest>) {
        self.notifier.reloading();
        let done = self.reloader.reload().await;
        self.notifier.ready();
        match &done {
            Ok(view) => {
                tracing::info!(applied = ?view.applied, need_restart = ?view.need_restart, "reloaded the configuration")
            }
            Err(error) => {
                tracing::error!(%error, "failed to reload the configuration: the old one stays")
            }
        }
        if let Some(request) = request
            && request.send(done).is_err()
        {
            tracing::debug!("whoever asked for the reload has left");
        }
    }

    async fn finish(mut self) {
        self.notifier.stopping();
        self.readiness.send_replace(Readiness::Draining);
        tracing::info!(guests = self.house.drain.guests(), "stopping");
        self.stop.request();
        let patience = self.reloader.drain_timeout();
        let end = self.end.clone();
        // who looks at readiness has seen why; from then on the port is a successor's
        let make_room = async {
            tokio::time::sleep(SAID).await;
            end.request();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = make_room => {}
            () = let_go(&self.house, patience) => {}
            () = second(&mut self.signals) => tracing::info!("asked again: ending now"),
        }
        self.end.request();
        let joined = tokio::time::timeout(END, async { while self.services.join_next().await.is_some() {} });
        if joined.await.is_err() {
            tracing::debug!("some services did not end in time");
        }
        tracing::info!("stopped");
    }
}

/// Gives up the folder as soon as nobody writes into it, then waits for running bodies.
async fn let_go(house: &House, patience: Duration) {
    if !house.storing.wait(PART).await {
        tracing::warn!("some transfers did not part with their files in time");
    }
    let cache = house.cache.clone();
    let closed = tokio::task::spawn_blocking(move || {
        let flushed = cache.index().close();
        cache.close();
        flushed
    });
    if !closed.await.unwrap_or(false) {
        tracing::warn!("the index could not be written to the end");
    }
    if !house.drain.wait(patience).await {
        tracing::warn!(guests = house.drain.guests(), "some downloads did not end in time: cut");
    }
}

async fn second(signals: &mut Signals) {
    while signals.next().await != Signal::Stop {}
}
