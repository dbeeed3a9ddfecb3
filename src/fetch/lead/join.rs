//! Before going to the origin: a claim, and reading from whoever receives the thing already.

use std::sync::Arc;

use http::{HeaderMap, Method, Response, StatusCode};

use super::{Arriving, Lead, Outcome, is_thing};
use crate::clock::Timestamp;
use crate::discovery::{Finding, Offer, Wanted};
use crate::fetch::crowd::{Crowd, Met, TRIES};
use crate::fetch::error::FetchError;
use crate::fetch::judge::Judge;
use crate::fetch::ledger::From;
use crate::fetch::lenders::Lenders;
use crate::fetch::neighbours::{self, Haste, Neighbours, version_key};
use crate::fetch::settings::Trust;
use crate::fetch::transfer::{Follow, Source, Transfer};
use crate::http::{Body, StoredHead};
use crate::peer::{Arrived, PullError, ResourceHead};
use crate::policy::{self, Answer, ResourceKey, Variance};

/// What came of looking around.
pub(super) enum Around {
    /// An answer.
    Found(Box<Outcome>),
    /// Nothing: to the origin, with what may still be heard.
    Origin(Option<Finding>),
}

/// Why nothing is read from a running transfer.
enum Not {
    /// Somebody else may do; an error says how that one failed.
    Here(Option<PullError>),
    /// What runs is of no use to this request: everybody for himself.
    AtAll,
}

impl Lead {
    /// Claims the thing where that may save the origin something.
    pub(super) async fn look_around(&mut self) -> Result<Around, FetchError> {
        if let Some(outcome) = self.ask_lenders().await? {
            return Ok(Around::Found(Box::new(outcome)));
        }
        let (Some(mut crowd), Some(stand)) = (self.find_crowd(), self.stand.clone()) else {
            return Ok(self.without_crowd());
        };
        let mut finding = crowd.claim();
        for _ in 0..TRIES {
            match crowd.meet(&mut finding, &stand).await {
                Met::Go => return Ok(self.fetch_for_crowd(crowd, finding)),
                Met::Holders(offers) => return self.read_whole(crowd, offers, finding).await,
                Met::Running(offer) => {
                    let node = offer.peer.node;
                    match self.join(crowd, *offer).await? {
                        Ok(outcome) => return Ok(Around::Found(Box::new(outcome))),
                        Err((_, Not::AtAll)) => return Ok(Around::Origin(None)),
                        Err((back, Not::Here(why))) => crowd = back.without(node, why),
                    }
                }
            }
        }
        stand.fetch(0);
        crowd.search.fetch(self.engine.0.clock.instant());
        Ok(self.fetch_for_crowd(crowd, finding))
    }

    /// This node goes to the origin, and listens for others that went too.
    fn fetch_for_crowd(&mut self, crowd: Crowd, finding: Finding) -> Around {
        self.crowd = Some(crowd);
        Around::Origin(Some(finding))
    }

    /// Whoever holds a thing that is known by name is read from at once.
    async fn ask_lenders(&mut self) -> Result<Option<Outcome>, FetchError> {
        let judge = self.engine.judge_without_origin(&self.case);
        let (Some(lenders), Some(stated)) = (self.engine.lenders(&self.case), judge.asked()) else {
            return Ok(None);
        };
        let offers = lenders.holders(&stated, Haste::Client).await;
        let transfer = self.read_from(&lenders, judge, offers).await?;
        Ok(transfer.map(|transfer| Outcome::Transfer(Box::new(transfer))))
    }

    /// Nobody may follow, or nobody was heard: who has it is asked all the same.
    fn without_crowd(&self) -> Around {
        let finding = self.ask_by_url();
        if let Some(stand) = &self.stand {
            stand.fetch(0);
        }
        Around::Origin(finding)
    }

