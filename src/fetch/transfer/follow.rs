//! Reading from a node that is itself still receiving: what of it is proved, and by whom.
//!
//! The node that has the bytes from the origin is asked again and again what its pieces are, and answers as they come;
//! it may be another one than the one read from. A piece that agrees goes out to clients, one that does not stops the transfer
//! before it does. The whole is right when all pieces are proved, or when its digest is stated by a node that had
//! all of it from the origin: the word of whoever only passed it on does not count.

use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;

use super::Transfer;
use super::pump::Stop;
use crate::digest::Digest;
use crate::discovery::{Offer, Wanted};
use crate::fetch::crowd::Crowd;
use crate::fetch::neighbours::Neighbours;
use crate::fetch::settings::{Release, Trust};
use crate::fetch::stand::Stand;
use crate::peer::ResourceHead;
use crate::store::{Hold, PIECE_SIZE, PieceHash};
use crate::swarm::Board;
use crate::tls::NodeId;

/// How often it is asked at most.
const EVERY: Duration = Duration::from_millis(100);
/// So many pieces of which nobody can speak any more are asked of the origin beside the transfer.
const GAP: u64 = 16;
/// How often at the end, and how long at most, before the rest comes from the origin.
const AT_THE_END: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(3);
/// What waits for the whole in any case.
const TAIL: u64 = 64 * 1024;
/// So far ahead the root must be before its reader is taken for slow, and not for up to date.
const LAG: u64 = 8 * 1024 * 1024;

/// So long a source may be silent before it is asked whether it is alive, and so long it may have nothing to give.
const SILENT: Duration = Duration::from_secs(2);
const STARVED: Duration = Duration::from_secs(30);

/// Hashes of what the origin sends once more, in the making.
pub(super) struct Check {
    /// The piece they begin with, and what is here.
    pub(super) first: u64,
    pub(super) here: Vec<PieceHash>,
    pub(super) theirs: Pin<Box<dyn Future<Output = Result<Vec<PieceHash>, String>> + Send>>,
    /// All that follows on them comes from the origin.
    pub(super) to_end: bool,
}

/// A transfer's part in the crowd.
pub(in crate::fetch) struct Follow {
    pub(super) crowd: Crowd,
    pub(super) stand: Arc<Stand>,
    pub(super) board: Board,
    /// Whom the bytes come from now.
    source: Option<Offer>,
    root: Option<Offer>,
    /// Pieces count as proof.
    by_pieces: bool,
    /// The digest that a node states which had all of it from the origin.
    pub(super) stated: Option<(Digest, NodeId)>,
    asking: Option<Pin<Box<dyn Future<Output = Told> + Send>>>,
    next: Option<Instant>,
    /// How far the root is.
    received: u64,
    /// When the source last gave bytes, and when it last gave any sign of life.
    fed: Instant,
    alive: Instant,
    looking: Option<Pin<Box<dyn Future<Output = Option<u64>> + Send>>>,
    /// The origin is sending once more what nobody can say is right.
    pub(super) checking: Option<Check>,
    /// Pieces that the node which fetches now cannot speak for, nor anybody that did before it.
    pub(super) gap: Option<Range<u64>>,
}

/// What the root told.
struct Told {
    root: Option<Offer>,
    head: Option<ResourceHead>,
}

impl Follow {
    pub(in crate::fetch) fn new(
        crowd: Crowd,
        source: Offer,
        stand: &Arc<Stand>,
        trust: Trust,
        now: Instant,
    ) -> Self {
        Self {
            crowd,
            stand: Arc::clone(stand),
            board: Board::default(),
            root: None,
            source: Some(source),
            by_pieces: trust == Trust::Witness,
            stated: None,
            asking: None,
            next: None,
            received: 0,
            fed: now,
            alive: now,
            looking: None,
            checking: None,
            gap: None,
        }
    }

