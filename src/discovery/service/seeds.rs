//! The seeds' names become addresses: at the start, and again from time to time, since names move.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::discovery::Seed;

/// How often names are looked up again: all known, some unknown.
const AGAIN: Duration = Duration::from_secs(300);
const AGAIN_SOON: Duration = Duration::from_secs(15);
/// How long one look-up may take.
const LOOKUP: Duration = Duration::from_secs(10);

/// The seeds, looked up one round at a time; dropping it ends the round.
pub(super) struct Seeds {
    seeds: Vec<Seed>,
    port: u16,
    round: JoinSet<Round>,
    next: Due,
    /// Seeds without an address are worth one line.
    complained: bool,
}

/// What a round found, and whether every seed had an address.
type Round = (Vec<SocketAddr>, bool);

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
        Self { seeds, port, round: JoinSet::new(), next, complained: false }
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
                self.round.spawn(resolve(self.seeds.clone(), self.port));
            }
            Due::Now | Due::At(_) | Due::Never => {}
        }
    }

    /// The addresses that a round found; waits for ever while none runs. Dropping the future loses nothing.
    pub(super) async fn resolved(&mut self) -> Vec<SocketAddr> {
        match self.round.join_next().await {
            None => std::future::pending().await,
            Some(Ok((addresses, all))) => {
                self.next = Due::After(if all { AGAIN } else { AGAIN_SOON });
                if !all && !self.complained {
                    tracing::warn!("some peers.seeds have no address; they are looked up again");
                }
                self.complained = !all;
                addresses
            }
            Some(Err(error)) => {
                tracing::debug!(%error, "a look-up of seeds ended early");
                self.next = Due::After(AGAIN_SOON);
                Vec::new()
            }
        }
    }
}

async fn resolve(seeds: Vec<Seed>, port: u16) -> Round {
    let (mut found, mut all) = (Vec::new(), true);
    for seed in seeds {
        let target = (seed.host.as_str(), seed.port.unwrap_or(port));
        match tokio::time::timeout(LOOKUP, tokio::net::lookup_host(target)).await {
            Ok(Ok(addresses)) => found.extend(addresses),
            Ok(Err(error)) => {
                all = false;
                tracing::debug!(%seed, %error, "a seed has no address");
            }
            Err(_elapsed) => {
                all = false;
                tracing::debug!(%seed, "the look-up of a seed takes too long");
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    (found, all)
}
