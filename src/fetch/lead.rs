//! Going first: from a want to a running transfer, a confirmed stored answer, or the origin's own answer.

use std::sync::Arc;

use http::header::HeaderMap;
use http::{Method, Response, StatusCode};
use tokio::sync::oneshot;

use super::engine::{Case, Engine, plain_head};
use super::error::FetchError;
use super::flight::{Found, Permit};
use super::judge::Judge;
use super::ledger::From;
use super::neighbours::{self, Neighbours};
use super::origin_side::{self, Rest, content_length};
use super::outcome::{CacheStatus, Given, Reply};
use super::resume::{Note, partial_key};
use super::settings::Trust;
use super::transfer::{Begin, Source, Transfer};
use crate::cache::{NoRoom, Reservation};
use crate::clock::Timestamp;
use crate::discovery::{Finding, Offer};
use crate::http::{Body, StoredHead};
use crate::index::ResourceRecord;
use crate::policy::{self, Answer, NoStore, Variance};
use crate::store::Ingest;

/// One leader.
pub(super) struct Lead {
    engine: Engine,
    case: Case,
    /// A stale answer to confirm, and whether it may be given out if the origin cannot be reached.
    stored: Option<(Arc<ResourceRecord>, bool)>,
    permit: Option<Permit>,
}

/// What the leader came to.
enum Outcome {
    Transfer(Box<Transfer>),
    Stored(Arc<ResourceRecord>, &'static str, Option<u16>),
    Passed(Response<Body>),
}

/// A response that is to be stored.
struct Arriving {
    answer: Answer,
    variance: Variance,
    shareable: bool,
    total: Option<u64>,
}

impl Lead {
    pub(super) fn new(
        engine: Engine,
        case: Case,
        stored: Option<(Arc<ResourceRecord>, bool)>,
        permit: Option<Permit>,
    ) -> Self {
        Self { engine, case, stored, permit }
    }

    /// Tells client and followers, then runs the transfer to its end.
    pub(super) async fn run(mut self, mut reply: oneshot::Sender<Result<Reply, FetchError>>) {
        let alone = self.permit.is_none();
        let outcome = tokio::select! {
            outcome = self.find() => outcome,
            () = reply.closed(), if alone => return,
        };
        match outcome {
            Ok(Outcome::Transfer(transfer)) => {
                let running = Arc::clone(transfer.running());
                let interest = running.growing().interest();
                self.resolve(Found::Running(Arc::clone(&running)));
                let status = transfer.status(&self.case);
                let (engine, case) = (self.engine.clone(), self.case.clone());
                let answer = async {
                    let given = engine.give_running(&case, running, status).await;
                    drop(interest);
                    send(reply, given);
                };
                tokio::join!(answer, transfer.run(self.permit.take()));
            }
            Ok(Outcome::Stored(record, remark, origin_said)) => {
                self.resolve(Found::Stored(Arc::clone(&record), remark));
                send(reply, self.give_stored(&record, remark, origin_said).await);
            }
            Ok(Outcome::Passed(response)) => {
                self.resolve(Found::Leave);
                let given = Given::Passed(self.engine.counted(response));
                send(reply, Ok(Reply { given, status: CacheStatus::forwarded(self.case.why, "origin") }));
            }
            Err(error) => {
                self.resolve(Found::Failed(Arc::new(FetchError::Source(error.to_string()))));
                send(reply, Err(error));
            }
        }
    }

    fn resolve(&self, found: Found) {
        if let Some(permit) = &self.permit {
            permit.resolve(found);
        }
    }

    async fn give_stored(
        &self,
        record: &Arc<ResourceRecord>,
        remark: &'static str,
        origin_said: Option<u16>,
    ) -> Result<Reply, FetchError> {
        let held = self.engine.open(record, &self.case).await?;
        let held = held.ok_or_else(|| FetchError::Source("what was stored is no longer there".to_owned()))?;
        let mut status = CacheStatus::forwarded(self.case.why, remark);
        status.fwd_status = origin_said;
        Ok(Reply { given: Given::Held(Box::new(held)), status })
    }

    async fn find(&mut self) -> Result<Outcome, FetchError> {
        if let Some(neighbours) = self.engine.neighbours(&self.case)
            && self.case.judge.binding
            && let Some(digest) = self.case.judge.digest
        {
            let offers = neighbours.holders(digest).await;
            if let Some(transfer) = self.ask_holders(&neighbours, offers).await? {
                return Ok(Outcome::Transfer(Box::new(transfer)));
            }
        }
        self.ask_origin().await
    }

