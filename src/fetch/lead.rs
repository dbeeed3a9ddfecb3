//! Going first: from a want to a running transfer, a confirmed stored answer, or the origin's own answer.

mod confirm;
mod join;
mod partial;
mod receive;

use std::sync::Arc;

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Response, StatusCode};
use tokio::sync::oneshot;

use super::crowd::Crowd;
use super::engine::{Case, Engine};
use super::error::FetchError;
use super::flight::{Found, Permit};
use super::give::{kind_of_bytes, plain_head};
use super::judge::Judge;
use super::ledger::From;
use super::lenders::Lenders;
use super::neighbours::version_key;
use super::offer::Offer;
use super::origin_side::{Missing, Rest, content_length};
use super::outcome::{CacheStatus, Given, Held, Reply};
use super::settings::Trust;
use super::stand::Stand;
use super::transfer::{Source, Transfer};
use crate::clock::Timestamp;
use crate::discovery::{Finding, Wanted};
use crate::ecosystem;
use crate::http::{Body, StoredHead};
use crate::index::ResourceRecord;
use crate::origin::OriginError;
use crate::policy::{self, Answer, NoStore, ResourceKey, Variance};

use confirm::Version;
use join::Around;

/// How many holders are tried before the origin.
const HOLDERS: usize = 3;

/// One leader.
pub(super) struct Lead {
    engine: Engine,
    case: Case,
    /// A stale answer to confirm, and whether it may be given out if the origin cannot be reached.
    stored: Option<(Arc<ResourceRecord>, bool)>,
    permit: Option<Permit>,
    /// Whether others may follow.
    leads: bool,
    /// Where this node stands, where neighbours may follow.
    stand: Option<Arc<Stand>>,
    /// Those for whom this node goes to the origin.
    crowd: Option<Crowd>,
    /// What a neighbour holds of this URL, for the origin to confirm.
    version: Option<Version>,
}

/// What the leader came to.
enum Outcome {
    Transfer(Box<Transfer>),
    /// What is stored is still what the origin has; whether others may have it too.
    Confirmed(Arc<ResourceRecord>, Box<Held>, bool),
    /// What is stored goes out although it is stale: why, and what the origin said.
    Stale(Arc<ResourceRecord>, Box<Held>, &'static str, Option<u16>),
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
        Self { engine, case, stored, permit, leads: false, stand: None, crowd: None, version: None }
    }

