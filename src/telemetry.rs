//! What the daemon says about itself: the log, the metrics exposition and the list of what is wrong.
//!
//! [`Health`] is the one list of present troubles; each has a code that may be shown to anybody and a
//! sentence that may name files and addresses and is for administrators only. [`Logging`] owns the process's
//! one subscriber: its level can be changed while the daemon runs, and a message that repeats itself is
//! counted instead of written. [`Exposition`] turns numbers into the Prometheus formats at scrape time.
//!
//! [`Histograms`] are kept by the rooms that measure.
//!
//! *Invariant*: nothing here keeps a number of its own but the counts of messages held back.

mod health;
mod histogram;
mod limiter;
mod logging;
mod metrics;

pub use health::{Health, Trouble};
pub use histogram::Histograms;
pub use limiter::{DOWNLOADS, HeldBack, Limiter};
pub use logging::{Level, LogConfig, LogError, LogFormat, Logging, check_level, provisional};
pub use metrics::{Exposition, TextFormat};
