//! Introducing discovery to the peer client: who holds a thing, whose word counts, how its bytes are read.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::measures::Measures;
use super::offer::{Lender, Offer, Way};
use crate::catalogue::{Catalogue, Known};
use crate::clock::SharedClock;
use crate::digest::Digest;
use crate::discovery::{self, Beyond, Discovery, Finding, Peer, Wanted};
use crate::http::{Body, StoredHead};
use crate::peer::{Arrived, Client, Holder, PullError, ResourceHead, Standing, order};
use crate::policy::{ResourceKey, UrlKey, Variance};
use crate::seal::Thing;
use crate::tls::NodeId;

/// The neighbours, once their keys are derived; a cheap clone.
#[derive(Debug, Clone)]
pub struct Neighbours {
    discovery: Discovery,
    client: Client,
    /// Where those are looked up whom no broadcast reaches.
    catalogue: Option<Catalogue>,
    /// Where it is noted how long their word takes.
    noted: Option<(Measures, SharedClock)>,
}

/// Who waits while neighbours are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Haste {
    /// A client.
    Client,
    /// Nobody: a download runs meanwhile.
    Beside,
}

impl Neighbours {
    /// Finds through `discovery`, reads through `client`.
    pub fn new(discovery: Discovery, client: Client) -> Self {
        Self { discovery, client, catalogue: None, noted: None }
    }

    /// The same; whom no broadcast reaches is looked up here.
    #[must_use]
    pub fn consulting(self, catalogue: Option<Catalogue>) -> Self {
        Self { catalogue, ..self }
    }

    /// The same, noting how long their word takes.
    #[must_use]
    pub(super) fn noting(self, measures: Measures, clock: SharedClock) -> Self {
        Self { noted: Some((measures, clock)), ..self }
    }

    /// Whether it is worth asking: somebody was heard lately.
    pub(super) fn heard_lately(&self) -> bool {
        self.discovery.heard_lately()
    }

    /// Whether it is worth asking for what is known by its digest.
    pub(super) fn can_be_asked(&self) -> bool {
        self.heard_lately() || self.catalogue.as_ref().is_some_and(Catalogue::is_open)
    }

    /// Whether a node is one of the site's, and can be reached by its own protocol.
    pub(super) fn knows(&self, node: NodeId) -> bool {
        self.discovery.peers().iter().any(|peer| peer.node == node)
    }

    /// The site's orders, as a node has them that proved itself; none where it is not known yet.
    pub async fn orders(&self, node: NodeId) -> Option<Result<Vec<u8>, PullError>> {
        let peers = self.discovery.peers();
        let peer = peers.iter().find(|peer| peer.node == node)?;
        Some(self.client.orders(&holder(peer)).await)
    }

    /// Asks who has it; answers come through the finding.
    pub(super) fn ask(&self, wanted: Wanted) -> Finding {
        self.discovery.find(wanted)
    }

    /// Who this node is to them.
    pub(super) fn me(&self) -> NodeId {
        self.client.node()
    }

    /// How long one of them may take to answer.
    pub(super) fn patience(&self) -> Duration {
        self.discovery.wait_max()
    }

    /// Asks who has it, and says that this node, which stands at this depth if anywhere, fetches it where nobody else
    /// does.
    pub(super) fn claim(&self, wanted: Wanted, depth: Option<u8>) -> Finding {
        self.discovery.claim(wanted, depth)
    }

    /// Asks one of them; none if it has nothing of it or is silent.
    pub(super) async fn ask_one(&self, node: NodeId, wanted: Wanted) -> Option<discovery::Offer> {
        self.ask_at(node, wanted).decided().await.into_iter().find(|offer| offer.peer.node == node)
    }

    /// The same, without waiting.
    pub(super) fn ask_at(&self, node: NodeId, wanted: Wanted) -> Finding {
        self.discovery.find_at(node, wanted)
    }

    /// What one of them says of a thing it is receiving.
    pub(super) async fn told(
        &self,
        offer: &discovery::Offer,
        key: [u8; 32],
        pieces: u64,
    ) -> Result<ResourceHead, PullError> {
        let told = self.client.head(&holder(&offer.peer), offer.grant, key, pieces).await;
        if let Err(PullError::Unreachable(_)) = &told {
            self.discovery.failed(offer.peer.node);
        }
        told
    }

    /// The bytes of a thing that one of them may still be receiving.
    pub(super) async fn pull_arriving(
        &self,
        offer: &discovery::Offer,
        wanted: Wanted,
        from: u64,
    ) -> Result<Arrived, PullError> {
        let thing = match wanted {
            // who has it whole gives it by its digest
            Wanted::Url(_) | Wanted::Stated(_)
                if offer.holding.partial.is_none()
                    && let Some(digest) = offer.holding.digest =>
            {
                Thing::Blob(digest)
            }
            Wanted::Url(url) => Thing::Resource(*url.as_bytes()),
            Wanted::Blob(digest) => Thing::Blob(digest),
            Wanted::Stated(key) => Thing::Resource(*key.as_bytes()),
        };
        let pulled = self.client.pull_arriving(&holder(&offer.peer), offer.grant, thing, from).await;
        if let Err(PullError::Unreachable(_)) = &pulled {
            self.discovery.failed(offer.peer.node);
        }
        pulled
    }

