//! Two nodes went to the origin for one thing: their claims crossed, frames were lost, or the network had parted. The
//! one that goes first goes on, the other reads the rest from it, or from those that read from it.

use futures_util::FutureExt as _;

use super::pump::Stop;
use super::{Follow, Source, Transfer};
use crate::discovery::{Heard, Offer, Wanted};
use crate::fetch::crowd::Crowd;
use crate::fetch::ledger::From;

/// The crowd of one that fetches for all: at the origin from the beginning, or in the place of one that is gone.
pub(super) fn crowd_of<'a>(
    rivals: &'a mut Option<Crowd>,
    follow: &'a mut Option<Follow>,
) -> Option<&'a mut Crowd> {
    let takes_over = follow.as_mut().filter(|follow| !follow.is_reading() && follow.checking.is_none());
    rivals.as_mut().or(takes_over.map(|follow| &mut follow.crowd))
}

/// The next that this node may leave the origin to.
pub(super) async fn looked(rivals: &mut Option<Crowd>, follow: &mut Option<Follow>) -> Offer {
    match crowd_of(rivals, follow) {
        Some(crowd) => crowd.looked().await,
        None => std::future::pending().await,
    }
}

impl Transfer {
    /// Whether it is worth looking for somebody who fetches it too.
    pub(super) fn looks_for_rivals(&self) -> bool {
        self.from == From::Origin && self.shareable && self.rest_is_long()
    }

    /// What else was heard of the thing while it comes from the origin.
    pub(super) fn note_rival(&mut self, heard: Heard) {
        let (received, total) = (self.writer.received(), self.total);
        if let Some(crowd) = crowd_of(&mut self.rivals, &mut self.follow) {
            crowd.search.note(received, total);
            crowd.hear(heard);
        }
    }

    /// The same while bytes come without a pause.
    pub(super) fn hear_rivals(&mut self) -> Option<Stop> {
        if !self.looks_for_rivals() {
            return None;
        }
        match self.finding.as_mut().and_then(|finding| finding.heard().now_or_never()) {
            Some(Some(Heard::Offer(offer))) if self.is_better(&offer) => {
                return Some(Stop::Better(offer.into()));
            }
            Some(Some(heard)) => self.note_rival(heard),
            Some(None) => self.finding = None,
            None => {}
        }
        let (received, total) = (self.writer.received(), self.total);
        let crowd = crowd_of(&mut self.rivals, &mut self.follow)?;
        crowd.search.note(received, total);
        let offer = crowd.look()?;
        self.rival(offer)
    }

    /// What is to be done about one that was found.
    pub(super) fn rival(&mut self, offer: Offer) -> Option<Stop> {
        let now = self.engine.0.clock.instant();
        if offer.holding.partial.is_none() && self.follow.is_none() && self.is_better(&offer) {
            return Some(Stop::Better(offer.into()));
        }
        let is_told = offer.holding.resource.is_some();
        if is_told && self.receives_the_same(&offer) {
            return Some(Stop::Outranked(Box::new(offer)));
        }
        let crowd = crowd_of(&mut self.rivals, &mut self.follow)?;
        match is_told {
            true => crowd.search.avoid(offer.peer.node),
            // its own origin has not answered yet
            false => crowd.search.refused(offer.peer.node, now),
        }
        None
    }

    /// Whether that node has the very same thing.
    fn receives_the_same(&mut self, offer: &Offer) -> bool {
        let Some(crowd) = crowd_of(&mut self.rivals, &mut self.follow) else { return false };
        let is_named = !matches!(crowd.wanted, Wanted::Url(_));
        let holding = &offer.holding;
        let is_version = holding.resource == Some(self.key())
            && self.running.answer().head.strong_etag().is_some()
            && holding.partial.is_some();
        holding.size == self.total && (is_named || is_version)
    }

    /// Reads the rest from the one that goes first; stays where it is if that cannot be, and goes on looking.
    pub(super) async fn give_way_to(&mut self, offer: Offer) {
        let (Some(stand), received) = (self.stand.clone(), self.writer.received()) else { return };
        let Some(crowd) = crowd_of(&mut self.rivals, &mut self.follow) else { return };
        let (node, wanted, depth) = (offer.peer.node, crowd.wanted, crowd.search.depth().unwrap_or(0));
        let neighbours = std::sync::Arc::clone(&crowd.neighbours);
        if self.settle().await.is_err() {
            return;
        }
        let pulled = neighbours.pull_arriving(&offer, wanted, received).await;
        let arrived = match pulled {
            Ok(arrived) if arrived.from == received && arrived.total == self.total => arrived,
            other => {
                if let Some(crowd) = crowd_of(&mut self.rivals, &mut self.follow) {
                    match other {
                        Ok(_) => crowd.search.avoid(node),
                        Err(error) => {
                            tracing::debug!(%error, "another node goes first and gives nothing");
                            crowd.failed(node, &error);
                        }
                    }
                }
                return;
            }
        };
        tracing::debug!(url = %self.case.want.target, peer.node = %node, "another node goes first");
        self.finding = None;
        let now = self.engine.0.clock.instant();
        if let Some(crowd) = self.rivals.take() {
            let trust = self.engine.0.config.load().trust;
            let mut follow = Follow::new(crowd, offer.clone(), &stand, trust, now);
            // what is here is the origin's own
            follow.board.set_own(Some(0));
            self.follow = Some(follow);
        }
        drop(self.weigh());
        if let Some(follow) = &mut self.follow {
            follow.board.set_own(None);
            follow.reads(Some(offer.clone()), now);
        }
        let root = offer.holding.partial.as_ref().map_or(node, |partial| partial.root);
        stand.read(root, depth);
        self.switch(Source { body: arrived.body, from: From::Peer, offer: Some(offer.into()) });
    }
}
