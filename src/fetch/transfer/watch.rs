//! Whether a neighbour is much slower than the origin would be.

use std::time::{Duration, Instant};

use crate::clock::SharedClock;
use crate::fetch::ledger::From;
use crate::fetch::origin_side::Upstream;
use crate::origin::Origin;

/// What is taken for the origin's rate before anything was learned: 16 Mbit/s.
const UNKNOWN_RATE: u64 = 2_000_000;
/// A window of this length decides.
const WINDOW: Duration = Duration::from_millis(1600);
/// Where nobody else can be read from, windows grow to this.
const LONGEST: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_millis(200);

/// Bytes a second, measured in windows.
#[derive(Debug)]
pub(super) struct RateWatch {
    clock: SharedClock,
    /// The origin's authority, under which its rate is learned.
    authority: String,
    origin: Origin,
    from: From,
    started: Instant,
    bytes: u64,
    window: Instant,
    in_window: u64,
    slow: bool,
    /// How long a window is now.
    length: Duration,
}

impl RateWatch {
    pub(super) fn new(clock: SharedClock, upstream: &Upstream, origin: &Origin, from: From) -> Self {
        let now = clock.instant();
        let authority = upstream.target.authority();
        let origin = origin.clone();
        Self {
            clock,
            authority,
            origin,
            from,
            started: now,
            bytes: 0,
            window: now,
            in_window: 0,
            slow: false,
            length: WINDOW,
        }
    }

    /// Another source begins.
    pub(super) fn restart(&mut self, from: From) {
        self.learn();
        let now = self.clock.instant();
        (self.from, self.started, self.bytes) = (from, now, 0);
        (self.window, self.in_window, self.slow) = (now, 0, false);
        self.length = WINDOW;
    }

    /// There is nobody better: the next look comes later.
    pub(super) fn be_patient(&mut self) {
        (self.window, self.in_window, self.slow) = (self.clock.instant(), 0, false);
        self.length = self.length.saturating_mul(2).min(LONGEST);
    }

    pub(super) fn received(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.in_window += bytes;
        self.look();
    }

    /// Bytes of this source so far.
    pub(super) fn total(&self) -> u64 {
        self.bytes
    }

    /// Wakes up now and then, also when no byte comes.
    pub(super) async fn tick(&mut self) {
        tokio::time::sleep(TICK).await;
        self.look();
    }

    /// Whether the last whole window was under a quarter of the origin's rate.
    pub(super) fn is_slow(&self) -> bool {
        self.slow
    }

    fn look(&mut self) {
        let now = self.clock.instant();
        let passed = now.saturating_duration_since(self.window);
        if passed < self.length {
            return;
        }
        let origin = self.origin.learned_rate(&self.authority).unwrap_or(UNKNOWN_RATE);
        self.slow = self.from == From::Peer && per_second(self.in_window, passed) < origin / 4;
        (self.window, self.in_window) = (now, 0);
    }

    /// What was seen of the origin's rate is remembered.
    pub(super) fn learn(&mut self) {
        if self.from == From::Origin && self.bytes > 0 {
            let elapsed = self.clock.instant().saturating_duration_since(self.started);
            self.origin.note_rate(&self.authority, self.bytes, elapsed);
        }
    }
}

fn per_second(bytes: u64, passed: Duration) -> u64 {
    let ms = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX).max(1);
    bytes.saturating_mul(1000) / ms
}
