//! Asking an origin for the checksum of what it is sending: beside the download, for large archives that neighbours
//! could give, never with anything of the client's own.
//!
//! What is read counts as a word of the origin's now, unless the file is newer than its checksum: then that is of an
//! earlier one. Whether a folder has such files is remembered, absence too, so that one question is asked for many
//! downloads. Whatever goes wrong here is of no consequence: the download itself runs on.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use tokio::sync::oneshot;

use super::engine::{Case, Engine};
use super::neighbours::Haste;
use super::offer::Offer;
use super::origin_side::Upstream;
use super::piece::Pieces;
use crate::clock::Timestamp;
use crate::digest::{Algorithm, Stated};
use crate::ecosystem::{self, Document, Passing, Sidecars, Statement};
use crate::http::{Body, StoredHead, Target};
use crate::policy::{self, UrlKey};

/// From this size on a download is worth a question.
const LARGE: u64 = 16 * 1024 * 1024;
/// The most that is read of a checksum file.
const MOST: usize = 1024 * 1024;
/// How long the question may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long what was read counts as said now.
const SAID: Duration = Duration::from_secs(60);
/// How long a folder that has no such file is not asked again.
const ABSENT: Duration = Duration::from_secs(3600);
/// Of how many checksum files this is remembered.
const REMEMBERED: usize = 4096;

/// Holders of a thing that turned up while it is received.
pub(super) type Hint = oneshot::Receiver<Vec<Offer>>;

/// What is known of checksum files.
#[derive(Debug, Default)]
pub(super) struct Asked(Mutex<HashMap<UrlKey, Memory>>);

#[derive(Debug, Clone, Copy)]
struct Memory {
    at: Timestamp,
    /// Whether it was there, and of when it is; not there, or asked for just now: none.
    published: Option<Timestamp>,
}

/// What to do about a checksum file.
enum Next {
    Ask,
    /// It was read a moment ago, and is of this time.
    Known(Timestamp),
    /// It is not there, or somebody else is asking.
    Leave,
}

impl Asked {
    /// Looks up what is known, and notes that it is being asked for where nothing is.
    fn begin(&self, key: UrlKey, now: Timestamp) -> Next {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&key) {
            Some(Memory { at, published: Some(published) }) if now.since(*at) < SAID => {
                return Next::Known(*published);
            }
            Some(Memory { at, published: None }) if now.since(*at) < ABSENT => return Next::Leave,
            Some(_) | None => {}
        }
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(key, Memory { at: now, published: None });
        Next::Ask
    }

    fn note(&self, key: UrlKey, at: Timestamp, published: Timestamp) {
        let memory = Memory { at, published: Some(published) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, memory);
    }

    /// For a while nothing of the kind is believed.
    fn bar(&self, key: UrlKey, now: Timestamp) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key, Memory { at: now, published: None });
    }

    /// It could not be asked: the next download may.
    fn forget(&self, key: UrlKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }
}

impl Engine {
    /// Asks for the checksum of what the origin has begun to send, and then for neighbours that hold it.
    pub(super) fn seek_sidecar(&self, case: &Case, head: &StoredHead, total: Option<u64>) -> Option<Hint> {
        let is_worth = self.0.config.load().sidecars
            && total.is_some_and(|total| total >= LARGE)
            && head.get("content-encoding").is_none()
            && !case.judge.is_set()
            && !case.want.is_private();
        let sidecars = ecosystem::sidecars(&case.want.target).filter(|_| is_worth)?;
        // without anybody who could give it a digest is of no use
        self.lenders(case)?;
        let modified = policy::last_modified(head)?;
        let (engine, case, total) = (self.clone(), case.clone(), total?);
        let (tell, hint) = oneshot::channel();
        // joined by the drain
        drop(self.0.drain.spawn(async move {
            let found = engine.holders_by_sidecar(&case, &sidecars, modified, total);
            tokio::select! {
                found = tokio::time::timeout(PATIENCE, found) => {
                    // nobody waits for it any more where the download is over
                    drop(tell.send(found.unwrap_or_default()));
                }
                () = engine.0.stop.requested() => {}
            }
        }));
        Some(hint)
    }

    /// A checksum file led to bytes that are not the origin's: it is dropped, and its folder's are left alone for a
    /// while.
    pub(super) fn doubt_sidecars(&self, case: &Case) {
        tracing::debug!(url = %case.want.target, "a checksum file does not belong to what the origin sends");
        if let Some(expected) = self.expectation(&case.want.target) {
            self.0.cache.index().drop_expectation(&expected.url_key, &expected.digest);
        }
        if let Some(sidecars) = ecosystem::sidecars(&case.want.target) {
            let now = self.0.clock.now();
            for target in [&sidecars.list, &sidecars.folder] {
                self.0.asked.bar(self.url_key(target), now);
            }
        }
    }

