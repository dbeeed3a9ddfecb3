//! The engine: what it is built from, and the doors into it.

mod case;
mod way;

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use http::{HeaderValue, Request, Response};
use tokio::sync::Semaphore;

use super::behind::Behind;
use super::delivery::{self, Cuts};
use super::error::FetchError;
use super::flight::{FlightKey, Flights};
use super::judge::Judge;
use super::known::KnownAnswers;
use super::learn::{Learned, Lessons};
use super::ledger::{From, Ledger};
use super::line::Line;
use super::neighbours::Neighbours;
use super::outcome::{CacheStatus, Given, Reply, Switched};
use super::parts::{AT_ONCE, Arrivals, Asking, Joining};
use super::prefetch::Backgrounds;
use super::reasons::Reasons;
use super::settings::Config;
use super::sidecar::Asked;
use super::view::TransferView;
use super::want::Want;
use crate::cache::Cache;
use crate::clock::SharedClock;
use crate::ecosystem;
use crate::http::{Body, Target};
use crate::mormot::Mormot;
use crate::origin::{self, Origin, Reach};
use crate::policy::{self, Rules, UrlKey};
use crate::range::RangeRequest;
use crate::shutdown::{Drain, Shutdown};

pub(super) use case::Case;

/// The engine; a cheap clone.
#[derive(Debug, Clone)]
pub struct Engine(pub(super) Arc<Inner>);

/// What an engine is built from.
#[derive(Debug)]
pub struct Parts {
    /// What is held.
    pub cache: Cache,
    /// Where the rest comes from.
    pub origin: Origin,
    /// The settings.
    pub config: Config,
    /// The `[[rule]]`s.
    pub rules: Rules,
    /// Time.
    pub clock: SharedClock,
    /// The sums.
    pub ledger: Ledger,
    /// Where running transfers are waited for.
    pub drain: Drain,
    /// When to stop.
    pub stop: Shutdown,
    /// Who still writes into the store: waited for before the folder is given up.
    pub storing: Drain,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) cache: Cache,
    pub(super) origin: Origin,
    pub(super) config: ArcSwap<Config>,
    pub(super) rules: ArcSwap<Rules>,
    pub(super) clock: SharedClock,
    pub(super) ledger: Ledger,
    pub(super) drain: Drain,
    pub(super) stop: Shutdown,
    pub(super) storing: Drain,
    pub(super) flights: Flights,
    pub(super) parts_at_once: Arc<Semaphore>,
    pub(super) arrivals: Arc<Arrivals>,
    pub(super) asking: Arc<Asking>,
    pub(super) joining: Arc<Joining>,
    pub(super) reasons: Reasons,
    pub(super) neighbours: ArcSwapOption<Neighbours>,
    pub(super) mormot: ArcSwapOption<Mormot>,
    pub(super) lessons: Lessons,
    pub(super) backgrounds: Backgrounds,
    pub(super) asked: Asked,
    pub(super) known: KnownAnswers,
    pub(super) behind: Behind,
}

