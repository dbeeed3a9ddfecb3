//! The table of offenders: decides, without clock, lock or log.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::{Ban, Change, Config, Exempt, PROOF_LASTS};
use crate::clock::Timestamp;

/// How many offenders, and how many proved addresses, are remembered at most.
pub(super) const CAPACITY: usize = 4096;

/// What is remembered of the addresses.
pub(super) struct Table {
    pub(super) config: Config,
    pub(super) own: HashSet<IpAddr>,
    offenders: HashMap<IpAddr, Offender>,
    /// When a neighbour last proved itself there.
    proofs: HashMap<IpAddr, Instant>,
}

/// One address with offences.
#[derive(Default)]
struct Offender {
    /// The offences within the window, the oldest first; never more than lead to a ban.
    strikes: VecDeque<Instant>,
    /// The present or the last ban.
    ban: Option<Sentence>,
}

/// A ban with its end on the monotonic clock.
struct Sentence {
    ban: Ban,
    end: Instant,
}

type Changes = Vec<Change>;

impl Table {
    pub(super) fn new(config: Config) -> Self {
        Self { config, own: HashSet::new(), offenders: HashMap::new(), proofs: HashMap::new() }
    }

    pub(super) fn is_banned(&self, address: IpAddr, now: Instant) -> bool {
        let sentence = self.offenders.get(&address).and_then(|offender| offender.ban.as_ref());
        self.config.enabled
            && !self.is_exempt(address)
            && sentence.is_some_and(|s| s.end > now && (s.by_hand() || !self.is_proved(address, now)))
    }

    pub(super) fn strike(
        &mut self,
        address: IpAddr,
        why: &str,
        wall: Timestamp,
        now: Instant,
    ) -> (bool, Changes) {
        if !self.config.enabled || self.is_exempt(address) || self.is_proved(address, now) {
            return (false, Vec::new());
        }
        let mut changes = self.make_room(address, now);
        let offender = self.offenders.entry(address).or_default();
        if offender.is_in_force(now) {
            return (true, changes);
        }
        if offender.count_strike(&self.config, now) {
            let count = offender.last_count(&self.config, now).saturating_add(1);
            let reason = format!("{} offences, the last: {why}", offender.strikes.len());
            let length = self.config.length(count);
            let ban = Ban { address, reason, since: wall, until: wall.plus(length), count };
            changes.push(offender.sentence(ban, length, now));
            return (true, changes);
        }
        (false, changes)
    }

    pub(super) fn add(
        &mut self,
        address: IpAddr,
        reason: &str,
        length: Option<Duration>,
        wall: Timestamp,
        now: Instant,
    ) -> Result<(Ban, Changes), Exempt> {
        if self.is_exempt(address) {
            return Err(Exempt(address));
        }
        let length = length.unwrap_or(self.config.max_duration.0);
        let ban = Ban { address, reason: reason.to_owned(), since: wall, until: wall.plus(length), count: 0 };
        let mut changes = self.make_room(address, now);
        changes.push(self.offenders.entry(address).or_default().sentence(ban.clone(), length, now));
        Ok((ban, changes))
    }

    pub(super) fn remove(&mut self, address: IpAddr, now: Instant) -> (bool, Changes) {
        match self.offenders.remove(&address) {
            Some(gone) => (gone.is_in_force(now), gone.forgotten(address)),
            None => (false, Vec::new()),
        }
    }

    pub(super) fn proved(&mut self, address: IpAddr, now: Instant) {
        if self.proofs.len() >= CAPACITY && !self.proofs.contains_key(&address) {
            self.proofs.retain(|_, at| now.saturating_duration_since(*at) < PROOF_LASTS);
            let oldest = self.proofs.iter().min_by_key(|(_, at)| **at).map(|(address, _)| *address);
            if self.proofs.len() >= CAPACITY
                && let Some(oldest) = oldest
            {
                self.proofs.remove(&oldest);
            }
        }
        self.proofs.insert(address, now);
    }

    /// The rest of a kept ban, which is at most the whole of it: a wall clock set back must not freeze it.
    pub(super) fn restore(&mut self, ban: Ban, wall: Timestamp, now: Instant) -> Option<Change> {
        let address = ban.address.to_canonical();
        let rest = ban.until.since(wall).min(ban.until.since(ban.since));
        let over_for = wall.since(ban.until);
        let Some(end) = now.checked_add(rest) else { return Some(Change::Removed(ban.address)) };
        if over_for >= self.config.max_duration.0 || self.offenders.len() >= CAPACITY {
            return Some(Change::Removed(ban.address));
        }
        let ban = Ban { address, ..ban };
        self.offenders.entry(address).or_default().ban = Some(Sentence { ban, end });
        None
    }

