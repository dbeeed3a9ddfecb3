//! Another source goes on at the byte reached.
//!
//! Bytes of a neighbour are in the file from the mark on, if there is one; as long as none of them went out they
//! can be taken back, and the origin goes on at the mark. What a client has been told (the head) or given is
//! never contradicted: then only an end with an error is left.

use std::time::Duration;

use http::StatusCode;

use super::{Source, Transfer};
use crate::digest::Hasher;
use crate::fetch::judge::Judge;
use crate::fetch::ledger::From;
use crate::fetch::offer::Offer;
use crate::fetch::origin_side::{Missing, Rest, content_length};
use crate::fetch::piece::Pieces;
use crate::http::{Body, StoredHead};
use crate::policy::{self, Answer, NoStore, Variance};
use crate::store::{Failure, Hold};

/// How often the origin is asked again without any progress, and how long in between.
const PAUSES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(100), Duration::from_millis(500), Duration::from_secs(2)];
/// How often bytes are taken back: each time somebody was wrong, and is asked no more.
const REWINDS: u32 = 16;
/// How many further holders are tried before the origin.
const HOLDERS: usize = 2;
/// Unproven bytes are worth waiting for while the origin sends so much, or for so long.
const SMALL_REST: u64 = 8 * 1024 * 1024;
const PATIENCE_SECONDS: u64 = 5;
/// How long a client waits at most, without progress worth the name, for a source that can go on.
const PATIENCE: Duration = Duration::from_secs(40);

/// Why a source cannot go on.
pub(super) enum Trouble {
    /// Another try may help.
    Passing(String),
    /// Nothing will.
    Final(Failure),
}

impl Transfer {
    /// The source broke off: the next holder, then the origin.
    pub(super) async fn take_over(&mut self, why: &str) -> Result<(), Failure> {
        if self.follow.is_some() {
            return self.rejoin(why).await;
        }
        self.settle().await?;
        for _ in 0..HOLDERS {
            let Some(offer) = self.offers.pop_front() else { break };
            if self.go_on_at(offer).await {
                return Ok(());
            }
        }
        if !self.is_worth_proving() {
            // the client waits for the proof of what is here: it has the origin's bytes sooner
            self.take_back().await?;
        }
        self.go_on_at_origin_or_fail(why).await
    }

    pub(super) async fn go_on_at_origin_or_fail(&mut self, why: &str) -> Result<(), Failure> {
        let mut why = why.to_owned();
        while let Some(pause) = usize::try_from(self.failures).ok().and_then(|at| PAUSES.get(at)) {
            self.failures += 1;
            let growing = self.running.growing().clone();
            let since = *self.troubled_since.get_or_insert_with(|| self.engine.0.clock.instant());
            let tried = tokio::select! {
                tried = async {
                    tokio::time::sleep(*pause).await;
                    self.go_on_at_origin().await
                } => tried,
                () = super::pump::deserted(&growing) => return Err(Failure::Abandoned),
            };
            let now = self.engine.0.clock.instant();
            match tried {
                Err(Trouble::Passing(why)) if now.saturating_duration_since(since) > PATIENCE => {
                    return Err(Failure::Source(why));
                }
                Ok(()) => return Ok(()),
                Err(Trouble::Passing(trouble)) => why = trouble,
                Err(Trouble::Final(failure)) => return Err(failure),
            }
        }
        Err(Failure::Source(why))
    }

    /// A neighbour that is too slow gives way to another or to the origin, unless there is nobody else.
    pub(super) async fn leave_slow_peer(&mut self) -> Result<(), Failure> {
        self.settle().await?;
        tracing::debug!(url = %self.case.want.target, "a neighbour is too slow");
        if self.follow.is_some() {
            return self.rejoin("a neighbour is too slow").await;
        }
        if let Some(offer) = self.offers.pop_front()
            && self.go_on_at(offer).await
        {
            return Ok(());
        }
        let before = self.writer.received();
        match self.go_on_at_origin().await {
            Ok(()) => Ok(()),
            Err(Trouble::Final(failure)) => Err(failure),
            // what the neighbour sends no longer follows on what is in the file
            Err(Trouble::Passing(why)) if self.writer.received() != before => self.take_over(&why).await,
            Err(Trouble::Passing(_)) => {
                self.rate.be_patient();
                Ok(())
            }
        }
    }

