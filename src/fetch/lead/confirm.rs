//! A version that neighbours hold whole: the origin is asked whether it still has that one, and sends no body if so.

use http::{Response, StatusCode};

use super::{Arriving, Lead, Outcome};
use crate::clock::Timestamp;
use crate::discovery::{self, Finding};
use crate::fetch::error::FetchError;
use crate::http::{Body, StoredHead};
use crate::policy::Variance;

/// What a neighbour says that it holds of this URL.
pub(super) struct Version {
    head: StoredHead,
    size: Option<u64>,
}

impl Version {
    /// By what the origin knows it.
    pub(super) const fn head(&self) -> &StoredHead {
        &self.head
    }
}

impl Lead {
    /// The version held by the first of these whose word can count; none where the origin should be asked as if
    /// nobody held anything.
    pub(super) async fn version_held(&self, offers: &[discovery::Offer]) -> Option<Version> {
        let (word, config) = (self.engine.word_for(&self.case), self.engine.0.config.load());
        if word.is_nobodys() || self.case.want.is_conditional() {
            return None;
        }
        let counts = |offer: &&discovery::Offer| {
            let holding = &offer.holding;
            let is_stated = word.stated.is_some() && holding.digest == word.stated;
            let is_large = holding.size.is_none_or(|size| size >= config.min_size.bytes());
            holding.complete && is_large && (holding.first_hand || is_stated)
        };
        let offer = offers.iter().find(counts)?;
        let (size, resource) = (offer.holding.size, offer.holding.resource);
        let head = self.engine.lenders(&self.case)?.head(&offer.clone().into()).await?;
        self.is_ours(&head, size.unwrap_or(0), resource).then_some(Version { head, size })
    }

    /// The origin sent no body, for it has that version still: the bytes come from who holds it.
    pub(super) async fn take_confirmed(
        &mut self,
        version: Version,
        response: Response<Body>,
        asked: Timestamp,
        mut finding: Option<Finding>,
    ) -> Result<Outcome, FetchError> {
        let Some(arriving) = self.confirmed_version(&version, &response, asked) else {
            return self.without_conditions().await;
        };
        let found = self.same_at_neighbours(&arriving, finding.as_mut()).await;
        if let Some((judge, offers)) = found
            && let Ok(begun) = self.begin(arriving.total).await
            && let Ok(transfer) = self.read_holders(arriving, begun, judge, &offers).await
        {
            return Ok(Outcome::Transfer(Box::new(transfer)));
        }
        // who said so holds it no more, or gives nothing
        self.without_conditions().await
    }

    fn confirmed_version(
        &self,
        version: &Version,
        response: &Response<Body>,
        asked: Timestamp,
    ) -> Option<Arriving> {
        debug_assert_eq!(response.status(), StatusCode::NOT_MODIFIED);
        let answer = self.confirmed(&version.head, response, asked)?;
        let variance = Variance::of(&answer.head.headers(), &self.case.want.headers).ok()?;
        Some(Arriving { answer, variance, shareable: true, total: version.size })
    }
}
