//! Why the last answer of a URL was kept, or was not: for whoever wonders. In memory, bounded, the oldest go first;
//! URLs are known by their names alone.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::engine::{Case, Engine};
use crate::clock::Timestamp;
use crate::http::Target;
use crate::policy::{Rule, UrlKey};

/// How many URLs are remembered.
const MOST: usize = 8192;

/// What became of the last answer of a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// When.
    #[serde(skip)]
    pub at: Timestamp,
    /// Whether it was kept.
    pub kept: bool,
    /// A short sentence.
    pub why: String,
}

/// What is known of how a URL is treated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The rule that holds for it and its place among those written, counted from one; none where none matches.
    pub rule: Option<(usize, Rule)>,
    /// What became of its last answer; none if there was none lately.
    pub last: Option<Reason>,
}

/// The reasons.
#[derive(Debug, Default)]
pub(super) struct Reasons(Mutex<HashMap<UrlKey, Reason>>);

impl Reasons {
    fn note(&self, url: UrlKey, reason: Reason) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST && !known.contains_key(&url) {
            let mut times: Vec<Timestamp> = known.values().map(|reason| reason.at).collect();
            let (_, oldest, _) = times.select_nth_unstable(MOST / 16);
            let oldest = *oldest;
            known.retain(|_, reason| reason.at > oldest);
        }
        known.insert(url, reason);
    }

    fn of(&self, url: &UrlKey) -> Option<Reason> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(url).cloned()
    }
}

impl Engine {
    /// How a URL is treated, and what became of its last answer.
    pub fn explain(&self, target: &Target) -> Explanation {
        let rules = self.0.rules.load();
        let holding = rules.for_target(target);
        let place = rules.written().iter().position(|rule| std::ptr::eq(rule, holding));
        let rule = place.map(|place| (place + 1, holding.clone()));
        let url = self.url_key(target);
        let blocked = self.0.cache.index().block_of_url(&url).map(|block| Reason {
            at: block.since,
            kept: false,
            why: blocked(&block.reason),
        });
        Explanation { rule, last: blocked.or_else(|| self.0.reasons.of(&url)) }
    }

    /// The answer to this was kept.
    pub(super) fn note_kept(&self, case: &Case, why: impl Into<String>) {
        self.note_reason(case, true, why.into());
    }

    /// The answer to this was not kept, or nothing that is kept was of use for it.
    pub(super) fn note_not_kept(&self, case: &Case, why: impl Into<String>) {
        self.note_reason(case, false, why.into());
    }

    /// This was refused: it is blocked.
    pub(super) fn note_refused(&self, url: UrlKey, why: &str) {
        self.0.reasons.note(url, Reason { at: self.0.clock.now(), kept: false, why: blocked(why) });
    }

    fn note_reason(&self, case: &Case, kept: bool, why: String) {
        self.0.reasons.note(case.url, Reason { at: self.0.clock.now(), kept, why });
    }
}

fn blocked(why: &str) -> String {
    format!("blocked here: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_reason_counts_and_the_oldest_go() {
        let reasons = Reasons::default();
        for number in 0..MOST + 10 {
            let at = Timestamp(u64::try_from(number).unwrap());
            reasons.note(UrlKey::numbered(number), Reason { at, kept: false, why: "first".into() });
            reasons.note(UrlKey::numbered(number), Reason { at, kept: true, why: number.to_string() });
        }
        assert!(reasons.0.lock().unwrap().len() <= MOST);
        assert_eq!(reasons.of(&UrlKey::numbered(0)), None);
        assert_eq!(reasons.of(&UrlKey::numbered(MOST)).unwrap().why, MOST.to_string());
    }

    #[test]
    fn many_of_one_moment_are_bounded_too() {
        let reasons = Reasons::default();
        for number in 0..2 * MOST {
            let reason = Reason { at: Timestamp(1), kept: false, why: String::new() };
            reasons.note(UrlKey::numbered(number), reason);
        }
        assert!(reasons.0.lock().unwrap().len() <= MOST);
    }
}
