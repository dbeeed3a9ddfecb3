//! Which bytes of a version are here, or arriving, in parts: what a download of the whole need not ask for.

use std::ops::Range;
use std::sync::Arc;

use super::Engine;
use super::arrivals::Arrival;
use crate::cache::Part;
use crate::policy::{UrlKey, Variance};

/// Bytes that are quicker asked for again than left out: another request costs more.
pub(super) const WORTH: u64 = 256 * 1024;

/// One version of the thing behind a URL.
pub(in crate::fetch) struct Sought<'a> {
    pub(in crate::fetch) url: UrlKey,
    pub(in crate::fetch) variance: &'a Variance,
    /// A strong entity tag: nothing less says that parts belong together.
    pub(in crate::fetch) tag: &'a str,
    pub(in crate::fetch) size: u64,
}

/// Some bytes of it.
#[derive(Debug, Clone)]
pub(in crate::fetch) enum Here {
    /// A part that is held.
    Held(Arc<Part>),
    /// A part that is arriving.
    Arriving(Arc<Arrival>),
}

impl Here {
    /// Which bytes.
    pub(in crate::fetch) fn range(&self) -> Range<u64> {
        match self {
            Self::Held(part) => part.range.clone(),
            Self::Arriving(arrival) => arrival.range.clone(),
        }
    }
}

impl Engine {
    /// What is here of a version and worth leaving out, held parts first.
    pub(in crate::fetch) fn here(&self, sought: &Sought<'_>) -> Vec<Here> {
        let is_held = |part: &&Arc<Part>| {
            part.is_exact()
                && part.size == sought.size
                && part.variance == *sought.variance
                && part.answer.head.strong_etag() == Some(sought.tag)
        };
        let is_coming = |arrival: &&Arc<Arrival>| {
            arrival.size == sought.size && arrival.variance == *sought.variance && arrival.tag == sought.tag
        };
        let (held, coming) = (self.0.cache.parts(&sought.url), self.0.arrivals.of(&sought.url));
        let held = held.iter().filter(is_held).cloned().map(Here::Held);
        let all = held.chain(coming.iter().filter(is_coming).cloned().map(Here::Arriving));
        all.filter(|here| here.range().end - here.range().start >= WORTH).collect()
    }
}

/// Where the next of these begins, from a byte on: at that byte, where one has it.
pub(in crate::fetch) fn next(here: &[Here], from: u64) -> Option<u64> {
    let ahead = here.iter().map(Here::range).filter(|range| range.end > from);
    ahead.map(|range| range.start.max(from)).min()
}

/// The first of these that has a byte.
pub(in crate::fetch) fn covering(here: &[Here], byte: u64) -> Option<&Here> {
    here.iter().find(|here| here.range().contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arriving(range: Range<u64>) -> Here {
        Here::Arriving(Arc::new(Arrival::new(Variance::default(), String::new(), range, 100)))
    }

    #[test]
    fn where_something_begins_that_is_here() {
        let here = [arriving(40..60), arriving(10..20), arriving(15..30)];
        for (from, begins, ends) in [
            (0, Some(10), None),
            (10, Some(10), Some(20)),
            (25, Some(25), Some(30)),
            (30, Some(40), None),
            (59, Some(59), Some(60)),
            (60, None, None),
        ] {
            assert_eq!(next(&here, from), begins, "{from}");
            assert_eq!(covering(&here, from).map(|here| here.range().end), ends, "{from}");
        }
    }
}
