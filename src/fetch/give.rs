//! From what is held or arriving to an answer.

use std::sync::Arc;
use std::time::Duration;

use super::again::Again;
use super::engine::{Case, Engine};
use super::error::FetchError;
use super::outcome::{Bytes, CacheStatus, Given, Held, Reply};
use super::running::Running;
use crate::cache::Opened;
use crate::digest::Digest;
use crate::http::StoredHead;
use crate::index::ResourceRecord;
use crate::policy;
use crate::store::{End, Failure, Progress};

impl Engine {
    /// A transfer as an answer; where bytes wait for their proof, the head waits for the first of them.
    pub(super) async fn give_running(
        &self,
        case: &Case,
        running: Arc<Running>,
        mut status: CacheStatus,
    ) -> Result<Reply, FetchError> {
        let interest = running.growing().interest();
        if running.judge().is_set() || self.0.cache.index().has_blocks() {
            let progress = judged_or_opened(&running).await;
            match progress.end {
                Some(End::Failed(Failure::Digest)) => {
                    return Err(FetchError::Digest);
                }
                Some(End::Failed(Failure::Changed)) if progress.released == 0 => {
                    return Err(FetchError::Again);
                }
                Some(End::Failed(Failure::Blocked)) if progress.released == 0 => {
                    self.refuse_blocked(&case.url, running.expected())?;
                    return Err(FetchError::Source(Failure::Blocked.to_string()));
                }
                Some(End::Failed(failure)) if progress.released == 0 => {
                    return Err(FetchError::Source(failure.to_string()));
                }
                Some(_) | None => status.detail = Some(running.detail()),
            }
        }
        let held = Held {
            head: running.tell().into(),
            age: None,
            size: running.growing().progress().total,
            digest: running.expected(),
            bytes: Bytes::Growing(running, self.cuts(case), interest, Again::new(self, case)),
            slice: None,
            line: None,
        };
        Ok(Reply { given: Given::Held(Box::new(held)), status })
    }

    /// A stored answer with its bytes; none if they are gone.
    pub(super) async fn open(&self, record: &ResourceRecord, case: &Case) -> Option<Held> {
        let age = Some(policy::age(&record.answer, self.0.clock.now()));
        let head = record.answer.head.clone().into();
        let Some(digest) = record.digest else {
            let bytes = Bytes::None;
            return Some(Held { head, age, size: Some(0), digest: None, bytes, slice: None, line: None });
        };
        let (size, bytes) = self.open_digest(digest, case).await?;
        Some(Held { head, age, size: Some(size), digest: Some(digest), bytes, slice: None, line: None })
    }

    pub(super) async fn open_digest(&self, digest: Digest, case: &Case) -> Option<(u64, Bytes)> {
        match self.0.cache.open_blob(&digest).await? {
            Opened::Proven(blob) => Some((blob.size(), Bytes::Blob(blob, self.0.ledger.clone()))),
            Opened::Proving(blob, growing) => {
                let progress = growing.opened().await;
                if matches!(progress.end, Some(End::Failed(_))) {
                    return None;
                }
                let bytes = Bytes::Proving(growing, self.cuts(case), self.0.ledger.clone());
                Some((blob.size(), bytes))
            }
        }
    }

    /// What is held under the digest that the client or the URL names needs no word of the origin.
    pub(super) async fn serve_digest(
        &self,
        case: &Case,
        digest: Digest,
    ) -> Result<Option<Reply>, FetchError> {
        if self.0.cache.holds(&digest).is_none() {
            return Ok(None);
        }
        let Some((size, bytes)) = self.open_digest(digest, case).await else { return Ok(None) };
        let records = self.0.cache.index().resources_of(&digest);
        let good = |record: &&Arc<ResourceRecord>| record.answer.head.status == 200;
        let own = records
            .iter()
            .filter(good)
            .find(|record| record.url_key == case.url && record.variance.matches(&case.want.headers));
        let binding = case.judge.binding;
        let other = || {
            let record = records.iter().find(good);
            record.map_or_else(|| plain_head(binding), |r| kind_of_bytes(&r.answer.head, binding))
        };
        let head = own.map_or_else(other, |record| record.answer.head.clone()).into();
        let age = own.map(|record| policy::age(&record.answer, self.0.clock.now()));
        let (size, digest) = (Some(size), Some(digest));
        let held = Held { head, age, size, digest, bytes, slice: None, line: None };
        Ok(Some(Reply { given: Given::Held(Box::new(held)), status: CacheStatus::hit() }))
    }
}

/// Waits for the first byte that may go out; where the whole is small, a moment longer for the judgement, so that
/// a wrong thing is an answer and not a broken connection.
async fn judged_or_opened(running: &Running) -> Progress {
    const SMALL: u64 = 1024 * 1024;
    const MOMENT: Duration = Duration::from_secs(2);
    let progress = running.growing().opened().await;
    if progress.end.is_none() && progress.total.is_some_and(|total| total <= SMALL) {
        // a source too slow for it does not hold the client up
        if tokio::time::timeout(MOMENT, running.growing().ended()).await.is_err() {
            tracing::trace!("no judgement yet");
        }
    }
    running.growing().progress()
}

/// What another URL's head says of the bytes themselves.
pub(super) fn kind_of_bytes(head: &StoredHead, is_for_ever: bool) -> StoredHead {
    let mut plain = plain_head(is_for_ever);
    if let (Some(kind), None) = (head.get("content-type"), head.get("content-encoding")) {
        plain.fields.retain(|(name, _)| name != "content-type");
        plain.fields.push(("content-type".to_owned(), kind.to_owned()));
    }
    plain
}

/// The head of a thing of which only the bytes are known, and whether the URL can lead to no others.
pub(super) fn plain_head(is_for_ever: bool) -> StoredHead {
    let fields =
        [("content-type", "application/octet-stream"), ("cache-control", "immutable, max-age=31536000")];
    let known = fields.iter().take(if is_for_ever { 2 } else { 1 });
    StoredHead {
        status: 200,
        fields: known.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    }
}