    /// A node's word or bytes were wrong: it is no source for a while.
    pub(super) fn distrust(&self, node: NodeId) {
        self.discovery.quarantine(node);
    }

    /// Those that hold a thing whole, in the order they came; waits as long as discovery says, or beside a download
    /// until the latest answer may be here.
    pub(super) async fn holders(&self, wanted: Wanted, haste: Haste) -> Vec<Offer> {
        let began = self.noted.as_ref().map(|(_, clock)| clock.instant());
        let mut finding = self.discovery.find(wanted);
        let mut offers = alike(finding.decided().await);
        if haste == Haste::Beside && offers.is_empty() {
            offers = self.late(&mut finding).await;
        }
        if offers.is_empty() {
            offers = self.holders_beyond(wanted).await;
        }
        if let (Some((measures, clock)), Some(began)) = (&self.noted, began) {
            measures.found(!offers.is_empty(), clock.instant().saturating_duration_since(began));
        }
        offers
    }

    /// The first that answers after a find was decided.
    async fn late(&self, finding: &mut Finding) -> Vec<Offer> {
        let first = async {
            while let Some(offer) = finding.next().await {
                let offers = alike(vec![offer]);
                if !offers.is_empty() {
                    return offers;
                }
            }
            Vec::new()
        };
        tokio::time::timeout(self.patience(), first).await.unwrap_or_default()
    }

    /// Those on other networks: whom the catalogue names is asked, and the first that has it answers.
    async fn holders_beyond(&self, wanted: Wanted) -> Vec<Offer> {
        let (Some(catalogue), Wanted::Blob(digest)) = (&self.catalogue, wanted) else { return Vec::new() };
        let known = catalogue.holders(&digest, self.patience()).await;
        let at = |Known { node, boot, addresses }: Known| {
            addresses.into_iter().map(move |address| Beyond { node, boot, address })
        };
        let ask = |holder| async move { self.discovery.find_beyond(holder, wanted).decided().await };
        let mut asked: FuturesUnordered<_> = known.into_iter().flat_map(at).map(ask).collect();
        while let Some(offers) = asked.next().await {
            let offers = alike(offers);
            if !offers.is_empty() {
                return offers;
            }
        }
        Vec::new()
    }

    /// The bytes of what it offers, from `from` on.
    pub(super) async fn pull(&self, offer: &Offer, from: u64) -> Result<(u64, Body), PullError> {
        let Way::Site { peer, grant } = &offer.way else { return Err(PullError::Gone) };
        let Some(digest) = offer.holding.digest else {
            return Err(PullError::Protocol("it does not say what it holds".to_owned()));
        };
        let pulled = self.client.pull(&holder(peer), *grant, &digest, offer.holding.size, from).await;
        if let Err(PullError::Unreachable(_) | PullError::Timeout(_)) = &pulled {
            self.discovery.failed(peer.node);
        }
        pulled.map(|pulled| (pulled.size, pulled.body))
    }

    /// The stored head that belongs to an offer, if it has one.
    pub(super) async fn head(&self, offer: &Offer) -> Option<StoredHead> {
        let resource = offer.holding.resource?;
        let Way::Site { peer, grant } = &offer.way else { return None };
        match self.client.head(&holder(peer), *grant, *resource.as_bytes(), 0).await {
            Ok(head) => Some(head.head),
            Err(error) => {
                tracing::debug!(%error, peer.node = %peer.node, "a neighbour gave no head");
                None
            }
        }
    }

    /// A node's bytes were wrong: it is no source for a while, and is told, so that it verifies its copy.
    pub(super) fn quarantine(&self, offer: &Offer) {
        let Lender::Node(node) = offer.lender() else { return };
        self.discovery.quarantine(node);
        if let Some(digest) = offer.holding.digest {
            self.discovery.doubt(node, digest);
        }
    }
}

/// Those that hold one and the same blob. Asked by another algorithm, holders say which blob it is: halves of two blobs
/// are never joined.
pub(super) fn alike(offers: Vec<discovery::Offer>) -> Vec<Offer> {
    let mut offers = ranked(offers.into_iter().filter(is_usable).collect());
    let named = offers.iter().find_map(|offer| offer.holding.digest);
    offers.retain(|offer| offer.holding.digest.is_some() && offer.holding.digest == named);
    offers
}

fn holder(peer: &Peer) -> Holder {
    Holder { node: peer.node, address: peer.address, pins: peer.pins.clone(), https: peer.https }
}

fn is_usable(offer: &discovery::Offer) -> bool {
    offer.holding.complete && !offer.holding.busy
}

/// A version of what a URL leads to, as the origin's head names it now.
pub(super) struct Version<'a> {
    /// Its name: URL, variant and validator.
    pub(super) key: ResourceKey,
    pub(super) head: &'a StoredHead,
    pub(super) size: Option<u64>,
}

