//! Byte ranges: what a client asks for (RFC 9110 section 14) and which parts of a thing are held.
//!
//! [`RangeRequest`] reads a `Range` field and [`RangeRequest::resolve`] turns it into bytes of a thing of
//! known size. What is malformed, of another unit, or more than one range is no request at all (section 14.2:
//! a server may ignore it, and then the whole goes out). [`RangeSet`] is a set of bytes as sorted, disjoint spans.

use std::ops::Range;

/// One range of bytes as a client wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeRequest {
    /// `bytes=first-` or `bytes=first-last`, both inclusive.
    From {
        /// First byte wanted.
        first: u64,
        /// Last byte wanted, if an end was given.
        last: Option<u64>,
    },
    /// `bytes=-length`: the last bytes.
    Suffix(u64),
}

/// The range lies outside the thing: 416.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the range lies outside")]
pub struct Unsatisfiable;

impl RangeRequest {
    /// Reads the value of a `Range` field; none if it is to be ignored.
    pub fn parse(field: &str) -> Option<Self> {
        let spec = strip_unit(field.trim())?;
        if spec.contains(',') {
            return None;
        }
        let (first, last) = spec.split_once('-')?;
        let (first, last) = (first.trim(), last.trim());
        if first.is_empty() {
            return Some(Self::Suffix(number(last)?));
        }
        let first = number(first)?;
        let last = if last.is_empty() { None } else { Some(number(last)?) };
        if last.is_some_and(|last| last < first) {
            return None;
        }
        Some(Self::From { first, last })
    }

    /// The bytes it means of a thing of `size` bytes.
    pub fn resolve(self, size: u64) -> Result<Range<u64>, Unsatisfiable> {
        match self {
            Self::From { first, .. } if first >= size => Err(Unsatisfiable),
            Self::From { first, last } => {
                Ok(first..last.map_or(size, |last| last.saturating_add(1).min(size)))
            }
            Self::Suffix(0) => Err(Unsatisfiable),
            Self::Suffix(_) if size == 0 => Err(Unsatisfiable),
            Self::Suffix(length) => Ok(size.saturating_sub(length)..size),
        }
    }
}

fn strip_unit(field: &str) -> Option<&str> {
    let (unit, spec) = field.split_once('=')?;
    unit.trim().eq_ignore_ascii_case("bytes").then_some(spec)
}

/// Digits only: `u64::from_str` would accept a sign.
fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    // more digits than a u64 holds: beyond any thing's end
    Some(text.parse().unwrap_or(u64::MAX))
}

/// What a `Content-Range` field says (RFC 9110 section 14.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentRange {
    /// The bytes enclosed; empty for an unsatisfied range.
    pub bytes: Range<u64>,
    /// The whole size, if told.
    pub size: Option<u64>,
}

impl ContentRange {
    /// Reads `bytes first-last/size`, `bytes first-last/*` or `bytes */size`; none if malformed.
    pub fn parse(field: &str) -> Option<Self> {
        let rest = field.trim().strip_prefix("bytes ")?.trim();
        let (span, size) = rest.split_once('/')?;
        let size = if size == "*" { None } else { Some(number(size)?) };
        if span == "*" {
            return Some(Self { bytes: 0..0, size: Some(size?) });
        }
        let (first, last) = span.split_once('-')?;
        let (first, last) = (number(first)?, number(last)?);
        if last < first || last == u64::MAX || size.is_some_and(|size| last >= size) {
            return None;
        }
        Some(Self { bytes: first..last + 1, size })
    }

    /// `bytes first-last/size` of a satisfied range of a thing of known size.
    pub fn satisfied(bytes: &Range<u64>, size: u64) -> String {
        format!("bytes {}-{}/{size}", bytes.start, bytes.end.saturating_sub(1))
    }

    /// `bytes */size`, for 416.
    pub fn unsatisfied(size: u64) -> String {
        format!("bytes */{size}")
    }
}

/// A set of byte positions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeSet {
    spans: Vec<Range<u64>>,
}

impl RangeSet {
    /// Adds bytes; returns how many were not in the set before.
    pub fn insert(&mut self, bytes: Range<u64>) -> u64 {
        if bytes.is_empty() {
            return 0;
        }
        let from = self.spans.partition_point(|span| span.end < bytes.start);
        let to = self.spans.partition_point(|span| span.start <= bytes.end);
        let touched = self.spans.drain(from..to).fold((bytes.clone(), 0), |(all, held), span| {
            let overlap = span.end.min(bytes.end).saturating_sub(span.start.max(bytes.start));
            (all.start.min(span.start)..all.end.max(span.end), held + overlap)
        });
        self.spans.insert(from, touched.0);
        bytes.end - bytes.start - touched.1
    }