    async fn holders_by_sidecar(
        &self,
        case: &Case,
        sidecars: &Sidecars,
        modified: Timestamp,
        total: u64,
    ) -> Vec<Offer> {
        // one file's own checksum stands for those of its whole folder: where one has none, the others have none
        let own = self.url_key(&sidecars.folder);
        let list = self.url_key(&sidecars.list);
        for (key, by) in [(list, &sidecars.list), (own, &sidecars.own)] {
            let Some(stated) = self.sidecar(case, key, by, modified).await else { continue };
            let Some(lenders) = self.lenders(case) else { break };
            let mut offers = lenders.holders(&stated, Haste::Beside).await;
            offers.retain(|offer| offer.holding.size.is_none_or(|size| size == total));
            if !offers.is_empty() {
                tracing::debug!(url = %case.want.target, %by, "a neighbour holds what a checksum file names");
                return offers;
            }
        }
        Vec::new()
    }

    /// What a checksum file says of the wanted one, if it is not older than that.
    async fn sidecar(&self, case: &Case, key: UrlKey, by: &Target, modified: Timestamp) -> Option<Stated> {
        let now = self.0.clock.now();
        let published = match self.0.asked.begin(key, now) {
            Next::Known(published) => published,
            Next::Leave => return None,
            Next::Ask => match self.ask_for_sidecar(case, by, now).await {
                Some(Some(published)) => {
                    self.0.asked.note(key, now, published);
                    published
                }
                Some(None) => return None,
                None => {
                    self.0.asked.forget(key);
                    return None;
                }
            },
        };
        let expected = self.expectation(&case.want.target)?;
        let is_sha256 = expected.digest.algorithm() == Algorithm::Sha256;
        (published >= modified && is_sha256).then_some(expected.digest)
    }

    /// Reads a checksum file and remembers all that it says. When it was published; none if it is not there, nothing
    /// at all if the origin could not be asked.
    async fn ask_for_sidecar(&self, case: &Case, by: &Target, now: Timestamp) -> Option<Option<Timestamp>> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(agent) = case.want.headers.get(header::USER_AGENT) {
            // some hosts answer nobody who does not say what program asks
            headers.insert(header::USER_AGENT, agent.clone());
        }
        let (target, reach) = (by.clone(), case.want.reach.clone());
        let upstream = Upstream { target, headers, reach, interim: None, background: None };
        let response = upstream.send(&self.0.origin, Method::GET, HeaderMap::new()).await.ok()?;
        if response.status() != StatusCode::OK {
            tracing::debug!(url = %by, status = response.status().as_u16(), "no checksum file");
            return (!response.status().is_server_error()).then_some(None);
        }
        let head = StoredHead::keep(response.status(), response.headers());
        let bytes = small(response.into_body()).await?;
        self.0.ledger.sidecar(bytes.len() as u64);
        let passing = Passing { target: by, head: &head, is_packument: false };
        let mut said: Vec<Statement> = Vec::new();
        let read = Document::Checksums.read(passing, bytes.as_slice(), None, &mut |statement| {
            said.push(statement);
            true
        });
        if let Err(error) = read {
            tracing::debug!(%error, url = %by, "a checksum file was not read to its end");
        }
        self.expect(by, now, said);
        Some(policy::last_modified(&head))
    }
}

/// A body that is not larger than a checksum file may be.
async fn small(body: Body) -> Option<Vec<u8>> {
    let (mut pieces, mut bytes) = (Pieces::new(body), Vec::new());
    while let Some(piece) = pieces.next().await.ok()? {
        if bytes.len() + piece.len() > MOST {
            return None;
        }
        bytes.extend_from_slice(&piece);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_question_is_asked_for_many_downloads() {
        let (asked, key, start) =
            (Asked::default(), UrlKey::from_bytes([1; 32]), Timestamp::from_seconds(1000));
        assert!(matches!(asked.begin(key, start), Next::Ask));
        // while it is on its way, and while it is known not to be there
        assert!(matches!(asked.begin(key, start), Next::Leave));
        assert!(matches!(asked.begin(key, start.plus(ABSENT)), Next::Ask));
        asked.forget(key);
        assert!(matches!(asked.begin(key, start), Next::Ask));
        asked.note(key, start, Timestamp::from_seconds(7));
        assert!(matches!(asked.begin(key, start), Next::Known(at) if at == Timestamp::from_seconds(7)));
        assert!(matches!(asked.begin(key, start.plus(SAID)), Next::Ask));
    }

    #[test]
    fn memory_is_bounded() {
        let (asked, now) = (Asked::default(), Timestamp::from_seconds(1000));
        for number in 0..REMEMBERED * 2 + 1 {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&number.to_le_bytes());
            asked.begin(UrlKey::from_bytes(bytes), now);
        }
        assert!(asked.0.lock().unwrap().len() <= REMEMBERED);
    }
}
