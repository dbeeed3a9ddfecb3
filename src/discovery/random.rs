//! Randomness for the engine: a generator from one seed, so that a test replays what a service draws.

use std::time::Duration;

use crate::digest::Digest;

/// SHA-256 over seed and count; as unpredictable as the seed.
#[derive(Clone)]
pub(super) struct Random {
    seed: [u8; 32],
    count: u64,
}

impl Random {
    pub(super) const fn new(seed: [u8; 32]) -> Self {
        Self { seed, count: 0 }
    }

    /// Sixteen bytes that nobody can guess.
    pub(super) fn id(&mut self) -> [u8; 16] {
        self.count += 1;
        let block = Digest::of(&[self.seed.as_slice(), &self.count.to_be_bytes()].concat());
        block.as_bytes().first_chunk().copied().unwrap_or_default()
    }

    /// A number below `end`, or 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        let drawn = u128::from_be_bytes(self.id()) % u128::from(end.max(1));
        u64::try_from(drawn).unwrap_or(0)
    }

    /// A time below `end`, to the microsecond.
    pub(super) fn within(&mut self, end: Duration) -> Duration {
        Duration::from_micros(self.below(u64::try_from(end.as_micros()).unwrap_or(u64::MAX)))
    }
}