    /// The parts of `bytes` that are not in the set, in order.
    pub fn missing(&self, bytes: Range<u64>) -> Vec<Range<u64>> {
        let mut gaps = Vec::new();
        let mut at = bytes.start;
        for span in &self.spans {
            if span.start >= bytes.end {
                break;
            }
            if span.start > at {
                gaps.push(at..span.start);
            }
            at = at.max(span.end);
        }
        if at < bytes.end {
            gaps.push(at..bytes.end);
        }
        gaps
    }

    /// How many positions are in the set.
    pub fn total(&self) -> u64 {
        self.spans.iter().map(|span| span.end - span.start).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_forms_of_rfc_9110() {
        let from = |first, last| Some(RangeRequest::From { first, last });
        for (field, want) in [
            ("bytes=0-499", from(0, Some(499))),
            ("bytes=9500-", from(9500, None)),
            ("BYTES=1-1", from(1, Some(1))),
            ("bytes=-500", Some(RangeRequest::Suffix(500))),
        ] {
            assert_eq!(RangeRequest::parse(field), want, "{field}");
        }
        for ignored in
            ["bytes=0--1", "bytes=abc", "items=0-1", "bytes=5-4", "bytes=", "bytes=+1-2", "bytes=0-1,3-4"]
        {
            assert_eq!(RangeRequest::parse(ignored), None, "{ignored}");
        }
    }

    #[test]
    fn resolves_against_a_size() {
        let resolve = |field: &str, size| RangeRequest::parse(field).unwrap().resolve(size);
        assert_eq!(resolve("bytes=0-499", 10), Ok(0..10));
        assert_eq!(resolve("bytes=9-", 10), Ok(9..10));
        assert_eq!(resolve("bytes=10-", 10), Err(Unsatisfiable));
        assert_eq!(resolve("bytes=-3", 10), Ok(7..10));
        assert_eq!(resolve("bytes=-30", 10), Ok(0..10));
        assert_eq!(resolve("bytes=-0", 10), Err(Unsatisfiable));
        assert_eq!(resolve("bytes=-1", 0), Err(Unsatisfiable));
        assert_eq!(resolve("bytes=99999999999999999999999-", 10), Err(Unsatisfiable));
    }

    #[test]
    fn reads_content_range() {
        assert_eq!(ContentRange::parse("bytes 2-4/10"), Some(ContentRange { bytes: 2..5, size: Some(10) }));
        assert_eq!(ContentRange::parse("bytes 2-4/*"), Some(ContentRange { bytes: 2..5, size: None }));
        assert_eq!(ContentRange::parse("bytes */10"), Some(ContentRange { bytes: 0..0, size: Some(10) }));
        // one byte is a range too, and what is written is read again
        assert_eq!(ContentRange::parse("bytes 9-9/10"), Some(ContentRange { bytes: 9..10, size: Some(10) }));
        assert_eq!(ContentRange::satisfied(&(2..5), 10), "bytes 2-4/10");
        assert_eq!(ContentRange::unsatisfied(10), "bytes */10");
        for wrong in ["bytes 4-2/10", "bytes 2-10/10", "bytes */*", "2-4/10", "bytes 2-4", "bytes -1-4/10"] {
            assert_eq!(ContentRange::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn spans_that_touch_become_one_and_gaps_are_never_empty() {
        let mut set = RangeSet::default();
        assert_eq!((set.insert(0..5), set.insert(10..15), set.insert(5..10)), (5, 5, 5));
        assert_eq!(set.spans.as_slice(), std::slice::from_ref(&(0..15)));
        assert_eq!(set.insert(20..30), 10);
        assert_eq!(set.missing(0..20).as_slice(), std::slice::from_ref(&(15..20)));
        assert_eq!(set.missing(15..40), [15..20, 30..40]);
        assert!(set.missing(20..30).is_empty() && set.missing(0..15).is_empty());
    }

    proptest! {
        #[test]
        fn a_set_counts_each_byte_once(spans in prop::collection::vec((0u64..200, 0u64..50), 0..40)) {
            let (mut set, mut model) = (RangeSet::default(), std::collections::BTreeSet::new());
            for (start, length) in spans {
                let fresh = (start..start + length).filter(|byte| model.insert(*byte)).count();
                prop_assert_eq!(set.insert(start..start + length), fresh as u64);
            }
            prop_assert_eq!(set.total(), model.len() as u64);
            let gaps: Vec<u64> = set.missing(0..300).into_iter().flatten().collect();
            prop_assert_eq!(gaps, (0..300).filter(|b| !model.contains(b)).collect::<Vec<_>>());
        }

        #[test]
        fn what_resolves_lies_inside(first: u64, last: Option<u64>, size in 1u64..1000) {
            if let Ok(range) = (RangeRequest::From { first, last }).resolve(size) {
                prop_assert!(range.start < range.end || last.is_some_and(|l| l < first));
                prop_assert!(range.end <= size);
            }
        }

        #[test]
        fn no_field_panics(field: String) {
            let _unused = (RangeRequest::parse(&field), ContentRange::parse(&field));
        }
    }
}