    /// A neighbour answered late: the rest comes from there, if it will give it.
    pub(super) async fn move_to(&mut self, offer: Offer) -> bool {
        self.finding = None;
        let Some(digest) = offer.holding.digest else { return false };
        let before = self.judge;
        if self.judge.digest.is_some_and(|known| known != digest) || self.settle().await.is_err() {
            return false;
        }
        self.judge = self.judge.with_word(digest);
        let moved = self.go_on_at(offer).await;
        if !moved {
            self.judge = before;
        }
        moved
    }

    /// The disk gave out under bytes that wait for their proof: the origin's own bytes need none.
    pub(super) async fn without_disk(&mut self) -> Result<(), Failure> {
        if !self.can_take_back() {
            return Err(Failure::Source("the disk is full and the bytes could not be proved".to_owned()));
        }
        self.offers.clear();
        self.take_back().await?;
        self.go_on_at_origin_or_fail("the disk is full").await
    }

    /// What came from neighbours was wrong: the origin sends it.
    pub(super) async fn without_neighbours(&mut self) -> Result<(), Failure> {
        self.offers.clear();
        self.take_back().await?;
        self.go_on_at_origin_or_fail("no other source").await
    }

    /// Whether no byte of a neighbour went out.
    pub(super) fn can_take_back(&self) -> bool {
        self.mark.is_some_and(|mark| self.writer.released() <= mark)
    }

    /// Takes the neighbours' bytes out of the file again, where that can be done. A digest that was learned goes
    /// with them: the origin's bytes are what they are.
    async fn take_back(&mut self) -> Result<(), Failure> {
        if !self.can_take_back() {
            return Ok(());
        }
        let Some(mark) = self.mark.take() else { return Ok(()) };
        self.rewind(mark).await?;
        self.used.clear();
        self.origin_after = false;
        self.judge = if self.judge.binding { self.case.judge } else { Judge::default() };
        self.running.judge_by(self.judge);
        let hold = self.judge.hold(From::Origin, self.total, self.engine.0.config.load().release);
        self.writer.hold(self.engine.hold_for_blocks(hold));
        Ok(())
    }

    /// Bytes that were received from this one on are not here any more.
    pub(super) async fn rewind(&mut self, offset: u64) -> Result<(), Failure> {
        if self.running.growing().progress().rewinds >= REWINDS {
            return Err(Failure::Source("what is sent is wrong again and again".to_owned()));
        }
        self.running.tally().take_back(offset);
        let back = self.writer.rewind(offset).await;
        back.map_err(|error| Failure::Source(error.to_string()))
    }

    /// Whether it is better to have the origin send the rest and wait for the proof than to start at the mark.
    fn is_worth_proving(&self) -> bool {
        if self.used.is_empty() || !self.can_take_back() {
            return true;
        }
        let Some(rest) = self.total.map(|total| total.saturating_sub(self.writer.received())) else {
            return false;
        };
        let rate = self.engine.0.origin.learned_rate(&self.case.want.target.authority());
        rest <= SMALL_REST || rate.is_some_and(|rate| rest / rate.max(1) <= PATIENCE_SECONDS)
    }

    pub(super) async fn settle(&mut self) -> Result<(), Failure> {
        let settled = self.writer.settle().await;
        settled.map(drop).map_err(|error| Failure::Source(error.to_string()))
    }

    async fn go_on_at(&mut self, offer: Offer) -> bool {
        let Some(lenders) = self.engine.lenders(&self.case).filter(|_| self.judge.is_set()) else {
            return false;
        };
        match lenders.pull(&offer, self.writer.received()).await {
            Ok((size, body)) if self.total.is_none_or(|total| total == size) => {
                self.switch(Source { body, from: From::Peer, offer: Some(offer) });
                true
            }
            Ok(_) | Err(_) => false,
        }
    }

