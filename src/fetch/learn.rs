//! Learning: what passes is read for the digests it states, off the clients' path.
//!
//! Documents are read once they are stored, one after another, in a thread that may block; what waits its turn is
//! bounded, and what finds no place is not read. A document's word counts as its origin's only if the origin sent or
//! confirmed these bytes for this URL, or if what the origin said elsewhere led to them: bytes that are only what a
//! client stated, or what its URL contains, teach nothing.

mod lessons;

use std::sync::Arc;

use http::{Response, StatusCode};

use super::engine::{Case, Engine};
use super::error::FetchError;
use super::judge::Judge;
use super::neighbours::Word;
use super::outcome::Reply;
use super::settings::Trust;
use super::want::Want;
use crate::clock::Timestamp;
use crate::digest::{Digest, Stated};
use crate::ecosystem::{self, Document, Lasts, Passing, Statement};
use crate::http::{Body, StoredHead, Target};
use crate::index::{ExpectationRecord, ResourceRecord};
use crate::policy::{self, Caching, PassReason, Plan, UrlKey};

pub(super) use lessons::{Lesson, Lessons, Ticket};

/// What was stated for a want's URL, and how long what it leads to lasts.
#[derive(Debug, Clone, Default)]
pub(super) struct Learned {
    expected: Option<Arc<ExpectationRecord>>,
    lasts: Option<Lasts>,
}

/// How long a statement counts that is of a URL with a query: its like are signed for minutes.
const SIGNED: std::time::Duration = std::time::Duration::from_secs(3600);
/// So many statements are put into the index at once.
const BATCH: usize = 4096;

impl Learned {
    /// Whether something was stated of the thing since then, or in the same moment.
    pub(super) fn is_newer_than(&self, time: Timestamp) -> bool {
        self.expected.as_ref().is_some_and(|expected| expected.stated_at >= time)
    }
}

impl Engine {
    /// What was stated for a target, if it still counts.
    pub fn expectation(&self, target: &Target) -> Option<Arc<ExpectationRecord>> {
        let now = self.0.clock.now();
        let expected = self.0.cache.index().expectation(&self.statement_key(target), now)?;
        let signed = target.path().contains('?') && now.since(expected.stated_at) > SIGNED;
        (!signed).then_some(expected)
    }

    /// Remembers what `by` stated at this time.
    pub(super) fn expect(&self, by: &Target, at: Timestamp, said: impl IntoIterator<Item = Statement>) {
        let by: Arc<str> = by.shown().into();
        self.0.cache.index().expect(said.into_iter().map(|statement| ExpectationRecord {
            url_key: self.statement_key(&statement.target),
            digest: statement.digest,
            size: statement.size,
            stated_by: Arc::clone(&by),
            stated_at: at,
        }));
    }

    /// Statements are kept under one spelling of their URL.
    pub(super) fn statement_key(&self, target: &Target) -> UrlKey {
        self.url_key(&ecosystem::spelling(target))
    }

    /// What is known of a want's bytes before anybody is asked. Where an index is just being read that may state it,
    /// and neighbours could give the file, its end is waited for a moment.
    pub(super) async fn learned(&self, want: &Want) -> Learned {
        let lasts = Some(ecosystem::classify(&want.target).lasts);
        if want.is_private() {
            return Learned { expected: None, lasts };
        }
        let known = self.expectation(&want.target);
        let is_worth_a_moment = known.is_none()
            && lasts == Some(Lasts::Version)
            && self.0.neighbours.load().as_ref().is_some_and(|neighbours| neighbours.heard_lately());
        if is_worth_a_moment && self.0.lessons.over(&want.target).await {
            return Learned { expected: self.expectation(&want.target), lasts };
        }
        Learned { expected: known, lasts }
    }

    /// By what neighbours are asked, and their bytes judged, before the origin is.
    pub(super) fn judge_without_origin(&self, case: &Case) -> Judge {
        if case.judge.is_set() {
            // a weak digest judges, but names nothing
            return if case.judge.named().is_some() { case.judge } else { Judge::default() };
        }
        let min_size = self.0.config.load().min_size.bytes();
        let expected = case.learned.without_origin(case);
        match expected.filter(|expected| expected.size.is_none_or(|size| size >= min_size)) {
            Some(expected) => Judge::learned(expected.digest, |stated| self.blob_of(stated)),
            None => Judge::default(),
        }
    }

    /// The blob that was stated for a want's URL, as far as that needs no word of the origin.
    pub(super) fn learned_blob(&self, case: &Case) -> Option<Digest> {
        let stated = case.learned.without_origin(case)?.digest;
        stated.sha256().or_else(|| self.blob_of(&stated))
    }

