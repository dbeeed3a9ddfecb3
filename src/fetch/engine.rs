//! The way of a want: what is held, what runs, what has to be fetched.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use http::{HeaderValue, Method, Request, Response};
use tokio::sync::Semaphore;

use super::delivery::{self, Cuts};
use super::error::FetchError;
use super::flight::{FlightKey, Flights, Found, Part};
use super::follow::{AHEAD, soon_there};
use super::guarded::Admitted;
use super::judge::Judge;
use super::known::KnownAnswers;
use super::learn::{Learned, Lessons};
use super::ledger::{From, Ledger};
use super::neighbours::Neighbours;
use super::origin_side::Upstream;
use super::outcome::{CacheStatus, Given, Reply, Switched};
use super::parts::AT_ONCE;
use super::reasons::Reasons;
use super::settings::Config;
use super::sidecar::Asked;
use super::view::TransferView;
use super::want::Want;
use crate::cache::Cache;
use crate::clock::SharedClock;
use crate::digest::Stated;
use crate::ecosystem;
use crate::http::{Body, Target};
use crate::index::ResourceRecord;
use crate::mormot::Mormot;
use crate::origin::{self, Origin, Reach};
use crate::policy::{self, Plan, Rule, Rules, UrlKey};
use crate::range::RangeRequest;
use crate::shutdown::{Drain, Shutdown};

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
    pub(super) reasons: Reasons,
    pub(super) neighbours: ArcSwapOption<Neighbours>,
    pub(super) mormot: ArcSwapOption<Mormot>,
    pub(super) lessons: Lessons,
    pub(super) asked: Asked,
    pub(super) known: KnownAnswers,
}

/// A want and what the rules say of its URL.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) want: Want,
    pub(super) url: UrlKey,
    pub(super) rule: Rule,
    pub(super) judge: Judge,
    /// What was stated for its URL, where neither the client nor the URL says what it is.
    pub(super) learned: Learned,
    /// Why it goes forward.
    pub(super) why: &'static str,
    /// The origin's own word within this request: it would give this client the thing, with this head.
    pub(super) admitted: Option<Admitted>,
    /// Whatever comes is for those alone whom the origin lets in.
    pub(super) guarded: bool,
}

