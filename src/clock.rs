//! Time, read in one place: the wall clock for what goes on disk or on the wire, the monotonic clock for
//! waiting and for ages.
//!
//! Everything else takes a [`SharedClock`], so that tests decide what time it is. A jump of the wall clock
//! never moves the monotonic one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01T00:00:00Z; never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Timestamp(pub u64);

/// Where time comes from.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The wall clock.
    fn now(&self) -> Timestamp;
    /// The monotonic clock.
    fn instant(&self) -> Instant;
}

/// A clock that is handed around.
pub type SharedClock = Arc<dyn Clock>;

/// The clocks of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// A clock that stands still until it is told to move.
#[derive(Debug)]
pub struct ManualClock {
    base: Instant,
    wall_ms: AtomicU64,
    passed_ms: AtomicU64,
}

impl Timestamp {
    /// The time `by` later.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX)))
    }

    /// How long ago `earlier` was; zero if it lies in the future.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Whole seconds since 1970.
    pub const fn seconds(self) -> u64 {
        self.0 / 1000
    }

    /// From whole seconds since 1970.
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// What a clock on the wall shows then, in this machine's time zone; UTC where none is set up. May read the
    /// zone's file.
    pub fn local(self) -> jiff::civil::DateTime {
        let seconds = i64::try_from(self.seconds()).unwrap_or(i64::MAX);
        let time = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let zone = jiff::tz::TimeZone::try_system().unwrap_or(jiff::tz::TimeZone::UTC);
        zone.to_datetime(time)
    }

    /// As the operating system's type.
    pub fn system_time(self) -> SystemTime {
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(self.0)).unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let ms = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_millis());
        Self(u64::try_from(ms).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC, whole seconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = i64::try_from(self.seconds()).unwrap_or(i64::MAX);
        match jiff::Timestamp::from_second(seconds) {
            Ok(time) => write!(f, "{time}"),
            Err(_) => write!(f, "@{seconds}"),
        }
    }
}

impl SystemClock {
    /// The system's clock, ready to hand around.
    pub fn shared() -> SharedClock {
        Arc::new(Self)
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the clocks")]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        SystemTime::now().into()
    }

    fn instant(&self) -> Instant {
        Instant::now()
    }
}

impl ManualClock {
    /// A clock standing at `wall`.
    pub fn new(wall: Timestamp) -> Arc<Self> {
        let base = SystemClock.instant();
        Arc::new(Self { base, wall_ms: AtomicU64::new(wall.0), passed_ms: AtomicU64::new(0) })
    }

    /// Both clocks go on by `by`.
    pub fn advance(&self, by: Duration) {
        let ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.wall_ms.fetch_add(ms, Ordering::SeqCst);
        self.passed_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// Only the wall clock jumps, as when an administrator sets it.
    pub fn set_wall(&self, wall: Timestamp) {
        self.wall_ms.store(wall.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.wall_ms.load(Ordering::SeqCst))
    }

    fn instant(&self) -> Instant {
        let passed = Duration::from_millis(self.passed_ms.load(Ordering::SeqCst));
        self.base.checked_add(passed).unwrap_or(self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_on_the_wall_is_at_most_a_day_away() {
        let noon = jiff::civil::date(2026, 11, 30).at(12, 0, 0, 0);
        let utc = Timestamp::from_seconds(1_796_040_000);
        let ahead = utc.local().duration_since(noon).as_hours();
        assert!((-12..=14).contains(&ahead), "{}", utc.local());
    }

    #[test]
    fn a_wall_jump_leaves_the_monotonic_clock_alone() {
        let clock = ManualClock::new(Timestamp::from_seconds(1000));
        let before = clock.instant();
        clock.set_wall(Timestamp::from_seconds(0));
        assert_eq!(clock.instant(), before);
        clock.advance(Duration::from_secs(5));
        assert_eq!(clock.instant().duration_since(before), Duration::from_secs(5));
        assert_eq!(clock.now(), Timestamp::from_seconds(5));
    }

    #[test]
    fn prints_rfc_3339() {
        assert_eq!(Timestamp::from_seconds(0).to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(Timestamp(1_796_040_000_999).to_string(), "2026-11-30T12:00:00Z");
    }

    #[test]
    fn the_future_is_no_age() {
        assert_eq!(Timestamp(5).since(Timestamp(9)), Duration::ZERO);
    }
}
