//! A running find, as the one who waits for it sees it.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::mpsc;

use super::{Command, Update};
use crate::discovery::Offer;
use crate::discovery::engine::FindingId;

/// A running find. Dropping it ends the question.
#[derive(Debug)]
pub struct Finding {
    pub(super) id: FindingId,
    pub(super) updates: mpsc::Receiver<Update>,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) early: VecDeque<Offer>,
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
                while let Some(Update::Offer(offer)) = self.updates.recv().await {
                    self.early.push_back(offer);
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
                Update::Decided => self.decided = true,
            }
        }
    }
}

impl Drop for Finding {
    fn drop(&mut self) {
        if self.commands.try_send(Command::Forget(self.id)).is_err() {
            tracing::trace!("the end of a find is noticed at its next offer");
        }
    }
}