    /// What was stated is held already, though perhaps under another URL.
    pub(super) async fn serve_learned(&self, case: &Case) -> Result<Option<Reply>, FetchError> {
        let digest = self.learned_blob(case);
        // what only certain clients may have is given to nobody because of what a page says
        match digest.filter(|digest| case.guarded || !self.0.cache.is_guarded(digest)) {
            Some(digest) => self.serve_digest(case, digest).await,
            None => Ok(None),
        }
    }

    /// Whose word is taken for what the origin's head names.
    pub(super) fn word_for(&self, case: &Case) -> Word {
        let config = self.0.config.load();
        let stated = case.learned.expected.as_ref().map(|expected| expected.digest);
        let stated =
            stated.filter(Stated::is_strong).and_then(|it| it.sha256().or_else(|| self.blob_of(&it)));
        Word { witnesses: (config.trust == Trust::Witness).then_some(config.witnesses), stated }
    }

    /// Whether these bytes are others than those that were stated.
    pub(super) fn contradicts(&self, case: &Case, digest: Digest) -> bool {
        let Some(expected) = &case.learned.expected else { return false };
        let stated = expected.digest;
        match (stated.sha256().or_else(|| self.blob_of(&stated)), stated.algorithm()) {
            (Some(blob), _) => blob != digest,
            (None, algorithm) => {
                let known = self.0.cache.index().digest_of(&digest, algorithm);
                known.is_some_and(|value| value != stated)
            }
        }
    }

    /// Whether a stored answer is older than a word of the origin's side that names other bytes. It is not even asked
    /// for whether it still holds: dates and sizes are too coarse to tell one version of an index from the next.
    pub(super) fn is_outdated(&self, case: &Case, stored: &ResourceRecord) -> bool {
        case.learned.is_newer_than(stored.answer.response_time)
            && stored.digest.is_some_and(|digest| self.contradicts(case, digest))
    }

    fn blob_of(&self, stated: &Stated) -> Option<Digest> {
        self.0.cache.index().blob_of(&stated.key())
    }

    /// A stored answer was given out or confirmed: if it is a document, it is read.
    pub(super) fn study(&self, want: &Want, record: &ResourceRecord) {
        self.begin_lesson(self.lesson(want, record));
    }

    /// A place in the queue for an answer that is about to be held, if it is a document.
    pub(super) fn lesson(&self, want: &Want, record: &ResourceRecord) -> Option<(Lesson, Ticket)> {
        if want.is_private() || self.0.stop.is_requested() {
            return None;
        }
        let (blob, head) = (record.digest?, &record.answer.head);
        let is_packument = ecosystem::asks_for_packument(&want.headers);
        let document = Document::of(Passing { target: &want.target, head, is_packument })?;
        if record.size > document.most() {
            return None;
        }
        let said_at = self.vouched(&want.target, record)?;
        let (target, head) = (want.target.clone(), head.clone());
        let lesson = Lesson { document, target, head, is_packument, blob, said_at };
        let ticket = self.0.lessons.enter(record.url_key, &lesson)?;
        Some((lesson, ticket))
    }

    /// Reads a document when its turn comes.
    pub(super) fn begin_lesson(&self, lesson: Option<(Lesson, Ticket)>) {
        let Some((lesson, ticket)) = lesson else { return };
        let engine = self.clone();
        // joined by the drain
        drop(self.0.drain.spawn(async move {
            let _turn = ticket.turn().await;
            engine.read(lesson).await;
        }));
    }

    /// When the origin last said that these bytes are what the URL leads to; none if it never did.
    fn vouched(&self, target: &Target, record: &ResourceRecord) -> Option<Timestamp> {
        if record.answer.response_time != Timestamp::default() {
            return Some(record.answer.response_time);
        }
        let expected = self.expectation(target)?;
        (expected.digest.sha256() == record.digest).then_some(expected.stated_at)
    }

