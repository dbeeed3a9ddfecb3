//! From the source into the file.

use std::time::Duration;

use bytes::Bytes;

use super::{Transfer, rivals};
use crate::discovery::{self, Heard};
use crate::fetch::ledger::From;
use crate::fetch::neighbours::{self, Version};
use crate::fetch::offer::Offer;
use crate::fetch::sidecar::Hint;
use crate::http::BodyError;
use crate::store::{Hold, StoreError, WriteError, WriteNote};
use crate::tls::NodeId;

/// The first note of how far it has come; later ones follow at growing distances.
pub(super) const FIRST_CHECKPOINT: u64 = 256 * 1024;
const LAST_STEP: u64 = 32 * 1024 * 1024;
/// How long a transfer that nobody reads waits for somebody.
const GRACE: Duration = Duration::from_millis(700);
/// What is nearly done is finished although nobody reads it.
const SMALL_REST: u64 = 4 * 1024 * 1024;
const LARGE_REST: u64 = 64 * 1024 * 1024;
/// A rest below this is not worth moving to another source.
const WORTH_MOVING: u64 = 4 * 1024 * 1024;
/// Room for a thing of unknown size is asked for in steps.
const STEP: u64 = 8 * 1024 * 1024;
/// The same where the size is known.
const LARGE_STEP: u64 = 32 * 1024 * 1024;

/// Why the pump stopped.
pub(super) enum Stop {
    /// The source said that this is the end.
    Ended,
    /// The source broke off: why.
    Broken(String),
    /// What comes next is here already, or arriving by itself.
    Here,
    /// The neighbour is much slower than the origin would be.
    Slow,
    /// A neighbour turned up that holds the same thing.
    Better(Offer),
    /// A neighbour turned up that holds what a checksum file names.
    Hinted(Offer),
    /// A neighbour went to the origin for the same thing, and goes first.
    Outranked(Box<discovery::Offer>),
    /// A piece is not what this node says, which had it from the origin.
    Wrong(NodeId),
    /// What a neighbour sent is not what the origin has, or nobody can say so.
    Unproved,
    /// The origin has other bytes now where it had these.
    Changed,
    /// Nobody reads it, and too much is missing.
    Abandoned,
    /// The disk gave out while unproven bytes were held.
    Disk(StoreError),
}

impl Transfer {
    /// Moves bytes until something happens.
    pub(super) async fn pump(&mut self) -> Stop {
        loop {
            if let Some(stop) = self.look_around().await {
                return stop;
            }
            if let Some(stop) = self.hear_root().or_else(|| self.hear_rivals()) {
                return stop;
            }
            let piece = match self.pieces.now() {
                Some(piece) => piece,
                None => {
                    // readers see what is written before the wait begins
                    let settled = self.writer.settle().await;
                    if let Some(stop) = self.after_write(settled) {
                        return stop;
                    }
                    match self.wait().await {
                        Ok(piece) => piece,
                        Err(stop) => return stop,
                    }
                }
            };
            let stopped = match piece {
                Ok(Some(bytes)) => self.take(bytes).await,
                Ok(None) => Some(self.source_ended().await),
                Err(error) => Some(Stop::Broken(error.to_string())),
            };
            if let Some(stop) = stopped {
                return stop;
            }
        }
    }

    /// A source that is never waited for must not hide that the program stops or that nobody reads.
    async fn look_around(&mut self) -> Option<Stop> {
        if !self.stopping && self.engine.0.stop.is_requested() {
            self.begin_stopping().await;
        }
        if self.running.growing().readers() > 0 {
            self.lonely = None;
            return None;
        }
        let now = self.engine.0.clock.instant();
        let since = *self.lonely.get_or_insert(now);
        let left = now.saturating_duration_since(since) > GRACE && !self.is_worth_finishing();
        left.then_some(Stop::Abandoned)
    }