    /// The crowd around this request's thing; none where it has none: nobody may follow, or nobody was heard.
    fn find_crowd(&self) -> Option<Crowd> {
        let config = self.engine.0.config.load();
        let clock = Arc::clone(&self.engine.0.clock);
        let neighbours = self.engine.neighbours(&self.case)?;
        if !self.leads || self.stored.is_some() || self.case.admitted.is_some() {
            return None;
        }
        let wanted = match self.case.judge.named() {
            Some(stated) => stated.sha256().map_or_else(|| Wanted::Stated(stated.key()), Wanted::Blob),
            // what nobody states a digest of is taken on the word of one who has it from the origin
            None if !self.case.judge.is_set() && config.trust == Trust::Witness && config.witnesses <= 1 => {
                Wanted::Url(self.case.url)
            }
            None => return None,
        };
        if matches!(wanted, Wanted::Url(_)) && self.engine.beginning(&self.case).is_some() {
            return None;
        }
        Some(Crowd::new(neighbours, wanted, clock))
    }

    /// Somebody holds it. By its digest it is read from there at once; by URL the origin's head decides.
    async fn read_whole(
        &mut self,
        crowd: Crowd,
        offers: Vec<Offer>,
        mut finding: Finding,
    ) -> Result<Around, FetchError> {
        if !matches!(crowd.wanted, Wanted::Url(_)) {
            let more = finding.decided().await;
            let holders = neighbours::alike(offers.iter().cloned().chain(more).collect());
            if let Some(lenders) = self.engine.lenders(&self.case)
                && let Some(transfer) = self.read_from(&lenders, self.case.judge, holders).await?
            {
                return Ok(Around::Found(Box::new(Outcome::Transfer(Box::new(transfer)))));
            }
        }
        if let Some(stand) = &self.stand {
            stand.fetch(0);
        }
        if matches!(crowd.wanted, Wanted::Url(_)) {
            self.version = self.version_held(&offers).await;
        }
        for offer in offers {
            finding.keep(offer);
        }
        Ok(Around::Origin(matches!(crowd.wanted, Wanted::Url(_)).then_some(finding)))
    }

    /// Reads from holders. A neighbour's word that the origin decides who may have it is asked of the origin first.
    async fn read_from(
        &mut self,
        lenders: &Lenders,
        judge: Judge,
        offers: Vec<crate::fetch::offer::Offer>,
    ) -> Result<Option<Transfer>, FetchError> {
        if self.case.admitted.is_none() && offers.iter().any(|offer| offer.holding.guarded) {
            let is_led = self.engine.0.behind.leads(&self.case.url, self.engine.0.clock.instant());
            if self.case.named_by_url().is_none() && !is_led {
                // who only knows its digest has no origin to ask
                return Ok(None);
            }
            let admitted = self.engine.admitted(&self.case).await?;
            if admitted.is_none() {
                return Ok(None);
            }
            (self.case.admitted, self.case.guarded) = (admitted, true);
        }
        if self.case.admitted.is_none() && !offers.is_empty() && self.takes_no_heads() {
            self.case.admitted = self.engine.told_by_origin(&self.case).await;
            if self.case.admitted.is_none() {
                return Ok(None);
            }
        }
        self.ask_holders(lenders, judge, offers).await
    }