    /// By a digest that is known: no word of the origin is needed.
    async fn ask_holders(
        &self,
        neighbours: &Neighbours,
        mut offers: Vec<Offer>,
    ) -> Result<Option<Transfer>, FetchError> {
        let Some(digest) = self.case.judge.digest else { return Ok(None) };
        while !offers.is_empty() {
            let offer = offers.remove(0);
            let (pulled, head) = tokio::join!(neighbours.pull(&offer, digest, 0), neighbours.head(&offer));
            let (size, body) = match pulled {
                Ok(pulled) => pulled,
                Err(error) => {
                    tracing::debug!(%error, peer.node = %offer.peer.node, "a holder gave nothing");
                    continue;
                }
            };
            let head = head.unwrap_or_else(plain_head);
            let arriving = self.unconfirmed(head, size);
            let Ok(begun) = self.begin(arriving.total).await else { return Ok(None) };
            let source = Source { body, from: From::Peer, offer: Some(offer) };
            let mut begin = self.begin_with(arriving, begun, source, self.case.judge);
            begin.offers = offers.into();
            return Ok(Some(Transfer::new(begin)));
        }
        Ok(None)
    }

    /// A head that only a neighbour vouches for: stale until the origin confirms it.
    fn unconfirmed(&self, head: StoredHead, size: u64) -> Arriving {
        let variance = Variance::of(&head.headers(), &self.case.want.headers).unwrap_or_default();
        let queried = self.case.want.target.path().contains('?');
        let answer = Answer { head, queried, ..Answer::default() };
        Arriving { answer, variance, shareable: true, total: Some(size) }
    }

    async fn ask_origin(&mut self) -> Result<Outcome, FetchError> {
        let mut headers = self.case.want.headers_for_whole();
        let mut partial = None;
        if let Some((stored, _)) = &self.stored {
            policy::validators(&stored.answer.head, &mut headers);
        } else if !self.case.want.is_private() && !self.case.want.is_conditional() {
            partial = self.partial();
        }
        let (upstream, origin) = (self.case.upstream(headers), self.engine.0.origin.clone());
        let finding = self.ask_by_url();
        let asked = self.engine.0.clock.now();
        let tag = partial.as_ref().and_then(|(note, _)| note.answer.head.strong_etag().map(str::to_owned));
        let more = origin_side::range_fields(partial.as_ref().map(|(_, offset)| *offset), tag.as_deref());
        let response = match upstream.send(&origin, Method::GET, more).await {
            Ok(response) => response,
            Err(error) => return self.origin_failed(error.into()),
        };
        if let Some((note, offset)) = partial {
            match origin_side::sort(response, offset, tag.as_deref()) {
                Rest::From(response) => return self.go_on(note, response).await,
                Rest::Whole(response) => {
                    self.forget_partial().await;
                    return self.judge_response(response, asked, finding).await;
                }
                Rest::Unusable(_) => {
                    self.forget_partial().await;
                    let response = upstream.send(&origin, Method::GET, HeaderMap::new()).await?;
                    return self.judge_response(response, asked, finding).await;
                }
            }
        }
        self.judge_response(response, asked, finding).await
    }

    fn origin_failed(&self, error: FetchError) -> Result<Outcome, FetchError> {
        match &self.stored {
            Some((stored, true)) => {
                Ok(Outcome::Stored(Arc::clone(stored), "stale: origin unreachable", None))
            }
            Some((_, false)) | None => Err(error),
        }
    }

    /// Asks the neighbours while the origin thinks, where their word could count.
    fn ask_by_url(&self) -> Option<Finding> {
        let config = self.engine.0.config.load();
        if config.trust != Trust::Witness || self.case.judge.binding || self.stored.is_some() {
            return None;
        }
        Some(self.engine.neighbours(&self.case)?.ask_url(self.case.url))
    }

