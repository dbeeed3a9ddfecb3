//! A running transfer: bytes from one source after another into one file, until the whole is there and right.

mod finish;
mod follow;
mod here;
mod pump;
mod rejoin;
mod rivals;
mod takeover;
mod watch;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::crowd::Crowd;
use super::delivery::Tally;
use super::engine::{Case, Engine};
use super::flight::Permit;
use super::judge::Judge;
use super::ledger::From;
use super::offer::Offer;
use super::origin_side::Upstream;
use super::outcome::CacheStatus;
use super::piece::Pieces;
use super::resume::{Note, partial_key};
use super::running::{Opening, Pace, Running};
use super::settings::Release;
use super::sidecar::Hint;
use super::stand::Stand;
use crate::cache::Reservation;
use crate::digest::hex;
use crate::discovery::Finding;
use crate::http::Body;
use crate::policy::{Answer, NoStore, ResourceKey, Variance};
use crate::shutdown::Guest;
use crate::store::{Failure, Hold, Ingest, Writer};

pub(super) use follow::Follow;
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
    /// Others that may have gone to the origin too.
    pub(super) rivals: Option<Crowd>,
    /// The source is itself still receiving it.
    pub(super) follow: Option<Follow>,
    /// Where this node stands among those that receive it.
    pub(super) stand: Option<Arc<Stand>>,
}

impl Begin {
    /// How much of what comes first waits for its proof.
    fn hold(&self, release: Release) -> Hold {
        let release = self.source.offer.as_ref().map_or(release, |offer| offer.release(release));
        let by_pieces = self.follow.as_ref().and_then(|follow| follow.hold(self.total, release));
        let by_judge = || self.judge.hold(self.source.from, self.total, release);
        self.engine.hold_for_blocks(by_pieces.unwrap_or_else(by_judge))
    }
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
    /// Where the first of those bytes is.
    mark: Option<u64>,
    /// Bytes of the origin follow on those bytes.
    origin_after: bool,
    offers: VecDeque<Offer>,
    finding: Option<Finding>,
    hint: Option<Hint>,
    /// A checksum file alone led to the neighbours' bytes.
    by_sidecar: bool,
    rivals: Option<Crowd>,
    follow: Option<Follow>,
    stand: Option<Arc<Stand>>,
    upstream: Upstream,
    total: Option<u64>,
    next_checkpoint: u64,
    /// Sources that failed since the last progress worth the name.
    failures: u32,
    rate: RateWatch,
    /// The program is stopping: deliver, store nothing.
    stopping: bool,
    /// The origin says by now that nothing of it may be kept: why.
    forbidden: Option<NoStore>,
    /// While this is held, the store's folder is not given up.
    storing: Option<Guest>,
    /// Since when nobody reads.
    lonely: Option<Instant>,
    /// Since when no source makes progress.
    troubled_since: Option<Instant>,
    /// What is here already because clients asked for parts.
    known: here::Known,
}

impl Transfer {
    pub(super) fn new(begin: Begin) -> Self {
        let hold = begin.hold(begin.engine.0.config.load().release);
        let engine = begin.engine;
        let storing = engine.0.storing.enter();
        let resumed = begin.ingest.length();
        let writer = Writer::new(begin.ingest, begin.total, hold);
        let peer = begin.source.offer.as_ref().map(Offer::address);
        let tally = Tally::new(engine.0.ledger.clone(), begin.source.from, resumed);
        let opening = Opening {
            url: begin.case.want.target.shown(),
            started_at: engine.0.clock.now(),
            pace: Pace::from(&engine.0.clock, resumed),
            url_key: begin.case.url,
            answer: begin.answer,
            variance: begin.variance,
            judge: begin.judge,
            growing: writer.growing(),
            tally,
            source: (begin.source.from, peer),
            shareable: begin.shareable,
        };
        let upstream = begin.case.upstream(begin.case.want.headers_for_anybody());
        let running = Running::new(name(), opening);
        running.set_unproven(begin.source.from == From::Peer && is_before_proof(hold));
        take_place(&begin.source, begin.follow.is_some(), begin.stand.as_deref(), begin.shareable);
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
            mark: (begin.source.from == From::Peer).then_some(resumed),
            origin_after: false,
            offer: begin.source.offer,
            offers: begin.offers,
            finding: begin.finding,
            hint: begin.hint,
            by_sidecar: false,
            rivals: begin.rivals,
            follow: begin.follow,
            stand: begin.stand,
            upstream,
            total: begin.total,
            next_checkpoint: pump::FIRST_CHECKPOINT,
            failures: 0,
            rate,
            stopping: false,
            forbidden: None,
            storing: Some(storing),
            lonely: None,
            troubled_since: None,
            known: here::Known::default(),
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
                    Some(ended) => break ended.and_then(|found| self.unless_blocked(found)),
                    None => continue,
                },
                Stop::Abandoned => break Err(Failure::Abandoned),
                Stop::Changed => break Err(Failure::Changed),
                Stop::Here => {
                    if let Err(failure) = self.take_parts().await {
                        break Err(failure);
                    }
                }
                Stop::Broken(why) => {
                    if self.from == From::Cache {
                        self.leave_present_part();
                    }
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
                Stop::Wrong(by) => {
                    if let Err(failure) = self.rejoin_after_wrong(by).await {
                        break Err(failure);
                    }
                }
                Stop::Unproved => {
                    if let Err(failure) = self.take_back_unproved().await {
                        break Err(failure);
                    }
                }
                Stop::Outranked(offer) => self.give_way_to(*offer).await,
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
        self.running.version()
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
        !self.case.want.is_private()
            && self.forbidden.is_none()
            && self.used.is_empty()
            && (self.judge.named().is_some() || tagged)
    }
}

/// Where this node stands as it begins. One that follows stands there already.
fn take_place(source: &Source, follows: bool, stand: Option<&Stand>, shareable: bool) {
    let Some(stand) = stand else { return };
    stand.set_shareable(shareable);
    match &source.offer {
        None => stand.begin_first_hand(0),
        Some(offer) if !follows => stand.read_from(offer),
        Some(_) => {}
    }
}

/// Whether bytes of a neighbour go out before anything proves them.
fn is_before_proof(hold: Hold) -> bool {
    match hold {
        Hold::Nothing | Hold::Tail(_) => true,
        Hold::After(_) | Hold::Everything => false,
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
