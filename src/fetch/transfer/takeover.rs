//! Another source goes on at the byte reached.

use std::time::Duration;

use super::{Source, Transfer};
use crate::digest::Hasher;
use crate::discovery::Offer;
use crate::fetch::ledger::From;
use crate::fetch::neighbours;
use crate::fetch::origin_side::{Rest, content_length};
use crate::fetch::piece::Pieces;
use crate::http::Body;
use crate::policy::{self, Answer};
use crate::store::{Failure, Hold};

/// How often the origin is asked again without any progress, and how long in between.
const PAUSES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(100), Duration::from_millis(500), Duration::from_secs(2)];

impl Transfer {
    /// The source broke off: the next holder, then the origin.
    pub(super) async fn take_over(&mut self, why: &str) -> Result<(), Failure> {
        self.settle().await?;
        while let Some(offer) = self.offers.pop_front() {
            if self.go_on_at(offer).await {
                return Ok(());
            }
        }
        let mut why = why.to_owned();
        while let Some(pause) = usize::try_from(self.failures).ok().and_then(|at| PAUSES.get(at)) {
            self.failures += 1;
            tokio::time::sleep(*pause).await;
            match self.go_on_at_origin().await {
                Ok(()) => return Ok(()),
                Err(Trouble::Passing(trouble)) => why = trouble,
                Err(Trouble::Final(failure)) => return Err(failure),
            }
            if self.running.growing().readers() == 0 {
                return Err(Failure::Abandoned);
            }
        }
        Err(Failure::Source(why))
    }

    /// A neighbour that is too slow gives way to another or to the origin, unless there is nobody else.
    pub(super) async fn leave_slow_peer(&mut self) {
        if self.settle().await.is_err() {
            return;
        }
        tracing::debug!(url = %self.case.want.target, "a neighbour is too slow");
        while let Some(offer) = self.offers.pop_front() {
            if self.go_on_at(offer).await {
                return;
            }
        }
        if self.go_on_at_origin().await.is_err() {
            self.rate.restart(From::Peer);
        }
    }

    /// A neighbour answered late: the rest comes from there.
    pub(super) async fn move_to(&mut self, offer: Offer) {
        self.finding = None;
        let Some(digest) = offer.holding.digest else { return };
        let before = self.judge;
        if self.judge.digest.is_some_and(|known| known != digest) || self.settle().await.is_err() {
            return;
        }
        self.judge.digest = Some(digest);
        if self.go_on_at(offer).await {
            self.running.expect(Some(digest));
        } else {
            self.judge = before;
        }
    }

    /// The disk gave out under bytes that wait for their proof: the origin's own bytes need no proof.
    pub(super) async fn without_disk(&mut self) -> Result<(), Failure> {
        if !self.writer.nothing_released() || self.judge.binding {
            return Err(Failure::Source("the disk is full and the bytes could not be proved".to_owned()));
        }
        self.start_over().await
    }

    /// Everything again, from the origin alone.
    pub(super) async fn start_over(&mut self) -> Result<(), Failure> {
        self.offers.clear();
        self.used.clear();
        self.running.tally().start_over(From::Origin);
        self.writer.reset().await.map_err(|error| Failure::Source(error.to_string()))?;
        self.take_over("no other source").await
    }

    async fn settle(&mut self) -> Result<(), Failure> {
        let settled = self.writer.settle().await;
        settled.map(drop).map_err(|error| Failure::Source(error.to_string()))
    }

    async fn go_on_at(&mut self, offer: Offer) -> bool {
        let (Some(digest), Some(neighbours)) = (self.judge.digest, self.engine.neighbours(&self.case)) else {
            return false;
        };
        match neighbours.pull(&offer, digest, self.writer.received()).await {
            Ok((size, body)) if self.total.is_none_or(|total| total == size) => {
                self.switch(Source { body, from: From::Peer, offer: Some(offer) });
                true
            }
            Ok(_) | Err(_) => false,
        }
    }

