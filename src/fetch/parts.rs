//! Ranges of things that are not held: answered from parts that are, kept as parts when they come, and joined to
//! the whole when nothing of it is missing (RFC 9111 sections 3.3 and 3.4).
//!
//! The client always has the origin's own answer, untouched and at its own pace: what cannot be written as fast
//! is not kept. Parts are joined only under one strong entity tag; of the rest no byte meets another answer's. A
//! download of the whole leaves out what is here or arriving in parts, and what is missing of a thing of which most
//! came in parts is fetched for later.

mod arrivals;
mod here;
mod join;
mod joining;
mod quiet;
mod tee;
mod whole;

use http::header::{self, HeaderMap};
use http::{Response, StatusCode};

use super::engine::{Case, Engine};
use super::error::FetchError;
use super::outcome::{CacheStatus, Given, Held, Reply, Slice};
use super::resume::{Beginning, Note, partial_key};
use crate::cache::Part;
use crate::clock::Timestamp;
use crate::http::Body;
use crate::policy::{self, Answer, Plan, Variance};
use crate::range::{ContentRange, RangeRequest};

use join::Join;
use joining::Mark;
use quiet::Question;
use tee::{Tee, Written};

pub(super) use arrivals::{Arrival, Arrivals};
pub(super) use here::{Here, Sought, covering, next};
pub(super) use joining::Joining;
pub(super) use quiet::Asking;

/// So many answers to ranges are kept at the same time; the others only pass.
pub(super) const AT_ONCE: usize = 32;

/// A part that is arriving.
struct Coming {
    answer: Answer,
    variance: Variance,
    shareable: bool,
    content: std::ops::Range<u64>,
    size: u64,
}

impl Engine {
    /// A range answered from a part that is held, where it is fresh. A digest speaks of the whole, so a part is no
    /// answer where one must hold.
    pub(super) async fn held_part(&self, case: &Case) -> Option<Reply> {
        let range = case.want.range().filter(|_| case.judge.bound().is_none())?;
        let headers = &case.want.headers;
        for part in self.0.cache.parts(&case.url).iter().rev() {
            let Some(wanted) = part.answers(range) else { continue };
            // a statement since then may be of another version, and a part cannot tell
            let is_doubted = case.learned.is_newer_than(part.answer.response_time);
            let fits = part.variance.matches(headers) && policy::if_range_holds(headers, &part.answer.head);
            if is_doubted || !fits {
                continue;
            }
            let Plan::Serve { age } = self.plan(case, Some(&part.answer)) else { continue };
            let Some((_, bytes)) = self.open_digest(part.digest, case).await else { continue };
            let held = Held {
                head: part.answer.head.clone().into(),
                age: Some(age),
                size: Some(part.size),
                digest: None,
                bytes,
                slice: Some(Slice { range: wanted, first: part.range.start }),
                line: None,
            };
            return Some(Reply { given: Given::Held(Box::new(held)), status: CacheStatus::hit() });
        }
        None
    }

    /// The client's own ranged request to the origin, whose answer is kept as the part it is.
    pub(super) async fn part(&self, case: Case) -> Result<Reply, FetchError> {
        let case = Case { why: "partial", ..case };
        let question = self.0.asking.ask(case.url);
        let asked = self.0.clock.now();
        let upstream = case.upstream(case.want.headers.clone());
        let response = upstream.send(&self.0.origin, http::Method::GET, HeaderMap::new()).await?;
        let mut status = CacheStatus::forwarded(case.why, "origin");
        let response = match self.coming(&case, &response, asked) {
            Some(coming) => {
                self.note_kept(&case, "a part of it, as it was asked for");
                let (response, kept) = self.keep(case, response, coming, question).await;
                status.stored = kept;
                response
            }
            None => {
                self.note_not_kept(&case, "a part of it was asked for, and what came may not be kept as one");
                response
            }
        };
        Ok(Reply { given: Given::Passed(self.counted(response)), status })
    }

    /// What of a thing a 206 brings, if it may be kept.
    fn coming(&self, case: &Case, response: &Response<Body>, asked: Timestamp) -> Option<Coming> {
        if response.status() != StatusCode::PARTIAL_CONTENT {
            return None;
        }
        let fields = response.headers();
        let storable =
            policy::storable_part(&case.want.method, &case.want.headers, fields, &case.rule).ok()?;
        let variance = Variance::of(fields, &case.want.headers).ok()?;
        let mut lines = fields.get_all(header::CONTENT_RANGE).iter();
        let line = lines.next().filter(|_| lines.next().is_none())?;
        let content = line.to_str().ok().and_then(ContentRange::parse)?;
        let now = self.0.clock.now();
        let answer = Answer::keep(&case.want.target, response.status(), fields, asked, now);
        let is_of_use =
            !policy::freshness_lifetime(&answer, &case.rule).is_zero() || answer.head.strong_etag().is_some();
        let size = content.size.filter(|_| is_of_use)?;
        Some(Coming {
            answer,
            variance,
            shareable: storable.shareable && !case.guarded,
            content: content.bytes,
            size,
        })
    }