    /// Reads from a node that receives the thing; gives the crowd back where that cannot be.
    async fn join(
        &mut self,
        mut crowd: Crowd,
        offer: Offer,
    ) -> Result<Result<Outcome, (Crowd, Not)>, FetchError> {
        let Some(stand) = self.stand.clone() else { return Ok(Err((crowd, Not::AtAll))) };
        let partial = offer.holding.partial.clone();
        let (root, depth) = partial.map_or((offer.peer.node, 0), |partial| (partial.root, partial.depth));
        // whoever is sent here meanwhile waits for what comes of it
        stand.read(root, depth.saturating_add(1));
        let told = match crowd.neighbours.told(&offer, crowd.key(), 0).await {
            Ok(told) => told,
            Err(error) => {
                tracing::debug!(%error, peer.node = %offer.peer.node, "a running transfer cannot be joined");
                stand.lose();
                let left = matches!(error, PullError::Left);
                if left {
                    self.engine.0.flights.set_alone(self.case.url);
                }
                return Ok(Err((crowd, if left { Not::AtAll } else { Not::Here(Some(error)) })));
            }
        };
        // only now it is certain where that node stands
        let (root, depth) =
            told.arriving.as_ref().map_or((offer.peer.node, 0), |told| (told.root, told.depth));
        let may = crowd.search.reads_from(offer.peer.node, depth) && crowd.search.settle(depth);
        if !may || root == crowd.neighbours.me() {
            stand.lose();
            return Ok(Err((crowd, Not::Here(None))));
        }
        stand.read(root, depth.saturating_add(1));
        let (joined, why) = match crowd.wanted {
            Wanted::Blob(_) | Wanted::Stated(_) => {
                (self.join_by_digest(&crowd, &offer, &told).await, Not::Here(None))
            }
            Wanted::Url(_) => match self.join_by_url(&crowd, &offer, told).await? {
                Joined::Bytes(arriving, arrived, digest) => {
                    (Some((arriving, arrived, digest)), Not::Here(None))
                }
                Joined::Answer(outcome) => return Ok(Ok(outcome)),
                Joined::Not(why) => (None, why),
            },
        };
        let Some((arriving, arrived, digest)) = joined else {
            stand.lose();
            crowd.search.leave();
            return Ok(Err((crowd, why)));
        };
        let Ok(begun) = self.begin(arriving.total).await else {
            stand.lose();
            return Ok(Err((crowd, Not::AtAll)));
        };
        let judge = digest.map_or(self.case.judge, |digest| self.case.judge.with_word(digest));
        let source = Source { body: arrived.body, from: From::Peer, offer: Some(offer.clone().into()) };
        let mut begin = self.begin_with(arriving, begun, source, judge);
        let (trust, now) = (self.engine.0.config.load().trust, self.engine.0.clock.instant());
        begin.follow = Some(Follow::new(crowd, offer, &stand, trust, now));
        Ok(Ok(Outcome::Transfer(Box::new(Transfer::new(begin)))))
    }

    /// By a digest that is known no word of the origin is needed.
    async fn join_by_digest(
        &mut self,
        crowd: &Crowd,
        offer: &Offer,
        told: &ResourceHead,
    ) -> Option<(Arriving, Arrived, Option<crate::digest::Digest>)> {
        if self.takes_no_heads() {
            self.case.admitted = Some(self.engine.told_by_origin(&self.case).await?);
        }
        let arrived = crowd.neighbours.pull_arriving(offer, crowd.wanted, 0).await.ok()?;
        let own = || self.own_head(told.resource, Some(told.head.clone()), self.case.judge);
        let head = self.case.admitted.as_deref().cloned().unwrap_or_else(own);
        let variance = Variance::of(&head.headers(), &self.case.want.headers).unwrap_or_default();
        let queried = self.case.want.target.path().contains('?');
        let answer = Answer { head, queried, ..Answer::default() };
        Some((Arriving { answer, variance, shareable: true, total: arrived.total }, arrived, None))
    }

    /// By URL: the bytes are read at once, and the origin is asked whether what runs is what it has now. It answers
    /// that with a head: its own body stays where it is.
    async fn join_by_url(
        &mut self,
        crowd: &Crowd,
        offer: &Offer,
        told: ResourceHead,
    ) -> Result<Joined, FetchError> {
        if !self.is_for_us(&told) {
            return Ok(Joined::Not(Not::AtAll));
        }
        let asked = self.engine.0.clock.now();
        let (arrived, confirmed) =
            tokio::join!(crowd.neighbours.pull_arriving(offer, crowd.wanted, 0), self.confirm(&told.head));
        let response = match confirmed {
            Ok(response) => response,
            Err(error) => return Err(error.into()),
        };
        let Some(answer) = self.confirmed(&told.head, &response, asked) else {
            // the origin has something else now
            if let Some(stand) = &self.stand {
                stand.fetch(crowd.search.depth().unwrap_or(0));
            }
            return Ok(match response.status() {
                StatusCode::NOT_MODIFIED => Joined::Not(Not::AtAll),
                _ => Joined::Answer(Box::pin(self.judge_response(response, asked, None)).await?),
            });
        };
        let arrived = match arrived {
            Ok(arrived) if arrived.resource == told.resource.map(|key| *key.as_bytes()) => arrived,
            Ok(_) => return Ok(Joined::Not(Not::Here(None))),
            Err(error) => return Ok(Joined::Not(Not::Here(Some(error)))),
        };
        let variance = Variance::of(&answer.head.headers(), &self.case.want.headers).unwrap_or_default();
        let digest = told.digest.filter(|_| told.first_hand);
        let arriving = Arriving { answer, variance, shareable: true, total: arrived.total };
        Ok(Joined::Bytes(arriving, arrived, digest))
    }

