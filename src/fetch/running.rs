//! A running transfer as its readers see it.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use super::delivery::Tally;
use super::ledger::From;
use super::outcome;
use super::view::TransferView;
use crate::digest::Digest;
use crate::http::StoredHead;
use crate::policy::{Answer, Variance};
use crate::store::{End, Growing};

/// A running transfer: what is known of the thing, and the thing itself as it grows.
#[derive(Debug)]
pub struct Running {
    id: String,
    url: String,
    /// Replaced when the transfer starts over at another source before anything went out.
    answer: ArcSwap<Answer>,
    variance: Variance,
    /// The digest it must have, if one is known.
    expected: Mutex<Option<Digest>>,
    growing: Growing,
    tally: Arc<Tally>,
    source: Mutex<(From, Option<std::net::IpAddr>)>,
}

/// What a transfer starts with.
pub(super) struct Opening {
    pub(super) url: String,
    pub(super) answer: Answer,
    pub(super) variance: Variance,
    pub(super) expected: Option<Digest>,
    pub(super) growing: Growing,
    pub(super) tally: Arc<Tally>,
    pub(super) source: (From, Option<std::net::IpAddr>),
}

impl Running {
    pub(super) fn new(id: String, opening: Opening) -> Arc<Self> {
        Arc::new(Self {
            id,
            url: opening.url,
            answer: ArcSwap::from_pointee(opening.answer),
            variance: opening.variance,
            expected: Mutex::new(opening.expected),
            growing: opening.growing,
            tally: opening.tally,
            source: Mutex::new(opening.source),
        })
    }

    pub(super) fn has_failed(&self) -> bool {
        matches!(self.growing.progress().end, Some(End::Failed(_)))
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
        self.answer.load_full()
    }

    pub(super) fn head(&self) -> StoredHead {
        self.answer.load().head.clone()
    }

    /// The transfer starts over with another answer.
    pub(super) fn replace(&self, answer: Answer) {
        self.answer.store(Arc::new(answer));
    }

    pub(super) fn expected(&self) -> Option<Digest> {
        *self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn expect(&self, digest: Option<Digest>) {
        *self.expected.lock().unwrap_or_else(PoisonError::into_inner) = digest;
    }

    /// From here on the bytes come from another source.
    pub(super) fn moved_to(&self, offset: u64, from: From, peer: Option<std::net::IpAddr>) {
        *self.source.lock().unwrap_or_else(PoisonError::into_inner) = (from, peer);
        self.tally.source(offset, from);
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
        }
    }
}