impl Engine {
    /// Ready to fetch, without neighbours yet.
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(Inner {
            flights: Flights::new(Arc::clone(&parts.clock)),
            parts_at_once: Arc::new(Semaphore::new(AT_ONCE)),
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
            lessons: Lessons::new(),
            asked: Asked::default(),
            known: KnownAnswers::default(),
        }))
    }

    /// From now on these are asked too.
    pub fn set_neighbours(&self, neighbours: Neighbours) {
        self.0.neighbours.store(Some(Arc::new(neighbours)));
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
        self.0.origin.check(&want.target, &want.reach).await?;
        let rule = self.0.rules.load().for_target(&want.target).clone();
        let url = UrlKey::of(&want.target, &rule.ignore_query);
        self.refuse_rest_of_a_cut(&want, &url)?;
        let judge = self.judge_of(&want);
        let mut case = Case {
            want,
            url,
            rule,
            judge,
            learned: Learned::default(),
            why: "uri-miss",
            admitted: None,
            guarded: false,
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

    /// What the client or the URL says the bytes are.
    fn judge_of(&self, want: &Want) -> Judge {
        let named = ecosystem::classify(&want.target).digest.map(Stated::from);
        Judge::binding(want.stated.or(named), |stated| self.0.cache.index().blob_of(&stated.key()))
    }

    /// Where a strong digest must hold, what a URL led to earlier is no answer: the thing itself was looked for
    /// before. A weak one chooses among what the URL led to.
    fn may_answer(&self, case: &Case, stored: &ResourceRecord) -> bool {
        match (case.judge.bound(), case.judge.named()) {
            (None, _) => true,
            (Some(_), Some(_)) => false,
            (Some(weak), None) => {
                let known = |blob| self.0.cache.index().digest_of(&blob, weak.algorithm());
                stored.digest.and_then(known) == Some(weak)
            }
        }
    }

    /// Reckons the algorithm of `stated` of what this URL led to, once for each blob.
    async fn reckon_held(&self, case: &Case, stated: Stated) {
        for stored in self.0.cache.variants(&case.url) {
            if let Some(digest) = stored.digest.filter(|_| stored.variance.matches(&case.want.headers)) {
                self.0.cache.reckon(&digest, stated.algorithm()).await;
            }
        }
    }

    async fn serve_or_fetch(&self, mut case: Case) -> Result<Reply, FetchError> {
        let mut variants = self.0.cache.variants(&case.url);
        variants.retain(|variant| self.may_answer(&case, variant) && !self.is_outdated(&case, variant));
        // the newest that matches (RFC 9111 section 4.1) and whose bytes are still here
        let usable = |v: &&Arc<ResourceRecord>| {
            let is_held = v.digest.is_none_or(|digest| self.0.cache.holds(&digest).is_some());
            is_held && v.variance.matches(&case.want.headers)
        };
        let stored = variants.iter().filter(usable).max_by_key(|v| v.answer.response_time).cloned();
        if stored.is_none() && !variants.is_empty() {
            case.why = "vary-miss";
        }
        if stored.is_none()
            && let Some(part) = self.held_part(&case).await
        {
            return Ok(part);
        }
        let plan = self.plan(&case, stored.as_ref().map(|stored| &stored.answer));
        match case.learned.look_again(plan, &case, stored.as_deref()) {
            Plan::Serve { .. } => {
                if let Some(stored) = &stored
                    && let Some(held) = self.open(stored, &case).await
                {
                    self.study(&case.want, stored);
                    self.remember(&case, stored);
                    return Ok(Reply { given: Given::Held(Box::new(held)), status: CacheStatus::hit() });
                }
                self.fetch_new(case, None, false).await
            }
            Plan::ServeAndRevalidate { .. } => {
                if let Some(stored) = &stored
                    && let Some(held) = self.open(stored, &case).await
                {
                    self.revalidate_behind(case, Arc::clone(stored));
                    let status = CacheStatus::hit().remarked("stale while it is revalidated");
                    return Ok(Reply { given: Given::Held(Box::new(held)), status });
                }
                self.fetch_new(case, None, false).await
            }
            Plan::Revalidate { stale_allowed } => {
                case.why = "stale";
                self.fetch_new(case, stored, stale_allowed).await
            }
            Plan::Fetch => match self.serve_learned(&case).await? {
                Some(reply) => Ok(reply),
                None => self.fetch_new(case, None, false).await,
            },
            Plan::Unavailable => Err(FetchError::NotHeld),
            Plan::Pass(reason) => {
                case.why = "bypass";
                self.note_not_kept(&case, reason.to_string());
                self.pass(&case).await
            }
        }
    }

    /// What the rules say of a want, given what is kept for it.
    pub(super) fn plan(&self, case: &Case, stored: Option<&policy::Answer>) -> Plan {
        let (want, now, config) = (&case.want, self.0.clock.now(), self.0.config.load());
        policy::plan(&want.method, &want.headers, stored, &case.rule, now, config.stale_if_error.into())
    }

    /// The client has its answer; the next one shall have a fresh one.
    fn revalidate_behind(&self, mut case: Case, stored: Arc<ResourceRecord>) {
        case.why = "stale";
        case.want.method = Method::GET;
        case.want.headers = case.want.headers_for_whole();
        super::want::drop_conditions(&mut case.want.headers);
        case.want.interim = None;
        let engine = self.clone();
        // joined by the drain
        drop(self.0.drain.spawn(async move {
            match engine.fetch_new(case, Some(stored), true).await {
                // a new version is received to its end, although nobody reads it
                Ok(Reply { given: Given::Held(held), .. }) => held.settled().await,
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "failed to revalidate behind a client's back"),
            }
        }));
    }

    async fn fetch_new(
        &self,
        case: Case,
        stored: Option<Arc<ResourceRecord>>,
        stale_allowed: bool,
    ) -> Result<Reply, FetchError> {
        let key = case.flight_key();
        if case.want.method == Method::HEAD {
            return self.pass(&case).await;
        }
        let alone = !policy::joins(&case.want.method, &case.want.headers)
            || (case.want.is_conditional() && stored.is_none())
            || self.0.flights.is_alone(&case.url)
            // others would be judged by what only this client stated
            || (case.judge.binding && case.judge.named().is_none());
        if alone && case.want.range().is_some() && stored.is_none() {
            return self.part(case).await;
        }
        if alone {
            return self.lead_alone(case, stored.map(|stored| (stored, stale_allowed))).await;
        }
        if stored.is_none() && !self.worth_the_whole(&case, key).await {
            return self.part(case).await;
        }
        match self.0.flights.enter(key) {
            Part::Lead(permit) => self.lead(case, stored.map(|s| (s, stale_allowed)), Some(permit)).await,
            Part::Follow(watcher) => {
                let was_pending = watcher.is_pending();
                let found = watcher.found().await;
                if let Found::Running(running) = &found
                    && !was_pending
                    && (policy::insists(&case.want.headers)
                        || policy::must_confirm(&running.answer(), &case.rule))
                {
                    // what runs was answered before this request was made
                    return self.lead_alone(case, stored.map(|stored| (stored, stale_allowed))).await;
                }
                self.follow(case, found, stored.map(|stored| (stored, stale_allowed))).await
            }
        }
    }

    /// Whether a range is better met by fetching the whole thing: where it begins at the start, or in what is left
    /// of an earlier download, and has no end, where a running transfer has it or soon will, or where a neighbour
    /// holds the thing. Any other range of something not held goes to the origin as it is, so that nobody waits for
    /// bytes nobody asked for.
    async fn worth_the_whole(&self, case: &Case, key: FlightKey) -> bool {
        let Some(range) = case.want.range() else { return true };
        if range == (RangeRequest::From { first: 0, last: None }) || self.begins_in_beginning(case, range) {
            return true;
        }
        if let Some(running) = self.0.flights.running(key) {
            return soon_there(&running, range);
        }
        match (self.judge_without_origin(case).asked(), self.lenders(case)) {
            (Some(stated), Some(lenders)) => {
                let near = matches!(range, RangeRequest::From { first, .. } if first <= AHEAD);
                let is_small = |size: u64| size <= super::judge::WHOLE;
                let holders = lenders.holders(&stated).await;
                holders.iter().any(|offer| near || offer.holding.size.is_some_and(is_small))
            }
            _ => false,
        }
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
        self.neighbours_near(case)
    }

    /// Whether anybody could be asked once the origin has let this client in.
    pub(super) fn has_neighbours(&self, case: &Case) -> bool {
        self.neighbours_near(case).is_some()
    }

    fn neighbours_near(&self, case: &Case) -> Option<Arc<Neighbours>> {
        if !case.want.ask_peers || !case.rule.share {
            return None;
        }
        self.0.neighbours.load_full().filter(|neighbours| neighbours.heard_lately())
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

impl Case {
    pub(super) fn flight_key(&self) -> FlightKey {
        self.judge.named().map_or(FlightKey::Url(self.url), FlightKey::Stated)
    }

    /// Whether strangers to the site may hear of it.
    pub(super) fn may_be_told(&self) -> bool {
        self.want.ask_peers && !self.want.is_private() && self.rule.share
    }

    /// The same, asked of nobody but the origin.
    pub(super) fn without_peers(&self) -> Self {
        let mut case = self.clone();
        case.want.ask_peers = false;
        case
    }

    pub(super) fn upstream(&self, headers: http::HeaderMap) -> Upstream {
        let want = &self.want;
        let (target, reach, interim) = (want.target.clone(), want.reach.clone(), want.interim.clone());
        Upstream { target, headers, reach, interim }
    }
}
