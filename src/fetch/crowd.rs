//! The crowd that wants what this node wants: a claim, what is heard while it is open, and what comes of it.
//!
//! [`Crowd::meet`] ends with one of three: somebody holds it whole, somebody receives it and has room for a reader, or
//! this node goes to the origin and the others wait for it. It ends in any case, after a second and a half at most:
//! when in doubt this node goes.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;

use super::neighbours::Neighbours;
use super::stand::Stand;
use crate::clock::SharedClock;
use crate::discovery::{Finding, Heard, Offer, Wanted};
use crate::swarm::{Claim, Place, Rank, Step};
use crate::tls::NodeId;

/// How long a node looks for somebody to read from where it knows that the thing is on its way.
const LONGEST: Duration = Duration::from_millis(1500);
/// The pause before a node that has nothing yet is asked again, and how often it is asked.
const AGAIN: Duration = Duration::from_millis(20);
const TRIES: u8 = 12;
/// How many nodes are waiting to be asked.
const QUEUED: usize = 32;

/// One node's view of the crowd around one thing.
#[derive(Debug)]
pub(super) struct Crowd {
    pub(super) neighbours: Arc<Neighbours>,
    pub(super) wanted: Wanted,
    clock: SharedClock,
    /// Where this node stands; it reads from lower places only.
    pub(super) place: Option<Place>,
    /// Those that failed this node.
    avoid: HashSet<NodeId>,
}

/// What came of a claim.
#[derive(Debug)]
pub(super) enum Met {
    /// This node goes to the origin.
    Go,
    /// These hold it whole.
    Holders(Vec<Offer>),
    /// This one receives it, and this node may read from it.
    Running(Box<Offer>),
}

impl std::fmt::Display for Met {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Go => f.write_str("this node goes"),
            Self::Holders(_) => f.write_str("somebody holds it"),
            Self::Running(offer) => write!(f, "{} receives it", offer.peer.node),
        }
    }
}

impl Crowd {
    pub(super) fn new(neighbours: Arc<Neighbours>, wanted: Wanted, clock: SharedClock) -> Self {
        Self { neighbours, wanted, clock, place: None, avoid: HashSet::new() }
    }

    /// The name of the thing among the nodes.
    pub(super) fn key(&self) -> [u8; 32] {
        match self.wanted {
            Wanted::Url(url) => *url.as_bytes(),
            Wanted::Blob(digest) => *digest.as_bytes(),
            Wanted::Stated(key) => *key.as_bytes(),
        }
    }

    /// This node is not read from again.
    pub(super) fn avoid(&mut self, node: NodeId) {
        self.avoid.insert(node);
    }

    /// Whether this node, where it stands, may read from one at this depth.
    pub(super) fn reads_from(&self, node: NodeId, depth: u8) -> bool {
        let rank = Rank::of(node, &self.key());
        self.place.is_none_or(|place| place.reads_from(depth, rank))
    }

    /// This node begins to read from one at this depth; false where the tree is too deep. Its place stays.
    pub(super) fn settle(&mut self, depth: u8) -> bool {
        if self.place.is_none() {
            self.place = Place::below(depth, self.neighbours.me(), &self.key());
        }
        self.place.is_some()
    }

    /// This node goes to the origin.
    fn settle_as_root(&mut self) {
        self.place.get_or_insert(Place::root(self.neighbours.me(), &self.key()));
    }

    /// Claims the thing and waits for what comes of it; what else is heard stays in `finding`. Where this node goes,
    /// it stands there when this ends.
    pub(super) async fn meet(&mut self, finding: &mut Finding, stand: &Stand) -> Met {
        let met = self.search(finding, stand).await;
        tracing::debug!(what = %met, "a claim came to its end");
        if matches!(met, Met::Go) {
            self.settle_as_root();
        }
        met
    }

    async fn search(&self, finding: &mut Finding, stand: &Stand) -> Met {
        let mut search = Search::new(self, self.clock.instant());
        loop {
            let now = self.clock.instant();
            match search.next(now) {
                Next::Met(Met::Go) => {
                    // whoever claims from here on is told; whoever did before and goes first has been heard by now
                    stand.fetch(self.place.map_or(0, |place| place.depth));
                    finding.catch_up().await;
                    while let Some(Some(heard)) = finding.heard().now_or_never() {
                        search.hear(heard, now);
                    }
                    if search.is_sure(now) {
                        return Met::Go;
                    }
                    stand.lose();
                }
                Next::Met(met) => return met,
                Next::Ask(node) => {
                    let offer = self.neighbours.ask_one(node, self.wanted).await;
                    search.answered(node, offer, self.clock.instant());
                }
                Next::Wait(until) => {
                    let pause = until.saturating_duration_since(now);
                    match tokio::time::timeout(pause, finding.heard()).await {
                        Ok(Some(heard)) => search.hear(heard, self.clock.instant()),
                        // nothing more can be heard
                        Ok(None) => {
                            search.claim.close(self.clock.instant());
                            let left = until.saturating_duration_since(self.clock.instant());
                            tokio::time::sleep(left.min(AGAIN)).await;
                        }
                        Err(_elapsed) => {}
                    }
                }
            }
        }
    }
}

