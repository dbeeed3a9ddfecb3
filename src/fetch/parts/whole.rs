//! From parts to the whole: what is known of it, where the next part begins, and fetching what is missing.

use std::sync::Arc;

use super::here::{Here, Sought, WORTH, next};
use super::{Case, Engine, Note, Part, head_of_whole};
use crate::range::RangeSet;

impl Engine {
    /// Where nothing is here from the beginning on: what is known of the thing from a part further on.
    pub(super) fn further_on(&self, case: &Case) -> Option<Note> {
        let is_of_use = |part: &&Arc<Part>| {
            part.is_exact()
                && part.range.end - part.range.start >= WORTH
                && part.answer.head.strong_etag().is_some()
                && part.variance.matches(&case.want.headers)
        };
        let parts = self.0.cache.parts(&case.url);
        let newest = parts.iter().rev().find(is_of_use)?;
        let (answer, variance) = (head_of_whole(&newest.answer), newest.variance.clone());
        Some(Note { answer, variance, total: Some(newest.size) })
    }

    /// Where something of this version begins that is here, behind what a transfer has from the beginning on. What
    /// follows at once is no more than a byte of the origin's, whose head says whether it belongs there.
    pub(in crate::fetch) fn next_after(&self, case: &Case, note: &Note, offset: u64) -> Option<u64> {
        let (tag, size) = (note.answer.head.strong_etag()?, note.total?);
        let sought = Sought { url: case.url, variance: &note.variance, tag, size };
        next(&self.here(&sought), offset).map(|at| at.max(offset + 1))
    }

    /// What is missing of a thing of which most is here comes behind the client's back when nobody asks for parts
    /// of it any more, and after all that somebody waits for: then it is whole, and neighbours can have it.
    pub(super) fn complete_behind(&self, case: Case, newest: Part) {
        let is_wanted = self.0.config.load().complete_parts && !self.0.stop.is_requested();
        if !is_wanted || case.want.is_private() || !self.is_most_here(&case, &newest) {
            return;
        }
        let has_end = newest.range.end == newest.size;
        let engine = self.clone();
        // joined by the drain
        drop(self.0.drain.spawn(async move {
            let is_quiet = tokio::select! {
                is_quiet = engine.0.asking.quiet(case.url, has_end) => is_quiet,
                () = engine.0.stop.requested() => false,
            };
            if is_quiet && engine.is_most_here(&case, &newest) {
                engine.complete(&case).await;
            }
        }));
    }

    async fn complete(&self, case: &Case) {
        let mut want = case.want.clone();
        want.headers = want.headers_for_anybody();
        (want.interim, want.background) = (None, None);
        if let Err(error) = self.prefetch(want).await {
            tracing::debug!(%error, "what is missing of a download in parts did not come");
        }
    }

    /// Whether more than half of a thing is here, and no more is on its way.
    fn is_most_here(&self, case: &Case, newest: &Part) -> bool {
        let Some(tag) = newest.answer.head.strong_etag() else { return false };
        let sought = Sought { url: case.url, variance: &newest.variance, tag, size: newest.size };
        let mut held = RangeSet::default();
        for here in self.here(&sought) {
            match here {
                Here::Held(part) => held.insert(part.range.clone()),
                Here::Arriving(_) => return false,
            };
        }
        if let Some(here) = self.beginning(case)
            && here.note.answer.head.strong_etag() == Some(tag)
        {
            held.insert(0..here.length());
        }
        held.total() > newest.size / 2
    }

    /// Blobs that are a part of this and nothing else go: the whole has their bytes. Blocks on the disk.
    pub(in crate::fetch) fn drop_parts(&self, parts: &[Arc<Part>]) {
        let cache = &self.0.cache;
        for part in parts {
            let is_only_a_part =
                cache.index().resources_of(&part.digest).is_empty() && !cache.is_pinned(&part.digest);
            if is_only_a_part && let Err(error) = cache.remove(&part.digest) {
                tracing::debug!(%error, "a part stays until it is evicted");
            }
        }
    }
}