    async fn read(&self, lesson: Lesson) {
        if self.0.stop.is_requested() {
            return;
        }
        let Some(blob) = self.0.cache.open_proven(&lesson.blob).await else { return };
        let companion = match lesson.document.companion(&lesson.target) {
            Some(target) => self.companion(&target).await,
            None => None,
        };
        let engine = self.clone();
        let read = tokio::task::spawn_blocking(move || {
            let (mut said, mut count) = (Vec::new(), 0_usize);
            let mut hear = |statement| {
                count += 1;
                said.push(statement);
                if said.len() >= BATCH {
                    engine.expect(&lesson.target, lesson.said_at, said.drain(..));
                }
                !engine.0.stop.is_requested()
            };
            let passing =
                Passing { target: &lesson.target, head: &lesson.head, is_packument: lesson.is_packument };
            let companion = companion.as_ref().map(|(head, bytes)| (head, bytes.as_slice()));
            let result = lesson.document.read(passing, blob.reader(), companion, &mut hear);
            engine.expect(&lesson.target, lesson.said_at, said);
            tracing::debug!(url = %lesson.target, statements = count, "read a document");
            if let Err(error) = result {
                tracing::debug!(%error, url = %lesson.target, "a document was not read to its end");
            }
        });
        if read.await.is_err() {
            tracing::error!("the thread that reads a document ended early");
        }
    }

    /// A small document that is held already.
    async fn companion(&self, target: &Target) -> Option<(StoredHead, Vec<u8>)> {
        /// The largest that is read.
        const MOST: u64 = 64 * 1024;
        let variants = self.0.cache.variants(&self.url_key(target));
        let usable = variants.into_iter().filter(|v| v.answer.head.status == 200 && v.size <= MOST);
        let newest = usable.max_by_key(|v| v.answer.response_time)?;
        let blob = self.0.cache.open_proven(&newest.digest?).await?;
        let bytes = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut blob.reader(), &mut bytes).map(|_| bytes)
        });
        Some((newest.answer.head.clone(), bytes.await.ok()?.ok()?))
    }

    /// What a passing head states of the thing it leads to.
    pub(super) fn hear_head(&self, case: &Case, response: &Response<Body>) {
        if !response.status().is_redirection() || response.status() == StatusCode::NOT_MODIFIED {
            return;
        }
        let head = StoredHead::keep(response.status(), response.headers());
        let said = ecosystem::said_elsewhere(&case.want.target, &head);
        if !said.is_empty() {
            self.expect(&case.want.target, self.0.clock.now(), said);
        }
    }

    /// The origin sent these bytes: what was stated of them before and is not so is dropped. Where another algorithm
    /// than SHA-256 was stated, it is reckoned now, so that neighbours can ask by it.
    pub(super) async fn compare(&self, case: &Case, asked: Timestamp, found: Digest) {
        let Some(expected) = self.expectation(&case.want.target) else { return };
        let stated = expected.digest;
        let is_right = match stated.sha256() {
            Some(digest) => digest == found,
            None => self.0.cache.reckon(&found, stated.algorithm()).await.is_none_or(|it| it == stated),
        };
        // what was stated meanwhile may be of the next version
        if !is_right && expected.stated_at <= asked {
            tracing::debug!(
                url = %case.want.target, by = %expected.stated_by,
                "what was stated is not what the origin sends: dropped"
            );
            self.0.cache.index().drop_expectation(&expected.url_key, &stated);
        }
    }
}

impl Learned {
    /// Index files that are a set are confirmed before they go out, though each of them may still be fresh; what
    /// names a version needs no question where its index has named it since.
    pub(super) fn look_again(&self, plan: Plan, case: &Case, stored: Option<&ResourceRecord>) -> Plan {
        let is_set = self.lasts == Some(Lasts::Set) && case.rule.cache != Caching::Force;
        match plan {
            _ if self.lasts == Some(Lasts::Moment) => Plan::Pass(PassReason::NoStore),
            Plan::Serve { .. } | Plan::ServeAndRevalidate { .. }
                if is_set && !case.want.is_from_cache_alone() =>
            {
                Plan::Revalidate { stale_allowed: true }
            }
            Plan::Revalidate { .. } if self.names(case, stored) => Plan::Serve { age: Default::default() },
            Plan::Serve { .. }
            | Plan::ServeAndRevalidate { .. }
            | Plan::Revalidate { .. }
            | Plan::Fetch
            | Plan::Unavailable
            | Plan::Pass(_) => plan,
        }
    }

    fn names(&self, case: &Case, stored: Option<&ResourceRecord>) -> bool {
        let (Some(expected), Some(stored)) = (self.without_origin(case), stored) else { return false };
        expected.stated_at >= stored.answer.response_time
            && stored.digest.is_some_and(|digest| expected.digest == digest.into())
    }

    /// What was stated, where it is as good as the origin's word now and the client does not insist on that.
    fn without_origin(&self, case: &Case) -> Option<&ExpectationRecord> {
        let expected = self.expected.as_deref()?;
        let is_good = self.lasts.is_some_and(Lasts::outlives_questions)
            && expected.digest.is_strong()
            && !policy::insists(&case.want.headers);
        is_good.then_some(expected)
    }
}
