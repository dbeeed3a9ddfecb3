//! How fast each authority was: a moving average, kept in memory, for so many authorities and no more.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How many authorities are remembered; the one noted longest ago is forgotten.
const CAPACITY: usize = 1024;
/// Below this, latency is measured and not rate.
const LEAST_BYTES: u64 = 256 * 1024;

#[derive(Debug, Default)]
pub(super) struct Rates(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    entries: HashMap<String, Entry>,
    turn: u64,
}

#[derive(Debug)]
struct Entry {
    rate: u64,
    noted: u64,
}

impl Rates {
    pub(super) fn learned(&self, authority: &str) -> Option<u64> {
        let book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        book.entries.get(authority).map(|entry| entry.rate)
    }

    /// The newest sample weighs a quarter.
    pub(super) fn note(&self, authority: &str, bytes: u64, elapsed: Duration) {
        let micros = elapsed.as_micros();
        if bytes < LEAST_BYTES || micros == 0 {
            return;
        }
        let sample = u64::try_from(u128::from(bytes) * 1_000_000 / micros).unwrap_or(u64::MAX);
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        book.turn += 1;
        let noted = book.turn;
        if let Some(entry) = book.entries.get_mut(authority) {
            entry.rate = (entry.rate / 4).saturating_mul(3).saturating_add(sample / 4);
            entry.noted = noted;
            return;
        }
        if book.entries.len() >= CAPACITY {
            let oldest = book.entries.iter().min_by_key(|(_, e)| e.noted).map(|(name, _)| name.clone());
            if let Some(oldest) = oldest {
                book.entries.remove(&oldest);
            }
        }
        book.entries.insert(authority.to_owned(), Entry { rate: sample, noted });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn rates_move_slowly_and_short_samples_do_not_count() {
        let rates = Rates::default();
        rates.note("a", 100, Duration::from_secs(1));
        rates.note("a", MIB, Duration::ZERO);
        assert_eq!(rates.learned("a"), None);
        rates.note("a", 8 * MIB, Duration::from_secs(2));
        assert_eq!(rates.learned("a"), Some(4 * MIB));
        rates.note("a", 16 * MIB, Duration::from_secs(2));
        assert_eq!(rates.learned("a"), Some(5 * MIB));
        assert_eq!(rates.learned("b"), None);
    }

    #[test]
    fn the_book_does_not_grow_for_ever() {
        let rates = Rates::default();
        for n in 0..=CAPACITY {
            rates.note(&n.to_string(), MIB, Duration::from_secs(1));
        }
        assert_eq!(rates.learned("0"), None);
        assert_eq!(rates.learned("1"), Some(MIB));
        assert_eq!(rates.0.lock().unwrap().entries.len(), CAPACITY);
    }
}
