//! What is here already, or arriving by itself, because clients asked for parts: the origin is read up to there, and
//! goes on behind it. Many ranges of one thing so cost the origin one copy of it.

use std::time::Duration;

use super::pump::deserted;
use super::{Source, Transfer};
use crate::cache::Part;
use crate::fetch::ledger::From;
use crate::fetch::parts::{Arrival, Here, Sought, covering, next};
use crate::fetch::piece::Pieces;
use crate::http::empty;
use crate::store::Failure;

use bytes::Bytes;

/// How often it is judged whether a part that arrives is worth the wait.
const LOOK: Duration = Duration::from_secs(1);

/// What a transfer knows of parts that are here.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// How many changes it has seen.
    seen: Option<u64>,
    here: Vec<Here>,
    /// Of no use after all, by where they begin.
    left: Vec<u64>,
}

impl Transfer {
    /// Whether parts may stand in for the origin: only what the origin itself sends, under a strong tag.
    fn may_take_parts(&self) -> bool {
        self.from != From::Peer && self.follow.is_none() && self.used.is_empty() && self.writer.is_storing()
    }

    fn look_for_parts(&mut self) {
        let changes = self.engine.0.arrivals.changes();
        if self.known.seen.replace(changes) == Some(changes) {
            return;
        }
        let answer = self.running.answer();
        let (Some(tag), Some(size)) = (answer.head.strong_etag(), self.total) else { return };
        let sought = Sought { url: self.case.url, variance: self.running.variance(), tag, size };
        self.known.here = self.engine.here(&sought);
        let left = &self.known.left;
        self.known.here.retain(|here| !left.contains(&here.range().start));
    }

    /// Where something begins that is here already.
    pub(super) fn next_part(&mut self) -> Option<u64> {
        if !self.may_take_parts() {
            return None;
        }
        self.look_for_parts();
        next(&self.known.here, self.writer.received())
    }

    /// Cuts off what is here already; whether that is reached with these bytes.
    pub(super) fn trim(&mut self, bytes: &mut Bytes) -> bool {
        if self.from != From::Origin {
            return false;
        }
        let Some(at) = self.next_part() else { return false };
        let room = at.saturating_sub(self.writer.received());
        let Ok(room) = usize::try_from(room) else { return false };
        let is_reached = room <= bytes.len();
        bytes.truncate(room);
        is_reached
    }

    /// From here on what is here is read, and behind it the origin.
    pub(super) async fn take_parts(&mut self) -> Result<(), Failure> {
        self.settle().await?;
        // the origin sends no more of what nobody needs
        self.pieces = Pieces::new(empty());
        self.rate.restart(From::Cache);
        loop {
            self.look_for_parts();
            let at = self.writer.received();
            match covering(&self.known.here, at).cloned() {
                Some(Here::Held(part)) => {
                    if self.read_part(&part, at).await {
                        return Ok(());
                    }
                    self.leave_part(part.range.start);
                }
                Some(Here::Arriving(arrival)) => {
                    if !self.await_part(&arrival).await? {
                        self.leave_part(arrival.range.start);
                    }
                }
                None => break,
            }
        }
        if self.total == Some(self.writer.received()) {
            return Ok(());
        }
        self.go_on_at_origin_or_fail("the origin does not send what is missing").await
    }

    async fn read_part(&mut self, part: &Part, at: u64) -> bool {
        let Some(blob) = self.engine.0.cache.open_proven(&part.digest).await else { return false };
        let inside = at.saturating_sub(part.range.start)..part.range.end.saturating_sub(part.range.start);
        if blob.size() < inside.end {
            return false;
        }
        self.switch(Source { body: blob.body(inside), from: From::Cache, offer: None });
        true
    }

    /// Whatever is wrong with it, it is not read again.
    pub(super) fn leave_part(&mut self, start: u64) {
        self.known.left.push(start);
        self.known.here.retain(|here| here.range().start != start);
    }

    /// The part in which the writer stands failed.
    pub(super) fn leave_present_part(&mut self) {
        let here = covering(&self.known.here, self.writer.received()).map(Here::range);
        if let Some(range) = here {
            self.leave_part(range.start);
        }
    }

    /// Waits for a part as long as it comes about as fast as the origin would send it anew. Its client sets its
    /// pace, and may be slow, or leave.
    async fn await_part(&mut self, arrival: &Arrival) -> Result<bool, Failure> {
        let (mut watch, growing) = (arrival.watch(), self.running.growing().clone());
        loop {
            let before = watch.borrow().here;
            tokio::select! {
                // nobody is left to tell: it has ended
                ended = watch.wait_for(|state| state.ended) => return Ok(ended.is_ok()),
                () = self.engine.0.stop.requested(), if !self.stopping => return Ok(false),
                () = deserted(&growing), if !self.is_worth_finishing() => return Err(Failure::Abandoned),
                () = tokio::time::sleep(LOOK) => {}
            }
            let here = watch.borrow().here;
            let rest = (arrival.range.end - arrival.range.start).saturating_sub(here);
            if !self.is_worth_the_wait(rest, here.saturating_sub(before)) {
                return Ok(false);
            }
        }
    }

    /// Whether the rest of a part that comes at this rate comes soon enough: those who share the line with it slow
    /// each other down, and would slow this transfer too.
    fn is_worth_the_wait(&self, rest: u64, rate: u64) -> bool {
        let learned = self.engine.0.origin.learned_rate(&self.case.want.target.authority());
        let sharing = self.known.here.iter().filter(|here| matches!(here, Here::Arriving(_))).count() as u64;
        let alone = learned.map_or(0, |learned| rest / learned.max(1));
        rate > 0 && rest / rate <= alone.saturating_add(1).saturating_mul(2 * (sharing + 1))
    }
}