    /// Whether what a neighbour receives is an answer to this very request, with a name by which the origin can
    /// confirm it.
    fn is_for_us(&self, told: &ResourceHead) -> bool {
        self.is_ours(&told.head, told.size, told.resource)
    }

    /// The same of a head with the size and the name that belong to it.
    pub(super) fn is_ours(&self, head: &StoredHead, size: u64, resource: Option<ResourceKey>) -> bool {
        let (want, fields) = (&self.case.want, head.headers());
        let Ok(variance) = Variance::of(&fields, &want.headers) else { return false };
        let storable = policy::storable(&want.method, &want.headers, head.status(), &fields, &self.case.rule);
        let named = head.strong_etag().is_some()
            || (head.get("etag").is_none() && head.get("last-modified").is_some() && size > 0);
        let same = resource == Some(version_key(&self.case.url, &variance, head));
        is_thing(head.status()) && storable.is_ok_and(|storable| storable.shareable) && named && same
    }

    /// Asks the origin whether it has this version now.
    async fn confirm(&self, head: &StoredHead) -> Result<Response<Body>, crate::origin::OriginError> {
        let mut headers = self.case.want.headers_for_whole();
        policy::validators(head, &mut headers);
        self.case.upstream(headers).send(&self.engine.0.origin, Method::GET, HeaderMap::new()).await
    }

    /// The answer as the origin confirms it; none if it has another one, or says by now that it is nobody else's.
    pub(super) fn confirmed(
        &self,
        head: &StoredHead,
        response: &Response<Body>,
        asked: Timestamp,
    ) -> Option<Answer> {
        let (now, want) = (self.engine.0.clock.now(), &self.case.want);
        if response.status() == StatusCode::NOT_MODIFIED {
            let mut answer = Answer::keep(&want.target, head.status(), &head.headers(), asked, now);
            let is_it = policy::freshen(&mut answer, response.headers(), asked, now);
            let (status, fields) = (answer.head.status(), answer.head.headers());
            let may = policy::storable(&want.method, &want.headers, status, &fields, &self.case.rule);
            return (is_it && may.is_ok_and(|may| may.shareable)).then_some(answer);
        }
        // whoever does not know conditions sends the whole: its head alone is read
        let arriving = self.storable(response, asked, now).ok().filter(|arriving| arriving.shareable)?;
        let own = &arriving.answer.head;
        let same = |name| own.get(name) == head.get(name);
        let is_same = match own.strong_etag() {
            Some(_) => same("etag"),
            None => same("etag") && same("last-modified") && same("content-length"),
        };
        (is_same && own.status == head.status).then_some(arriving.answer)
    }
}

/// What came of reading by URL.
enum Joined {
    Bytes(Arriving, Arrived, Option<crate::digest::Digest>),
    /// The origin's own answer, which is another one.
    Answer(Outcome),
    Not(Not),
}

impl Lead {
    /// Where neighbours may take part, this node stands somewhere from the beginning.
    pub(super) fn take_stand(&mut self) {
        let (Some(permit), Some(neighbours)) = (&self.permit, self.engine.site(&self.case)) else { return };
        let stand =
            crate::fetch::stand::Stand::new(Neighbours::me(&neighbours), Arc::clone(&self.engine.0.clock));
        permit.stand(&stand);
        self.stand = Some(stand);
    }
}
