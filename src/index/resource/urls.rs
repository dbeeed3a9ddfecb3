//! Which URLs an answer is kept for, as far as a few bits can tell: never wrong where they say none.
//!
//! Four bits of each URL in a field of 4 MiB: with two million URLs one question in five hundred is answered "perhaps"
//! for nothing and costs a look into the file. What is forgotten stays in the field until the next start.

use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::index::hot::Seeded;
use crate::policy::UrlKey;

const WORDS: u64 = 1 << 19;
const BITS: u64 = 4;

/// The field.
#[derive(Debug)]
pub(super) struct Urls {
    words: Box<[AtomicU64]>,
    hashers: [Seeded; 2],
}

impl Urls {
    pub(super) fn add(&self, url: &UrlKey) {
        for (word, bit) in self.places(url) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    pub(super) fn may_have(&self, url: &UrlKey) -> bool {
        self.places(url).all(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    fn places(&self, url: &UrlKey) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let [first, step] = self.hashers.each_ref().map(|hasher| hasher.hash_one(url));
        (0..BITS).filter_map(move |turn| {
            let place = first.wrapping_add(turn.wrapping_mul(step | 1));
            let word = usize::try_from((place >> 6) % WORDS).ok()?;
            Some((self.words.get(word)?, 1 << (place & 63)))
        })
    }
}

impl Default for Urls {
    fn default() -> Self {
        Self { words: (0..WORDS).map(|_| AtomicU64::new(0)).collect(), hashers: Default::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    #[test]
    fn what_was_added_is_never_missed_and_few_others_are_taken_for_it() {
        let url = |number: u64| UrlKey::from_bytes(*Digest::of(&number.to_be_bytes()).as_bytes());
        let urls = Urls::default();
        (0..100_000).for_each(|number| urls.add(&url(number)));
        assert!((0..100_000).all(|number| urls.may_have(&url(number))));
        let wrong = (100_000..200_000).filter(|number| urls.may_have(&url(*number))).count();
        assert!(wrong < 20, "{wrong}");
    }
}
