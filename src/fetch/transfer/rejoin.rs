//! The node read from is gone, wrong or silent: another one of the crowd, or this node goes to the origin for all.

use std::ops::Range;

use http::StatusCode;

use super::follow::Check;
use super::pump::Stop;
use super::takeover::Trouble;
use super::{Source, Transfer};
use crate::discovery::{Offer, Wanted};
use crate::fetch::crowd::{Met, TRIES};
use crate::fetch::ledger::From;
use crate::fetch::offer::Offer as Lent;
use crate::fetch::origin_side::{Missing, Rest, Upstream};
use crate::fetch::piece::Pieces;
use crate::fetch::want::drop_conditions;
use crate::range::ContentRange;
use crate::store::{Failure, PIECE_SIZE, PieceHash, PieceHasher};
use crate::tls::NodeId;

/// The origin is asked for so many proved pieces once more: those that read from here may not have heard of them
/// from the node that is gone.
const AGAIN: u64 = 1;

impl Transfer {
    /// Finds another source in the crowd, at the byte reached.
    pub(super) async fn rejoin(&mut self, why: &str) -> Result<(), Failure> {
        self.settle().await?;
        let now = self.engine.0.clock.instant();
        let Some(follow) = &mut self.follow else { return self.go_on_at_origin_or_fail(why).await };
        follow.checking = None;
        if let Some(gone) = follow.source() {
            follow.crowd.search.shun(gone, now);
        }
        // whoever reads from here waits for what comes of it
        follow.stand.search();
        follow.reads(None, now);
        let mut finding = follow.crowd.claim();
        for _ in 0..TRIES {
            let growing = self.running.growing().clone();
            let Some(follow) = &mut self.follow else { break };
            let met = tokio::select! {
                met = follow.crowd.meet(&mut finding, &follow.stand) => met,
                () = super::pump::deserted(&growing) => return Err(Failure::Abandoned),
            };
            match met {
                Met::Go => break,
                Met::Running(offer) => {
                    if self.go_on_with(*offer).await {
                        return Ok(());
                    }
                }
                Met::Holders(offers) => {
                    for offer in offers {
                        if self.go_on_with(offer).await {
                            return Ok(());
                        }
                    }
                }
            }
        }
        let now = self.engine.0.clock.instant();
        if let Some(follow) = &mut self.follow {
            follow.crowd.search.fetch(now);
            follow.stand.fetch(follow.crowd.search.depth().unwrap_or(0));
        }
        self.go_on_at_origin_or_fail(why).await
    }

    /// Reads on from another node of the crowd; false if it cannot.
    async fn go_on_with(&mut self, offer: Offer) -> bool {
        let (Some(follow), received) = (&mut self.follow, self.writer.received()) else { return false };
        let node = offer.peer.node;
        let pulled = follow.crowd.neighbours.pull_arriving(&offer, follow.crowd.wanted, received).await;
        let arrived = match pulled {
            Ok(arrived) => arrived,
            Err(error) => {
                tracing::debug!(%error, peer.node = %node, "the rest cannot be read there");
                follow.crowd.failed(node, &error);
                return false;
            }
        };
        let version = self.running.version();
        let is_version = match offer.holding.partial {
            Some(_) => arrived.resource == Some(*version.as_bytes()),
            None => offer.holding.resource == Some(version),
        };
        let same_version = !matches!(follow.crowd.wanted, Wanted::Url(_)) || is_version;
        if !same_version || (self.total.is_some() && arrived.total != self.total) || arrived.from != received
        {
            follow.crowd.search.avoid(node);
            return false;
        }
        let now = self.engine.0.clock.instant();
        let partial = offer.holding.partial.as_ref();
        let root = partial.map_or(node, |partial| partial.root);
        follow.stand.read(root, follow.crowd.search.depth().unwrap_or(1));
        follow.reads(Some(offer.clone()), now);
        self.switch(Source { body: arrived.body, from: From::Peer, offer: Some(offer.into()) });
        true
    }

    /// A piece is not what the node says that had it from the origin: what is not proved goes back, and the origin
    /// says who was wrong.
    pub(super) async fn rejoin_after_wrong(&mut self, by: NodeId) -> Result<(), Failure> {
        self.settle().await?;
        let now = self.engine.0.clock.instant();
        let Some(follow) = &mut self.follow else { return Ok(()) };
        let (proved, source) = (follow.board.proved(), follow.source());
        tracing::warn!(url = %self.case.want.target, piece = proved, "a piece is not what its fetcher says it is");
        follow.stand.search();
        follow.reads(None, now);
        follow.board.forget();
        follow.stated = None;
        // where the bytes came from the very node that says they are others, it contradicts itself
        if source.is_none_or(|source| source == by) {
            follow.crowd.neighbours.distrust(by);
        }
        for node in source.into_iter().chain([by]) {
            follow.crowd.search.avoid(node);
        }
        let offset = self.proved_bytes();
        if self.writer.released() > offset {
            return Err(Failure::Digest);
        }
        self.rewind(offset).await?;
        self.rejoin("wrong bytes").await
    }