    async fn go_on_at_origin(&mut self) -> Result<(), Trouble> {
        if self.is_judged_by_pieces() {
            return self.go_on_first_hand().await;
        }
        let (offset, until) = (self.writer.received(), self.next_part());
        let answer = self.running.answer();
        let tag = answer.head.strong_etag();
        let origin = self.engine.0.origin.clone();
        let missing = Missing { offset, until: until.filter(|until| *until > offset), tag };
        // only a digest that may refuse the result makes a bare range safe
        let rest = self.upstream.rest(&origin, missing, self.judge.named().is_some()).await;
        match rest.map_err(|error| Trouble::Passing(error.to_string()))? {
            Rest::From(response, size) if self.total.is_none_or(|total| total == size) => {
                self.heed(response.headers()).await.map_err(Trouble::Final)?;
                self.set_total(Some(size));
                self.switch(Source { body: response.into_body(), from: From::Origin, offer: None });
                Ok(())
            }
            Rest::From(..) => Err(Trouble::Final(Failure::Changed)),
            Rest::Whole(response) => self.take_whole(response, offset).await,
            Rest::Unusable(why) => Err(Trouble::Passing(why)),
        }
    }

    /// The origin sends the whole: its first bytes must be those that are here.
    pub(super) async fn take_whole(
        &mut self,
        response: http::Response<Body>,
        offset: u64,
    ) -> Result<(), Trouble> {
        let size = content_length(response.headers());
        let (head, body) = response.into_parts();
        if !self.is_same_answer(&head, size) {
            return self.replace(&head, body, size).await;
        }
        self.heed(&head.headers).await.map_err(Trouble::Final)?;
        let mut pieces = Pieces::new(body);
        let prefix = skip(&mut pieces, offset).await.map_err(Trouble::Passing)?;
        let here = self.writer.found().await.ok().flatten();
        if here.map(|found| found.digest) == Some(prefix.finish()) {
            self.switch_to(pieces, From::Origin, None);
            return Ok(());
        }
        if self.can_take_back() {
            self.blame();
            self.take_back().await.map_err(Trouble::Final)?;
            return Err(Trouble::Passing("a neighbour's bytes are not what the origin has".to_owned()));
        }
        Err(Trouble::Final(Failure::Changed))
    }

    /// Whether this answer is of the version that was told: never two tags, two sizes, two statuses, nor two dates
    /// where there is no tag. A digest that must hold says more than what is not strong.
    fn is_same_answer(&self, head: &http::response::Parts, size: Option<u64>) -> bool {
        let (told, now) = (self.running.answer(), StoredHead::keep(head.status, &head.headers));
        let is_named = self.judge.named().is_some();
        let same = |name| told.head.get(name) == now.get(name);
        let same_size = self.total.is_none() || size.is_none() || self.total == size;
        let same_date = told.head.get("etag").is_some() || same("last-modified");
        told.head.status == now.status
            && told.head.strong_etag() == now.strong_etag()
            && (is_named || (same("etag") && same_date))
            && same_size
    }

    /// The origin gives another answer now: it counts if nobody was told of the one before.
    async fn replace(
        &mut self,
        head: &http::response::Parts,
        body: Body,
        size: Option<u64>,
    ) -> Result<(), Trouble> {
        let (want, now) = (&self.case.want, self.engine.0.clock.now());
        let fields = &head.headers;
        let storable = policy::storable(&want.method, &want.headers, head.status, fields, &self.case.rule);
        let Ok(storable) = storable else { return Err(Trouble::Final(Failure::Changed)) };
        let answer = Answer::keep(&want.target, head.status, fields, now, now);
        // whoever follows was chosen by what selected the answer before
        let is_selected_alike =
            Variance::of(fields, &want.headers).is_ok_and(|variance| variance == *self.running.variance());
        if self.writer.released() > 0
            || head.status != StatusCode::OK
            || !is_selected_alike
            || !self.running.replace(answer)
        {
            return Err(Trouble::Final(Failure::Changed));
        }
        self.shareable = storable.shareable && !self.case.guarded;
        if !self.shareable {
            self.running.keep_to_ourselves();
        }
        self.running.tally().take_back(0);
        self.mark = Some(0);
        self.take_back().await.map_err(Trouble::Final)?;
        self.total = None;
        self.set_total(size);
        self.switch(Source { body, from: From::Origin, offer: None });
        Ok(())
    }

