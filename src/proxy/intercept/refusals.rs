//! Which clients do not trust this machine's authority, for a while.
//!
//! A client is known by its address, the host it wanted, and how its TLS begins: two programs of one machine
//! mostly begin differently, and one that does not trust shall not spoil the cache for one that does. The
//! memory is small and ends: what is forgotten is refused, and remembered, once more.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Clients remembered.
const MOST: usize = 4096;
/// How long a client that said so is let alone; twice as long after each further refusal.
const AFTER_ALERT: Duration = Duration::from_secs(60 * 60);
/// The same for one that closed without a word, which may have had another reason.
const AFTER_CLOSE: Duration = Duration::from_secs(10 * 60);
/// The longest time.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A kind of client towards one host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Client {
    /// From where.
    pub(super) address: IpAddr,
    /// Which host it wanted.
    pub(super) host: String,
    /// What its greeting is like.
    pub(super) greeting: u64,
}

/// How a client refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It said that the certificate is not good.
    Alert,
    /// It closed when it had seen the certificate.
    Closed,
}

#[derive(Debug)]
enum Known {
    /// It has sent a request: it does trust.
    Trusts,
    Refused {
        until: Instant,
        times: u32,
    },
}

/// The memory.
#[derive(Debug, Default)]
pub(super) struct Refusals(HashMap<Client, (Known, Instant)>);

impl Refusals {
    /// Whether this client is to be let alone now.
    pub(super) fn lets_alone(&self, client: &Client, now: Instant) -> bool {
        matches!(self.0.get(client), Some((Known::Refused { until, .. }, _)) if now < *until)
    }

    /// It trusts: a request came.
    pub(super) fn trusts(&mut self, client: &Client, now: Instant) {
        self.note(client.clone(), Known::Trusts, now);
    }

    /// It refused; whether that is news of this address and host.
    pub(super) fn refused(&mut self, client: &Client, how: Refusal, now: Instant) -> bool {
        let times = match self.0.get(client) {
            // Who trusts may close as it likes.
            Some((Known::Trusts, _)) if how == Refusal::Closed => return false,
            Some((Known::Refused { times, .. }, _)) => *times,
            Some((Known::Trusts, _)) | None => 0,
        };
        let first = match how {
            Refusal::Alert => AFTER_ALERT,
            Refusal::Closed => AFTER_CLOSE,
        };
        let long = first.saturating_mul(1 << times.min(10)).min(LONGEST);
        let is_known = |(other, (known, _)): (&Client, &(Known, Instant))| {
            matches!(known, Known::Refused { .. })
                && (other.address, &other.host) == (client.address, &client.host)
        };
        let is_news = !self.0.iter().any(is_known);
        let until = now.checked_add(long).unwrap_or(now);
        self.note(client.clone(), Known::Refused { until, times: times.saturating_add(1) }, now);
        is_news
    }

    fn note(&mut self, client: Client, known: Known, now: Instant) {
        if self.0.len() >= MOST && !self.0.contains_key(&client) {
            let oldest = self.0.iter().min_by_key(|(_, (_, seen))| *seen).map(|(client, _)| client.clone());
            oldest.and_then(|oldest| self.0.remove(&oldest));
        }
        self.0.insert(client, (known, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, ManualClock, Timestamp};

    fn client(greeting: u64) -> Client {
        Client { address: [127, 0, 0, 1].into(), host: "a.test".to_owned(), greeting }
    }

    #[test]
    fn who_refuses_is_let_alone_for_a_while_and_longer_each_time() {
        let (clock, mut refusals) = (ManualClock::new(Timestamp(0)), Refusals::default());
        assert!(!refusals.lets_alone(&client(1), clock.instant()));
        for (how, hours) in [(Refusal::Alert, 1), (Refusal::Alert, 2), (Refusal::Alert, 4)] {
            refusals.refused(&client(1), how, clock.instant());
            clock.advance(Duration::from_secs(hours * 3600 - 1));
            assert!(refusals.lets_alone(&client(1), clock.instant()), "{hours}");
            clock.advance(Duration::from_secs(1));
            assert!(!refusals.lets_alone(&client(1), clock.instant()), "{hours}");
        }
        for _ in 0..40 {
            refusals.refused(&client(1), Refusal::Alert, clock.instant());
        }
        clock.advance(LONGEST);
        assert!(!refusals.lets_alone(&client(1), clock.instant()));
    }

    #[test]
    fn it_is_news_once_for_an_address_and_host() {
        let (now, mut refusals) = (ManualClock::new(Timestamp(0)).instant(), Refusals::default());
        assert!(refusals.refused(&client(1), Refusal::Alert, now));
        assert!(!refusals.refused(&client(1), Refusal::Alert, now));
        assert!(!refusals.refused(&client(2), Refusal::Closed, now), "another program of the same machine");
        let other = Client { host: "b.test".to_owned(), ..client(1) };
        assert!(refusals.refused(&other, Refusal::Closed, now));
    }

    #[test]
    fn one_program_does_not_spoil_it_for_another() {
        let (now, mut refusals) = (ManualClock::new(Timestamp(0)).instant(), Refusals::default());
        refusals.refused(&client(1), Refusal::Alert, now);
        assert!(!refusals.lets_alone(&client(2), now));
        refusals.trusts(&client(2), now);
        assert!(!refusals.refused(&client(2), Refusal::Closed, now));
        assert!(!refusals.lets_alone(&client(2), now), "who trusts may close");
        refusals.refused(&client(2), Refusal::Alert, now);
        assert!(refusals.lets_alone(&client(2), now), "but not say no");
        refusals.trusts(&client(1), now);
        assert!(!refusals.lets_alone(&client(1), now), "it was told to trust");
    }

    #[test]
    fn the_memory_is_bounded_and_the_oldest_goes() {
        let (clock, mut refusals) = (ManualClock::new(Timestamp(0)), Refusals::default());
        for greeting in 0..MOST as u64 + 10 {
            refusals.refused(&client(greeting), Refusal::Alert, clock.instant());
            clock.advance(Duration::from_millis(1));
        }
        assert_eq!(refusals.0.len(), MOST);
        assert!(!refusals.lets_alone(&client(9), clock.instant()));
        assert!(refusals.lets_alone(&client(10), clock.instant()));
    }
}
