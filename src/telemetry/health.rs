//! The present troubles: raised and cleared by the rooms that notice them, read by the status pages.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The list of present troubles; a cheap clone.
#[derive(Debug, Clone, Default)]
pub struct Health(Arc<Mutex<BTreeMap<&'static str, String>>>);

/// One present trouble.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Trouble {
    /// A short word that names no file and no address, such as `disk-full`.
    pub code: &'static str,
    /// The sentence for the administrator.
    pub reason: String,
}

impl Health {
    /// No troubles.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes a trouble; true if it is new, so that the caller logs it once.
    pub fn raise(&self, code: &'static str, reason: impl Into<String>) -> bool {
        self.lock().insert(code, reason.into()).is_none()
    }

    /// The trouble is over; true if it was there.
    pub fn clear(&self, code: &'static str) -> bool {
        self.lock().remove(code).is_some()
    }

    /// All present troubles by code.
    pub fn troubles(&self) -> Vec<Trouble> {
        self.lock().iter().map(|(code, reason)| Trouble { code, reason: reason.clone() }).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_is_new_once() {
        let health = Health::new();
        assert!(health.raise("disk-full", "no space in /x"));
        assert!(!health.raise("disk-full", "no space in /x"));
        assert_eq!(health.troubles().len(), 1);
        assert!(health.clear("disk-full") && !health.clear("disk-full"));
        assert!(health.troubles().is_empty());
    }
}
