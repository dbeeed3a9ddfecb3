//! The task: keeps a session, says that this node is there, tells what it holds.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::Catalogue;
use super::desk::Desk;
use super::held::{Follower, Holdings, Untold};
use super::records::SCHEMA;
use crate::clock::SharedClock;
use crate::digest::Digest;
use crate::orm::{DbError, Postgres, Server};
use crate::seal::BootId;
use crate::shutdown::Shutdown;
use crate::telemetry::Health;
use crate::tls::NodeId;

/// How long one statement, or one step of a few, may take.
const DEADLINE: Duration = Duration::from_secs(5);
/// How often a node says that it is there; a fifth more or less.
const BEAT: Duration = Duration::from_secs(30);
/// How long changes gather before they are told.
const GATHER: Duration = Duration::from_secs(1);
/// How often all is compared, where nothing was missed.
const COMPARE: Duration = Duration::from_secs(6 * 3600);
/// Within this time the first session is opened, and another in the place of one that broke.
const SOON: Duration = Duration::from_secs(3);
/// The pauses between attempts.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How many changes wait to be told; beyond that all is compared.
const WAITING: usize = 50_000;
/// Of so many signs of life one looks for what the dead left.
const SWEEP: u64 = 16;
/// What goodbye may take.
const GOODBYE: Duration = Duration::from_secs(1);

/// Who this node is to the others.
pub struct Me {
    /// Its id.
    pub node: NodeId,
    /// This run.
    pub boot: BootId,
    /// The fingerprint of its site's secret.
    pub site: String,
    /// What it is called.
    pub name: String,
    /// The version of its program.
    pub version: String,
    /// Where it hears, as of now.
    pub addresses: Box<dyn Fn() -> Vec<SocketAddr> + Send + Sync>,
}

/// The task, ready to run.
#[derive(Debug)]
pub struct Service {
    server: Arc<Server>,
    me: Arc<Me>,
    holdings: Arc<Holdings>,
    handle: Catalogue,
    clock: SharedClock,
    health: Health,
}

/// What outlives a session.
struct Lasting {
    follower: Follower,
    untold: Untold,
    /// When all was last compared; none: it has to be.
    compared: Option<Instant>,
}

impl std::fmt::Debug for Me {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Me").field("node", &self.node).field("boot", &self.boot).finish_non_exhaustive()
    }
}

impl Service {
    /// The handle, and the task to run.
    pub fn new(
        server: Server,
        me: Me,
        holdings: Holdings,
        clock: SharedClock,
        health: Health,
    ) -> (Catalogue, Self) {
        let handle = Catalogue::new(me.node, me.site.clone(), Arc::clone(&clock));
        let (server, me, holdings) = (Arc::new(server), Arc::new(me), Arc::new(holdings));
        (handle.clone(), Self { server, me, holdings, handle, clock, health })
    }

    /// Takes part until asked to stop. It never ends by itself.
    pub async fn run(self, stop: Shutdown) {
        let follower = Follower::new(&self.holdings);
        let mut lasting = Lasting { follower, untold: Untold::new(), compared: None };
        let mut pause = lot(Duration::ZERO, SOON);
        while tokio::time::timeout(pause, stop.requested()).await.is_err() {
            let (server, runtime) = (Arc::clone(&self.server), Handle::current());
            let opened = blocking(move || Postgres::open(&server, &SCHEMA, &runtime, DEADLINE).map(Arc::new));
            let opened = tokio::select! {
                opened = opened => opened,
                () = stop.requested() => return,
            };
            let engine = match opened {
                Ok(engine) => engine,
                Err(error) => {
                    self.in_trouble(&error);
                    let (least, most) = PAUSES;
                    pause = lot(least, (pause * 3).clamp(least, most));
                    continue;
                }
            };
            let ended = Session { service: &self, engine }.hold(&mut lasting, &stop).await;
            self.handle.close();
            match ended {
                Ok(()) => return,
                Err(error) => self.in_trouble(&error),
            }
            pause = lot(Duration::ZERO, SOON).max(pause / 2);
        }
    }

    fn in_trouble(&self, error: &DbError) {
        let reason = format!(
            "the fleet's catalogue cannot be used: {error}; neighbours on this network are found all the same"
        );
        if self.health.raise("catalogue", reason) {
            tracing::warn!(%error, "the fleet's catalogue cannot be used; it is tried again");
        }
    }
}

/// One session.
struct Session<'s> {
    service: &'s Service,
    engine: Arc<Postgres>,
}

