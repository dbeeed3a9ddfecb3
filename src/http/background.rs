//! A request for later: nobody waits for it, and it gives way to those for which somebody does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The mark of such a request, shared by all that is done for it; a cheap clone.
#[derive(Debug, Clone, Default)]
pub struct Background(Arc<AtomicBool>);

impl Background {
    /// Somebody waits for it after all: from now on it gives way to nobody.
    pub fn lift(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody waits.
    pub fn is_lifted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