    /// From now on the bytes come from this node, or none: from the origin.
    pub(super) fn reads(&mut self, source: Option<Offer>, now: Instant) {
        (self.source, self.root, self.asking, self.next) = (source, None, None, None);
        (self.fed, self.alive, self.looking) = (now, now, None);
    }

    /// Bytes came.
    pub(super) fn fed(&mut self, now: Instant) {
        (self.fed, self.alive, self.looking) = (now, now, None);
    }

    /// Whether the source is gone: silent itself, and not for want of bytes from its own.
    pub(super) fn is_gone(&mut self, here: u64, now: Instant) -> bool {
        let Some(source) = &self.source else { return false };
        if now.duration_since(self.fed) >= STARVED {
            return true;
        }
        if let Some(looking) = &mut self.looking {
            let Some(received) = looking.now_or_never() else { return false };
            (self.looking, self.alive) = (None, now);
            return received.is_none_or(|received| received > here);
        }
        if now.duration_since(self.alive) >= SILENT {
            let (neighbours, source) = (Arc::clone(&self.crowd.neighbours), source.clone());
            let key = self.crowd.key();
            self.looking = Some(Box::pin(async move {
                let told = neighbours.told(&source, key, u64::MAX).await.ok()?;
                Some(told.arriving?.received)
            }));
        }
        false
    }

    /// Whether the bytes come from a node that receives them itself.
    pub(super) fn is_reading(&self) -> bool {
        self.source.is_some()
    }

    pub(super) fn source(&self) -> Option<NodeId> {
        self.source.as_ref().map(|offer| offer.peer.node)
    }

    /// What may go out, where proved pieces do; none where they do not count.
    pub(super) fn hold(&self, total: Option<u64>, release: Release) -> Option<Hold> {
        let total = total.filter(|_| self.by_pieces && release == Release::Auto)?;
        let proved = self.board.proved().saturating_mul(PIECE_SIZE);
        Some(Hold::After(proved.min(total.saturating_sub(TAIL))))
    }

    /// Begins to ask where it is time; gives what was told, if it was.
    fn ask(&mut self, now: Instant) {
        let due = self.next.is_none_or(|next| next <= now);
        if self.asking.is_some() || !due || !self.by_pieces {
            return;
        }
        let Some(source) = self.source.clone() else { return };
        let (neighbours, wanted, key) =
            (Arc::clone(&self.crowd.neighbours), self.crowd.wanted, self.crowd.key());
        let (root, from) = (self.root.clone(), self.board.next_unstated());
        self.asking = Some(Box::pin(ask_root(neighbours, wanted, key, source, root, from)));
        self.next = Some(now + EVERY);
    }

    fn note(&mut self, told: Told) {
        self.asking = None;
        self.root = told.root;
        let Some((by, head)) = self.root.as_ref().map(|root| root.peer.node).zip(told.head) else { return };
        // whoever reads from here asks this node who that is, and may have known another one that is gone
        self.stand.set_root(by);
        if let Some(digest) = head.digest.filter(|_| head.first_hand) {
            self.stated = Some((digest, by));
        }
        if let Some(arriving) = head.arriving {
            self.received = arriving.received;
            let (next, first) = (self.board.next_unstated(), arriving.pieces.0);
            self.gap =
                (!arriving.pieces.1.is_empty() && first > next && first - next <= GAP).then_some(next..first);
            self.board.state(by, arriving.pieces.0, &arriving.pieces.1);
        }
    }

    /// Waits until something was told.
    pub(super) async fn told(&mut self) {
        match &mut self.asking {
            Some(asking) => {
                let told = asking.await;
                self.note(told);
            }
            None => std::future::pending().await,
        }
    }
}