    /// Writes what passes into a file of its own, as far as the disk keeps up; whether that began.
    async fn keep(
        &self,
        case: Case,
        response: Response<Body>,
        coming: Coming,
        question: Question,
    ) -> (Response<Body>, bool) {
        let Ok(turn) = std::sync::Arc::clone(&self.0.parts_at_once).try_acquire_owned() else {
            return (response, false);
        };
        let length = coming.content.end - coming.content.start;
        let cache = self.0.cache.clone();
        let begun = tokio::task::spawn_blocking(move || cache.begin(Some(length))).await;
        let Ok(Ok((ingest, reservation))) = begun else { return (response, false) };
        let (parts, body) = response.into_parts();
        let (joining, url, range, size) =
            (std::sync::Arc::clone(&self.0.joining), case.url, coming.content.clone(), coming.size);
        let (body, writing) = Tee::of(body, length, move || joining.begin(url, range, size));
        let (engine, storing) = (self.clone(), self.0.storing.enter());
        let arrival = self.arrive(&case, &coming);
        // joined by the drain
        drop(self.0.drain.spawn(async move {
            let came = |here| arrival.as_ref().map_or((), |arrival| arrival.came(here));
            let written = tokio::select! {
                written = writing.into(ingest, came) => written,
                () = engine.0.stop.requested() => None,
            };
            let kept = match written {
                Some(written) => engine.keep_written(&case, coming, written).await,
                None => None,
            };
            drop((turn, reservation, arrival, question));
            if let Some((part, shareable, mark)) = kept {
                engine.join_parts(&case, &part, shareable).await;
                drop(mark);
                engine.complete_behind(case, part);
            }
            drop(storing);
        }));
        (Response::from_parts(parts, body), true)
    }

    /// From now on a download of the whole may wait for this part, where a strong tag says that it belongs there.
    fn arrive(&self, case: &Case, coming: &Coming) -> Option<arrivals::Entry> {
        let tag = coming.answer.head.strong_etag()?.to_owned();
        let arrival = Arrival::new(coming.variance.clone(), tag, coming.content.clone(), coming.size);
        Some(self.0.arrivals.enter(case.url, arrival))
    }

    async fn keep_written(
        &self,
        case: &Case,
        coming: Coming,
        written: Written,
    ) -> Option<(Part, bool, Option<Mark>)> {
        let Written { ingest, length, whole } = written;
        let is_whole = whole.is_some();
        let start = coming.content.start;
        let range = start..start.saturating_add(length);
        // what a client broke off is a shorter part, where a tag says of what
        let is_of_use = length >= here::WORTH && coming.answer.head.strong_etag().is_some();
        if !is_whole && !is_of_use {
            return None;
        }
        let announced = if is_whole { coming.content } else { range.clone() };
        let guarded = case.guarded && case.rule.share;
        let how = crate::cache::Provenance { guarded, ..crate::cache::Provenance::default() };
        let cache = self.0.cache.clone();
        let committed = tokio::task::spawn_blocking(move || cache.commit(ingest, how)).await;
        // a failure is noted in health by the cache
        let Ok(Ok(committed)) = committed else { return None };
        let part = Part {
            variance: coming.variance,
            answer: coming.answer,
            range,
            announced,
            size: coming.size,
            digest: committed.digest,
        };
        self.0.cache.put_part(case.url, part.clone());
        Some((part, coming.shareable, whole))
    }

    async fn join_parts(&self, case: &Case, newest: &Part, shareable: bool) {
        let Some(join) = Join::around(self, case, newest, shareable) else { return };
        let _mark = join.is_whole().then(|| self.0.joining.begin(case.url, 0..newest.size, newest.size));
        join.run(self, case.clone()).await;
    }

    /// What an earlier transfer or ranges left from the beginning on, if it belongs to an answer that this request
    /// would get. Bytes without a strong tag only meet bytes that a digest
    /// judges; a part that is fresh may still be asked to be completed, which tells whether the origin has a tag.
    pub(super) fn beginning(&self, case: &Case) -> Option<Beginning> {
        let Some(record) = self.0.cache.partial(&partial_key(case.flight_key())) else {
            return Some(Beginning { note: self.further_on(case)?, kept: None });
        };
        let note = Note::from_text(&record.note)?;
        let is_judged = case.judge.named().is_some();
        let usable = note.variance.matches(&case.want.headers)
            && (is_judged
                || note.answer.head.strong_etag().is_some()
                || matches!(self.plan(case, Some(&note.answer)), Plan::Serve { .. }));
        usable.then_some(Beginning { note, kept: Some(record) })
    }

    /// Whether a range begins inside what an earlier transfer left, so that going on with that serves it.
    pub(super) fn begins_in_beginning(&self, case: &Case, range: RangeRequest) -> bool {
        let RangeRequest::From { first, last: None } = range else { return false };
        let is_tagged =
            |note: &Note| case.judge.named().is_some() || note.answer.head.strong_etag().is_some();
        self.beginning(case).is_some_and(|here| is_tagged(&here.note) && first <= here.length())
    }
}

/// The head of the whole, from that of a part.
fn head_of_whole(answer: &Answer) -> Answer {
    let mut whole = answer.clone();
    whole.head.status = StatusCode::OK.as_u16();
    whole.head.fields.retain(|(name, _)| name != "content-range" && name != "content-length");
    whole
}