    async fn judge_response(
        &mut self,
        response: Response<Body>,
        asked: Timestamp,
        finding: Option<Finding>,
    ) -> Result<Outcome, FetchError> {
        let now = self.engine.0.clock.now();
        if let Some((stored, stale_allowed)) = &self.stored {
            if response.status() == StatusCode::NOT_MODIFIED {
                return match self.freshen(stored, response.headers(), asked, now) {
                    Some(freshened) => Ok(Outcome::Stored(freshened, "confirmed by the origin", Some(304))),
                    None => self.without_conditions().await,
                };
            }
            let troubled = matches!(response.status().as_u16(), 500 | 502 | 503 | 504);
            if troubled && *stale_allowed {
                let status = response.status().as_u16();
                return Ok(Outcome::Stored(Arc::clone(stored), "stale: origin in trouble", Some(status)));
            }
        }
        match self.storable(&response, asked, now) {
            Ok(arriving) => self.receive(response, arriving, finding).await,
            Err(reason) => {
                tracing::debug!(%reason, url = %self.case.want.target, "not stored");
                self.engine.0.flights.set_alone(self.case.url);
                self.pass(response)
            }
        }
    }

    fn storable(
        &self,
        response: &Response<Body>,
        asked: Timestamp,
        now: Timestamp,
    ) -> Result<Arriving, NoStore> {
        let (request, fields) = (&self.case.want.headers, response.headers());
        let storable =
            policy::storable(&self.case.want.method, request, response.status(), fields, &self.case.rule)?;
        let variance = Variance::of(fields, request)?;
        let answer = Answer::keep(&self.case.want.target, response.status(), fields, asked, now);
        Ok(Arriving { answer, variance, shareable: storable.shareable, total: content_length(fields) })
    }

    fn freshen(
        &self,
        stored: &Arc<ResourceRecord>,
        fields: &HeaderMap,
        asked: Timestamp,
        now: Timestamp,
    ) -> Option<Arc<ResourceRecord>> {
        let mut record = (**stored).clone();
        if !policy::freshen(&mut record.answer, fields, asked, now) {
            return None;
        }
        let (want, head) = (&self.case.want, &record.answer.head);
        let may_stay =
            policy::storable(&want.method, &want.headers, head.status(), &head.headers(), &self.case.rule);
        if may_stay.is_ok() {
            self.engine.0.cache.put_resource(record.clone());
        } else {
            self.engine.0.cache.forget_url(&self.case.url);
        }
        Some(Arc::new(record))
    }

    /// The origin confirmed another version than the one that is kept: only the whole helps.
    async fn without_conditions(&mut self) -> Result<Outcome, FetchError> {
        self.stored = None;
        let mut headers = self.case.want.headers_for_whole();
        super::want::drop_conditions(&mut headers);
        let asked = self.engine.0.clock.now();
        let upstream = self.case.upstream(headers);
        let response = upstream.send(&self.engine.0.origin, Method::GET, HeaderMap::new()).await?;
        Box::pin(self.judge_response(response, asked, None)).await
    }

    /// The origin's own answer, as it is. A digest that the client stated still judges it.
    fn pass(&self, response: Response<Body>) -> Result<Outcome, FetchError> {
        let judge = self.case.judge;
        match judge.digest {
            Some(digest) if judge.binding && response.status() == StatusCode::OK => {
                let cuts = self.engine.cuts(&self.case);
                Ok(Outcome::Passed(response.map(|body| super::delivery::judged(body, digest, cuts))))
            }
            _ => Ok(Outcome::Passed(response)),
        }
    }

    /// Stores what arrives, from a neighbour where a witness holds the same thing.
    async fn receive(
        &self,
        response: Response<Body>,
        arriving: Arriving,
        mut finding: Option<Finding>,
    ) -> Result<Outcome, FetchError> {
        let (begun, response) = match self.begin(arriving.total).await {
            Ok(begun) => (begun, response),
            Err(reason) => {
                tracing::debug!(%reason, url = %self.case.want.target, "passed through without storing");
                return self.pass(response);
            }
        };
        if let Some((digest, offers)) = self.same_at_neighbours(&arriving, finding.as_mut()).await
            && let Some(neighbours) = self.engine.neighbours(&self.case)
        {
            let judge = Judge { digest: Some(digest), binding: self.case.judge.binding };
            for (at, offer) in offers.iter().enumerate() {
                let Ok((_, body)) = neighbours.pull(offer, digest, 0).await else { continue };
                let source = Source { body, from: From::Peer, offer: Some(offer.clone()) };
                let mut begin = self.begin_with(arriving, begun, source, judge);
                begin.offers = offers.iter().skip(at + 1).cloned().collect();
                return Ok(Outcome::Transfer(Box::new(Transfer::new(begin))));
            }
        }
        // a digest is of the thing, not of what the origin says in its place
        let is_thing = arriving.answer.head.status() == StatusCode::OK;
        let judge = if is_thing { self.case.judge } else { Judge::default() };
        let source = Source { body: response.into_body(), from: From::Origin, offer: None };
        let mut begin = self.begin_with(arriving, begun, source, judge);
        begin.finding = finding.filter(|_| is_thing);
        Ok(Outcome::Transfer(Box::new(Transfer::new(begin))))
    }

