//! Following the leader of a flight, or leading one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::engine::{Case, Engine};
use super::error::FetchError;
use super::flight::{Found, Permit};
use super::lead::Lead;
use super::outcome::{CacheStatus, Given, Reply};
use super::running::Running;
use crate::index::ResourceRecord;
use crate::range::RangeRequest;

/// How long a range may wait for a running transfer to come to where it begins.
pub(super) const SOON: Duration = Duration::from_millis(250);
/// How long a transfer is looked at before its rate is known.
const GLANCE: Duration = Duration::from_millis(60);
/// The same for what a neighbour gives: the origin is spared by waiting longer.
const FROM_NEIGHBOUR: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(2));

impl Engine {
    pub(super) async fn follow(
        &self,
        case: Case,
        found: Found,
        own: Option<(Arc<ResourceRecord>, bool)>,
    ) -> Result<Reply, FetchError> {
        let status = |case: &Case, remark: &str| CacheStatus {
            collapsed: true,
            ..CacheStatus::forwarded(case.why, remark)
        };
        match found {
            Found::Running(running) if running.can_be_joined(&case.want.headers) => {
                if let Some(range) = case.want.range()
                    && !soon_there(&running, range).await
                {
                    return self.apart(case).await;
                }
                let status = status(&case, &running.detail());
                match self.give_running(&case, running, status).await {
                    Err(FetchError::Again) => self.lead_alone(case.without_peers(), None).await,
                    given @ (Ok(_) | Err(_)) => given,
                }
            }
            Found::Confirmed(record) if record.variance.matches(&case.want.headers) => {
                match self.open(&record, &case).await {
                    Some(held) => {
                        let status = status(&case, "confirmed by the origin");
                        Ok(Reply { given: Given::Held(Box::new(held)), status })
                    }
                    None => self.lead_alone(case, None).await,
                }
            }
            Found::Stale(record, why)
                if own.as_ref().is_some_and(|(own, allowed)| *allowed && **own == *record) =>
            {
                match self.open(&record, &case).await {
                    Some(held) => {
                        let status = status(&case, why);
                        Ok(Reply { given: Given::Held(Box::new(held)), status })
                    }
                    None => self.lead_alone(case, None).await,
                }
            }
            // what runs is of no use for it: the range goes to the origin as it is
            Found::Running(_) | Found::Leave | Found::Failed(_)
                if case.want.range().is_some() && own.is_none() =>
            {
                self.apart(case).await
            }
            Found::Running(_) | Found::Confirmed(_) | Found::Stale(..) | Found::Leave => {
                self.lead_alone(case, own).await
            }
            Found::Failed(error) => Err(FetchError::Source(error.to_string())),
        }
    }

    /// A range that nothing running helps with. All of a thing whose digest must hold is judged by that; any other
    /// range goes to the origin as it is.
    async fn apart(&self, case: Case) -> Result<Reply, FetchError> {
        let is_all = case.want.range() == Some(RangeRequest::From { first: 0, last: None });
        if is_all && case.judge.bound().is_some() {
            return self.lead_alone(case, None).await;
        }
        self.part(case).await
    }

    pub(super) async fn lead_alone(
        &self,
        case: Case,
        stored: Option<(Arc<ResourceRecord>, bool)>,
    ) -> Result<Reply, FetchError> {
        self.lead(case, stored, None).await
    }

    /// Leads in a task of its own: the client may leave without hurting those who follow. Where the thing turns
    /// out to be another one before anything went out, the client has the origin's own answer.
    pub(super) async fn lead(
        &self,
        case: Case,
        stored: Option<(Arc<ResourceRecord>, bool)>,
        permit: Option<Permit>,
    ) -> Result<Reply, FetchError> {
        let again = case.without_peers();
        match self.lead_once(case, stored, permit).await {
            Err(FetchError::Again) => self.lead_once(again, None, None).await,
            given @ (Ok(_) | Err(_)) => given,
        }
    }

    pub(super) async fn lead_once(
        &self,
        case: Case,
        stored: Option<(Arc<ResourceRecord>, bool)>,
        permit: Option<Permit>,
    ) -> Result<Reply, FetchError> {
        let (sender, receiver) = oneshot::channel();
        let lead = Lead::new(self.clone(), case, stored, permit);
        // joined by the drain
        drop(self.0.drain.spawn(lead.run(sender)));
        receiver.await.unwrap_or(Err(FetchError::Stopping))
    }
}

/// Whether a transfer has, or will soon have, the first byte of a range.
pub(super) async fn soon_there(running: &Running, range: RangeRequest) -> bool {
    let first = match (range, running.growing().progress().total) {
        // without a size no range can be answered
        (RangeRequest::From { first, last }, None) => return first == 0 && last.is_none(),
        (RangeRequest::From { first, .. }, Some(_)) => first,
        (RangeRequest::Suffix(length), Some(total)) => total.saturating_sub(length),
        (RangeRequest::Suffix(_), None) => return false,
    };
    let (glance, wait) = if running.is_from_neighbour() { FROM_NEIGHBOUR } else { (GLANCE, SOON) };
    running.will_have(first, glance, wait).await
}
