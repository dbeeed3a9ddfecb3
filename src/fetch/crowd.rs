//! The crowd that wants what this node wants: the pure [`Search`] with its ears and its mouth.
//!
//! [`Crowd::meet`] ends with one of three: somebody holds it whole, somebody receives it and has room for a reader, or
//! this node goes to the origin and the others wait for it. From there [`Crowd::looked`] goes on looking.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;

use super::neighbours::Neighbours;
use super::stand::Stand;
use crate::clock::SharedClock;
use crate::discovery::{Finding, Heard, Offer, Wanted};
use crate::peer::PullError;
use crate::swarm::{Next, Search};
use crate::tls::NodeId;

/// How often something found turns out to be of no use before this node goes to the origin.
pub(super) const TRIES: usize = 8;

/// The pause between two looks where nothing can be heard.
const PAUSE: Duration = Duration::from_millis(20);

/// One node's view of the crowd around one thing.
pub(super) struct Crowd {
    pub(super) neighbours: Arc<Neighbours>,
    pub(super) wanted: Wanted,
    clock: SharedClock,
    pub(super) search: Search,
    /// At the origin: a node that is asked where it stands, who answers a question to all, and when to look again.
    asking: Option<(NodeId, Finding)>,
    finding: Option<Finding>,
    wake: Instant,
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

/// The name of a thing among the nodes.
fn key_of(wanted: &Wanted) -> [u8; 32] {
    match wanted {
        Wanted::Url(url) => *url.as_bytes(),
        Wanted::Blob(digest) => *digest.as_bytes(),
        Wanted::Stated(key) => *key.as_bytes(),
    }
}

impl Crowd {
    pub(super) fn new(neighbours: Arc<Neighbours>, wanted: Wanted, clock: SharedClock) -> Self {
        let now = clock.instant();
        let search = Search::new(neighbours.me(), key_of(&wanted), now);
        Self { neighbours, wanted, clock, search, asking: None, finding: None, wake: now }
    }

    /// The name of the thing among the nodes.
    pub(super) fn key(&self) -> [u8; 32] {
        key_of(&self.wanted)
    }

    /// Claims the thing: what is heard from now on comes through the finding.
    pub(super) fn claim(&mut self) -> Finding {
        // discovery says when all have been heard; the window only guards against one that says nothing
        let window = self.neighbours.patience() * 2;
        self.search.claim(self.clock.instant(), window);
        (self.asking, self.finding) = (None, None);
        self.neighbours.claim(self.wanted, self.search.depth())
    }

    /// A node that was found gave nothing: one that is full may have room soon.
    pub(super) fn failed(&mut self, node: NodeId, why: &PullError) {
        let now = self.clock.instant();
        if matches!(why, PullError::Busy | PullError::AskAgain) {
            self.search.refused(node, now);
        } else {
            self.search.shun(node, now);
        }
        self.wake = now;
    }

    /// The same, on the way through; without an error it is of no use to this node, and stays so.
    pub(super) fn without(mut self, node: NodeId, why: Option<PullError>) -> Self {
        match why {
            Some(why) => self.failed(node, &why),
            None => self.search.avoid(node),
        }
        self
    }

    /// Waits for what comes of the claim; what else is heard stays in `finding`. Where this node goes, it stands there
    /// when this ends.
    pub(super) async fn meet(&mut self, finding: &mut Finding, stand: &Stand) -> Met {
        let met = self.follow_search(finding, stand).await;
        tracing::debug!(what = %met, "a claim came to its end");
        if matches!(met, Met::Go) {
            self.search.fetch(self.clock.instant());
        }
        met
    }

