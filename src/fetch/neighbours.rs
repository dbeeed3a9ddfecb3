//! Introducing discovery to the peer client: who holds a thing, whose word counts, how its bytes are read.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::digest::Digest;
use crate::discovery::{Discovery, Finding, Offer, Wanted};
use crate::http::{Body, StoredHead};
use crate::peer::{Client, Holder, PullError};
use crate::policy::UrlKey;

/// The neighbours, once their keys are derived; a cheap clone.
#[derive(Debug, Clone)]
pub struct Neighbours {
    discovery: Discovery,
    client: Client,
}

impl Neighbours {
    /// Finds through `discovery`, reads through `client`.
    pub fn new(discovery: Discovery, client: Client) -> Self {
        Self { discovery, client }
    }

    /// Whether it is worth asking: somebody was heard lately.
    pub(super) fn heard_lately(&self) -> bool {
        self.discovery.heard_lately()
    }

    /// Asks who holds what a URL leads to; answers come through the finding.
    pub(super) fn ask_url(&self, url: UrlKey) -> Finding {
        self.discovery.find(Wanted::Url(url))
    }

    /// Those that hold a thing whole, in the order they came; waits as long as discovery says.
    pub(super) async fn holders(&self, digest: Digest) -> Vec<Offer> {
        let offers = self.discovery.find(Wanted::Blob(digest)).decided().await;
        offers.into_iter().filter(|offer| is_usable(offer) && offer.holding.digest == Some(digest)).collect()
    }

    /// The thing's bytes from `from` on.
    pub(super) async fn pull(
        &self,
        offer: &Offer,
        digest: Digest,
        from: u64,
    ) -> Result<(u64, Body), PullError> {
        let holder = holder(offer);
        let pulled = self.client.pull(&holder, offer.grant, &digest, offer.holding.size, from).await;
        if let Err(PullError::Unreachable(_) | PullError::Timeout(_)) = &pulled {
            self.discovery.failed(offer.peer.node);
        }
        pulled.map(|pulled| (pulled.size, pulled.body))
    }

    /// The stored head that belongs to an offer, if it has one.
    pub(super) async fn head(&self, offer: &Offer) -> Option<StoredHead> {
        let resource = offer.holding.resource?;
        match self.client.head(&holder(offer), offer.grant, *resource.as_bytes()).await {
            Ok(head) => Some(head.head),
            Err(error) => {
                tracing::debug!(%error, peer.node = %offer.peer.node, "a neighbour gave no head");
                None
            }
        }
    }

    /// A node's bytes were wrong: it is no source for a while, and is told, so that it verifies its copy.
    pub(super) fn quarantine(&self, offer: &Offer) {
        self.discovery.quarantine(offer.peer.node);
        if let Some(digest) = offer.holding.digest {
            self.discovery.doubt(offer.peer.node, digest);
        }
    }
}

fn holder(offer: &Offer) -> Holder {
    Holder {
        node: offer.peer.node,
        address: offer.peer.address,
        pins: offer.peer.pins.clone(),
        https: offer.peer.https,
    }
}

/// The address that `Cache-Status` names.
pub(super) fn address(offer: &Offer) -> IpAddr {
    offer.peer.address.ip().to_canonical()
}

fn is_usable(offer: &Offer) -> bool {
    offer.holding.complete && !offer.holding.busy
}

/// The digest that enough witnesses give for what the origin's head names now, with those that hold it.
///
/// A witness counts if it got the bytes from the origin itself with the same strong entity tag, or, where there
/// is no tag at all, with the same `Last-Modified` and size.
pub(super) fn witnessed(
    offers: &[Offer],
    head: &StoredHead,
    size: Option<u64>,
    enough: usize,
) -> Option<(Digest, Vec<Offer>)> {
    let confirmed: Vec<&Offer> =
        offers.iter().filter(|offer| is_usable(offer) && is_same_thing(offer, head, size)).collect();
    for offer in &confirmed {
        let digest = offer.holding.digest?;
        let same = confirmed.iter().filter(|other| other.holding.digest == Some(digest));
        let witnesses: BTreeSet<_> =
            same.clone().filter(|other| other.holding.first_hand).map(|other| other.peer.node).collect();
        if witnesses.len() >= enough.max(1) {
            return Some((digest, same.map(|offer| (*offer).clone()).collect()));
        }
    }
    None
}

fn is_same_thing(offer: &Offer, head: &StoredHead, size: Option<u64>) -> bool {
    let holding = &offer.holding;
    if holding.digest.is_none() || (size.is_some() && holding.size.is_some() && size != holding.size) {
        return false;
    }
    match (head.strong_etag(), head.get("etag")) {
        (Some(tag), _) => holding.etag.as_deref() == Some(tag),
        (None, Some(_weak)) => false,
        (None, None) => {
            let modified = head.get("last-modified");
            modified.is_some()
                && holding.last_modified.as_deref() == modified
                && size.is_some()
                && holding.size == size
        }
    }
}