    /// Neighbours that hold what the origin's head names: by a digest in the head, or by witnesses.
    async fn same_at_neighbours(
        &self,
        arriving: &Arriving,
        finding: Option<&mut Finding>,
    ) -> Option<(crate::digest::Digest, Vec<Offer>)> {
        let config = self.engine.0.config.load();
        if !arriving.shareable
            || arriving.answer.head.status() != StatusCode::OK
            || arriving.total.is_some_and(|total| total < config.min_size.bytes())
        {
            return None;
        }
        let head = &arriving.answer.head;
        let neighbours = self.engine.neighbours(&self.case)?;
        if let Some(digest) = head.get("repr-digest").and_then(crate::digest::Digest::from_repr_digest) {
            let offers = neighbours.holders(digest).await;
            return (!offers.is_empty()).then_some((digest, offers));
        }
        let offers = finding?.decided().await;
        neighbours::witnessed(&offers, head, arriving.total, config.witnesses)
    }

    async fn begin(&self, total: Option<u64>) -> Result<(Ingest, Reservation), NoRoom> {
        let cache = self.engine.0.cache.clone();
        let begun = tokio::task::spawn_blocking(move || cache.begin(total)).await;
        begun.unwrap_or(Err(NoRoom::ReadOnly))
    }

    fn begin_with(
        &self,
        arriving: Arriving,
        (ingest, reservation): (Ingest, Reservation),
        source: Source,
        judge: Judge,
    ) -> Begin {
        Begin {
            engine: self.engine.clone(),
            case: self.case.clone(),
            judge,
            answer: arriving.answer,
            variance: arriving.variance,
            shareable: arriving.shareable,
            total: arriving.total,
            ingest,
            reservation,
            source,
            offers: std::collections::VecDeque::new(),
            finding: None,
        }
    }

    /// What an earlier transfer of this thing left, if it belongs to an answer this request would get.
    fn partial(&self) -> Option<(Note, u64)> {
        let record = self.engine.0.cache.partial(&partial_key(self.case.flight_key()))?;
        let note = Note::from_text(&record.note)?;
        let is_judged = self.case.judge.binding;
        let usable = note.variance.matches(&self.case.want.headers)
            && (is_judged || note.answer.head.strong_etag().is_some());
        usable.then_some((note, record.offset))
    }

    async fn forget_partial(&self) {
        let (cache, key) = (self.engine.0.cache.clone(), partial_key(self.case.flight_key()));
        if tokio::task::spawn_blocking(move || cache.drop_partial(&key)).await.is_err() {
            tracing::debug!("the thread that drops a partial ended early");
        }
    }

    /// The origin sends the rest of what a partial holds.
    async fn go_on(&self, note: Note, response: Response<Body>) -> Result<Outcome, FetchError> {
        let (cache, key, total) =
            (self.engine.0.cache.clone(), partial_key(self.case.flight_key()), note.total);
        let resumed = tokio::task::spawn_blocking(move || cache.resume(&key, total)).await;
        let Ok(Ok(Some(begun))) = resumed else {
            // the partial was not what its record says: the whole, then, into a new file
            let upstream = self.case.upstream(self.case.want.headers_for_whole());
            let response = upstream.send(&self.engine.0.origin, Method::GET, HeaderMap::new()).await?;
            let now = self.engine.0.clock.now();
            return match self.storable(&response, now, now) {
                Ok(arriving) => self.receive(response, arriving, None).await,
                Err(_) => self.pass(response),
            };
        };
        let shareable = self.case.rule.share && !self.case.want.is_private();
        let arriving =
            Arriving { answer: note.answer, variance: note.variance, shareable, total: note.total };
        let source = Source { body: response.into_body(), from: From::Origin, offer: None };
        Ok(Outcome::Transfer(Box::new(Transfer::new(self.begin_with(
            arriving,
            begun,
            source,
            self.case.judge,
        )))))
    }
}

fn send(reply: oneshot::Sender<Result<Reply, FetchError>>, answer: Result<Reply, FetchError>) {
    if reply.send(answer).is_err() {
        tracing::debug!("the client left before its answer");
    }
}
