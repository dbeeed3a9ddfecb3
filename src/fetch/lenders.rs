//! All who may lend bytes of a thing whose digest is known: nodes of the site, then mORMot peers.

use std::sync::Arc;

use super::engine::{Case, Engine};
use super::neighbours::{Haste, Neighbours};
use super::offer::{LendError, Lender, Offer, Way};
use crate::digest::Stated;
use crate::discovery::Wanted;
use crate::http::{Body, StoredHead};
use crate::mormot::{self, Hash, Mormot};

/// Those a want may be asked of.
#[derive(Debug, Clone)]
pub(super) struct Lenders {
    site: Option<Arc<Neighbours>>,
    mormot: Option<Arc<Mormot>>,
}

impl Engine {
    /// From now on mORMot peers are asked too.
    pub fn set_mormot(&self, mormot: Mormot) {
        self.0.mormot.store(Some(Arc::new(mormot)));
    }

    /// Who may be asked for this want; none: nobody.
    pub(super) fn lenders(&self, case: &Case) -> Option<Lenders> {
        let site = self.neighbours_to_ask(case);
        let mormot = self.0.mormot.load_full().filter(|mormot| case.may_be_told() && mormot.is_seated());
        (site.is_some() || mormot.is_some()).then_some(Lenders { site, mormot })
    }
}

impl Lenders {
    /// Those that hold a thing whole, and mORMot peers that are receiving it; the site's nodes first. Each of the
    /// two networks is waited for as long as it says, at the same time.
    pub(super) async fn holders(&self, stated: &Stated, haste: Haste) -> Vec<Offer> {
        let wanted = stated.sha256().map_or_else(|| Wanted::Stated(stated.key()), Wanted::Blob);
        let site = async {
            match &self.site {
                Some(site) => site.holders(wanted, haste).await,
                None => Vec::new(),
            }
        };
        let peers = async {
            match (&self.mormot, Hash::of_stated(stated)) {
                (Some(mormot), Some(hash)) => mormot.find(hash, None).await,
                _ => Vec::new(),
            }
        };
        let (mut site, mut peers) = (std::pin::pin!(site), std::pin::pin!(peers));
        let (mut offers, found) = tokio::select! {
            biased;
            // whoever holds it under the site's own protocol is the better source: nobody else is waited for
            offers = &mut site => {
                let found = if offers.is_empty() { peers.await } else { Vec::new() };
                (offers, found)
            }
            found = &mut peers => (site.await, found),
        };
        let known = |offer: &mormot::Offer| {
            let is_known = |site: &Arc<Neighbours>, id| site.knows(id);
            offer
                .larder
                .is_some_and(|marker| self.site.as_ref().is_some_and(|site| is_known(site, marker.node)))
        };
        // a node that is known goes by its own protocol
        offers.extend(
            found.into_iter().filter(|offer| !known(offer)).map(|offer| Offer::of_mormot(offer, stated)),
        );
        offers
    }

    /// The thing's bytes from `from` on.
    pub(super) async fn pull(&self, offer: &Offer, from: u64) -> Result<(u64, Body), LendError> {
        match (&offer.way, &self.site, &self.mormot) {
            (Way::Site { .. }, Some(site), _) => Ok(site.pull(offer, from).await?),
            (Way::Mormot(told), _, Some(mormot)) => {
                let pulled = mormot.pull(told, from).await?;
                Ok((pulled.size, pulled.body))
            }
            (Way::Site { .. } | Way::Mormot(_), _, _) => Err(LendError::Gone),
        }
    }

    /// The stored head that belongs to an offer, if it has one.
    pub(super) async fn head(&self, offer: &Offer) -> Option<StoredHead> {
        match &self.site {
            Some(site) => site.head(offer).await,
            None => None,
        }
    }

    /// The lender's bytes were wrong: it is no source for a while.
    pub(super) fn quarantine(&self, offer: &Offer) {
        match (offer.lender(), &self.site, &self.mormot) {
            (Lender::Node(_), Some(site), _) => site.quarantine(offer),
            (Lender::Mormot(address), _, Some(mormot)) => mormot.quarantine(address),
            (Lender::Node(_) | Lender::Mormot(_), _, _) => {}
        }
    }
}