/// What a search does next.
enum Next {
    Met(Met),
    Ask(NodeId),
    Wait(Instant),
}

/// One claim from its frame to its end.
struct Search<'a> {
    crowd: &'a Crowd,
    claim: Claim,
    until: Instant,
    found: Option<Met>,
    /// Somebody receives it: whoever does outranks any claim.
    runs: bool,
    /// Nodes to be asked by name, and from when on.
    queue: VecDeque<(NodeId, Instant)>,
    tries: HashMap<NodeId, u8>,
}

impl<'a> Search<'a> {
    fn new(crowd: &'a Crowd, now: Instant) -> Self {
        let neighbours = &crowd.neighbours;
        // discovery says when all have been heard; the window only guards against one that says nothing
        let window = neighbours.patience() * 2;
        // whoever goes first may itself wait that long for those that are silent
        let claim = Claim::new(neighbours.me(), crowd.key(), now, window, window);
        let (queue, tries) = (VecDeque::new(), HashMap::new());
        Self { crowd, claim, until: now + LONGEST, found: None, runs: false, queue, tries }
    }

    fn next(&mut self, now: Instant) -> Next {
        if let Some(met) = self.found.take() {
            return Next::Met(met);
        }
        if now >= self.until {
            return Next::Met(Met::Go);
        }
        if self.runs && !self.queue.is_empty() {
            let due = self.queue.iter().position(|(_, time)| *time <= now);
            return match due.and_then(|at| self.queue.remove(at)) {
                Some((node, _)) => Next::Ask(node),
                None => Next::Wait(self.queue.iter().map(|(_, time)| *time).min().unwrap_or(self.until)),
            };
        }
        match self.claim.step(now) {
            Step::Go => Next::Met(Met::Go),
            Step::Ask(node) => Next::Ask(node),
            Step::Wait(until) => Next::Wait(until.min(self.until)),
        }
    }

    /// Whether this node still goes, after all that was heard.
    fn is_sure(&mut self, now: Instant) -> bool {
        let nobody = self.found.is_none() && (!self.runs || self.queue.is_empty());
        now >= self.until || (nobody && self.claim.step(now) == Step::Go)
    }

    fn hear(&mut self, heard: Heard, now: Instant) {
        match heard {
            Heard::Claim(node) if self.crowd.avoid.contains(&node) => {}
            Heard::Claim(node) => self.claim.hear(node),
            Heard::Decided => self.claim.close(now),
            Heard::Offer(offer) => self.weigh(offer, false, now),
        }
    }

    /// Somebody who was asked by name answered, or did not.
    fn answered(&mut self, node: NodeId, offer: Option<Offer>, now: Instant) {
        match offer {
            Some(offer) => self.weigh(offer, true, now),
            // a claimant is asked again by the claim's own rule
            None if self.tries.contains_key(&node) => self.queue_up(node, now + AGAIN),
            None => {}
        }
    }

    fn weigh(&mut self, offer: Offer, direct: bool, now: Instant) {
        let node = offer.peer.node;
        let Some(partial) = offer.holding.partial.clone() else {
            if offer.holding.complete && !offer.holding.busy && !self.crowd.avoid.contains(&node) {
                self.found = Some(Met::Holders(vec![offer]));
            }
            return;
        };
        let me = self.crowd.neighbours.me();
        let is_lower = self.crowd.reads_from(node, partial.depth);
        if partial.root == me || !is_lower || self.crowd.avoid.contains(&node) {
            self.claim.lose(node);
            return;
        }
        self.runs = true;
        // who has something of it cannot go deeper: it is let in where newcomers are not
        if offer.holding.busy && self.crowd.place.is_none() {
            partial.readers.iter().for_each(|reader| self.queue_up(*reader, now));
            if partial.readers.is_empty() {
                self.queue_up(node, now + AGAIN);
            }
        } else if direct || partial.root == node {
            self.found = Some(Met::Running(Box::new(offer)));
        } else {
            // it keeps a place for whoever asks it alone
            self.queue_up(node, now);
        }
    }

    fn queue_up(&mut self, node: NodeId, from: Instant) {
        let crowd = self.crowd;
        let waits = self.queue.iter().any(|(other, _)| *other == node);
        let tries = self.tries.entry(node).or_default();
        if waits || node == crowd.neighbours.me() || crowd.avoid.contains(&node) || *tries >= TRIES {
            return;
        }
        if self.queue.len() < QUEUED {
            *tries += 1;
            self.queue.push_back((node, from));
        }
    }
}
