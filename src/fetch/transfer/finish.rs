//! The end of a transfer: the judgement, the commit, or what is left for another time.

use tokio::sync::oneshot;

use super::Transfer;
use super::pump::Stop;
use crate::cache::Provenance;
use crate::digest::Found;
use crate::fetch::flight::Permit;
use crate::fetch::judge::{Judge, Verdict};
use crate::fetch::share;
use crate::index::{ResourceRecord, TransferRecord};
use crate::store::{End, Failure, Ingest};

impl Transfer {
    /// Judges the whole; none if the transfer goes on at another source.
    pub(super) async fn judge_whole(&mut self) -> Option<Result<Found, Failure>> {
        let found = match self.writer.found().await {
            Ok(Some(found)) => found,
            Ok(None) | Err(_) => {
                return Some(Err(Failure::Source("the bytes could not be hashed".to_owned())));
            }
        };
        if self.is_judged_by_pieces() {
            return self.judge_by_pieces(found).await;
        }
        match self.judge.verdict(found, !self.used.is_empty(), self.can_take_back()) {
            Verdict::Accept => Some(Ok(found)),
            Verdict::TakeBack => {
                self.blame_for(found);
                self.without_neighbours().await.err().map(Err)
            }
            Verdict::Refuse => {
                self.blame_for(found);
                Some(Err(Failure::Digest))
            }
        }
    }

    /// What is right may still be something that nobody gets here.
    pub(super) fn unless_blocked(&self, found: Found) -> Result<Found, Failure> {
        match self.engine.found_blocked(&self.case, &found.digest) {
            Some(_) => Err(Failure::Blocked),
            None => Ok(found),
        }
    }

    /// What neighbours sent is not what they said they hold; where it is, it is what was stated that is wrong.
    fn blame_for(&self, found: Found) {
        if self.by_sidecar {
            // the origin began this file, and only its list says that it goes on like the neighbour's
            self.engine.doubt_sidecars(&self.case);
        } else if self.judge.blames(found) {
            self.blame();
        }
    }

    /// Judges the whole by the word of those who had it from the origin. Where that does not come, the origin sends
    /// what is not proved.
    async fn judge_by_pieces(&mut self, found: Found) -> Option<Result<Found, Failure>> {
        let back = match self.is_proved(found.digest).await {
            Ok(true) => return Some(Ok(found)),
            Ok(false) | Err(Stop::Unproved) => self.take_back_unproved().await,
            Err(Stop::Wrong(by)) => self.rejoin_after_wrong(by).await,
            Err(Stop::Changed) => return Some(Err(Failure::Changed)),
            Err(_) => return Some(Err(Failure::Abandoned)),
        };
        back.err().map(Err)
    }

    /// Only a neighbour whose bytes are all of what is in doubt is known to be wrong.
    pub(super) fn blame(&self) {
        // who only passed on what was arriving is not known to be the one
        if self.follow.is_none()
            && let [only] = self.used.as_slice()
            && !self.origin_after
            && let Some(lenders) = self.engine.lenders(&self.case)
        {
            tracing::warn!(peer = %only.lender(), "a neighbour sent wrong bytes: no source for a while");
            lenders.quarantine(only);
        }
    }