impl Engine {
    /// Ready to fetch, without neighbours yet.
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(Inner {
            flights: Flights::new(Arc::clone(&parts.clock)),
            parts_at_once: Arc::new(Semaphore::new(AT_ONCE)),
            arrivals: Arc::default(),
            asking: Arc::default(),
            joining: Arc::default(),
            reasons: Reasons::default(),
            cache: parts.cache,
            origin: parts.origin,
            config: ArcSwap::from_pointee(parts.config),
            rules: ArcSwap::from_pointee(parts.rules),
            clock: parts.clock,
            ledger: parts.ledger,
            drain: parts.drain,
            stop: parts.stop,
            storing: parts.storing,
            neighbours: ArcSwapOption::empty(),
            mormot: ArcSwapOption::empty(),
            backgrounds: Backgrounds::default(),
            lessons: Lessons::new(),
            asked: Asked::default(),
            known: KnownAnswers::default(),
            behind: Behind::default(),
        }))
    }

    /// From now on these are asked too.
    pub fn set_neighbours(&self, neighbours: Neighbours) {
        let noting = neighbours.noting(self.0.ledger.measures().clone(), Arc::clone(&self.0.clock));
        self.0.neighbours.store(Some(Arc::new(noting)));
    }

    /// New settings from a reloaded configuration, for wants to come.
    pub fn set_config(&self, config: Config, rules: Rules) {
        self.0.config.store(Arc::new(config));
        self.0.rules.store(Arc::new(rules));
    }

    /// The sums.
    pub fn ledger(&self) -> &Ledger {
        &self.0.ledger
    }

    /// What is running.
    pub fn transfers(&self) -> Vec<TransferView> {
        self.0.flights.all().iter().map(|running| running.view()).collect()
    }

    /// Meets a want: from the store, from a running transfer, from a neighbour, from the origin.
    pub async fn fetch(&self, want: Want) -> Result<Reply, FetchError> {
        let began = self.0.clock.instant();
        // what is fetched for later has its line when it is there
        let line = want.background.is_none().then(|| Line::begin(&want, &self.0.clock)).flatten();
        let reply = match (self.fetched(want).await, &line) {
            (Err(error), Some(line)) => {
                line.failed(&error);
                return Err(error);
            }
            (reply, _) => reply?,
        };
        let after = self.0.clock.instant().saturating_duration_since(began);
        self.0.ledger.measures().answered(&reply.status, after);
        Ok(match line {
            Some(line) => reply.lined(line),
            None => reply,
        })
    }

    async fn fetched(&self, want: Want) -> Result<Reply, FetchError> {
        self.0.origin.check(&want.target, &want.reach).await?;
        let rule = self.0.rules.load().for_target(&want.target).clone();
        let url = UrlKey::of(&want.target, &rule.ignore_query);
        self.refuse_rest_of_a_cut(&want, &url)?;
        let judge = self.judge_of(&want);
        self.refuse_blocked(&url, judge.digest)?;
        let guarded = self.0.behind.leads(&url, self.0.clock.instant());
        let mut case = Case {
            want,
            url,
            rule,
            judge,
            learned: Learned::default(),
            why: "uri-miss",
            admitted: None,
            guarded,
        };
        if let Some(stated) = case.judge.stated.filter(|_| !case.want.is_authorized()) {
            // what the URL led to may be the thing, though nobody has reckoned this algorithm of it yet
            self.reckon_held(&case, stated).await;
            case.judge = self.judge_of(&case.want);
        }
        if self.must_ask_first(&case) {
            return self.fetch_guarded(case).await;
        }
        if let Some(digest) = case.judge.digest
            && let Some(reply) = self.serve_digest(&case, digest).await?
        {
            return Ok(reply);
        }
        if !case.judge.is_set() {
            case.learned = self.learned(&case.want).await;
            self.refuse_blocked(&case.url, self.learned_blob(&case))?;
        }
        self.serve_or_fetch(case).await
    }

    /// Sends any request on as it is and streams the answer back. A method that changes something makes what
    /// is stored of that URL stale (RFC 9111 section 4.4).
    pub async fn forward(
        &self,
        request: Request<Body>,
        target: &Target,
        reach: &Reach,
    ) -> Result<Reply, FetchError> {
        let method = request.method().clone();
        let response = self.0.origin.send(request, reach).await?;
        for changed in policy::invalidated(&method, target, response.status(), response.headers()) {
            let url = self.url_key(&changed);
            self.0.cache.forget_url(&url);
            self.0.flights.part_from(FlightKey::Url(url));
        }
        Ok(Reply {
            given: Given::Passed(self.counted(response)),
            status: CacheStatus::forwarded("method", "origin"),
        })
    }

    /// Asks the origin for another protocol, on a connection of its own. What then flows is no download and is
    /// counted by whoever lets it flow.
    pub async fn switch(
        &self,
        request: Request<Body>,
        protocol: &HeaderValue,
        reach: &Reach,
    ) -> Result<Switched, FetchError> {
        Ok(match self.0.origin.switch(request, protocol, reach).await? {
            origin::Switched::To(head, stream) => Switched::To(head, stream),
            origin::Switched::Not(response) => Switched::Not(Box::new(Reply {
                given: Given::Passed(self.counted(response)),
                status: CacheStatus::forwarded("bypass", "origin"),
            })),
        })
    }

    /// The key under which a target is known here.
    pub fn url_key(&self, target: &Target) -> UrlKey {
        UrlKey::of(target, &self.0.rules.load().for_target(target).ignore_query)
    }

    /// What a running fetch of this want is known by.
    pub(super) fn key_of(&self, want: &Want) -> FlightKey {
        self.judge_of(want)
            .named()
            .map_or_else(|| FlightKey::Url(self.url_key(&want.target)), FlightKey::Stated)
    }

    /// What the client or the URL says the bytes are.
    fn judge_of(&self, want: &Want) -> Judge {
        let named = ecosystem::classify(&want.target).digest;
        Judge::binding(want.stated.or(named), |stated| self.0.cache.index().blob_of(&stated.key()))
    }

    /// The client's own request to the origin and the origin's own answer.
    pub(super) async fn pass(&self, case: &Case) -> Result<Reply, FetchError> {
        if case.why == "request" {
            self.note_not_kept(case, "only the origin may say who gets it, and it was not let in here");
        }
        let upstream = case.upstream(case.want.headers.clone());
        let response =
            upstream.send(&self.0.origin, case.want.method.clone(), http::HeaderMap::new()).await?;
        self.hear_head(case, &response);
        self.hear_where(case, &response);
        let status = CacheStatus::forwarded(case.why, "origin");
        Ok(Reply { given: Given::Passed(self.counted(response)), status })
    }

    pub(super) fn counted(&self, response: Response<Body>) -> Response<Body> {
        response.map(|body| delivery::counted(body, self.0.ledger.clone(), From::Origin))
    }

    /// The neighbours, where this want may be asked of them and somebody was heard.
    pub(super) fn neighbours(&self, case: &Case) -> Option<Arc<Neighbours>> {
        if case.want.is_private() && case.admitted.is_none() {
            return None;
        }
        self.neighbours_that_may(case).filter(|neighbours| neighbours.heard_lately())
    }

    /// The same where they are asked for what is known by its digest: then those of other networks count too.
    pub(super) fn neighbours_to_ask(&self, case: &Case) -> Option<Arc<Neighbours>> {
        if case.want.is_private() && case.admitted.is_none() {
            return None;
        }
        self.neighbours_that_may(case).filter(|neighbours| neighbours.can_be_asked())
    }

    /// Whether anybody could be asked once the origin has let this client in.
    pub(super) fn has_neighbours(&self, case: &Case) -> bool {
        self.neighbours_that_may(case).is_some_and(|neighbours| neighbours.can_be_asked())
    }

    fn neighbours_that_may(&self, case: &Case) -> Option<Arc<Neighbours>> {
        if !case.want.ask_peers || !case.rule.share {
            return None;
        }
        self.0.neighbours.load_full()
    }

    /// The neighbours, where they may take part in this want, whether any was heard or not.
    pub(super) fn site(&self, case: &Case) -> Option<Arc<Neighbours>> {
        let shared = !case.want.is_private() && case.rule.share;
        self.0.neighbours.load_full().filter(|_| shared)
    }

    pub(super) fn cuts(&self, case: &Case) -> Cuts {
        Cuts::new(self.0.cache.index().clone(), Arc::clone(&self.0.clock), case.want.client, case.url)
    }

    /// A client whose body was cut because it was wrong must not be given the rest of it.
    fn refuse_rest_of_a_cut(&self, want: &Want, url: &UrlKey) -> Result<(), FetchError> {
        let Some(RangeRequest::From { first, .. }) = want.range() else { return Ok(()) };
        match self.0.cache.index().cut(want.client, url, self.0.clock.now()) {
            Some(at) if first > 0 && first <= at => Err(FetchError::Cut),
            _ => Ok(()),
        }
    }
}