    /// The origin goes on at the byte reached. What came since the proof ends is sent once more beside it, and
    /// compared: from there on all is first-hand.
    pub(super) async fn go_on_first_hand(&mut self) -> Result<(), Trouble> {
        let received = self.writer.received();
        let answer = self.running.answer();
        let Some(tag) = answer.head.strong_etag().filter(|_| received > 0) else {
            return self.take_whole_first_hand(received).await;
        };
        let origin = self.engine.0.origin.clone();
        let missing = Missing { offset: received, until: None, tag: Some(tag) };
        let rest = self.upstream.rest(&origin, missing, false).await;
        match rest.map_err(|error| Trouble::Passing(error.to_string()))? {
            Rest::From(response, size) if self.total.is_none_or(|total| total == size) => {
                self.heed(response.headers()).await.map_err(Trouble::Final)?;
                self.set_total(Some(size));
                self.switch(Source { body: response.into_body(), from: From::Origin, offer: None });
                self.check_once_more(tag, received).await;
                Ok(())
            }
            Rest::From(..) => Err(Trouble::Final(Failure::Changed)),
            Rest::Whole(response) => {
                self.take_whole(response, received).await?;
                self.now_first_hand(0);
                Ok(())
            }
            Rest::Unusable(why) => Err(Trouble::Passing(why)),
        }
    }

    /// Asks the origin for what is here and not proved, and a little of what is.
    async fn check_once_more(&mut self, tag: &str, received: u64) {
        let first = self.follow.as_ref().map_or(0, |follow| follow.board.proved()).saturating_sub(AGAIN);
        let range = first.saturating_mul(PIECE_SIZE)..received;
        let mut here = self.running.growing().pieces(usize::try_from(first).unwrap_or(usize::MAX));
        here.extend(self.writer.last_piece().await);
        let (upstream, origin) = (self.upstream.clone(), self.engine.0.origin.clone());
        let tag = tag.to_owned();
        let theirs = Box::pin(async move { hashes_of(upstream, origin, range, tag).await });
        if let Some(follow) = &mut self.follow {
            follow.checking = Some(Check { first, here, theirs, to_end: true });
        }
    }

    /// Asks the origin for the few pieces that the node which fetches now cannot speak for.
    pub(super) fn ask_for_gap(&mut self) {
        let received = self.writer.received();
        let Some(follow) = &mut self.follow else { return };
        let Some(gap) = follow.gap.take_if(|gap| gap.end.saturating_mul(PIECE_SIZE) <= received) else {
            return;
        };
        let (answer, growing) = (self.running.answer(), self.running.growing());
        let count = usize::try_from(gap.end - gap.start).unwrap_or(usize::MAX);
        let mut here = growing.pieces(usize::try_from(gap.start).unwrap_or(usize::MAX));
        here.truncate(count);
        let Some(tag) =
            answer.head.strong_etag().filter(|_| follow.checking.is_none() && here.len() == count)
        else {
            return;
        };
        tracing::debug!(pieces = ?gap, "nobody can say any more what some pieces must be: the origin is asked");
        let range = gap.start.saturating_mul(PIECE_SIZE)..gap.end.saturating_mul(PIECE_SIZE);
        let (upstream, origin, tag) = (self.upstream.clone(), self.engine.0.origin.clone(), tag.to_owned());
        let theirs = Box::pin(hashes_of(upstream, origin, range, tag));
        follow.checking = Some(Check { first: gap.start, here, theirs, to_end: false });
    }

    /// The origin sent it once more.
    pub(super) fn checked(&mut self, theirs: Result<Vec<PieceHash>, String>) -> Option<Stop> {
        let check = self.follow.as_mut()?.checking.take()?;
        match theirs {
            Ok(theirs) if theirs == check.here && check.to_end => {
                self.now_first_hand(check.first);
                None
            }
            Ok(theirs) if theirs == check.here => {
                let follow = self.follow.as_mut()?;
                follow.board.state(follow.crowd.neighbours.me(), check.first, &theirs);
                self.weigh()
            }
            // what those said who had it from the origin before was true then
            Ok(theirs) if self.contradicts_proof(&check, &theirs) => Some(Stop::Changed),
            Ok(_) => Some(Stop::Unproved),
            Err(error) => {
                tracing::debug!(%error, "what a neighbour sent cannot be compared with the origin's");
                Some(Stop::Unproved)
            }
        }
    }

