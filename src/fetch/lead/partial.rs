//! Going on with what an earlier transfer of the same thing left.

use http::header::HeaderMap;
use http::{Method, Response};

use super::{Arriving, Lead, Outcome};
use crate::clock::Timestamp;
use crate::fetch::error::FetchError;
use crate::fetch::ledger::From;
use crate::fetch::resume::{Note, partial_key};
use crate::fetch::transfer::{Source, Transfer};
use crate::http::Body;
use crate::policy;

impl Lead {
    pub(super) async fn forget_partial(&self) {
        let (cache, key) = (self.engine.0.cache.clone(), partial_key(self.case.flight_key()));
        if tokio::task::spawn_blocking(move || cache.drop_partial(&key)).await.is_err() {
            tracing::debug!("the thread that drops a partial ended early");
        }
    }

    /// The origin sends the rest of what a partial holds; the newer head counts (RFC 9111 section 3.4).
    pub(super) async fn go_on(
        &mut self,
        mut note: Note,
        offset: u64,
        response: Response<Body>,
        asked: Timestamp,
    ) -> Result<Outcome, FetchError> {
        let now = self.engine.0.clock.now();
        let mut newer = response.headers().clone();
        for of_the_part in ["content-md5", "digest"] {
            newer.remove(of_the_part);
        }
        policy::freshen(&mut note.answer, &newer, asked, now);
        let (cache, key, total) =
            (self.engine.0.cache.clone(), partial_key(self.case.flight_key()), note.total);
        let beside = self.case.judge.beside();
        let resumed = tokio::task::spawn_blocking(move || match offset {
            // nothing from the beginning on is here, but something further on
            0 => cache.begin(total).map(|(mut ingest, reservation)| {
                ingest.reckon(beside);
                Some((ingest, reservation))
            }),
            _ => cache.resume(&key, total, beside),
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
        let arriving =
            Arriving { answer: note.answer, variance: note.variance, shareable, total: note.total };
        let source = Source { body: response.into_body(), from: From::Origin, offer: None };
        Ok(Outcome::Transfer(Box::new(Transfer::new(self.begin_with(
            arriving,
            begun,
            source,
            self.case.judge,
        )))))
    }
}