    /// The whole is right: readers get their end at once, the disk follows.
    pub(super) async fn complete(mut self, found: Found, permit: Option<Permit>) {
        let digest = found.digest;
        self.rate.learn();
        let size = self.writer.received();
        self.running.judge_by(Judge { digest: Some(digest), ..self.judge });
        let first_hand = self.used.is_empty();
        let record = self.record(digest, size, first_hand);
        // what only a client stated is nobody's word for what the URL leads to
        let is_vouched = first_hand || self.case.want.stated.is_none();
        let lesson = is_vouched.then(|| self.engine.lesson(&self.case.want, &record)).flatten();
        let (stopping, cache) = (self.stopping, self.engine.0.cache.clone());
        let took = self.engine.0.clock.now().since(self.running.view().started_at);
        tracing::debug!(
            url = %self.case.want.target, blob.digest = %digest, blob.size = size,
            source = %self.running.detail(), seconds = took.as_secs_f64(), "a download is complete"
        );
        self.engine.0.ledger.measures().received(&self.running.detail(), size, took);
        self.note_end("complete");
        let names = self.names();
        let how = Provenance { first_hand, guarded: self.is_guarded(digest) };
        let completed = self.writer.complete(digest);
        let told = share::told(&self.running, self.stand.as_deref(), self.engine.0.clock.now());
        self.running.settle_cuts(&End::Complete(digest));
        let Some(ingest) = completed.filter(|_| !stopping && self.forbidden.is_none()) else {
            let in_memory =
                || "it passed through memory: the disk gave out, or larder was stopping".to_owned();
            self.engine
                .note_not_kept(&self.case, self.forbidden.map_or_else(in_memory, |why| why.to_string()));
            return;
        };
        self.engine.note_kept(&self.case, format!("stored, from {}", self.running.detail()));
        cache.announce(&ingest, digest, how);
        if let Some(stated) = found.beside {
            cache.index().put_digest(stated, digest, self.engine.0.clock.now());
        }
        // they are forgotten with the next line: the whole answers in their place
        let parts = cache.parts(&self.case.url);
        cache.put_resource(record);
        self.engine.begin_lesson(lesson);
        if let Some(told) = told {
            self.engine.0.flights.finish(names, told);
        }
        // who comes from here on asks the store, where freshness counts
        drop(permit);
        let (reservation, storing) = (self.reservation, self.storing);
        let engine = self.engine.clone();
        let (tell, committed) = oneshot::channel();
        cache.commit_soon(ingest, how, move |is_blob| {
            if is_blob {
                engine.drop_parts(&parts);
            }
            drop((reservation, storing));
            let _nobody_waits = tell.send(is_blob);
        });
        match committed.await {
            // a failure is noted in health by the cache; the clients have their bytes either way
            Ok(true | false) => {}
            Err(_) => tracing::error!("the thread that commits a blob ended early"),
        }
        if first_hand {
            let asked = self.running.answer().request_time;
            self.engine.compare(&self.case, asked, digest).await;
        }
    }

    /// Whether it is for those alone whom the origin lets in; where a link led to it, by which that is remembered.
    fn is_guarded(&self, digest: crate::digest::Digest) -> bool {
        if self.case.guarded {
            self.engine.0.behind.found(&self.case.url, digest, self.engine.0.clock.instant());
        }
        (self.case.want.is_authorized() || self.case.guarded) && self.case.rule.share
    }

    /// What becomes of this transfer in the history.
    fn note_end(&self, state: &str) {
        let view = self.running.view();
        self.engine.0.cache.index().put_transfer(TransferRecord {
            id: view.id,
            url: view.url,
            source: self.running.detail(),
            digest: self.running.expected(),
            size: view.size,
            received: view.received,
            readers: u64::try_from(view.readers).unwrap_or(u64::MAX),
            state: state.to_owned(),
            started_at: view.started_at,
            ended_at: Some(self.engine.0.clock.now()),
        });
    }

    fn record(&self, digest: crate::digest::Digest, size: u64, first_hand: bool) -> ResourceRecord {
        let answer = (*self.running.answer()).clone();
        let variance = self.running.variance().clone();
        ResourceRecord {
            url_key: self.case.url,
            resource_key: self.key(),
            shown_url: self.case.want.target.shown(),
            variance,
            digest: Some(digest),
            size,
            first_hand,
            shareable: self.shareable,
            answer,
        }
    }

    /// It will never be whole: what is right of it is kept for another time.
    pub(super) async fn fail(mut self, failure: Failure) {
        self.rate.learn();
        tracing::debug!(url = %self.case.want.target, %failure, "a download failed");
        self.engine.note_not_kept(&self.case, format!("the download failed: {failure}"));
        let keep = self.is_resumable()
            && !self.stopping
            && !matches!(failure, Failure::Digest | Failure::Changed | Failure::Blocked);
        let (key, note) = (self.partial_key(), self.note());
        let cache = self.engine.0.cache.clone();
        let ended = End::Failed(failure.clone());
        self.note_end(match failure {
            Failure::Digest => "digest",
            Failure::Changed => "changed",
            Failure::Blocked => "blocked",
            Failure::Source(_) | Failure::Unreadable(_) => "source",
            Failure::Abandoned => "abandoned",
        });
        let failed = self.writer.fail(failure).await;
        self.running.settle_cuts(&ended);
        let Some(ingest) = failed else { return };
        put_away(cache, ingest, keep.then_some((key, note))).await;
    }

    /// Keeps a staging file that was parted with.
    pub(super) async fn keep(&mut self, ingest: Ingest) {
        let (key, note, cache) = (self.partial_key(), self.note(), self.engine.0.cache.clone());
        put_away(cache, ingest, Some((key, note))).await;
    }
}

/// Keeps a staging file as a partial, or drops it.
async fn put_away(cache: crate::cache::Cache, ingest: Ingest, keep: Option<(String, String)>) {
    let done = tokio::task::spawn_blocking(move || match keep {
        Some((key, note)) => cache.keep(ingest, &key, &note),
        None => drop(ingest),
    });
    if done.await.is_err() {
        tracing::error!("the thread that puts a partial away ended early");
    }
}
