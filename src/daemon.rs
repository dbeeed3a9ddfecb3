//! The daemon as the operating system sees it: signals in, notifications out.

mod notify;
mod signals;

pub use notify::Notifier;
pub use signals::{Signal, Signals};
