//! Two nodes went to the origin for one thing: their claims crossed, or were lost. The one that goes first goes on,
//! the other reads the rest from it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;

use super::pump::Stop;
use super::{Follow, Source, Transfer};
use crate::discovery::{Heard, Offer, Wanted};
use crate::fetch::crowd::Crowd;
use crate::fetch::ledger::From;
use crate::fetch::neighbours::Neighbours;
use crate::tls::NodeId;

/// When a claimant is asked whether it has begun too: it may still be waiting for the origin's head.
const PAUSES: [u64; 6] = [20, 30, 50, 150, 400, 1000];

/// How often it is tried to give way.
const TRIES: u8 = 5;

/// The others, as one that fetches for all sees them.
pub(in crate::fetch) struct Rivals {
    crowd: Crowd,
    tries: u8,
    /// One of them is asked where it stands.
    asking: Option<Pin<Box<dyn Future<Output = Option<Offer>> + Send>>>,
}

impl Rivals {
    pub(in crate::fetch) fn new(crowd: Crowd) -> Self {
        Self { crowd, tries: 0, asking: None }
    }

    /// Looks closer at somebody who goes before this node.
    fn look_at(&mut self, node: NodeId) {
        if self.asking.is_none() && self.crowd.reads_from(node, 0) {
            let (neighbours, wanted) = (Arc::clone(&self.crowd.neighbours), self.crowd.wanted);
            self.asking = Some(Box::pin(ask(neighbours, node, wanted)));
        }
    }
}

/// Asks until it says that it gets the thing from the origin, and which version.
async fn ask(neighbours: Arc<Neighbours>, node: NodeId, wanted: Wanted) -> Option<Offer> {
    for pause in PAUSES {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let Some(offer) = neighbours.ask_one(node, wanted).await else { continue };
        let is_root = offer.holding.partial.as_ref().is_some_and(|partial| partial.root == node);
        if is_root && offer.holding.resource.is_some() {
            return Some(offer);
        }
    }
    None
}

/// The one that was asked, once it has shown where it stands.
pub(super) async fn shown(rivals: &mut Option<Rivals>) -> Offer {
    loop {
        let Some(Rivals { asking: Some(asking), .. }) = rivals else { return std::future::pending().await };
        let offer = asking.await;
        if let Some(rivals) = rivals {
            rivals.asking = None;
        }
        if let Some(offer) = offer {
            return offer;
        }
    }
}

impl Transfer {
    /// What else was heard of the thing while it comes from the origin.
    pub(super) fn note_rival(&mut self, heard: Heard) {
        let Some(rivals) = &mut self.rivals else { return };
        match heard {
            Heard::Claim(node) => rivals.look_at(node),
            Heard::Offer(offer) => {
                let is_root = offer.holding.partial.as_ref().is_some_and(|told| told.root == offer.peer.node);
                if is_root {
                    rivals.look_at(offer.peer.node);
                }
            }
            Heard::Decided => {}
        }
    }

    /// The same while bytes come without a pause.
    pub(super) fn hear_rivals(&mut self) -> Option<Stop> {
        self.rivals.as_ref()?;
        if self.from != From::Origin || !self.rest_is_long() {
            return None;
        }
        let heard = self.finding.as_mut().and_then(|finding| finding.heard().now_or_never());
        match heard {
            Some(Some(Heard::Offer(offer))) if self.is_better(&offer) => {
                return Some(Stop::Better(offer.into()));
            }
            Some(Some(heard)) => self.note_rival(heard),
            Some(None) => self.finding = None,
            None => {}
        }
        let offer = shown(&mut self.rivals).now_or_never()?;
        self.is_outranked_by(&offer).then(|| Stop::Outranked(Box::new(offer)))
    }

    /// Whether that node gets the very same thing, and goes first.
    pub(super) fn is_outranked_by(&self, offer: &Offer) -> bool {
        let (Some(rivals), holding) = (&self.rivals, &offer.holding) else { return false };
        let lower = holding
            .partial
            .as_ref()
            .is_some_and(|partial| rivals.crowd.reads_from(offer.peer.node, partial.depth));
        lower
            && self.from == From::Origin
            && self.shareable
            && self.rest_is_long()
            && holding.resource == Some(self.key())
            && holding.size == self.total
            && self.running.answer().head.strong_etag().is_some()
    }

    /// Reads the rest from the one that goes first; stays where it is if that cannot be, and tries again.
    pub(super) async fn give_way_to(&mut self, offer: Offer) {
        let Some(mut rivals) = self.rivals.take() else { return };
        let (Some(stand), received) = (self.stand.clone(), self.writer.received()) else { return };
        if self.settle().await.is_err() {
            return;
        }
        let neighbours = Arc::clone(&rivals.crowd.neighbours);
        let arrived = match neighbours.pull_arriving(&offer, rivals.crowd.wanted, received).await {
            Ok(arrived) if arrived.from == received && arrived.total == self.total => arrived,
            Ok(_) => return,
            Err(error) => {
                tracing::debug!(%error, "another node goes first and gives nothing");
                rivals.tries += 1;
                if rivals.tries < TRIES {
                    rivals.look_at(offer.peer.node);
                    self.rivals = Some(rivals);
                }
                return;
            }
        };
        let crowd = rivals.crowd;
        tracing::debug!(url = %self.case.want.target, peer.node = %offer.peer.node, "another node goes first");
        let (node, depth) = (offer.peer.node, crowd.place.map_or(0, |place| place.depth));
        let trust = self.engine.0.config.load().trust;
        let mut follow = Follow::new(crowd, offer.clone(), &stand, trust, self.engine.0.clock.instant());
        // what is here is the origin's own
        follow.board.set_own(Some(0));
        self.finding = None;
        self.follow = Some(follow);
        drop(self.weigh());
        if let Some(follow) = &mut self.follow {
            follow.board.set_own(None);
        }
        stand.read(node, depth);
        self.switch(Source { body: arrived.body, from: From::Peer, offer: Some(offer.into()) });
    }
}