    async fn wait(&mut self) -> Result<Result<Option<Bytes>, BodyError>, Stop> {
        let growing = self.running.growing().clone();
        let is_worth_moving = self.from == From::Origin && self.rest_is_worth_moving();
        let wait_for_peers = is_worth_moving && self.finding.is_some();
        let looks_for_rivals = self.looks_for_rivals();
        loop {
            tokio::select! {
                biased;
                piece = self.pieces.next() => return Ok(piece),
                () = self.engine.0.stop.requested(), if !self.stopping => self.begin_stopping().await,
                () = deserted(&growing) => {
                    if !self.is_worth_finishing() {
                        return Err(Stop::Abandoned);
                    }
                    return Ok(self.pieces.next().await);
                }
                () = self.rate.tick(), if self.from == From::Peer || self.follow.is_some() => {
                    if let Some(stop) = self.hear_root() {
                        return Err(stop);
                    }
                    if self.from == From::Peer && self.rate.is_slow() && self.is_left_behind() {
                        return Err(Stop::Slow);
                    }
                }
                heard = late(&mut self.finding), if wait_for_peers => match heard {
                    Some(Heard::Offer(offer)) if self.is_better(&offer) => {
                        return Err(Stop::Better(offer.into()));
                    }
                    Some(heard) => self.note_rival(heard),
                    None => self.finding = None,
                },
                offers = hinted(&mut self.hint), if is_worth_moving => {
                    self.hint = None;
                    self.offers.extend(offers);
                    if let Some(offer) = self.offers.pop_front() {
                        return Err(Stop::Hinted(offer));
                    }
                }
                offer = rivals::looked(&mut self.rivals, &mut self.follow), if looks_for_rivals => {
                    if let Some(stop) = self.rival(offer) {
                        return Err(stop);
                    }
                }
            }
        }
    }

    async fn take(&mut self, mut bytes: Bytes) -> Option<Stop> {
        let is_here = self.trim(&mut bytes);
        if is_here && bytes.is_empty() {
            return Some(Stop::Here);
        }
        let length = bytes.len() as u64;
        let after = self.writer.received() + length;
        if self.total.is_some_and(|total| after > total) {
            return Some(Stop::Broken("the source sent more than it announced".to_owned()));
        }
        if self.from == From::Peer && self.rate.is_slow() && self.is_left_behind() {
            self.pieces.put_back(bytes);
            return Some(Stop::Slow);
        }
        self.rate.received(length);
        let now = self.engine.0.clock.instant();
        if let Some(follow) = &mut self.follow {
            follow.fed(now);
        }
        if let Some(offer) = &self.offer
            && !self.used.iter().any(|used| used.lender() == offer.lender())
        {
            self.used.push(offer.clone());
        }
        let written = self.writer.write(bytes).await;
        self.running.tally().received(self.writer.received());
        if let Some(stop) = self.after_write(written) {
            return Some(stop);
        }
        self.extend(after).await;
        if is_here {
            return Some(Stop::Here);
        }
        self.checkpoint(after).await
    }

    fn after_write(&mut self, written: Result<WriteNote, WriteError>) -> Option<Stop> {
        match written {
            Ok(WriteNote::Stored) => None,
            Ok(WriteNote::Spilled(error)) => {
                self.engine.0.cache.note_trouble(&error);
                None
            }
            Err(WriteError::Disk(error)) => Some(Stop::Disk(error)),
            Err(WriteError::Deserted) => Some(Stop::Abandoned),
        }
    }

    async fn source_ended(&mut self) -> Stop {
        let settled = self.writer.settle().await;
        if let Some(stop) = self.after_write(settled) {
            return stop;
        }
        match self.total {
            Some(total) if self.writer.received() < total && self.from == From::Cache => Stop::Here,
            Some(total) if self.writer.received() < total => {
                Stop::Broken("the source ended before the size it announced".to_owned())
            }
            Some(_) | None => Stop::Ended,
        }
    }

