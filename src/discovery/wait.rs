//! How long a find waits: learned from how soon the site's answers come, and nearly nothing where none come.
//!
//! The estimate is the mean answer time plus four times its mean deviation, both smoothed, late answers
//! included: a site that sleeps between radio beacons is waited for, a wired one costs two milliseconds. A few answers
//! prove little: the deviation begins wide and shrinks with each of them.

use std::time::Duration;

/// The least time that is worth waiting.
const LEAST: Duration = Duration::from_millis(2);
/// After so many rounds without any answer a find waits the least time, and after twice as many not at all.
const EMPTY_ROUNDS: u32 = 3;

/// What was learned about answer times.
#[derive(Debug, Clone)]
pub struct Wait {
    most: Duration,
    /// Mean and mean deviation.
    learned: Option<(Duration, Duration)>,
    empty_rounds: u32,
}

impl Wait {
    /// Nothing was learned yet; never longer than `most`.
    pub const fn new(most: Duration) -> Self {
        Self { most, learned: None, empty_rounds: 0 }
    }

    /// How long the next find may wait.
    pub fn deadline(&self) -> Duration {
        if self.empty_rounds >= 2 * EMPTY_ROUNDS {
            return Duration::ZERO;
        }
        if self.empty_rounds >= EMPTY_ROUNDS {
            return LEAST.min(self.most);
        }
        let (mean, deviation) = self.learned.unwrap_or((self.most, Duration::ZERO));
        (mean + 4 * deviation).max(LEAST).min(self.most)
    }

    /// An answer came after `elapsed`, in time or late.
    pub fn answered(&mut self, elapsed: Duration) {
        self.empty_rounds = 0;
        // what is later than a few times the longest wait says nothing about the site
        let sample = elapsed.min(4 * self.most);
        self.learned = Some(match self.learned {
            None => (sample, (sample / 2).max(self.most / 4)),
            Some((mean, deviation)) => {
                let error = mean.abs_diff(sample);
                ((mean * 7 + sample) / 8, (deviation * 3 + error) / 4)
            }
        });
    }

    /// A neighbour came: what silence taught may be wrong now.
    pub const fn hope(&mut self) {
        self.empty_rounds = 0;
    }

    /// A find ended without any answer.
    pub const fn empty(&mut self) {
        self.empty_rounds = self.empty_rounds.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_millis(250);

    #[test]
    fn a_fast_site_is_hardly_waited_for_and_a_slow_one_is() {
        let mut wait = Wait::new(MOST);
        assert_eq!(wait.deadline(), MOST);
        for _ in 0..50 {
            wait.answered(Duration::from_micros(300));
        }
        assert_eq!(wait.deadline(), LEAST);
        for _ in 0..4 {
            wait.answered(Duration::from_millis(120));
        }
        assert!(wait.deadline() > Duration::from_millis(120), "{:?}", wait.deadline());
        wait.answered(Duration::from_secs(600));
        assert!(wait.deadline() <= MOST);
    }

    #[test]
    fn one_quick_answer_does_not_make_the_next_late_one_a_silence() {
        let mut wait = Wait::new(MOST);
        let waits: Vec<u128> = (0..10)
            .map(|_| {
                wait.answered(Duration::from_micros(300));
                wait.deadline().as_millis()
            })
            .collect();
        assert!(waits[0] == 250 && waits[4] > 60 && waits[9] < 25, "{waits:?}");
    }

    #[test]
    fn d07_silence_makes_waits_vanish_and_one_answer_brings_them_back() {
        let mut wait = Wait::new(MOST);
        let waits: Vec<u128> = (0..8)
            .map(|_| {
                let deadline = wait.deadline().as_millis();
                wait.empty();
                deadline
            })
            .collect();
        assert_eq!(waits, [250, 250, 250, 2, 2, 2, 0, 0]);
        wait.answered(Duration::from_millis(10));
        assert!(wait.deadline() >= Duration::from_millis(10));
    }
}
