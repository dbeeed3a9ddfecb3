//! The daemon: builds the rooms bottom-up, runs them, stops them top-down.
//!
//! Start: bind everything (or take what systemd hands over) → build → run → READY=1; the site's keys are
//! derived behind that. A service that ends unasked stops the daemon with its error. Stop: listeners close,
//! running transfers part with their files, the index is flushed and the folder's lock given up at once, bodies
//! go on for `drain_timeout`; a second signal ends now. Fails with [`DaemonError`], which knows its exit status.

mod blocks;
mod build;
mod chores;
mod error;
mod holdings;
mod imports;
mod limits;
mod local;
mod mormot;
mod neighbours;
mod notify;
mod orders;
mod ports;
mod prefetch;
mod purge;
mod records;
mod reload;
mod run;
mod scrub;
mod settings;
mod signals;
mod sources;
mod usage;

pub use error::DaemonError;
pub use local::{Folder, Local};
pub use notify::Notifier;
pub use run::{Start, run};
pub use signals::{Signal, Signals};