    /// A large thing, or one of unknown size, needs more room; where there is none, the rest passes through.
    async fn extend(&mut self, after: u64) {
        let promised = self.reservation.bytes();
        let step = if self.total.is_some() { LARGE_STEP } else { STEP };
        let is_enough = after + step / 2 < promised || self.total.is_some_and(|total| promised >= total);
        if !self.writer.is_storing() || is_enough {
            return;
        }
        let needed = (after.next_multiple_of(step) + step).min(self.total.unwrap_or(u64::MAX));
        let (cache, mut reservation) = (self.engine.0.cache.clone(), self.reservation.take());
        let extended = tokio::task::spawn_blocking(move || {
            let result = cache.extend(&mut reservation, needed);
            (reservation, result)
        });
        let Ok((reservation, result)) = extended.await else { return };
        self.reservation = reservation;
        if let Err(reason) = result {
            tracing::debug!(%reason, "a download grew beyond what can be stored: passed through from here");
            if let Err(error) = self.writer.stop_storing().await {
                tracing::debug!(%error, "nobody reads it either");
            }
        }
    }

    async fn checkpoint(&mut self, after: u64) -> Option<Stop> {
        if after < self.next_checkpoint || self.stopping || !self.writer.is_storing() || !self.is_resumable()
        {
            return None;
        }
        self.next_checkpoint = after + (after / 2).clamp(FIRST_CHECKPOINT, LAST_STEP);
        let (key, note) = (self.partial_key(), self.note());
        match self.writer.checkpoint(key, note).await {
            Err(WriteError::Disk(error)) => {
                // the record could not be written: the transfer itself may still go well
                tracing::debug!(%error, "failed to note how far a download has come");
                None
            }
            noted @ (Ok(_) | Err(WriteError::Deserted)) => self.after_write(noted),
        }
    }

    /// The program stops: what is here is kept for the next run, readers get the rest through memory. Bytes
    /// that wait for their proof cannot pass through memory: they stay in the file, which nobody will keep.
    async fn begin_stopping(&mut self) {
        self.stopping = true;
        if self.writer.holds() == Hold::Everything {
            self.storing = None;
            return;
        }
        match self.writer.part_with_file().await {
            Ok(Some(ingest)) if self.is_resumable() => self.keep(ingest).await,
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "failed to part with a staging file"),
        }
        self.storing = None;
    }

    pub(super) fn is_worth_finishing(&self) -> bool {
        let Some(total) = self.total else { return false };
        let rest = total.saturating_sub(self.writer.received());
        rest <= SMALL_REST || (rest <= LARGE_REST && rest <= total / 10)
    }

    pub(super) fn rest_is_worth_moving(&self) -> bool {
        (self.finding.is_some() || self.hint.is_some()) && self.rest_is_long()
    }

    /// Whether so much is to come that another source is worth its trouble.
    pub(super) fn rest_is_long(&self) -> bool {
        self.writer.is_storing()
            && self.total.is_some_and(|total| total.saturating_sub(self.writer.received()) > WORTH_MOVING)
    }

    pub(super) fn is_better(&self, offer: &discovery::Offer) -> bool {
        let answer = self.running.answer();
        let version = Version { key: self.key(), head: &answer.head, size: self.total };
        let word = self.engine.word_for(&self.case);
        let better = neighbours::witnessed(std::slice::from_ref(offer), &version, word);
        self.shareable && better.is_some_and(|(digest, _)| !self.engine.contradicts(&self.case, digest))
    }
}

/// Completes when nobody has read for a while.
pub(super) async fn deserted(growing: &crate::store::Growing) {
    loop {
        growing.deserted().await;
        tokio::time::sleep(GRACE).await;
        if growing.readers() == 0 {
            return;
        }
    }
}

async fn late(finding: &mut Option<discovery::Finding>) -> Option<Heard> {
    match finding {
        Some(finding) => finding.heard().await,
        None => std::future::pending().await,
    }
}

async fn hinted(hint: &mut Option<Hint>) -> Vec<Offer> {
    match hint {
        // whoever looked may have given up
        Some(hint) => hint.await.unwrap_or_default(),
        None => std::future::pending().await,
    }
}
