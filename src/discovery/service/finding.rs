//! A running find, as the one who waits for it sees it.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::{Command, Update};
use crate::discovery::engine::FindingId;
use crate::discovery::{Claimant, Offer};

/// What a running find hears.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// A neighbour has something of it.
    Offer(Offer),
    /// A neighbour claims it too.
    Claim(Claimant),
    /// There is no use in waiting longer.
    Decided,
}

/// A running find. Dropping it ends the question.
#[derive(Debug)]
pub struct Finding {
    pub(super) id: FindingId,
    pub(super) updates: mpsc::Receiver<Update>,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) early: VecDeque<Offer>,
    /// Claims that were heard while nobody listened for them.
    pub(super) claims: VecDeque<Claimant>,
    pub(super) decided: bool,
    /// The task decides in time; this guards against a task that is gone.
    pub(super) limit: Duration,
}

impl Finding {
    /// Waits for the decision: the first complete holder, or all known nodes, or the deadline. Gives all offers
    /// so far; where nobody has been heard lately, at once and none. Dropping the future loses nothing.
    pub async fn decided(&mut self) -> Vec<Offer> {
        if !self.decided {
            let decision = async {
                while let Some(update) = self.updates.recv().await {
                    match update {
                        Update::Offer(offer) => self.early.push_back(offer),
                        Update::Claimed(claimant) => self.claims.push_back(claimant),
                        Update::Decided => return,
                    }
                }
            };
            if tokio::time::timeout(self.limit, decision).await.is_err() {
                tracing::debug!("a find was not decided in time");
            }
            self.decided = true;
        }
        self.early.drain(..).collect()
    }

    /// The next offer, before or after the decision; none once there can be no more. It may wait long: use it
    /// beside the transfer that it could improve. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Offer> {
        if let Some(offer) = self.early.pop_front() {
            return Some(offer);
        }
        loop {
            match self.updates.recv().await? {
                Update::Offer(offer) => return Some(offer),
                Update::Claimed(claimant) => self.claims.push_back(claimant),
                Update::Decided => self.decided = true,
            }
        }
    }

    /// Whatever is heard next; none once there can be no more. Dropping the future loses nothing.
    pub async fn heard(&mut self) -> Option<Heard> {
        if let Some(offer) = self.early.pop_front() {
            return Some(Heard::Offer(offer));
        }
        if let Some(claimant) = self.claims.pop_front() {
            return Some(Heard::Claim(claimant));
        }
        match self.updates.recv().await? {
            Update::Offer(offer) => Some(Heard::Offer(offer)),
            Update::Claimed(claimant) => Some(Heard::Claim(claimant)),
            Update::Decided => {
                self.decided = true;
                Some(Heard::Decided)
            }
        }
    }

    /// Waits until discovery has heard what had come by now. What it answered before that it answered without
    /// knowing what its caller has done since; who asked then has been told of through this find.
    pub async fn catch_up(&self) {
        let (done, caught_up) = oneshot::channel();
        let sent = self.commands.try_send(Command::CatchUp(done)).is_ok();
        if sent && !matches!(tokio::time::timeout(self.limit, caught_up).await, Ok(Ok(()))) {
            tracing::debug!("discovery did not catch up in time");
        }
    }

    /// An offer that was heard and could not be used at once is heard again.
    pub fn keep(&mut self, offer: Offer) {
        self.early.push_back(offer);
    }
}

impl Drop for Finding {
    fn drop(&mut self) {
        if self.commands.try_send(Command::Forget(self.id)).is_err() {
            tracing::trace!("the end of a find is noticed at its next offer");
        }
    }
}
