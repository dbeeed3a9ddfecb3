//! Going on with what an earlier transfer of the same thing left.

use http::header::HeaderMap;
use http::{Method, Response};

use super::{Arriving, Lead, Outcome};
use crate::clock::Timestamp;
use crate::fetch::error::FetchError;
use crate::fetch::ledger::From;
use crate::fetch::resume::{Beginning, partial_key};
use crate::fetch::transfer::{Source, Transfer};
use crate::http::Body;
use crate::policy::{self, Variance};

impl Lead {
    pub(super) async fn forget_partial(&self) {
        let (cache, key) = (self.engine.0.cache.clone(), partial_key(self.case.flight_key()));
        if tokio::task::spawn_blocking(move || cache.drop_partial(&key)).await.is_err() {
            tracing::debug!("the thread that drops a partial ended early");
        }
    }

    /// Whether the rest may be kept by what the origin says of it: a 206 may forbid what the 200 before it allowed.
    pub(super) fn may_keep_rest(&self, fields: &HeaderMap) -> bool {
        let want = &self.case.want;
        policy::storable_part(&want.method, &want.headers, fields, &self.case.rule).is_ok()
    }

    /// The origin sends the rest of what a partial holds; the newer head counts (RFC 9111 section 3.4).
    pub(super) async fn go_on(
        &mut self,
        here: Beginning,
        size: u64,
        response: Response<Body>,
        asked: Timestamp,
    ) -> Result<Outcome, FetchError> {
        let (now, offset) = (self.engine.0.clock.now(), here.length());
        let Beginning { mut note, kept } = here;
        let mut newer = response.headers().clone();
        for of_the_part in ["content-md5", "digest"] {
            newer.remove(of_the_part);
        }
        policy::freshen(&mut note.answer, &newer, asked, now);
        // what selects it may be told anew as well
        let variance = Variance::of(&note.answer.head.headers(), &self.case.want.headers);
        let (cache, beside) = (self.engine.0.cache.clone(), self.case.judge.beside());
        let resumed = tokio::task::spawn_blocking(move || match kept {
            Some(record) => cache.resume(&record, Some(size), beside),
            // nothing from the beginning on is here, but something further on
            None => cache.begin_arriving(Some(size)).map(|(mut ingest, reservation)| {
                ingest.reckon(beside);
                Some((ingest, reservation))
            }),
        });
        // another download may have gone on with it meanwhile
        let resumed = resumed.await.ok().and_then(Result::ok).flatten();
        let Some(begun) = resumed.filter(|(ingest, _)| ingest.length() == offset) else {
            // the partial was not what its record says: the whole, then, into a new file
            let upstream = self.case.upstream(self.case.want.headers_for_whole());
            let response = upstream.send(&self.engine.0.origin, Method::GET, HeaderMap::new()).await?;
            let now = self.engine.0.clock.now();
            return match self.storable(&response, now, now) {
                Ok(arriving) => self.receive(response, arriving, None).await,
                Err(_) => self.pass(response),
            };
        };
        let shareable = self.case.rule.share && !self.case.want.is_private() && !self.case.guarded;
        let variance = variance.unwrap_or(note.variance);
        let arriving = Arriving { answer: note.answer, variance, shareable, total: Some(size) };
        let source = Source { body: response.into_body(), from: From::Origin, offer: None };
        Ok(Outcome::Transfer(Box::new(Transfer::new(self.begin_with(
            arriving,
            begun,
            source,
            self.case.judge,
        )))))
    }
}
