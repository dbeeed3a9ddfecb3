//! The seeds' names become addresses: at the start, and again from time to time, since names move.
//!
//! A look-up that fails takes nothing away: what a seed led to stays until it leads elsewhere.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::discovery::Seed;
use crate::net::srv::Services;

/// How often names are looked up again: all known, some unknown.
const AGAIN: Duration = Duration::from_secs(300);
const AGAIN_SOON: Duration = Duration::from_secs(15);
/// How long one look-up may take.
const LOOKUP: Duration = Duration::from_secs(10);
/// The most addresses that all seeds together lead to.
const MOST: usize = 256;

/// The seeds, looked up one round at a time; dropping it ends the round.
pub(super) struct Seeds {
    seeds: Vec<Seed>,
    /// What each seed led to when it was last known.
    known: Vec<Vec<SocketAddr>>,
    port: u16,
    round: JoinSet<Round>,
    next: Due,
    /// Seeds without an address are worth one line.
    complained: bool,
}

/// What a round found: for each seed its addresses, or none where it failed.
struct Round {
    found: Vec<Option<Vec<SocketAddr>>>,
    /// How long it may be believed.
    again: Duration,
}

#[derive(Clone, Copy)]
enum Due {
    Never,
    Now,
    After(Duration),
    At(Instant),
}

impl Seeds {
    /// `port` is the site's, for seeds without one.
    pub(super) fn new(seeds: Vec<Seed>, port: u16) -> Self {
        let next = if seeds.is_empty() { Due::Never } else { Due::Now };
        let known = vec![Vec::new(); seeds.len()];
        Self { seeds, known, port, round: JoinSet::new(), next, complained: false }
    }

    /// When [`Seeds::begin`] has something to do.
    pub(super) const fn next(&self) -> Option<Instant> {
        match self.next {
            Due::At(time) => Some(time),
            Due::Never | Due::Now | Due::After(_) => None,
        }
    }

    /// Begins a round whose time has come.
    pub(super) fn begin(&mut self, now: Instant) {
        match self.next {
            Due::After(pause) => self.next = Due::At(now + pause),
            Due::At(time) if time > now => {}
            Due::Now | Due::At(_) if self.round.is_empty() => {
                self.next = Due::Never;
                self.round.spawn(resolve(self.seeds.clone(), self.port, now));
            }
            Due::Now | Due::At(_) | Due::Never => {}
        }
    }

    /// The addresses that are known after a round; waits for ever while none runs. Dropping the future loses
    /// nothing.
    pub(super) async fn resolved(&mut self) -> Vec<SocketAddr> {
        match self.round.join_next().await {
            None => std::future::pending().await,
            Some(Ok(round)) => self.learn(round),
            Some(Err(error)) => {
                tracing::debug!(%error, "a look-up of seeds ended early");
                self.next = Due::After(AGAIN_SOON);
                self.addresses()
            }
        }
    }

    fn learn(&mut self, round: Round) -> Vec<SocketAddr> {
        self.next = Due::After(round.again);
        let all = round.found.iter().all(Option::is_some);
        for (known, found) in self.known.iter_mut().zip(round.found) {
            *known = found.unwrap_or_else(|| std::mem::take(known));
        }
        if !all && !self.complained {
            tracing::warn!("some peers.seeds have no address; they are looked up again");
        }
        self.complained = !all;
        self.addresses()
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        let mut all = self.known.concat();
        all.sort_unstable();
        all.dedup();
        all.truncate(MOST);
        all
    }
}

async fn resolve(seeds: Vec<Seed>, port: u16, now: Instant) -> Round {
    let look = seeds.iter().map(|seed| async move {
        match tokio::time::timeout(LOOKUP, look_up(seed, port, now)).await {
            Ok(Ok(found)) => Some(found),
            Ok(Err(error)) => {
                tracing::debug!(%seed, %error, "a seed has no address");
                None
            }
            Err(_elapsed) => {
                tracing::debug!(%seed, "the look-up of a seed takes too long");
                None
            }
        }
    });
    let looked = futures_util::future::join_all(look).await;
    let all = looked.iter().all(Option::is_some);
    let again = if all { AGAIN } else { AGAIN_SOON };
    let holds = looked.iter().flatten().map(|(_, holds)| *holds).min().unwrap_or(again);
    let found = looked.into_iter().map(|seed| seed.map(|(addresses, _)| addresses)).collect();
    Round { found, again: again.min(holds.max(AGAIN_SOON)) }
}

/// The addresses of one seed, and how long they hold.
async fn look_up(
    seed: &Seed,
    port: u16,
    now: Instant,
) -> Result<(Vec<SocketAddr>, Duration), Box<dyn std::error::Error + Send + Sync>> {
    let (host, own) = match seed {
        Seed::Host { host, port } => (host, *port),
        Seed::Service(name) => return service(name, now).await,
    };
    let found = tokio::net::lookup_host((host.as_str(), own.unwrap_or(port))).await?;
    Ok((found.collect(), AGAIN))
}

/// The hosts of a service are names like any other: they are looked up as the system does it.
async fn service(
    name: &str,
    now: Instant,
) -> Result<(Vec<SocketAddr>, Duration), Box<dyn std::error::Error + Send + Sync>> {
    // the file that names the servers may have changed since
    let services = tokio::task::spawn_blocking(Services::of_system).await??;
    let places = services.find(name).await?;
    let mut found = Vec::new();
    for (host, port) in &places.targets {
        let host = host.strip_suffix('.').unwrap_or(host);
        match tokio::net::lookup_host((host, *port)).await {
            Ok(addresses) => found.extend(addresses),
            Err(error) => tracing::debug!(host, %error, "a host that a service names has no address"),
        }
    }
    if found.is_empty() {
        return Err(format!("no host of {name} has an address").into());
    }
    Ok((found, places.until.saturating_duration_since(now)))
}
