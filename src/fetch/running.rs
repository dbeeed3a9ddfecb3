//! A running transfer as its readers see it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::delivery::{OpenCut, Tally};
use super::judge::Judge;
use super::ledger::From;
use super::neighbours::version_key;
use super::outcome;
use super::view::TransferView;
use crate::clock::{SharedClock, Timestamp};
use crate::digest::Digest;
use crate::http::StoredHead;
use crate::policy::{Answer, ResourceKey, UrlKey, Variance};
use crate::store::{End, Growing};

/// A running transfer: what is known of the thing, and the thing itself as it grows.
#[derive(Debug)]
pub struct Running {
    id: String,
    url: String,
    started_at: Timestamp,
    pace: Pace,
    url_key: UrlKey,
    /// Replaced only while nobody has been told of it.
    answer: Mutex<(Arc<Answer>, bool)>,
    variance: Variance,
    /// What it is judged by now.
    judge: Mutex<Judge>,
    growing: Growing,
    tally: Arc<Tally>,
    source: Mutex<(From, Option<std::net::IpAddr>)>,
    /// All of it is the origin's own so far, and neighbours may have it.
    lendable: AtomicBool,
    /// Bytes of a neighbour go out before their proof.
    unproven: AtomicBool,
    /// They did at some time.
    was_unproven: AtomicBool,
    /// Clients that left with unproven bytes.
    open_cuts: Mutex<Vec<OpenCut>>,
}

/// Since when a transfer runs, and from which byte on.
#[derive(Debug)]
pub(super) struct Pace {
    clock: SharedClock,
    began: Instant,
    offset: u64,
}

impl Pace {
    /// From now and this byte on.
    pub(super) fn from(clock: &SharedClock, offset: u64) -> Self {
        Self { clock: Arc::clone(clock), began: clock.instant(), offset }
    }
}

/// What a transfer starts with.
pub(super) struct Opening {
    pub(super) url: String,
    pub(super) started_at: Timestamp,
    pub(super) pace: Pace,
    pub(super) url_key: UrlKey,
    pub(super) answer: Answer,
    pub(super) variance: Variance,
    pub(super) judge: Judge,
    pub(super) growing: Growing,
    pub(super) tally: Arc<Tally>,
    pub(super) source: (From, Option<std::net::IpAddr>),
    pub(super) shareable: bool,
}

impl Running {
    pub(super) fn new(id: String, opening: Opening) -> Arc<Self> {
        Arc::new(Self {
            id,
            url: opening.url,
            started_at: opening.started_at,
            pace: opening.pace,
            url_key: opening.url_key,
            answer: Mutex::new((Arc::new(opening.answer), false)),
            variance: opening.variance,
            judge: Mutex::new(opening.judge),
            growing: opening.growing,
            tally: opening.tally,
            lendable: AtomicBool::new(opening.shareable && opening.source.0 == From::Origin),
            source: Mutex::new(opening.source),
            unproven: AtomicBool::new(false),
            was_unproven: AtomicBool::new(false),
            open_cuts: Mutex::default(),
        })
    }

    /// Whether a request with these fields can be met from it: the same variant, from its first byte on.
    pub(super) fn can_be_joined(&self, request: &http::HeaderMap) -> bool {
        let failed = matches!(self.growing.progress().end, Some(End::Failed(_)));
        !failed && !self.growing.is_spilling() && self.variance.matches(request)
    }

    /// Whether a byte is here, or will be after `wait` at the rate so far; what runs for less than `glance` is given
    /// that long to show its rate.
    pub(super) async fn will_have(&self, byte: u64, glance: Duration, wait: Duration) -> bool {
        let Pace { clock, began, offset } = &self.pace;
        let left = glance.saturating_sub(clock.instant().saturating_duration_since(*began));
        // either way the rate is known then
        let is_here = tokio::time::timeout(left, self.growing.has(byte)).await.unwrap_or(false);
        let progress = self.growing.progress();
        if is_here || byte <= progress.received || progress.end.is_some() {
            return byte <= progress.received;
        }
        let (came, ran) =
            (progress.received.saturating_sub(*offset), clock.instant().saturating_duration_since(*began));
        let missing = u128::from(byte - progress.received);
        missing * ran.as_millis() <= u128::from(came) * wait.as_millis()
    }

    /// Whether neighbours can read it: all of it, from its first byte on.
    pub(super) fn can_be_shared(&self) -> bool {
        let failed = matches!(self.growing.progress().end, Some(End::Failed(_)));
        !failed && !self.growing.is_spilling() && self.answer().head.status == 200
    }