    /// Tells client and followers, then runs the transfer to its end.
    pub(super) async fn run(mut self, mut reply: oneshot::Sender<Result<Reply, FetchError>>) {
        self.take_stand();
        let permit = self.permit.take();
        let outcome = tokio::select! {
            outcome = self.find(permit.is_some()) => outcome,
            // the client has left, and nobody follows
            () = nobody_waits(&mut reply, permit.as_ref()) => return,
        };
        self.permit = permit;
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
            Ok(Outcome::Confirmed(record, held, is_kept)) => {
                self.resolve(if is_kept { Found::Confirmed(record) } else { Found::Leave });
                let status = CacheStatus::forwarded(self.case.why, "confirmed by the origin");
                let status = CacheStatus { fwd_status: Some(304), ..status };
                send(reply, Ok(Reply { given: Given::Held(held), status }));
            }
            Ok(Outcome::Stale(record, held, why, origin_said)) => {
                self.resolve(Found::Stale(record, why));
                let status =
                    CacheStatus { fwd_status: origin_said, ..CacheStatus::forwarded(self.case.why, why) };
                send(reply, Ok(Reply { given: Given::Held(held), status }));
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

    async fn find(&mut self, leads: bool) -> Result<Outcome, FetchError> {
        self.leads = leads;
        match self.look_around().await? {
            Around::Found(outcome) => Ok(*outcome),
            Around::Origin(finding) => self.ask_origin(finding).await,
        }
    }

    /// Whether no neighbour is believed but for bytes: the head comes from the origin.
    fn takes_no_heads(&self) -> bool {
        self.engine.0.config.load().trust == Trust::Digest
    }

    /// By a digest that is known: no word of the origin is needed.
    async fn ask_holders(
        &self,
        lenders: &Lenders,
        judge: Judge,
        mut offers: Vec<Offer>,
    ) -> Result<Option<Transfer>, FetchError> {
        for _ in 0..HOLDERS {
            if offers.is_empty() {
                break;
            }
            let offer = offers.remove(0);
            let told = self.case.admitted.as_deref();
            let head = async {
                match told {
                    Some(_) => None,
                    None => lenders.head(&offer).await,
                }
            };
            let (pulled, head) = tokio::join!(lenders.pull(&offer, 0), head);
            let (size, body) = match pulled {
                Ok(pulled) => pulled,
                Err(error) => {
                    tracing::debug!(%error, peer = %offer.lender(), "a holder gave nothing");
                    continue;
                }
            };
            let head = told.cloned().unwrap_or_else(|| self.own_head(offer.holding.resource, head, judge));
            let arriving = self.unconfirmed(head, size);
            let Ok(begun) = self.begin(arriving.total).await else { return Ok(None) };
            let source = Source { body, from: From::Peer, offer: Some(offer) };
            let mut begin = self.begin_with(arriving, begun, source, judge);
            begin.offers = offers.into();
            return Ok(Some(Transfer::new(begin)));
        }
        Ok(None)
    }

    /// A neighbour's head, if it is of this URL; of another URL only what the bytes are.
    fn own_head(&self, resource: Option<ResourceKey>, head: Option<StoredHead>, judge: Judge) -> StoredHead {
        let Some(head) = head.filter(|head| head.status == StatusCode::OK.as_u16()) else {
            return plain_head(judge.binding);
        };
        let variance = Variance::of(&head.headers(), &self.case.want.headers).unwrap_or_default();
        let same = resource == Some(version_key(&self.case.url, &variance, &head));
        if same { head } else { kind_of_bytes(&head, judge.binding) }
    }

    /// A head that only a neighbour vouches for: stale until the origin confirms it.
    fn unconfirmed(&self, head: StoredHead, size: u64) -> Arriving {
        let variance = Variance::of(&head.headers(), &self.case.want.headers).unwrap_or_default();
        let queried = self.case.want.target.path().contains('?');
        let answer = Answer { head, queried, ..Answer::default() };
        Arriving {
            answer,
            variance,
            shareable: !self.case.want.is_private() && !self.case.guarded,
            total: Some(size),
        }
    }

    async fn ask_origin(&mut self, finding: Option<Finding>) -> Result<Outcome, FetchError> {
        let mut headers = self.case.want.headers_for_whole();
        if self.case.want.stated.is_some() {
            // a digest is of the bytes as they are, not as a server packs them on the way
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        let mut partial = None;
        if let Some((stored, _)) = &self.stored {
            policy::validators(&stored.answer.head, &mut headers);
        } else if !self.case.want.is_private() && !self.case.want.is_conditional() {
            partial = self.engine.beginning(&self.case);
            // who holds the whole gives more than is here further on
            partial = partial.filter(|here| here.kept.is_some() || self.version.is_none());
            if let Some(version) = self.version.as_ref().filter(|_| partial.is_none()) {
                policy::validators(version.head(), &mut headers);
            }
        }
        let (upstream, origin) = (self.case.upstream(headers), self.engine.0.origin.clone());
        let asked = self.engine.0.clock.now();
        let tag = partial.as_ref().and_then(|here| here.note.answer.head.strong_etag().map(str::to_owned));
        let missing = partial.as_ref().map(|here| Missing {
            offset: here.length(),
            until: self.engine.next_after(&self.case, &here.note, here.length()),
            tag: tag.as_deref(),
        });
        let more = missing.map(|missing| missing.fields()).unwrap_or_default();
        let response = match upstream.send(&origin, Method::GET, more).await {
            Ok(response) => response,
            Err(error) => return self.origin_failed(error).await,
        };
        if let (Some(here), Some(missing)) = (partial.clone(), missing)
            && says_of_range(response.status())
        {
            let joins = tag.is_some() || self.case.judge.named().is_some();
            match missing.sort(response) {
                Rest::From(response, size)
                    if joins && here.is_of(size) && self.may_keep_rest(response.headers()) =>
                {
                    return self.go_on(here, size, response, asked).await;
                }
                Rest::Whole(response) => {
                    self.forget_partial().await;
                    return self.judge_response(response, asked, finding).await;
                }
                Rest::From(..) | Rest::Unusable(_) => {
                    self.forget_partial().await;
                    let response = upstream.send(&origin, Method::GET, HeaderMap::new()).await?;
                    return self.judge_response(response, asked, finding).await;
                }
            }
        }
        self.judge_response(response, asked, finding).await
    }

    async fn origin_failed(&self, error: OriginError) -> Result<Outcome, FetchError> {
        if error.is_unreachable()
            && let Some(stale) = self.stale("stale: origin unreachable", None).await
        {
            return Ok(stale);
        }
        Err(error.into())
    }

    /// The stale answer, where it may go out and its bytes are still there.
    async fn stale(&self, why: &'static str, origin_said: Option<u16>) -> Option<Outcome> {
        let (stored, _) = self.stored.as_ref().filter(|(_, allowed)| *allowed)?;
        let held = self.engine.open(stored, &self.case).await?;
        Some(Outcome::Stale(Arc::clone(stored), Box::new(held), why, origin_said))
    }

    /// Asks the neighbours while the origin thinks, where their word could count.
    fn ask_by_url(&self) -> Option<Finding> {
        let is_believed = !self.engine.word_for(&self.case).is_nobodys();
        let is_named = self.case.judge.binding && self.case.judge.digest.is_some();
        if !is_believed || is_named || self.stored.is_some() {
            return None;
        }
        Some(self.engine.neighbours(&self.case)?.ask(Wanted::Url(self.case.url)))
    }

    async fn judge_response(
        &mut self,
        response: Response<Body>,
        asked: Timestamp,
        finding: Option<Finding>,
    ) -> Result<Outcome, FetchError> {
        let now = self.engine.0.clock.now();
        self.engine.hear_head(&self.case, &response);
        self.engine.hear_where(&self.case, &response);
        let version = self.version.take();
        if let Some(version) = version.filter(|_| self.stored.is_none())
            && response.status() == StatusCode::NOT_MODIFIED
        {
            return self.take_confirmed(version, response, asked, finding).await;
        }
        if let Some((stored, _)) = &self.stored
            && response.status() == StatusCode::NOT_MODIFIED
        {
            let freshened = self.freshen(stored, response.headers(), asked, now);
            return match freshened {
                Some((record, is_kept)) => match self.engine.open(&record, &self.case).await {
                    Some(held) => {
                        self.engine.study(&self.case.want, &record);
                        Ok(Outcome::Confirmed(record, Box::new(held), is_kept))
                    }
                    None => self.without_conditions().await,
                },
                None => self.without_conditions().await,
            };
        }
        let status = response.status().as_u16();
        if matches!(status, 500 | 502 | 503 | 504)
            && let Some(stale) = self.stale("stale: origin in trouble", Some(status)).await
        {
            return Ok(stale);
        }
        match self.storable(&response, asked, now) {
            Ok(arriving) => self.receive(response, arriving, finding).await,
            Err(reason) => {
                tracing::debug!(%reason, url = %self.case.want.target, "not stored");
                let why = match response.status() {
                    StatusCode::NOT_MODIFIED => {
                        "the client had it already, said the origin (304): nothing came that could be kept"
                            .to_owned()
                    }
                    _ => reason.to_string(),
                };
                self.engine.note_not_kept(&self.case, why);
                if self.leads && is_about_sharing(reason) {
                    self.engine.0.flights.set_alone(self.case.url);
                }
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
        if ecosystem::gives_tokens(&self.case.want.target) {
            return Err(NoStore::Token);
        }
        let storable =
            policy::storable(&self.case.want.method, request, response.status(), fields, &self.case.rule);
        let storable = match storable {
            // the URL names the bytes: kept for whomever the origin lets in, under its digest alone
            Err(NoStore::Authorization | NoStore::VarySecret) if self.may_be_guarded(response.status()) => {
                let answer = Answer::keep(&self.case.want.target, response.status(), fields, asked, now);
                let total = content_length(fields);
                return Ok(Arriving { answer, variance: Variance::default(), shareable: false, total });
            }
            storable => storable?,
        };
        let variance = Variance::of(fields, request)?;
        let answer = Answer::keep(&self.case.want.target, response.status(), fields, asked, now);
        let shareable = storable.shareable && !self.case.guarded;
        Ok(Arriving { answer, variance, shareable, total: content_length(fields) })
    }

    fn may_be_guarded(&self, status: StatusCode) -> bool {
        status == StatusCode::OK && self.case.rule.share && self.case.named_by_url().is_some()
    }

    /// The stored answer as a 304 confirms it, and whether it may stay; none where it confirms another version.
    fn freshen(
        &self,
        stored: &Arc<ResourceRecord>,
        fields: &HeaderMap,
        asked: Timestamp,
        now: Timestamp,
    ) -> Option<(Arc<ResourceRecord>, bool)> {
        let mut record = (**stored).clone();
        if !policy::freshen(&mut record.answer, fields, asked, now) {
            return None;
        }
        let (want, head) = (&self.case.want, &record.answer.head);
        let may_stay =
            policy::storable(&want.method, &want.headers, head.status(), &head.headers(), &self.case.rule);
        match &may_stay {
            Ok(_) => {
                self.engine.0.cache.put_resource(record.clone());
                self.engine.note_kept(&self.case, "confirmed by the origin (304), and kept");
            }
            Err(reason) => {
                self.engine.0.cache.forget_url(&self.case.url);
                self.engine.note_not_kept(
                    &self.case,
                    format!("confirmed by the origin (304), but from now on {reason}"),
                );
            }
        }
        Some((Arc::new(record), may_stay.is_ok()))
    }

    /// The origin confirmed another version than the one that is kept: only the whole helps.
    async fn without_conditions(&mut self) -> Result<Outcome, FetchError> {
        self.stored = None;
        let asked = self.engine.0.clock.now();
        let upstream = self.case.upstream(self.case.want.headers_for_anybody());
        let response = upstream.send(&self.engine.0.origin, Method::GET, HeaderMap::new()).await?;
        Box::pin(self.judge_response(response, asked, None)).await
    }

    /// The origin's own answer, as it is. A digest that the client stated still judges it.
    fn pass(&self, response: Response<Body>) -> Result<Outcome, FetchError> {
        match self.case.judge.bound() {
            Some(stated) if is_thing(response.status()) => {
                let cuts = self.engine.cuts(&self.case);
                Ok(Outcome::Passed(response.map(|body| super::delivery::judged(body, stated, cuts))))
            }
            _ => Ok(Outcome::Passed(response)),
        }
    }
}

/// Whether an answer to a request for the rest says something of what is here. Any other is what a request for the
/// whole would have got as well, and what is here outlives it.
fn says_of_range(status: StatusCode) -> bool {
    matches!(status, StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE)
}

/// Whether what came is the thing itself, and not what the origin says in its place.
fn is_thing(status: StatusCode) -> bool {
    matches!(status, StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION)
}

/// Whether an answer is one client's own: then nobody should wait for the next one either.
fn is_about_sharing(reason: NoStore) -> bool {
    use NoStore as No;
    matches!(
        reason,
        No::NoStore | No::Private | No::SetCookie | No::VaryStar | No::VarySecret | No::Rule | No::Token
    )
}

async fn nobody_waits(reply: &mut oneshot::Sender<Result<Reply, FetchError>>, permit: Option<&Permit>) {
    reply.closed().await;
    if let Some(permit) = permit {
        permit.unwatched().await;
    }
}

fn send(reply: oneshot::Sender<Result<Reply, FetchError>>, answer: Result<Reply, FetchError>) {
    if reply.send(answer).is_err() {
        tracing::debug!("the client left before its answer");
    }
}
