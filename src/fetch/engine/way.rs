//! Which way a want takes: to what is held, to what runs, or to where it has to be fetched from.

use super::{Case, Engine};
use crate::digest::Stated;
use crate::discovery::Wanted;
use crate::fetch::error::FetchError;
use crate::fetch::flight::{FlightKey, Found, Part};
use crate::fetch::follow::{SOON, soon_there};
use crate::fetch::judge::WHOLE;
use crate::fetch::neighbours::Haste;
use crate::fetch::outcome::{CacheStatus, Given, Reply};
use crate::index::ResourceRecord;
use crate::policy::{self, Plan};
use crate::range::RangeRequest;
use http::Method;
use std::sync::Arc;
use std::time::Duration;

/// How far from the beginning a range may begin for the whole to be worth fetching.
const AHEAD: u64 = 8 * 1024 * 1024;
/// Where it begins for the whole to be worth a try.
const NEAR: std::ops::RangeInclusive<u64> = 256 * 1024..=AHEAD;
/// What takes this long up to there is not worth it, and rates of small things are not to be relied on.
const HOPELESS: Duration = Duration::from_secs(5);

impl Engine {
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
    pub(super) async fn reckon_held(&self, case: &Case, stated: Stated) {
        for stored in self.0.cache.variants(&case.url) {
            if let Some(digest) = stored.digest.filter(|_| stored.variance.matches(&case.want.headers)) {
                self.0.cache.reckon(&digest, stated.algorithm()).await;
            }
        }
    }

    pub(super) async fn serve_or_fetch(&self, mut case: Case) -> Result<Reply, FetchError> {
        self.0.joining.done(&case.url, case.want.range()).await;
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
    pub(in crate::fetch) fn plan(&self, case: &Case, stored: Option<&policy::Answer>) -> Plan {
        let (want, now, config) = (&case.want, self.0.clock.now(), self.0.config.load());
        policy::plan(&want.method, &want.headers, stored, &case.rule, now, config.stale_if_error.into())
    }

    /// The client has its answer; the next one shall have a fresh one.
    fn revalidate_behind(&self, mut case: Case, stored: Arc<ResourceRecord>) {
        case.why = "stale";
        case.want.method = Method::GET;
        case.want.headers = case.want.headers_for_anybody();
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
        if case.want.background.is_none() {
            self.0.backgrounds.lift(&key);
        }
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
        if stored.is_none() {
            self.begin_behind(&case, key);
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
        if self.0.flights.is_pending(key) {
            // its head is not here yet: what it is tells whether it is worth the wait
            return true;
        }
        if let Some(running) = self.0.flights.running(key) {
            return soon_there(&running, range).await;
        }
        if self.is_near(case, range) {
            return true;
        }
        let near = matches!(range, RangeRequest::From { first, .. } if first <= AHEAD);
        let is_worth = |size: Option<u64>| near || size.is_some_and(|size| size <= WHOLE);
        match (self.judge_without_origin(case).asked(), self.lenders(case), self.neighbours(case)) {
            (Some(stated), Some(lenders), _) => {
                lenders.holders(&stated, Haste::Client).await.iter().any(|offer| is_worth(offer.holding.size))
            }
            (None, _, Some(neighbours)) if self.word_for(case).witnesses == Some(1) => {
                let offers = neighbours.ask(Wanted::Url(case.url)).decided().await;
                offers.iter().any(|offer| offer.holding.complete && is_worth(offer.holding.size))
            }
            _ => false,
        }
    }

    /// How long the origin takes for all that lies before a range without an end, at the rate it had lately.
    fn time_before(&self, case: &Case, first: u64) -> Option<Duration> {
        let rate = self.0.origin.learned_rate(&case.want.target.authority())?;
        Some(Duration::from_millis(first.saturating_mul(1000) / rate.max(1)))
    }

    /// Whether the origin sends all that lies before a range without an end in no time: then the whole costs it
    /// little more, and others can have it.
    fn is_near(&self, case: &Case, range: RangeRequest) -> bool {
        let RangeRequest::From { first, last: None } = range else { return false };
        self.time_before(case, first).is_some_and(|time| time <= SOON)
    }

    /// Begins the whole behind a client that wants the end of it from near its beginning on: a moment tells whether
    /// the client is better served by that.
    fn begin_behind(&self, case: &Case, key: FlightKey) {
        let Some(RangeRequest::From { first, last: None }) = case.want.range() else { return };
        let is_hopeless = self.time_before(case, first).is_some_and(|time| time > HOPELESS);
        if !NEAR.contains(&first) || is_hopeless || !self.0.cache.is_writable() {
            return;
        }
        let Part::Lead(permit) = self.0.flights.enter(key) else { return };
        let mut whole = case.clone();
        whole.want.headers = whole.want.headers_for_whole();
        whole.want.interim = None;
        let engine = self.clone();
        // joined by the drain
        drop(self.0.drain.spawn(async move {
            if let Err(error) = engine.lead(whole, None, Some(permit)).await {
                tracing::debug!(%error, "a download behind a client's range failed");
            }
        }));
    }
}
