//! Starting to store what arrives, from the origin or from a neighbour that holds the same thing.

use std::collections::VecDeque;

use http::Response;

use super::{Arriving, HOLDERS, Lead, Outcome, is_thing};
use crate::cache::{NoRoom, Reservation};
use crate::digest::Stated;
use crate::discovery::Finding;
use crate::ecosystem;
use crate::fetch::error::FetchError;
use crate::fetch::judge::Judge;
use crate::fetch::ledger::From;
use crate::fetch::neighbours::{self, Haste, Version, version_key};
use crate::fetch::offer::Offer;
use crate::fetch::transfer::{Begin, Source, Transfer};
use crate::http::{Body, StoredHead};
use crate::store::Ingest;

impl Lead {
    /// Stores what arrives, from a neighbour where a witness holds the same thing.
    pub(super) async fn receive(
        &mut self,
        response: Response<Body>,
        arriving: Arriving,
        mut finding: Option<Finding>,
    ) -> Result<Outcome, FetchError> {
        let (begun, response) = match self.begin(arriving.total).await {
            Ok(begun) => (begun, response),
            Err(reason) => {
                tracing::debug!(%reason, url = %self.case.want.target, "passed through without storing");
                self.engine.note_not_kept(&self.case, reason.to_string());
                return self.pass(response);
            }
        };
        let (arriving, begun) = match self.same_at_neighbours(&arriving, finding.as_mut()).await {
            None => (arriving, begun),
            Some((judge, offers)) => match self.read_holders(arriving, begun, judge, &offers).await {
                Ok(transfer) => return Ok(Outcome::Transfer(Box::new(transfer))),
                Err(back) => *back,
            },
        };
        // a digest is of the thing, not of what the origin says in its place
        let is_thing = is_thing(arriving.answer.head.status());
        let judge = if is_thing { self.case.judge } else { Judge::default() };
        let source = Source { body: response.into_body(), from: From::Origin, offer: None };
        let hint = match is_thing && arriving.shareable {
            true => self.engine.seek_sidecar(&self.case, &arriving.answer.head, arriving.total),
            false => None,
        };
        let mut begin = self.begin_with(arriving, begun, source, judge);
        begin.finding = finding.filter(|_| is_thing);
        begin.hint = hint;
        begin.rivals = self.crowd.take();
        Ok(Outcome::Transfer(Box::new(Transfer::new(begin))))
    }

    /// Begins to read from the first of these that gives anything; gives back what it was given where none does.
    pub(super) async fn read_holders(
        &self,
        arriving: Arriving,
        begun: (Ingest, Reservation),
        judge: Judge,
        offers: &[Offer],
    ) -> Result<Transfer, Box<(Arriving, (Ingest, Reservation))>> {
        if let Some(lenders) = self.engine.lenders(&self.case) {
            for (at, offer) in offers.iter().enumerate().take(HOLDERS) {
                let Ok((size, body)) = lenders.pull(offer, 0).await else { continue };
                let arriving = Arriving { total: Some(size), ..arriving };
                let source = Source { body, from: From::Peer, offer: Some(offer.clone()) };
                let mut begin = self.begin_with(arriving, begun, source, judge);
                begin.offers = offers.iter().skip(at + 1).cloned().collect();
                return Ok(Transfer::new(begin));
            }
        }
        Err(Box::new((arriving, begun)))
    }

    /// Neighbours that hold what the origin's head names, and what judges their bytes: a digest in the head, or the
    /// word of witnesses.
    pub(super) async fn same_at_neighbours(
        &self,
        arriving: &Arriving,
        finding: Option<&mut Finding>,
    ) -> Option<(Judge, Vec<Offer>)> {
        let config = self.engine.0.config.load();
        if !arriving.shareable
            || !is_thing(arriving.answer.head.status())
            || arriving.total.is_some_and(|total| total < config.min_size.bytes())
        {
            return None;
        }
        let head = &arriving.answer.head;
        let lenders = self.engine.lenders(&self.case)?;
        if let Some((judge, stated)) = self.judge_of_head(head) {
            let offers = lenders.holders(&stated, Haste::Client).await;
            return (!offers.is_empty()).then_some((judge, offers));
        }
        let key = version_key(&self.case.url, &arriving.variance, head);
        let version = Version { key, head, size: arriving.total };
        let word = self.engine.word_for(&self.case);
        let (digest, offers) = neighbours::heard(finding?, &version, word).await?;
        let is_right = !self.engine.contradicts(&self.case, digest);
        is_right.then(|| (self.case.judge.with_word(digest), offers))
    }

    /// By the strong digest that the origin's head states of what it came with.
    fn judge_of_head(&self, head: &StoredHead) -> Option<(Judge, Stated)> {
        let stated = ecosystem::said_of_itself(head).filter(Stated::is_strong)?;
        let judge = match stated.sha256() {
            Some(digest) => self.case.judge.with_word(digest),
            None if self.case.judge.is_set() => return None,
            None => Judge::learned(stated, |stated| self.engine.0.cache.index().blob_of(&stated.key())),
        };
        Some((judge, judge.digest.map_or(stated, Stated::from)))
    }

    pub(super) async fn begin(&self, total: Option<u64>) -> Result<(Ingest, Reservation), NoRoom> {
        let cache = self.engine.0.cache.clone();
        if let Some(begun) = cache.begin_now(total) {
            return Ok(begun);
        }
        if !cache.disk_keeps_up().await {
            return Err(NoRoom::Behind);
        }
        let begun = tokio::task::spawn_blocking(move || cache.begin_arriving(total)).await;
        begun.unwrap_or(Err(NoRoom::ReadOnly))
    }

    pub(super) fn begin_with(
        &self,
        arriving: Arriving,
        (mut ingest, reservation): (Ingest, Reservation),
        source: Source,
        judge: Judge,
    ) -> Begin {
        ingest.reckon(judge.beside());
        Begin {
            engine: self.engine.clone(),
            case: self.case.clone(),
            judge,
            answer: arriving.answer,
            variance: arriving.variance,
            shareable: arriving.shareable,
            total: arriving.total,
            ingest,
            reservation,
            source,
            offers: VecDeque::new(),
            finding: None,
            hint: None,
            rivals: None,
            follow: None,
            stand: self.stand.clone(),
        }
    }
}