    async fn go_on_at_origin(&mut self) -> Result<(), Trouble> {
        let offset = self.writer.received();
        let answer = self.running.answer();
        let tag = answer.head.strong_etag();
        let origin = self.engine.0.origin.clone();
        let rest = self.upstream.rest(&origin, offset, tag, self.judge.digest.is_some()).await;
        match rest.map_err(|error| Trouble::Passing(error.to_string()))? {
            Rest::From(response) => {
                self.switch(Source { body: response.into_body(), from: From::Origin, offer: None });
                Ok(())
            }
            Rest::Whole(response) => self.take_whole(response, offset).await,
            Rest::Unusable(why) => Err(Trouble::Passing(why)),
        }
    }

    /// The origin sends the whole: its first bytes must be those that went out.
    async fn take_whole(&mut self, response: http::Response<Body>, offset: u64) -> Result<(), Trouble> {
        let size = content_length(response.headers());
        let (head, body) = response.into_parts();
        if self.writer.nothing_released() && !self.is_same_answer(&head, size) {
            self.replace(&head, size).await?;
            self.switch(Source { body, from: From::Origin, offer: None });
            return Ok(());
        }
        let mut pieces = Pieces::new(body);
        let prefix = skip(&mut pieces, offset).await.map_err(Trouble::Passing)?;
        let ours = self.writer.digest().await.ok().flatten();
        if ours == Some(prefix.finish()) {
            self.switch_to(pieces, From::Origin, None);
            return Ok(());
        }
        if self.writer.nothing_released() {
            // the origin's bytes are the right ones: ask once more and take them from the start
            self.running.tally().start_over(From::Origin);
            self.used.clear();
            self.writer.reset().await.map_err(|error| Trouble::Passing(error.to_string()))?;
            return Err(Trouble::Passing("what came before was not what the origin has".to_owned()));
        }
        Err(Trouble::Final(Failure::Changed))
    }

    fn is_same_answer(&self, head: &http::response::Parts, size: Option<u64>) -> bool {
        let tag = head.headers.get(http::header::ETAG).and_then(|tag| tag.to_str().ok());
        self.running.answer().head.get("etag") == tag && (self.total.is_none() || self.total == size)
    }

    /// Nothing went out yet: the answer the origin gives now is the one that counts.
    async fn replace(&mut self, head: &http::response::Parts, size: Option<u64>) -> Result<(), Trouble> {
        self.running.tally().start_over(From::Origin);
        self.used.clear();
        self.writer.reset().await.map_err(|error| Trouble::Passing(error.to_string()))?;
        let now = self.engine.0.clock.now();
        let want = &self.case.want;
        let answer = Answer::keep(&want.target, head.status, &head.headers, now, now);
        let storable =
            policy::storable(&want.method, &want.headers, head.status, &head.headers, &self.case.rule);
        self.shareable = storable.as_ref().is_ok_and(|storable| storable.shareable);
        if storable.is_err() {
            self.writer.stop_storing().await.map_err(|error| Trouble::Passing(error.to_string()))?;
        }
        self.running.replace(answer);
        self.total = size;
        self.writer.set_total(size);
        Ok(())
    }

    fn switch(&mut self, source: Source) {
        self.switch_to(Pieces::new(source.body), source.from, source.offer);
    }

    fn switch_to(&mut self, pieces: Pieces, from: From, offer: Option<Offer>) {
        self.learn_progress();
        let peer = offer.as_ref().map(neighbours::address);
        self.running.moved_to(self.writer.received(), from, peer);
        self.rate.restart(from);
        let release = self.engine.0.config.load().release;
        // what was held back stays so while a neighbour's bytes before it wait for their proof
        let hold = match self.judge.hold(from, self.total, release) {
            Hold::Nothing if !self.used.is_empty() => self.writer.holds(),
            hold @ (Hold::Nothing | Hold::Tail(_) | Hold::Everything) => hold,
        };
        self.writer.hold(hold);
        self.origin_used |= from == From::Origin;
        if let Some(offer) = &offer
            && !self.used.iter().any(|used| used.peer.node == offer.peer.node)
        {
            self.used.push(offer.clone());
        }
        (self.pieces, self.from, self.offer) = (pieces, from, offer);
    }

    /// Progress since the last switch wins the next source its patience back.
    fn learn_progress(&mut self) {
        const WORTH: u64 = 1024 * 1024;
        if self.rate.total() >= WORTH {
            self.failures = 0;
        }
    }
}

/// Why a source cannot go on.
enum Trouble {
    /// Another try may help.
    Passing(String),
    /// Nothing will.
    Final(Failure),
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