    /// Whether the origin sends something else where what is here is proved.
    fn contradicts_proof(&self, check: &Check, theirs: &[PieceHash]) -> bool {
        let proved = self.follow.as_ref().map_or(0, |follow| follow.board.proved());
        let count = usize::try_from(proved.saturating_sub(check.first)).unwrap_or(usize::MAX);
        let mut both = check.here.iter().zip(theirs).take(count);
        both.any(|(here, theirs)| here != theirs)
    }

    async fn take_whole_first_hand(&mut self, received: u64) -> Result<(), Trouble> {
        let answer = self.running.answer();
        let whole = Missing { offset: 0, until: None, tag: answer.head.strong_etag() };
        let rest = self.upstream.rest(&self.engine.0.origin.clone(), whole, false).await;
        match rest.map_err(|error| Trouble::Passing(error.to_string()))? {
            Rest::Whole(response) if response.status() == StatusCode::OK => {
                self.take_whole(response, received).await?;
                self.now_first_hand(0);
                Ok(())
            }
            Rest::Whole(_) | Rest::From(..) | Rest::Unusable(_) => {
                Err(Trouble::Passing("the origin did not send the whole".to_owned()))
            }
        }
    }

    /// From this piece on everything here is the origin's own.
    fn now_first_hand(&mut self, piece: u64) {
        if let Some(follow) = &mut self.follow {
            follow.board.set_own(Some(piece));
            follow.stand.begin_first_hand(piece);
        }
        drop(self.weigh());
    }

    /// Whether the transfer is read from a node of the crowd, and judged by what those say who fetched it.
    pub(super) fn is_judged_by_pieces(&self) -> bool {
        self.follow.is_some() && !self.judge.is_set() && !self.used.is_empty()
    }

    /// Nobody could say of some pieces what they are: the origin sends them.
    pub(super) async fn take_back_unproved(&mut self) -> Result<(), Failure> {
        self.settle().await?;
        let offset = self.proved_bytes();
        if self.writer.released() <= offset && offset < self.writer.received() {
            self.rewind(offset).await?;
        }
        self.rejoin("nobody could say what the rest must be").await
    }

    /// So many bytes from the first on are the origin's, or proved to be.
    fn proved_bytes(&self) -> u64 {
        let proved = self.follow.as_ref().map_or(0, |follow| follow.board.proved());
        proved.saturating_mul(PIECE_SIZE).max(self.mark.unwrap_or(0)).min(self.writer.received())
    }

    /// The names under which neighbours ask for it.
    pub(super) fn names(&self) -> [[u8; 32]; 2] {
        [self.case.flight_key().name(), *self.running.version().as_bytes()]
    }

    /// The stand of this node changes with its source.
    pub(super) fn stand_changes(&self, offer: Option<&Lent>) {
        let Some(stand) = &self.stand else { return };
        let received = self.writer.received();
        match (offer, &self.follow) {
            (Some(_), Some(_)) => stand.end_first_hand(received / PIECE_SIZE),
            (Some(offer), None) => {
                stand.end_first_hand(received / PIECE_SIZE);
                stand.read_from(offer);
            }
            (None, None) => {
                stand.fetch(u8::from(!self.used.is_empty()));
                if !self.used.is_empty() {
                    stand.begin_first_hand(received.div_ceil(PIECE_SIZE));
                }
            }
            // whoever takes over in a crowd says so itself
            (None, Some(_)) => {}
        }
    }
}

/// The hashes of what the origin sends of this range.
async fn hashes_of(
    mut upstream: Upstream,
    origin: crate::origin::Origin,
    range: Range<u64>,
    tag: String,
) -> Result<Vec<PieceHash>, String> {
    drop_conditions(&mut upstream.headers);
    let piece = Missing { offset: range.start, until: Some(range.end), tag: Some(&tag) };
    let sent = upstream.send(&origin, http::Method::GET, piece.fields()).await;
    let response = sent.map_err(|error| error.to_string())?;
    let told = response.headers().get(http::header::CONTENT_RANGE);
    let told = told.and_then(|field| ContentRange::parse(field.to_str().ok()?));
    if response.status() != StatusCode::PARTIAL_CONTENT || told.is_none_or(|told| told.bytes != range) {
        return Err("the origin sent another range".to_owned());
    }
    let (mut pieces, mut theirs) = (Pieces::new(response.into_body()), PieceHasher::default());
    while let Some(piece) = pieces.next().await.map_err(|error| error.to_string())? {
        theirs.update(&piece);
    }
    Ok(theirs.all())
}