/// Asks the root, which the node read from names.
async fn ask_root(
    neighbours: Arc<Neighbours>,
    wanted: Wanted,
    key: [u8; 32],
    source: Offer,
    root: Option<Offer>,
    from: u64,
) -> Told {
    if let Some(root) = root
        && let Ok(head) = neighbours.told(&root, key, from).await
    {
        return Told { root: Some(root), head: Some(head) };
    }
    let nothing = Told { root: None, head: None };
    let Ok(head) = neighbours.told(&source, key, from).await else { return nothing };
    let named = head.arriving.as_ref().map(|arriving| arriving.root);
    let is_source = named.is_none_or(|node| node == source.peer.node);
    match named.filter(|_| !is_source) {
        None => Told { root: Some(source), head: Some(head) },
        Some(node) => {
            let Some(root) = neighbours.ask_one(node, wanted).await else { return nothing };
            let head = neighbours.told(&root, key, from).await.ok();
            Told { root: Some(root), head }
        }
    }
}

impl Transfer {
    /// What was told meanwhile counts before further bytes are taken.
    pub(super) fn hear_root(&mut self) -> Option<Stop> {
        let (now, here) = (self.engine.0.clock.instant(), self.writer.received());
        let follow = self.follow.as_mut()?;
        if let Some(check) = &mut follow.checking {
            let theirs = check.theirs.as_mut().now_or_never()?;
            return self.checked(theirs);
        }
        if !follow.is_reading() {
            return None;
        }
        if follow.is_gone(here, now) {
            return Some(Stop::Broken("the neighbour was silent for too long".to_owned()));
        }
        follow.ask(now);
        let told = follow.asking.as_mut().and_then(|asking| asking.now_or_never())?;
        follow.note(told);
        let stop = self.weigh();
        if stop.is_none() {
            self.ask_for_gap();
        }
        stop
    }

    /// Compares what is here with what was told of it.
    pub(super) fn weigh(&mut self) -> Option<Stop> {
        self.weigh_with(None)
    }

    /// The same; once the whole is here its last piece counts too, short as it may be.
    fn weigh_with(&mut self, last: Option<PieceHash>) -> Option<Stop> {
        let follow = self.follow.as_mut()?;
        let at = usize::try_from(follow.board.proved()).unwrap_or(usize::MAX);
        let mut here = self.running.growing().pieces(at);
        // it comes next, unless it was proved before
        here.extend(last.filter(|_| follow.board.proved() <= self.writer.received() / PIECE_SIZE));
        let judged = follow.board.judge(&here);
        if let Some(by) = judged.wrong {
            return Some(Stop::Wrong(by));
        }
        if let Some(hold) = follow.hold(self.total, self.engine.0.config.load().release) {
            self.writer.hold(self.engine.hold_for_blocks(hold));
        }
        None
    }

    /// Whether a neighbour that is slow is so by itself, and not because its own source is.
    pub(super) fn is_left_behind(&self) -> bool {
        let lags = |follow: &Follow| follow.received > self.writer.received() + LAG;
        self.follow.as_ref().filter(|follow| follow.is_reading()).is_none_or(lags)
    }

    /// Whether the whole is what those have who had it from the origin. Waits a little for their word.
    pub(super) async fn is_proved(&mut self, found: Digest) -> Result<bool, Stop> {
        let until = self.engine.0.clock.instant() + PATIENCE;
        let last = self.writer.last_piece().await;
        loop {
            if let Some(stop) = self.weigh_with(last) {
                return Err(stop);
            }
            let now = self.engine.0.clock.instant();
            let received = self.writer.received();
            let Some(follow) = self.follow.as_mut() else { return Ok(true) };
            if let Some((stated, by)) = follow.stated {
                return if stated == found { Ok(true) } else { Err(Stop::Wrong(by)) };
            }
            if follow.board.proved() >= received.div_ceil(PIECE_SIZE) {
                return Ok(true);
            }
            if let Some(check) = &mut follow.checking {
                let theirs = check.theirs.as_mut().await;
                if let Some(stop) = self.checked(theirs) {
                    return Err(stop);
                }
                continue;
            }
            if now >= until || !follow.is_reading() {
                return Ok(false);
            }
            follow.next = None;
            follow.ask(now);
            if tokio::time::timeout(until - now, follow.told()).await.is_err() {
                return Ok(false);
            }
            tokio::time::sleep(AT_THE_END).await;
        }
    }
}
