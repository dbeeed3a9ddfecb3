//! A running transfer: bytes from one source after another into one file, until the whole is there and right.

mod finish;
mod pump;
mod takeover;
mod watch;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::delivery::Tally;
use super::engine::{Case, Engine};
use super::flight::Permit;
use super::judge::Judge;
use super::ledger::From;
use super::neighbours::version_key;
use super::offer::Offer;
use super::origin_side::Upstream;
use super::outcome::CacheStatus;
use super::piece::Pieces;
use super::resume::{Note, partial_key};
use super::running::{Opening, Running};
use super::sidecar::Hint;
use super::want::drop_conditions;
use crate::cache::Reservation;
use crate::digest::hex;
use crate::discovery::Finding;
use crate::http::Body;
use crate::policy::{Answer, ResourceKey, Variance};
use crate::shutdown::Guest;
use crate::store::{Failure, Hold, Ingest, Mark, Writer};

use pump::Stop;
use watch::RateWatch;

/// Where bytes come from now.
pub(super) struct Source {
    pub(super) body: Body,
    pub(super) from: From,
    /// The neighbour, if it is one.
    pub(super) offer: Option<Offer>,
}

/// What a transfer begins with.
pub(super) struct Begin {
    pub(super) engine: Engine,
    pub(super) case: Case,
    pub(super) judge: Judge,
    pub(super) answer: Answer,
    pub(super) variance: Variance,
    pub(super) shareable: bool,
    pub(super) total: Option<u64>,
    pub(super) ingest: Ingest,
    pub(super) reservation: Reservation,
    pub(super) source: Source,
    /// Further holders of the same thing.
    pub(super) offers: VecDeque<Offer>,
    /// Neighbours that may still answer.
    pub(super) finding: Option<Finding>,
    /// Holders that a checksum file may lead to.
    pub(super) hint: Option<Hint>,
}

/// A transfer.
pub(super) struct Transfer {
    engine: Engine,
    case: Case,
    judge: Judge,
    running: Arc<Running>,
    shareable: bool,
    writer: Writer,
    reservation: Reservation,
    pieces: Pieces,
    from: From,
    offer: Option<Offer>,
    /// Neighbours whose bytes are in the file, each once.
    used: Vec<Offer>,
    /// The state of the file before the first of those bytes.
    mark: Option<Mark>,
    /// Bytes of the origin follow on those bytes.
    origin_after: bool,
    offers: VecDeque<Offer>,
    finding: Option<Finding>,
    hint: Option<Hint>,
    /// A checksum file alone led to the neighbours' bytes.
    by_sidecar: bool,
    upstream: Upstream,
    total: Option<u64>,
    next_checkpoint: u64,
    /// Sources that failed since the last progress worth the name.
    failures: u32,
    rate: RateWatch,
    /// The program is stopping: deliver, store nothing.
    stopping: bool,
    /// While this is held, the store's folder is not given up.
    storing: Option<Guest>,
    /// Since when nobody reads.
    lonely: Option<Instant>,
    /// Since when no source makes progress.
    troubled_since: Option<Instant>,
}

impl Transfer {
    pub(super) fn new(begin: Begin) -> Self {
        let engine = begin.engine;
        let storing = engine.0.storing.enter();
        let release = engine.0.config.load().release;
        let release = begin.source.offer.as_ref().map_or(release, |offer| offer.release(release));
        let hold = begin.judge.hold(begin.source.from, begin.total, release);
        let resumed = begin.ingest.length();
        let writer = Writer::new(begin.ingest, begin.total, hold);
        let peer = begin.source.offer.as_ref().map(Offer::address);
        let tally = Tally::new(engine.0.ledger.clone(), begin.source.from, resumed);
        let opening = Opening {
            url: begin.case.want.target.shown(),
            started_at: engine.0.clock.now(),
            answer: begin.answer,
            variance: begin.variance,
            judge: begin.judge,
            growing: writer.growing(),
            tally,
            source: (begin.source.from, peer),
            shareable: begin.shareable,
        };
        let mut headers = begin.case.want.headers_for_whole();
        drop_conditions(&mut headers);
        let upstream = begin.case.upstream(headers);
        let running = Running::new(name(), opening);
        running.set_unproven(begin.source.from == From::Peer && hold != Hold::Everything);
        let rate =
            RateWatch::new(Arc::clone(&engine.0.clock), &upstream, &engine.0.origin, begin.source.from);
        Self {
            running,
            engine,
            case: begin.case,
            judge: begin.judge,
            shareable: begin.shareable,
            writer,
            reservation: begin.reservation,
            pieces: Pieces::new(begin.source.body),
            from: begin.source.from,
            used: Vec::new(),
            mark: (begin.source.from == From::Peer).then(Mark::default),
            origin_after: false,
            offer: begin.source.offer,
            offers: begin.offers,
            finding: begin.finding,
            hint: begin.hint,
            by_sidecar: false,
            upstream,
            total: begin.total,
            next_checkpoint: pump::FIRST_CHECKPOINT,
            failures: 0,
            rate,
            stopping: false,
            storing: Some(storing),
            lonely: None,
            troubled_since: None,
        }
    }

    /// The readers' side.
    pub(super) fn running(&self) -> &Arc<Running> {
        &self.running
    }

    /// How the leader's answer came about.
    pub(super) fn status(&self, case: &Case) -> CacheStatus {
        CacheStatus { stored: true, ..CacheStatus::forwarded(case.why, self.running.detail()) }
    }

    /// Runs to the end; the flight stays open until the thing is whole.
    pub(super) async fn run(mut self, permit: Option<Permit>) {
        let ended = loop {
            match self.pump().await {
                Stop::Ended => match self.judge_whole().await {
                    Some(ended) => break ended,
                    None => continue,
                },
                Stop::Abandoned => break Err(Failure::Abandoned),
                Stop::Broken(why) => {
                    tracing::debug!(%why, url = %self.case.want.target, "a source broke off");
                    if let Err(failure) = self.take_over(&why).await {
                        break Err(failure);
                    }
                }
                Stop::Slow => {
                    if let Err(failure) = self.leave_slow_peer().await {
                        break Err(failure);
                    }
                }
                Stop::Better(offer) => drop(self.move_to(offer).await),
                Stop::Hinted(offer) => self.by_sidecar = self.move_to(offer).await,
                Stop::Disk(error) => {
                    self.engine.0.cache.note_trouble(&error);
                    if let Err(failure) = self.without_disk().await {
                        break Err(failure);
                    }
                }
            }
        };
        match ended {
            Ok(found) => self.complete(found, permit).await,
            Err(failure) => {
                self.fail(failure).await;
                drop(permit);
            }
        }
    }

    /// The name of the version that is received.
    fn key(&self) -> ResourceKey {
        version_key(&self.case.url, self.running.variance(), &self.running.answer().head)
    }

    fn partial_key(&self) -> String {
        partial_key(self.case.flight_key())
    }

    fn note(&self) -> String {
        let answer = (*self.running.answer()).clone();
        Note { answer, variance: self.running.variance().clone(), total: self.total }.to_text()
    }

    /// Whether a later transfer could go on from what is here: the rest must be provably of the same thing.
    fn is_resumable(&self) -> bool {
        let tagged = self.running.answer().head.strong_etag().is_some();
        !self.case.want.is_private() && self.used.is_empty() && (self.judge.named().is_some() || tagged)
    }
}

/// Names a transfer while it runs.
fn name() -> String {
    let mut random = [0; 6];
    match getrandom::fill(&mut random) {
        Ok(()) => hex(&random),
        Err(_) => "transfer".to_owned(),
    }
}