    /// What the origin says of the rest holds for the whole: where it may not be kept, nobody else gets any of it.
    pub(super) async fn heed(&mut self, fields: &http::HeaderMap) -> Result<(), Failure> {
        let want = &self.case.want;
        let may = policy::storable_part(&want.method, &want.headers, fields, &self.case.rule);
        let Err(why @ (NoStore::Private | NoStore::NoStore)) = may else { return Ok(()) };
        tracing::debug!(url = %want.target, %why, "what the origin goes on with may not be kept");
        (self.forbidden, self.shareable) = (Some(why), false);
        self.running.keep_to_ourselves();
        if let Some(stand) = &self.stand {
            stand.set_shareable(false);
        }
        self.engine.0.flights.part_from(self.case.flight_key());
        if self.writer.holds() != Hold::Nothing {
            // what waits for its proof cannot pass through memory: it goes with its file at the end
            return Ok(());
        }
        self.writer.stop_storing().await.map_err(|error| Failure::Source(error.to_string()))
    }

    pub(super) fn set_total(&mut self, size: Option<u64>) {
        if self.total != size {
            self.total = size;
            self.writer.set_total(size);
        }
    }

    pub(super) fn switch(&mut self, source: Source) {
        self.switch_to(Pieces::new(source.body), source.from, source.offer);
    }

    pub(super) fn switch_to(&mut self, pieces: Pieces, from: From, offer: Option<Offer>) {
        self.learn_progress();
        if from == From::Peer && self.mark.is_none() {
            self.mark = self.writer.is_storing().then(|| self.writer.received());
        }
        let peer = offer.as_ref().map(Offer::address);
        self.running.moved_to(self.writer.received(), from, peer);
        self.rate.restart(from);
        self.running.judge_by(self.judge);
        let release = self.engine.0.config.load().release;
        let release = offer.as_ref().map_or(release, |offer| offer.release(release));
        let by_pieces = self.follow.as_ref().and_then(|follow| follow.hold(self.total, release));
        let hold = by_pieces.unwrap_or_else(|| self.judge.hold(from, self.total, release));
        // a neighbour's bytes before it still wait for their proof
        let unproven = from == From::Peer || !self.used.is_empty();
        let strictly = self.used.is_empty() || by_pieces.is_some();
        let hold = if strictly { hold } else { hold.stricter(self.writer.holds()) };
        self.running.set_unproven(unproven && super::is_before_proof(hold));
        self.writer.hold(self.engine.hold_for_blocks(hold));
        self.stand_changes(offer.as_ref());
        self.origin_after |= from == From::Origin && !self.used.is_empty();
        (self.pieces, self.from, self.offer) = (pieces, from, offer);
    }

    /// Progress since the last switch wins the next source its patience back.
    fn learn_progress(&mut self) {
        const WORTH: u64 = 1024 * 1024;
        if self.rate.total() >= WORTH {
            self.failures = 0;
            self.troubled_since = None;
        }
    }
}

/// Reads and hashes the first bytes of a body.
async fn skip(pieces: &mut Pieces, count: u64) -> Result<Hasher, String> {
    let mut hasher = Hasher::new();
    while hasher.length() < count {
        let piece = pieces.next().await.map_err(|error| error.to_string())?;
        let mut piece = piece.ok_or("the origin's file is shorter than what it sent before")?;
        let most = usize::try_from(count - hasher.length()).unwrap_or(usize::MAX);
        if piece.len() > most {
            pieces.put_back(piece.split_off(most));
        }
        hasher.update(&piece);
    }
    Ok(hasher)
}
