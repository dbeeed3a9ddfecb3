//! Who is refused at the peer port, and until when.
//!
//! An offence over a completed TCP handshake is a strike; so many strikes within a window and the address is
//! refused for a while, twice as long each time it comes back, up to a limit. [`BanList::is_banned`] is asked
//! before a byte is read. Never refused are the `never` list and the exact addresses this node listens on;
//! and an address from which a neighbour proved itself lately is refused only when an administrator said so,
//! because behind one address there may be many machines.
//!
//! Times run on the monotonic clock, so that a jump of the wall clock neither lifts nor lengthens a ban;
//! across a restart the rest of a ban is reckoned by the wall clock and is at most the whole ban. The tables
//! are bounded: where they are full, what matters least is forgotten.
//!
//! Keeping bans over a restart is the caller's: it hands in what it kept ([`BanList::restore`]) and hears of
//! every change ([`BanList::on_change`]).

mod config;
mod table;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde::Serialize;

pub use config::Config;

use crate::clock::{SharedClock, Timestamp};
use crate::unit::Span;
use table::Table;

/// How long a proof protects an address.
const PROOF_LASTS: Duration = Duration::from_secs(600);

/// One refused address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ban {
    /// Which; an IPv4 address is never written as a mapped IPv6 one.
    pub address: IpAddr,
    /// Why, for the administrator.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
    /// Until when, by the wall clock of this node.
    pub until: Timestamp,
    /// How many bans in a row this is; 0 where an administrator made it.
    pub count: u32,
}

/// What is to be kept, or no longer kept, over a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A new ban, or a ban in the place of an older one. It is kept a while after its end: the next one is
    /// longer.
    Put(Ban),
    /// Nothing is remembered of this address any more.
    Removed(IpAddr),
}

/// The address can't be banned: it is on the `never` list or this node listens on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is never banned: it is on the bans.never list or an address of this node")]
pub struct Exempt(pub IpAddr);

type Listener = Box<dyn Fn(Change) + Send + Sync>;

/// The refused addresses; a cheap clone.
#[derive(Clone)]
pub struct BanList(Arc<Inner>);

struct Inner {
    table: Mutex<Table>,
    listener: OnceLock<Listener>,
    clock: SharedClock,
}

impl BanList {
    /// Nobody is refused.
    pub fn new(config: Config, clock: SharedClock) -> Self {
        let table = Mutex::new(Table::new(config));
        Self(Arc::new(Inner { table, listener: OnceLock::new(), clock }))
    }

    /// Who hears of changes; only the first call counts. It is called without any lock held and must not
    /// block.
    pub fn on_change(&self, listener: impl Fn(Change) + Send + Sync + 'static) {
        if self.0.listener.set(Box::new(listener)).is_err() {
            tracing::debug!("bans have a listener already");
        }
    }

    /// Takes back what was kept over a restart.
    pub fn restore(&self, kept: impl IntoIterator<Item = Ban>) {
        let (wall, now) = (self.0.clock.now(), self.0.clock.instant());
        let changes = {
            let mut table = self.table();
            kept.into_iter().filter_map(|ban| table.restore(ban, wall, now)).collect()
        };
        self.tell(changes);
    }

    /// Puts other settings in force; running bans keep their ends.
    pub fn reconfigure(&self, config: Config) {
        self.table().config = config;
    }

    /// The exact addresses this node listens on, in the place of those told before.
    pub fn set_own_addresses(&self, addresses: impl IntoIterator<Item = IpAddr>) {
        self.table().own = addresses.into_iter().map(|address| address.to_canonical()).collect();
    }

    /// Counts an offence; true if the address is refused from now on.
    pub fn strike(&self, address: IpAddr, why: &str) -> bool {
        let (wall, now) = (self.0.clock.now(), self.0.clock.instant());
        let (banned, changes) = self.table().strike(address.to_canonical(), why, wall, now);
        if banned && let Some(Change::Put(ban)) = changes.last() {
            let length = Span(ban.until.since(ban.since));
            tracing::info!(reason = why, %length, "an address is refused at the peer port: see `larder bans`");
            tracing::debug!(address = %ban.address, reason = why, %length, "address banned");
        }
        self.tell(changes);
        banned
    }

    /// Whether a connection from this address is to be dropped.
    pub fn is_banned(&self, address: IpAddr) -> bool {
        let now = self.0.clock.instant();
        self.table().is_banned(address.to_canonical(), now)
    }

    /// A neighbour proved itself from this address.
    pub fn proved(&self, address: IpAddr) {
        let now = self.0.clock.instant();
        self.table().proved(address.to_canonical(), now);
    }

    /// Refuses an address by an administrator's word: for `length`, else for as long as bans ever last.
    pub fn add(&self, address: IpAddr, reason: &str, length: Option<Duration>) -> Result<Ban, Exempt> {
        let (wall, now) = (self.0.clock.now(), self.0.clock.instant());
        let (ban, changes) = self.table().add(address.to_canonical(), reason, length, wall, now)?;
        self.tell(changes);
        Ok(ban)
    }

    /// Lifts a ban and forgets the address's past; true if there was anything to lift.
    pub fn remove(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let now = self.0.clock.instant();
        let (lifted, changes) = self.table().remove(address, now);
        self.tell(changes);
        lifted
    }

    /// The bans in force, by address.
    pub fn list(&self) -> Vec<Ban> {
        let (wall, now) = (self.0.clock.now(), self.0.clock.instant());
        self.table().list(wall, now)
    }

    /// Forgets what is over, so that nothing is kept of it; a chore for every minute or so.
    pub fn sweep(&self) {
        let now = self.0.clock.instant();
        let changes = self.table().sweep(now);
        self.tell(changes);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, changes: Vec<Change>) {
        if let Some(listener) = self.0.listener.get() {
            changes.into_iter().for_each(listener);
        }
    }
}

impl std::fmt::Debug for BanList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BanList").finish_non_exhaustive()
    }
}
