//! What the daemon says about itself: the log, the metrics registry and the list of what is wrong.
//!
//! [`Health`] is the one list of present troubles; each has a code that may be shown to anybody and a
//! sentence that may name files and addresses and is for administrators only.

mod health;

pub use health::{Health, Trouble};