/// The name of the version that this head is of.
pub(super) fn version_key(url: &UrlKey, variance: &Variance, head: &StoredHead) -> ResourceKey {
    let validator = head.get("etag").or_else(|| head.get("last-modified"));
    ResourceKey::of(url, variance, validator)
}

/// Whose word is taken for what the origin's head names now.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Word {
    /// That of so many witnesses; none: no witness is believed.
    pub(super) witnesses: Option<usize>,
    /// A digest that an index stated: whoever holds it as this version is believed.
    pub(super) stated: Option<Digest>,
}

impl Word {
    /// Whether nobody is believed.
    pub(super) const fn is_nobodys(self) -> bool {
        self.witnesses.is_none() && self.stated.is_none()
    }
}

/// Waits for the word of enough witnesses. A find is decided by the first holder: where more than one is needed and
/// one has spoken, the others have a moment to.
pub(super) async fn heard(
    finding: &mut Finding,
    version: &Version<'_>,
    word: Word,
) -> Option<(Digest, Vec<Offer>)> {
    const MOMENT: Duration = Duration::from_millis(250);
    let mut offers = finding.decided().await;
    let speaks = |offer: &discovery::Offer| offer.holding.first_hand && is_same_thing(offer, version);
    if word.witnesses.is_some_and(|enough| enough > 1) && offers.iter().any(speaks) {
        let more = async {
            while witnessed(&offers, version, word).is_none()
                && let Some(offer) = finding.next().await
            {
                offers.push(offer);
            }
        };
        if tokio::time::timeout(MOMENT, more).await.is_err() {
            tracing::debug!("too few witnesses have spoken in time");
        }
    }
    // others that went to the origin too are looked at once the transfer runs
    offers
        .iter()
        .filter(|offer| offer.holding.partial.is_some())
        .for_each(|offer| finding.keep(offer.clone()));
    witnessed(&offers, version, word)
}

/// The digest that is believed to be what the origin's head names now, with those that hold it.
///
/// A witness counts if it got the bytes from the origin itself as the same variant with the same strong entity
/// tag, or, where there is no tag at all, with the same `Last-Modified` and size. Where witnesses contradict each
/// other one of them lies, and nobody can tell which: none is believed.
pub(super) fn witnessed(
    offers: &[discovery::Offer],
    version: &Version<'_>,
    word: Word,
) -> Option<(Digest, Vec<Offer>)> {
    let confirmed: Vec<&discovery::Offer> =
        offers.iter().filter(|offer| is_usable(offer) && is_same_thing(offer, version)).collect();
    let of = |digest: Digest| confirmed.iter().filter(move |offer| offer.holding.digest == Some(digest));
    let held = |digest| ranked(of(digest).map(|offer| (*offer).clone()).collect());
    if let Some(stated) = word.stated.filter(|stated| of(*stated).next().is_some()) {
        return Some((stated, held(stated)));
    }
    let witnesses: Vec<&&discovery::Offer> =
        confirmed.iter().filter(|offer| offer.holding.first_hand).collect();
    let digest = witnesses.first()?.holding.digest?;
    if witnesses.iter().any(|other| other.holding.digest != Some(digest)) {
        tracing::warn!("neighbours contradict each other about what the origin sent: none is believed");
        return None;
    }
    let nodes: BTreeSet<_> = witnesses.iter().map(|witness| witness.peer.node).collect();
    let enough = word.witnesses.is_some_and(|enough| nodes.len() >= enough.max(1));
    enough.then(|| (digest, held(digest)))
}

fn is_same_thing(offer: &discovery::Offer, version: &Version<'_>) -> bool {
    let (holding, head) = (&offer.holding, version.head);
    let other_size = version.size.is_some() && holding.size.is_some() && version.size != holding.size;
    if holding.digest.is_none() || other_size || holding.resource != Some(version.key) {
        return false;
    }
    match (head.strong_etag(), head.get("etag")) {
        (Some(tag), _) => holding.etag.as_deref() == Some(tag),
        (None, Some(_weak)) => false,
        (None, None) => {
            let modified = head.get("last-modified");
            let same = modified.is_some() && holding.last_modified.as_deref() == modified;
            same && version.size.is_some() && holding.size == version.size
        }
    }
}

/// The best to read from first; equals by chance, so that not everybody asks the same one.
fn ranked(offers: Vec<discovery::Offer>) -> Vec<Offer> {
    let standing = |offer: &discovery::Offer| Standing {
        complete: offer.holding.complete,
        busy: offer.holding.busy,
        excluded: false,
        load: u32::from(offer.peer.load),
    };
    let standings: Vec<Standing> = offers.iter().map(standing).collect();
    // without randomness the order of arrival decides
    let order = order(&standings, || getrandom::u64().unwrap_or(0));
    order.into_iter().filter_map(|place| offers.get(place).cloned().map(Offer::from)).collect()
}