    /// The name of the version that arrives.
    pub(super) fn version(&self) -> ResourceKey {
        version_key(&self.url_key, &self.variance, &self.answer().head)
    }

    pub(super) fn growing(&self) -> &Growing {
        &self.growing
    }

    pub(super) fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    pub(super) fn variance(&self) -> &Variance {
        &self.variance
    }

    pub(super) fn answer(&self) -> Arc<Answer> {
        Arc::clone(&self.told().0)
    }

    /// The head, to be told to a client: from now on it stays what it is.
    pub(super) fn tell(&self) -> StoredHead {
        let mut told = self.told();
        told.1 = true;
        told.0.head.clone()
    }

    /// Another answer takes the place of the present one; false if somebody was told of that already.
    pub(super) fn replace(&self, answer: Answer) -> bool {
        let mut told = self.told();
        if !told.1 {
            told.0 = Arc::new(answer);
        }
        !told.1
    }

    fn told(&self) -> std::sync::MutexGuard<'_, (Arc<Answer>, bool)> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on bytes of a neighbour go out before their proof, or no longer.
    pub(super) fn set_unproven(&self, unproven: bool) {
        self.was_unproven.fetch_or(unproven, Ordering::SeqCst);
        self.unproven.store(unproven, Ordering::SeqCst);
    }

    /// Whether bytes of a neighbour may have gone out before their proof, now or earlier.
    pub(super) fn was_unproven(&self) -> bool {
        self.was_unproven.load(Ordering::SeqCst)
    }

    pub(super) fn is_unproven(&self) -> bool {
        self.unproven.load(Ordering::SeqCst)
    }

    /// A client left with unproven bytes: the end of the transfer decides what is remembered of it.
    pub(super) fn park(&self, cut: OpenCut) {
        self.open_cuts.lock().unwrap_or_else(PoisonError::into_inner).push(cut);
        if let Some(end) = self.growing.progress().end {
            self.settle_cuts(&end);
        }
    }

    /// The transfer has ended.
    pub(super) fn settle_cuts(&self, end: &End) {
        let open = std::mem::take(&mut *self.open_cuts.lock().unwrap_or_else(PoisonError::into_inner));
        for cut in open {
            cut.settle(end);
        }
    }

    /// The digest it must have, if one is known.
    pub(super) fn expected(&self) -> Option<Digest> {
        self.judge().digest
    }

    /// What it is judged by now.
    pub(super) fn judge(&self) -> Judge {
        *self.judge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn judge_by(&self, judge: Judge) {
        *self.judge.lock().unwrap_or_else(PoisonError::into_inner) = judge;
    }

    /// From here on the bytes come from another source.
    pub(super) fn moved_to(&self, offset: u64, from: From, peer: Option<std::net::IpAddr>) {
        *self.source.lock().unwrap_or_else(PoisonError::into_inner) = (from, peer);
        self.tally.source(offset, from);
        if from == From::Peer {
            self.lendable.store(false, Ordering::SeqCst);
        }
    }

    /// Whether it may be lent on before it is whole: all of it came from the origin, from its first byte on.
    pub(super) fn is_lendable(&self) -> bool {
        let failed = matches!(self.growing.progress().end, Some(End::Failed(_)));
        self.lendable.load(Ordering::SeqCst) && !failed && !self.growing.is_spilling()
    }

    /// What is received may not be shared after all.
    pub(super) fn keep_to_ourselves(&self) {
        self.lendable.store(false, Ordering::SeqCst);
    }

    /// Whether a neighbour gives it now.
    pub(super) fn is_from_neighbour(&self) -> bool {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).0 == From::Peer
    }

    /// Whose bytes, in words.
    pub(super) fn detail(&self) -> String {
        let (from, peer) = *self.source.lock().unwrap_or_else(PoisonError::into_inner);
        outcome::detail(from, peer)
    }

    pub(super) fn view(&self) -> TransferView {
        let progress = self.growing.progress();
        let (from, _) = *self.source.lock().unwrap_or_else(PoisonError::into_inner);
        TransferView {
            id: self.id.clone(),
            url: self.url.clone(),
            source: if from == From::Peer { "peer" } else { "origin" },
            received: progress.received,
            size: progress.total,
            readers: self.growing.readers(),
            started_at: self.started_at,
        }
    }
}