    async fn follow_search(&mut self, finding: &mut Finding, stand: &Stand) -> Met {
        // whether the others have been told that this node goes
        let mut is_told = false;
        loop {
            let now = self.clock.instant();
            let next = self.search.next(now);
            if is_told && next != Next::Go {
                is_told = false;
                self.take_back(stand);
            }
            match next {
                Next::Go if is_told => return Met::Go,
                Next::Go => {
                    // whoever claims from here on is told; whoever did before and goes first has been heard by now
                    is_told = true;
                    stand.fetch(self.search.depth().unwrap_or(0));
                    finding.catch_up().await;
                    while let Some(Some(heard)) = finding.heard().now_or_never() {
                        self.hear(heard);
                    }
                }
                Next::Read(offer) if offer.holding.partial.is_none() => return Met::Holders(vec![*offer]),
                Next::Read(offer) => return Met::Running(offer),
                Next::Ask(node) => {
                    let offer = self.neighbours.ask_one(node, self.wanted).await;
                    self.answered(node, offer);
                }
                Next::Everybody => *finding = self.neighbours.claim(self.wanted, self.search.depth()),
                Next::Wait(until) => {
                    let pause = until.saturating_duration_since(now);
                    match tokio::time::timeout(pause, finding.heard()).await {
                        Ok(Some(heard)) => self.hear(heard),
                        // nothing more can be heard
                        Ok(None) => {
                            self.search.decided(self.clock.instant());
                            tokio::time::sleep(pause.min(PAUSE)).await;
                        }
                        Err(_elapsed) => {}
                    }
                }
            }
        }
    }

    /// This node does not go after all.
    fn take_back(&self, stand: &Stand) {
        match self.search.place() {
            Some(_) => stand.search(),
            None => stand.lose(),
        }
    }

    /// What was heard of the thing, before this node goes or after.
    pub(super) fn hear(&mut self, heard: Heard) {
        let now = self.clock.instant();
        match heard {
            Heard::Claim(claimant) => self.search.hear(claimant, now),
            Heard::Decided => self.search.decided(now),
            Heard::Offer(offer) => self.search.offered(offer, false, now),
        }
        self.wake = now;
    }

    fn answered(&mut self, node: NodeId, offer: Option<Offer>) {
        let now = self.clock.instant();
        match offer {
            Some(offer) => self.search.offered(offer, true, now),
            None => self.search.silent(node, now),
        }
    }

    /// At the origin: somebody to whom this node may leave it. Dropping the future loses nothing.
    pub(super) async fn looked(&mut self) -> Offer {
        loop {
            if let Some((node, finding)) = &mut self.asking {
                let (node, offers) = (*node, finding.decided().await);
                self.asking = None;
                self.answered(node, offers.into_iter().find(|offer| offer.peer.node == node));
            }
            let now = self.clock.instant();
            match self.search.next(now) {
                Next::Read(offer) => return *offer,
                Next::Ask(node) => {
                    self.asking = Some((node, self.neighbours.ask_at(node, self.wanted)));
                }
                Next::Everybody => self.finding = Some(self.neighbours.ask(self.wanted)),
                Next::Wait(until) => {
                    self.wake = until;
                    tokio::select! {
                        () = tokio::time::sleep(until.saturating_duration_since(now)) => {}
                        heard = heard(&mut self.finding) => match heard {
                            Some(heard) => self.hear(heard),
                            None => self.finding = None,
                        },
                    }
                }
                // only a claim ends so
                Next::Go => std::future::pending().await,
            }
        }
    }

    /// The same while bytes come without a pause.
    pub(super) fn look(&mut self) -> Option<Offer> {
        let is_due = self.asking.is_some() || self.finding.is_some() || self.clock.instant() >= self.wake;
        if is_due { self.looked().now_or_never() } else { None }
    }
}

impl std::fmt::Debug for Crowd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crowd")
            .field("wanted", &self.wanted)
            .field("search", &self.search)
            .finish_non_exhaustive()
    }
}

async fn heard(finding: &mut Option<Finding>) -> Option<Heard> {
    match finding {
        Some(finding) => finding.heard().await,
        None => std::future::pending().await,
    }
}
