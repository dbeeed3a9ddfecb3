//! Parts of things whose whole is not held: what the origin's answers to ranges left, by URL.
//!
//! The bytes of a part are a blob like any other; that they are a part is remembered in memory alone, so a
//! restart forgets it and eviction has the blob. That is on purpose: a part is on its way to becoming the whole, or a
//! beginning, which are kept; what is left are small pieces from the middle, worth less than a table of them on disk
//! that had to be kept in step with eviction. Bounded: the oldest part of a URL, and the URL that got its
//! last part first, go for new ones.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::Cache;
use crate::digest::Digest;
use crate::policy::{Answer, UrlKey, Variance};
use crate::range::RangeRequest;

/// So many parts of one URL are remembered.
const PARTS: usize = 512;
/// Parts of so many URLs are remembered.
const URLS: usize = 1024;

/// A part of a thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What selected the answer it is of.
    pub variance: Variance,
    /// The answer as it came, a 206.
    pub answer: Answer,
    /// Which bytes of the thing are here.
    pub range: Range<u64>,
    /// Which bytes the origin said it was sending; more than are here where it then sent fewer.
    pub announced: Range<u64>,
    /// The size of the whole.
    pub size: u64,
    /// The blob that holds the bytes.
    pub digest: Digest,
}

/// All parts.
#[derive(Debug, Default)]
pub(super) struct Parts(Mutex<HashMap<UrlKey, Vec<Arc<Part>>>>);

impl Part {
    /// Whether the bytes that are here are those the origin announced.
    pub fn is_exact(&self) -> bool {
        self.range == self.announced
    }

    /// Which bytes of the thing answer a range, if all of them are here. What the origin sent as the end is the
    /// end, also where it announced more than it sent: asked again, it would send the same.
    pub fn answers(&self, range: RangeRequest) -> Option<Range<u64>> {
        let is_end = self.announced.end == self.size;
        let wanted = match range {
            RangeRequest::From { first, last: Some(last) } => {
                let end = last.saturating_add(1).min(self.size);
                first..if is_end { end.min(self.range.end) } else { end }
            }
            RangeRequest::From { first, last: None } if is_end => first..self.range.end,
            RangeRequest::Suffix(length) if is_end => self.range.end.saturating_sub(length)..self.range.end,
            RangeRequest::From { last: None, .. } | RangeRequest::Suffix(_) => return None,
        };
        let is_here = self.range.start <= wanted.start && wanted.end <= self.range.end;
        (is_here && !wanted.is_empty()).then_some(wanted)
    }
}

impl Parts {
    fn put(&self, url: UrlKey, part: Part) {
        let mut urls = self.lock();
        if urls.len() >= URLS && !urls.contains_key(&url) {
            let last = |parts: &Vec<Arc<Part>>| parts.last().map(|part| part.answer.response_time);
            let oldest = urls.iter().min_by_key(|(_, parts)| last(parts)).map(|(url, _)| *url);
            oldest.map(|oldest| urls.remove(&oldest));
        }
        let parts = urls.entry(url).or_default();
        // of the same bytes the newer answer counts
        parts.retain(|other| other.variance != part.variance || other.range != part.range);
        if parts.len() >= PARTS {
            parts.remove(0);
        }
        parts.push(Arc::new(part));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<UrlKey, Vec<Arc<Part>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cache {
    /// Remembers a part whose bytes are a blob.
    pub fn put_part(&self, url: UrlKey, part: Part) {
        self.0.parts.put(url, part);
    }

    /// The parts of a URL, the oldest first.
    pub fn parts(&self, url: &UrlKey) -> Vec<Arc<Part>> {
        self.0.parts.lock().get(url).cloned().unwrap_or_default()
    }

    /// Forgets the parts of a URL; the blobs are left to eviction.
    pub fn forget_parts(&self, url: &UrlKey) {
        self.0.parts.lock().remove(url);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(range: Range<u64>, announced: Range<u64>, size: u64) -> Part {
        let (variance, answer) = (Variance::default(), Answer::default());
        Part { variance, answer, range, announced, size, digest: Digest::of(b"") }
    }

    #[test]
    fn a_part_answers_what_lies_inside() {
        let middle = part(4..8, 4..8, 10);
        for (field, want) in [
            ("bytes=4-7", Some(4..8)),
            ("bytes=5-5", Some(5..6)),
            ("bytes=3-5", None),
            ("bytes=5-8", None),
            ("bytes=5-", None),
            ("bytes=-4", None),
            ("bytes=8-", None),
        ] {
            assert_eq!(middle.answers(RangeRequest::parse(field).unwrap()), want, "{field}");
        }
    }

    #[test]
    fn the_last_part_answers_open_ends() {
        let last = part(4..10, 4..10, 10);
        for (field, want) in [
            ("bytes=4-", Some(4..10)),
            ("bytes=9-", Some(9..10)),
            ("bytes=10-", None),
            ("bytes=3-", None),
            ("bytes=-6", Some(4..10)),
            ("bytes=-1", Some(9..10)),
            ("bytes=-7", None),
            ("bytes=-0", None),
            ("bytes=6-99", Some(6..10)),
        ] {
            assert_eq!(last.answers(RangeRequest::parse(field).unwrap()), want, "{field}");
        }
    }

    #[test]
    fn an_end_that_came_short_is_given_as_it_came() {
        let short = part(4..9, 4..10, 10);
        assert!(!short.is_exact());
        for (field, want) in [
            ("bytes=6-8", Some(6..9)),
            ("bytes=6-", Some(6..9)),
            ("bytes=-1", Some(8..9)),
            ("bytes=9-", None),
        ] {
            assert_eq!(short.answers(RangeRequest::parse(field).unwrap()), want, "{field}");
        }
    }

    #[test]
    fn parts_are_bounded_and_the_newer_of_the_same_bytes_counts() {
        let (parts, url) = (Parts::default(), UrlKey::from_bytes([1; 32]));
        for start in 0..PARTS as u64 + 3 {
            parts.put(url, part(start..start + 1, start..start + 1, 10_000));
        }
        assert_eq!(parts.lock()[&url].len(), PARTS);
        assert_eq!(parts.lock()[&url][0].range, 3..4);
        parts.put(url, Part { digest: Digest::of(b"new"), ..part(3..4, 3..4, 10_000) });
        assert_eq!(parts.lock()[&url].len(), PARTS);
        assert_eq!(parts.lock()[&url].last().unwrap().digest, Digest::of(b"new"));
        for n in 0..=URLS as u64 {
            let mut name = [0; 32];
            name[..8].copy_from_slice(&n.to_be_bytes());
            parts.put(UrlKey::from_bytes(name), part(0..1, 0..1, 2));
        }
        assert_eq!(parts.lock().len(), URLS);
    }
}