    /// The bans in force; their ends are told by the wall clock of now, which may have been set meanwhile.
    pub(super) fn list(&self, wall: Timestamp, now: Instant) -> Vec<Ban> {
        let mut bans: Vec<Ban> = self
            .offenders
            .iter()
            .filter(|(address, _)| self.is_banned(**address, now))
            .filter_map(|(_, offender)| offender.ban.as_ref())
            .map(|s| Ban { until: wall.plus(s.end.saturating_duration_since(now)), ..s.ban.clone() })
            .collect();
        bans.sort_by_key(|ban| ban.address);
        bans
    }

    pub(super) fn sweep(&mut self, now: Instant) -> Changes {
        self.proofs.retain(|_, at| now.saturating_duration_since(*at) < PROOF_LASTS);
        let config = &self.config;
        let over: Vec<IpAddr> = self
            .offenders
            .iter()
            .filter(|(_, offender)| offender.is_over(config, now))
            .map(|(address, _)| *address)
            .collect();
        over.into_iter().flat_map(|address| self.remove(address, now).1).collect()
    }

    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.offenders.len(), self.proofs.len())
    }

    fn is_exempt(&self, address: IpAddr) -> bool {
        self.own.contains(&address) || self.config.spares(address)
    }

    fn is_proved(&self, address: IpAddr, now: Instant) -> bool {
        self.proofs.get(&address).is_some_and(|at| now.saturating_duration_since(*at) < PROOF_LASTS)
    }

    /// A place for one more offender: where all are taken, mere strikes go before bans, and the bans that
    /// end first before the others.
    fn make_room(&mut self, address: IpAddr, now: Instant) -> Changes {
        if self.offenders.len() < CAPACITY || self.offenders.contains_key(&address) {
            return Vec::new();
        }
        let mut changes = self.sweep(now);
        if self.offenders.len() >= CAPACITY {
            let least = self
                .offenders
                .iter()
                .min_by_key(|(_, offender)| {
                    (offender.ban.as_ref().map(|s| s.end), offender.strikes.back().copied())
                })
                .map(|(address, _)| *address);
            if let Some(least) = least {
                changes.extend(self.remove(least, now).1);
            }
        }
        changes
    }
}

impl Offender {
    /// Counts one more; true if they suffice for a ban.
    fn count_strike(&mut self, config: &Config, now: Instant) -> bool {
        let window = config.window.0;
        self.strikes.retain(|at| now.saturating_duration_since(*at) < window);
        self.strikes.push_back(now);
        self.strikes.len() >= usize::try_from(config.strikes).unwrap_or(usize::MAX)
    }

    fn sentence(&mut self, ban: Ban, length: Duration, now: Instant) -> Change {
        // the end of time stands for a length no clock reaches
        let end = now.checked_add(length).unwrap_or_else(|| now + Duration::from_secs(u32::MAX.into()));
        self.strikes.clear();
        self.ban = Some(Sentence { ban: ban.clone(), end });
        Change::Put(ban)
    }

    fn is_in_force(&self, now: Instant) -> bool {
        self.ban.as_ref().is_some_and(|sentence| sentence.end > now)
    }

    /// The count of the last ban where it still lengthens the next one.
    fn last_count(&self, config: &Config, now: Instant) -> u32 {
        self.ban.as_ref().filter(|s| !s.is_forgiven(config, now)).map_or(0, |s| s.ban.count)
    }

    fn is_over(&self, config: &Config, now: Instant) -> bool {
        let window = config.window.0;
        self.ban.as_ref().is_none_or(|s| s.is_forgiven(config, now))
            && self.strikes.back().is_none_or(|at| now.saturating_duration_since(*at) >= window)
    }

    fn forgotten(&self, address: IpAddr) -> Changes {
        self.ban.iter().map(|_| Change::Removed(address)).collect()
    }
}

impl Sentence {
    fn by_hand(&self) -> bool {
        self.ban.count == 0
    }

    /// A ban counts for the next one until the longest ban's time has passed after its end.
    fn is_forgiven(&self, config: &Config, now: Instant) -> bool {
        now.saturating_duration_since(self.end) >= config.max_duration.0 && now >= self.end
    }
}
