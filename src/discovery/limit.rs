//! How much of strangers' traffic is looked at: a bucket of tokens an address and one for all of them.
//!
//! A limit never touches who has proved itself: frames of runs met before and frames from confirmed addresses
//! do not pass here. So a flood in a neighbour's name costs that neighbour nothing.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Instant;

/// How many addresses are told apart; beyond, they share the common bucket alone.
const ADDRESSES: usize = 1024;

/// A limit on work for strangers.
#[derive(Debug)]
pub struct Limit {
    each: Rate,
    common: Bucket,
    all: Rate,
    buckets: HashMap<IpAddr, Bucket>,
}

/// So many at once, so many a minute.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    /// At once.
    pub burst: u32,
    /// In the long run.
    pub a_minute: u32,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Limit {
    /// So much for each address, so much for all of them.
    pub fn new(each: Rate, all: Rate, now: Instant) -> Self {
        Self { each, common: Bucket::full(all, now), all, buckets: HashMap::new() }
    }

    /// Whether one more may be looked at for this address.
    pub fn admits(&mut self, address: IpAddr, now: Instant) -> bool {
        if self.buckets.len() >= ADDRESSES && !self.buckets.contains_key(&address) {
            let each = self.each;
            self.buckets.retain(|_, bucket| !bucket.is_full(each, now));
        }
        if self.buckets.len() < ADDRESSES || self.buckets.contains_key(&address) {
            let bucket = self.buckets.entry(address).or_insert_with(|| Bucket::full(self.each, now));
            if !bucket.take(self.each, now) {
                return false;
            }
        }
        self.common.take(self.all, now)
    }
}

impl Bucket {
    fn full(rate: Rate, now: Instant) -> Self {
        Self { tokens: f64::from(rate.burst), filled: now }
    }

    fn level(&self, rate: Rate, now: Instant) -> f64 {
        let minutes = now.saturating_duration_since(self.filled).as_secs_f64() / 60.0;
        minutes.mul_add(f64::from(rate.a_minute), self.tokens).min(f64::from(rate.burst))
    }

    fn is_full(&self, rate: Rate, now: Instant) -> bool {
        self.level(rate, now) >= f64::from(rate.burst)
    }

    fn take(&mut self, rate: Rate, now: Instant) -> bool {
        self.tokens = self.level(rate, now);
        self.filled = now;
        let granted = self.tokens >= 1.0;
        if granted {
            self.tokens -= 1.0;
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, SystemClock};
    use std::net::Ipv4Addr;
    use std::time::Duration;

    #[test]
    fn a_burst_then_a_rate_for_each_and_for_all() {
        let now = SystemClock.instant();
        let (each, all) = (Rate { burst: 3, a_minute: 2 }, Rate { burst: 5, a_minute: 6000 });
        let mut limit = Limit::new(each, all, now);
        let address = |n: u32| IpAddr::V4(Ipv4Addr::from_bits(n));
        let passed = |limit: &mut Limit, n, now| (0..10).filter(|_| limit.admits(address(n), now)).count();
        assert_eq!(passed(&mut limit, 1, now), 3);
        assert_eq!(passed(&mut limit, 2, now), 2, "the common bucket is empty");
        let later = now + Duration::from_secs(60);
        assert_eq!(passed(&mut limit, 1, later), 2);
    }

    #[test]
    fn a_million_addresses_take_no_room() {
        let now = SystemClock.instant();
        let rate = Rate { burst: 10, a_minute: 60 };
        let mut limit = Limit::new(rate, Rate { burst: 100, a_minute: 6000 }, now);
        for n in 0..100_000_u32 {
            limit.admits(Ipv4Addr::from_bits(n).into(), now);
        }
        assert!(limit.buckets.len() <= ADDRESSES);
    }
}
