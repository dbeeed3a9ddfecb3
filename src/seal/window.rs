//! Which counters of one sender have been seen: each is fresh once, in any order within the window.

/// How many counters below the highest are still told apart.
const WIDTH: u64 = 1024;

/// The counters seen from one sender under one key.
///
/// A counter too far below the highest counts as seen: what is that late is worth less than a replay costs.
#[derive(Debug, Clone)]
pub struct Window {
    highest: Option<u64>,
    /// One bit a counter, addressed by the counter modulo the width.
    seen: [u64; 16],
}

impl Window {
    /// Nothing seen yet.
    pub const fn new() -> Self {
        Self { highest: None, seen: [0; 16] }
    }

    /// Whether `counter` is fresh; it is not a second time.
    pub fn admit(&mut self, counter: u64) -> bool {
        match self.highest {
            Some(highest) if counter > highest => {
                self.forget(highest, counter);
                self.highest = Some(counter);
            }
            Some(highest) if highest - counter >= WIDTH => return false,
            Some(_) => {}
            None => self.highest = Some(counter),
        }
        let bit = 1_u64 << (counter % 64);
        let Some(word) = self.word(counter) else { return false };
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    }

    /// Clears the bits of the counters that enter between the old and the new highest.
    fn forget(&mut self, old: u64, new: u64) {
        if new - old >= WIDTH {
            self.seen = [0; 16];
            return;
        }
        for counter in old + 1..=new {
            if let Some(word) = self.word(counter) {
                *word &= !(1 << (counter % 64));
            }
        }
    }

    fn word(&mut self, counter: u64) -> Option<&mut u64> {
        self.seen.get_mut(usize::try_from(counter / 64 % 16).ok()?)
    }
}

impl Default for Window {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn each_counter_is_fresh_once_in_any_order() {
        let mut window = Window::new();
        for counter in [7, 5, 9, 6, 8, 1000, 1030] {
            assert!(window.admit(counter), "{counter}");
            assert!(!window.admit(counter), "{counter} again");
        }
        assert!(!window.admit(5) && !window.admit(6));
        assert!(window.admit(u64::MAX) && !window.admit(u64::MAX) && !window.admit(0));
    }

    proptest! {
        #[test]
        fn no_counter_passes_twice(counters in prop::collection::vec(0_u64..5000, 0..400)) {
            let (mut window, mut passed) = (Window::new(), HashSet::new());
            let mut highest = 0;
            for counter in counters {
                let fresh = window.admit(counter);
                highest = highest.max(counter);
                let expected = !passed.contains(&counter) && highest - counter < WIDTH;
                prop_assert_eq!(fresh, expected);
                passed.insert(counter);
            }
        }
    }
}
