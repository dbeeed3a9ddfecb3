//! Holding a stream of bytes to a rate.
//!
//! A token bucket (GCRA) with a small burst, waited for in the order of arrival. Without a limit taking
//! costs nothing. The rate can be changed while streams run.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::sync::Mutex;

use crate::unit::Rate;

/// The least burst: a frame of a body passes in one piece.
const LEAST_BURST: u32 = 64 * 1024;

/// A limit shared by all streams it concerns. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Throttle(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    bucket: ArcSwapOption<Bucket>,
    /// Held while waiting, so that large and small takers come in turn.
    turn: Mutex<()>,
}

#[derive(Debug)]
struct Bucket {
    limiter: DefaultDirectRateLimiter,
    clock: DefaultClock,
    burst: NonZeroU32,
}

impl Throttle {
    /// A limit of so many bytes a second; 0 is none.
    pub fn new(rate: Rate) -> Self {
        Self(Arc::new(Inner { bucket: ArcSwapOption::from(bucket(rate)), turn: Mutex::new(()) }))
    }

    /// Changes the rate, for those who wait as well.
    pub fn set(&self, rate: Rate) {
        self.0.bucket.store(bucket(rate));
    }

    /// Waits until so many bytes may pass.
    pub async fn take(&self, bytes: usize) {
        let mut left = bytes;
        while left > 0 {
            let Some(bucket) = self.0.bucket.load_full() else { return };
            let _turn = self.0.turn.lock().await;
            let slice = bucket.slice(left);
            while let Err(wait) = bucket.try_take(slice) {
                tokio::time::sleep(wait).await;
                if self.is_changed(&bucket) {
                    break;
                }
            }
            if !self.is_changed(&bucket) {
                left = left.saturating_sub(usize::try_from(slice.get()).unwrap_or(usize::MAX));
            }
        }
    }

    fn is_changed(&self, bucket: &Arc<Bucket>) -> bool {
        !self.0.bucket.load().as_ref().is_some_and(|now| Arc::ptr_eq(now, bucket))
    }
}

impl Bucket {
    fn slice(&self, left: usize) -> NonZeroU32 {
        let left = u32::try_from(left).ok().and_then(NonZeroU32::new).unwrap_or(self.burst);
        left.min(self.burst)
    }

    fn try_take(&self, slice: NonZeroU32) -> Result<(), Duration> {
        match self.limiter.check_n(slice) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(not_yet)) => Err(not_yet.wait_time_from(self.clock.now())),
            // Unreachable: a slice is never larger than the burst. Passing it errs on the side of speed.
            Err(_too_large) => Ok(()),
        }
    }
}

/// The largest part to be asked for at once at a rate. At a low rate the parts are small, so that every reader of
/// many still gets some before it takes this node for dead.
pub fn part(rate: Rate) -> usize {
    const LEAST: u64 = 512;
    const MOST: u64 = 256 * 1024;
    usize::try_from((rate.0 / 64).clamp(LEAST, MOST)).unwrap_or(512)
}

fn bucket(rate: Rate) -> Option<Arc<Bucket>> {
    // Above 4 GB/s a limit could not be told from none.
    let rate = NonZeroU32::new(u32::try_from(rate.limit()?).unwrap_or(u32::MAX))?;
    let burst = NonZeroU32::new((rate.get() / 8).max(LEAST_BURST))?;
    let limiter = RateLimiter::direct(Quota::per_second(rate).allow_burst(burst));
    Some(Arc::new(Bucket { limiter, clock: DefaultClock::default(), burst }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, SystemClock};

    #[tokio::test]
    async fn without_a_limit_nothing_waits() {
        let throttle = Throttle::new(Rate(0));
        tokio::time::timeout(Duration::from_secs(10), throttle.take(usize::MAX)).await.unwrap();
    }

    #[tokio::test]
    async fn bytes_come_at_the_rate_whatever_their_slices() {
        let throttle = Throttle::new(Rate(1 << 20));
        let start = SystemClock.instant();
        // 128 KiB pass at once, the other 256 KiB take a quarter of a second.
        tokio::join!(throttle.take(200 * 1024), throttle.take(184 * 1024));
        let passed = SystemClock.instant().duration_since(start);
        assert!(passed >= Duration::from_millis(240), "{passed:?}");
        assert!(passed < Duration::from_secs(5), "{passed:?}");
    }

    #[tokio::test]
    async fn a_lifted_limit_frees_those_who_wait() {
        let throttle = Throttle::new(Rate(200_000));
        throttle.take(64 * 1024).await;
        let waiting = throttle.clone();
        let task = tokio::spawn(async move { waiting.take(100 * 1024 * 1024).await });
        tokio::task::yield_now().await;
        throttle.set(Rate(0));
        tokio::time::timeout(Duration::from_secs(10), task).await.unwrap().unwrap();
    }
}
