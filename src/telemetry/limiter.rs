//! The brake on repeated messages: a place in the code that logs more than [`BURST`] times in [`WINDOW`] is
//! silenced until the window ends, and what was held back is summed up in one line. Lines of downloads are no
//! repeats: of those there may be more.
//!
//! Only ERROR, WARN and INFO are braked: whoever switches DEBUG on wants every line. The summary is written by
//! [`Limiter::report`], called from a task and never from inside a log call.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::clock::SharedClock;

/// The target of the one line that each download has; what a busy node says there are no repeats.
pub const DOWNLOADS: &str = "larder::download";
/// Messages of one place in one window before it is silenced.
const BURST: u32 = 20;
/// The same of downloads: a hundred a second.
const MANY: u32 = 1000;
/// The length of a window.
pub(super) const WINDOW: Duration = Duration::from_secs(10);
/// Characters of a message kept for the summary.
const SAMPLE: usize = 120;

/// The brake; a cheap clone.
#[derive(Debug, Clone)]
pub struct Limiter {
    clock: SharedClock,
    seen: Arc<Mutex<HashMap<Identifier, Seen>>>,
}

/// What one place in the code wanted to say and was not let.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldBack {
    /// The message without its other fields, cut short.
    pub message: String,
    /// How many times.
    pub count: u64,
    /// The weightiest level it was logged with.
    pub level: Level,
}

#[derive(Debug)]
struct Seen {
    since: Instant,
    written: u32,
    held: u64,
    level: Level,
    sample: String,
}

impl Limiter {
    /// Nothing seen yet.
    pub fn new(clock: SharedClock) -> Self {
        Self { clock, seen: Arc::default() }
    }

    /// Takes what was held back in windows that have ended.
    pub fn take_held_back(&self) -> Vec<HeldBack> {
        let now = self.clock.instant();
        let mut seen = self.lock();
        let ended = |entry: &Seen| now.saturating_duration_since(entry.since) >= WINDOW;
        let held = seen
            .values_mut()
            .filter(|entry| entry.held > 0 && ended(entry))
            .map(|entry| HeldBack {
                message: std::mem::take(&mut entry.sample),
                count: std::mem::take(&mut entry.held),
                level: entry.level,
            })
            .collect();
        seen.retain(|_, entry| !ended(entry));
        held
    }

    /// Writes one line for each message that was held back.
    pub fn report(&self) {
        for held in self.take_held_back() {
            let (count, message) = (held.count, held.message);
            if held.level == Level::INFO {
                tracing::info!(log.held_back = count, log.message = message, "repeated messages held back");
            } else {
                tracing::warn!(log.held_back = count, log.message = message, "repeated messages held back");
            }
        }
    }

    /// Whether this event may be written.
    fn admits(&self, event: &Event<'_>) -> bool {
        let metadata = event.metadata();
        if *metadata.level() > Level::INFO {
            return true;
        }
        let now = self.clock.instant();
        let mut seen = self.lock();
        let entry = seen.entry(metadata.callsite()).or_insert_with(|| Seen::new(now, *metadata.level()));
        if entry.held == 0 && now.saturating_duration_since(entry.since) >= WINDOW {
            *entry = Seen::new(now, *metadata.level());
        }
        let burst = if metadata.target() == DOWNLOADS { MANY } else { BURST };
        if entry.written < burst {
            entry.written += 1;
            return true;
        }
        if entry.held == 0 {
            let mut sample = Sample(String::new());
            event.record(&mut sample);
            entry.sample = sample.0.chars().take(SAMPLE).collect();
        }
        entry.held += 1;
        false
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Identifier, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn new(since: Instant, level: Level) -> Self {
        Self { since, written: 0, held: 0, level, sample: String::new() }
    }
}

impl<S: Subscriber> Layer<S> for Limiter {
    fn event_enabled(&self, event: &Event<'_>, _context: Context<'_, S>) -> bool {
        self.admits(event)
    }
}

/// Reads the message of an event.
struct Sample(String);

impl Visit for Sample {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" && write!(self.0, "{value:?}").is_err() {
            self.0.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::clock::{ManualClock, Timestamp};

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn complain() {
        tracing::warn!("the same again");
    }

    #[test]
    fn o01_a_repeated_message_is_counted_not_written() {
        let (clock, sink) = (ManualClock::new(Timestamp(0)), Sink::default());
        let limiter = Limiter::new(clock.clone());
        let writer = sink.clone();
        let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || writer.clone());
        let subscriber = tracing_subscriber::registry().with(limiter.clone()).with(layer);
        tracing::subscriber::with_default(subscriber, || {
            for _ in 0..1000 {
                complain();
            }
            tracing::info!("another place");
            assert!(limiter.take_held_back().is_empty(), "the window has not ended");
            clock.advance(WINDOW);
            limiter.report();
            complain();
        });
        let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.matches("the same again").count(), usize::try_from(BURST).unwrap() + 2);
        assert_eq!(text.matches("log.held_back=980").count(), 1);
        assert_eq!(text.matches("another place").count(), 1);
    }

    #[test]
    fn debug_is_never_held_back() {
        let limiter = Limiter::new(ManualClock::new(Timestamp(0)));
        let sink = Sink::default();
        let writer = sink.clone();
        let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(limiter).with(layer), || {
            (0..100).for_each(|_| tracing::debug!("much"))
        });
        let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.matches("much").count(), 100);
    }
}