impl Session<'_> {
    /// Until it breaks, or somebody asks to stop.
    async fn hold(&self, lasting: &mut Lasting, stop: &Shutdown) -> Result<(), DbError> {
        let mut registration = self.register(lasting, None).await?;
        if self.service.health.clear("catalogue") {
            tracing::info!("the fleet's catalogue is back");
        } else {
            tracing::info!("joined the fleet's catalogue");
        }
        let mut newest = self.service.holdings.feed.watch();
        let mut beat = self.next_beat();
        loop {
            let now = self.service.clock.instant();
            if now >= beat {
                registration = self.beat(lasting, registration).await?;
                beat = self.next_beat();
            }
            let old = lasting.compared.is_none_or(|then| now.saturating_duration_since(then) >= COMPARE);
            if old
                && self.compare(lasting, registration, beat, stop).await?.is_break()
                && !stop.is_requested()
            {
                continue;
            }
            self.tell(lasting, registration).await?;
            newest.mark_unchanged();
            let rest = beat.saturating_duration_since(self.service.clock.instant());
            tokio::select! {
                () = stop.requested() => {
                    self.leave(registration).await;
                    return Ok(());
                }
                Ok(()) = newest.changed() => {
                    if tokio::time::timeout(GATHER, stop.requested()).await.is_ok() {
                        self.leave(registration).await;
                        return Ok(());
                    }
                }
                () = self.service.handle.0.broken.notified() => beat = self.service.clock.instant(),
                () = tokio::time::sleep(rest) => {}
            }
        }
    }

    /// Says who this node is. Under another registration than before all is to be told anew.
    async fn register(&self, lasting: &mut Lasting, before: Option<u64>) -> Result<u64, DbError> {
        let (engine, me) = (Arc::clone(&self.engine), Arc::clone(&self.service.me));
        let (registration, now) = blocking(move || {
            let now = engine.now()?;
            Ok((Desk::register(engine.as_ref(), &me, now)?.registration, now))
        })
        .await?;
        self.service.handle.open(&self.engine, now);
        if before.is_some_and(|before| before != registration) {
            lasting.compared = None;
        }
        Ok(registration)
    }

    async fn beat(&self, lasting: &mut Lasting, registration: u64) -> Result<u64, DbError> {
        let sweeps = getrandom::u64().is_ok_and(|lot| lot % SWEEP == 0);
        let (now, known) = self
            .at_desk(registration, move |desk, engine| {
                let now = engine.now()?;
                let known = desk.beat(now)?;
                if sweeps {
                    desk.sweep(now)?;
                }
                Ok((now, known))
            })
            .await?;
        self.service.handle.open(&self.engine, now);
        if known {
            return Ok(registration);
        }
        // somebody swept it up, or it is another database
        lasting.compared = None;
        self.register(lasting, Some(registration)).await
    }

    /// Compares all that is told with all that is held; broken off when it is time for a sign of life.
    async fn compare(
        &self,
        lasting: &mut Lasting,
        registration: u64,
        beat: Instant,
        stop: &Shutdown,
    ) -> Result<ControlFlow<()>, DbError> {
        lasting.follower = Follower::new(&self.service.holdings);
        lasting.untold.clear();
        let holdings = Arc::clone(&self.service.holdings);
        let held = Arc::new(blocking(move || Ok(holdings.sorted())).await?);
        let mut after: Option<Digest> = None;
        let mut beat = beat;
        loop {
            let (held, holdings) = (Arc::clone(&held), Arc::clone(&self.service.holdings));
            let step = self
                .at_desk(registration, move |desk, _| desk.compare(&held, after, &*holdings.size))
                .await?;
            self.count(step.mended);
            after = step.next;
            if after.is_none() {
                lasting.compared = Some(self.service.clock.instant());
                return Ok(ControlFlow::Continue(()));
            }
            if stop.is_requested() {
                return Ok(ControlFlow::Break(()));
            }
            if self.service.clock.instant() >= beat {
                if self.beat(lasting, registration).await? != registration {
                    return Ok(ControlFlow::Break(()));
                }
                beat = self.next_beat();
            }
        }
    }

    /// Tells what has changed.
    async fn tell(&self, lasting: &mut Lasting, registration: u64) -> Result<(), DbError> {
        match lasting.follower.news(&self.service.holdings) {
            Some(news) => lasting.untold.extend(news),
            None => lasting.compared = None,
        }
        if lasting.untold.len() > WAITING {
            lasting.untold.clear();
            lasting.compared = None;
        }
        if lasting.untold.is_empty() || lasting.compared.is_none() {
            return Ok(());
        }
        let news = Arc::new(lasting.untold.clone());
        let telling = Arc::clone(&news);
        self.at_desk(registration, move |desk, _| desk.tell(&telling)).await?;
        self.count(news.len());
        lasting.follower.told(std::mem::take(&mut lasting.untold));
        Ok(())
    }

    /// A goodbye that is not heard is no harm: who is silent is not offered.
    async fn leave(&self, registration: u64) {
        let leaving = self.at_desk(registration, |desk, engine| desk.leave(engine.now()?));
        if !matches!(tokio::time::timeout(GOODBYE, leaving).await, Ok(Ok(()))) {
            tracing::debug!("the catalogue did not hear this node's goodbye");
        }
    }

    async fn at_desk<T: Send + 'static>(
        &self,
        registration: u64,
        work: impl FnOnce(&Desk<'_>, &Postgres) -> Result<T, DbError> + Send + 'static,
    ) -> Result<T, DbError> {
        let (engine, me) = (Arc::clone(&self.engine), Arc::clone(&self.service.me));
        blocking(move || work(&Desk { engine: engine.as_ref(), me: &me, registration }, &engine)).await
    }

    fn count(&self, rows: usize) {
        let rows = u64::try_from(rows).unwrap_or(u64::MAX);
        self.service.handle.0.told.fetch_add(rows, Ordering::Relaxed);
    }

    fn next_beat(&self) -> Instant {
        self.service.clock.instant() + lot(BEAT * 4 / 5, BEAT * 6 / 5)
    }
}

/// Some time between these two, drawn by lot.
fn lot(least: Duration, most: Duration) -> Duration {
    let span = u64::try_from(most.saturating_sub(least).as_micros()).unwrap_or(u64::MAX);
    let drawn = getrandom::u64().map_or(span / 2, |number| number % span.saturating_add(1));
    least + Duration::from_micros(drawn)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DbError> + Send + 'static,
) -> Result<T, DbError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(std::io::Error::other(error).into()))
}
