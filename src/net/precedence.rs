//! Who goes first, and who takes a share of what is left: neighbours beside this machine's own clients,
//! prefetched things beside those that somebody waits for.
//!
//! Whoever goes first is only counted, never slowed. While they are served, all others together get a share of
//! their speed, and never less than a floor that keeps the other end from taking this node for dead. When
//! they have paused for half a second the others go on at full speed. Nothing is reserved.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::throttle::Throttle;
use crate::clock::SharedClock;
use crate::unit::Rate;

/// How long a speed is measured.
const WINDOW: Duration = Duration::from_millis(100);
/// How long those who go first must be silent: a busy machine's breath between two reads is no pause.
const PAUSE: Duration = Duration::from_millis(500);

/// A rule of precedence; a cheap clone.
#[derive(Clone)]
pub struct Precedence(Arc<Inner>);

struct Inner {
    /// How many bytes those who go first have had so far.
    first: Box<dyn Fn() -> u64 + Send + Sync>,
    share: Share,
    meter: Mutex<Meter>,
    throttle: Throttle,
    clock: SharedClock,
}

/// What the others get beside those who go first.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// One part in so many of the speed of those who go first.
    pub part: u64,
    /// In any case this much.
    pub floor: Rate,
}

/// Measures those who go first, and says what the others may have.
#[derive(Debug)]
struct Meter {
    since: Instant,
    bytes: u64,
    granted: Rate,
    /// When those who go first were last seen to get something.
    moved: Instant,
}

impl Precedence {
    /// The others yield to those whose bytes `first` counts.
    pub fn new(first: impl Fn() -> u64 + Send + Sync + 'static, share: Share, clock: SharedClock) -> Self {
        let now = clock.instant();
        let meter = Meter { since: now, bytes: first(), granted: Rate(0), moved: now };
        let (meter, throttle) = (Mutex::new(meter), Throttle::new(Rate(0)));
        Self(Arc::new(Inner { first: Box::new(first), share, meter, throttle, clock }))
    }

    /// Waits until so many bytes may pass beside those who go first.
    pub async fn after(&self, bytes: usize) {
        self.look();
        self.0.throttle.take(bytes).await;
    }

    fn look(&self) {
        let now = self.0.clock.instant();
        let mut meter = self.0.meter.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rate) = meter.look((self.0.first)(), self.0.share, now) {
            self.0.throttle.set(rate);
        }
    }

    /// The largest part to ask for at once, so that a change is soon noticed.
    pub fn part(&self) -> usize {
        super::throttle::part(self.0.share.floor)
    }
}

impl Meter {
    /// The new rate of the others, if it changed; 0 is none to hold.
    fn look(&mut self, bytes: u64, share: Share, now: Instant) -> Option<Rate> {
        let passed = now.saturating_duration_since(self.since);
        if passed < WINDOW {
            return None;
        }
        let millis = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        let speed = bytes.saturating_sub(self.bytes).saturating_mul(1000) / millis.max(1);
        (self.since, self.bytes) = (now, bytes);
        if speed == 0 && now.saturating_duration_since(self.moved) < PAUSE {
            return None;
        }
        // in steps of two: each change fills the bucket anew
        let part = (speed / share.part.max(1)).max(1).next_power_of_two();
        let granted = if speed == 0 { Rate(0) } else { Rate(part.max(share.floor.0)) };
        if speed > 0 {
            self.moved = now;
        }
        let changed = granted != self.granted;
        self.granted = granted;
        changed.then_some(granted)
    }
}

impl fmt::Debug for Precedence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Precedence").field("share", &self.0.share).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::clock::{Clock as _, ManualClock, Timestamp};

    const SHARE: Share = Share { part: 4, floor: Rate(1 << 20) };

    #[test]
    fn the_others_get_a_share_and_never_less_than_the_floor() {
        let start = ManualClock::new(Timestamp(0)).instant();
        let mut meter = Meter { since: start, bytes: 0, granted: Rate(0), moved: start };
        let at = |tenths: u32| start + WINDOW * tenths;
        assert_eq!(meter.look(0, SHARE, at(1)), None, "nobody goes first");
        assert_eq!(meter.look(100, SHARE, at(2)), Some(SHARE.floor), "a slow one takes little");
        assert_eq!(meter.look(u64::MAX / 2, SHARE, at(2)), None, "too soon to tell");
        assert_eq!(meter.look(80 << 20, SHARE, at(3)), Some(Rate(256 << 20)));
        assert_eq!(meter.look(158 << 20, SHARE, at(4)), None, "nearly the same");
        assert_eq!(meter.look(158 << 20, SHARE, at(8)), None, "a breath is no pause");
        assert_eq!(meter.look(158 << 20, SHARE, at(9)), Some(Rate(0)), "they pause: no limit");
    }

    #[tokio::test]
    async fn they_go_on_at_once_where_nobody_goes_first() {
        let clock = ManualClock::new(Timestamp(0));
        let first = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&first);
        let precedence = Precedence::new(move || counted.load(Ordering::Relaxed), SHARE, clock.clone());
        let soon = |bytes| tokio::time::timeout(Duration::from_secs(10), precedence.after(bytes));
        soon(1 << 40).await.unwrap();
        first.store(1000, Ordering::Relaxed);
        clock.advance(WINDOW);
        let slow = tokio::time::timeout(Duration::from_millis(50), precedence.after(64 << 20)).await;
        assert!(slow.is_err(), "64 MiB at 1 MiB/s");
        clock.advance(PAUSE);
        soon(1 << 40).await.unwrap();
    }
}
