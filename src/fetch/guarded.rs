//! What was answered to credentials: the origin decides for each client and each request who may have it.
//!
//! A request with `Authorization` is answered from the store or from a neighbour only where its URL contains the
//! digest, and only after the origin has let this client in, by a HEAD with the client's own fields within this
//! request. What came in answer to credentials is marked guarded: here it is given out only under the URL that led
//! to it, after the same question, whether or not the request carries credentials; neighbours get it by its digest
//! alone, never by its URL. The same holds of what lies behind a link to which the origin led such a request; the link
//! itself, which may be signed, is the word of the origin for whoever has it.

use std::sync::Arc;

use http::{HeaderMap, Method, Response, StatusCode};

use super::engine::{Case, Engine};
use super::error::FetchError;
use super::give;
use super::outcome::{CacheStatus, Given, Held, Reply};
use crate::digest::{Digest, Stated};
use crate::ecosystem;
use crate::http::{Body, StoredHead};
use crate::policy::{self, Answer, Caching};

/// The origin let this client in: with what head, where that is the thing's own.
pub(super) type Admitted = Arc<StoredHead>;

impl Engine {
    /// Whether the origin must be asked for this client before anything is given out.
    pub(super) fn must_ask_first(&self, case: &Case) -> bool {
        let is_guarded = |digest| self.0.cache.is_guarded(&digest);
        // a link that the origin itself gave to a client it had let in is that client's admission
        let is_led_in = case.guarded && !case.want.is_authorized();
        !is_led_in && (case.want.is_authorized() || case.judge.digest.is_some_and(is_guarded))
    }

    /// Meets a want that the origin has to let in.
    pub(super) async fn fetch_guarded(&self, mut case: Case) -> Result<Reply, FetchError> {
        (case.why, case.guarded) = ("request", true);
        let is_whole = case.want.range().is_none();
        if let Some(digest) = case.named_by_url().filter(|_| case.may_be_held()) {
            let is_here = self.led_here(&case, &digest);
            // what is guarded here, and came by another way, is not had from neighbours by this one
            case.want.ask_peers &= is_here || !self.0.cache.is_guarded(&digest);
            if is_here || (is_whole && self.has_neighbours(&case)) {
                let Some(head) = self.admitted(&case).await? else { return self.pass(&case).await };
                if is_here && let Some(reply) = self.serve_admitted(&case, digest, &head).await {
                    return Ok(reply);
                }
                case.admitted = Some(head);
            }
        }
        if !is_whole || case.want.method == Method::HEAD {
            return self.pass(&case).await;
        }
        self.lead_alone(case, None).await
    }

    /// Whether it is held, and may be given out under this URL: what is guarded only where this URL led to it.
    fn led_here(&self, case: &Case, digest: &Digest) -> bool {
        let named = || self.0.cache.index().resources_of(digest).iter().any(|r| r.url_key == case.url);
        let led = || named() || self.0.behind.has_led(&case.url, digest);
        self.0.cache.holds(digest).is_some() && (!self.0.cache.is_guarded(digest) || led())
    }

    /// Asks the origin with this client's own fields whether it would give the thing out. An origin that cannot be
    /// reached lets nobody in; one that does not know the method has said nothing, so the client's own request goes on.
    pub(super) async fn admitted(&self, case: &Case) -> Result<Option<Admitted>, FetchError> {
        let (asked, upstream) = (self.0.clock.now(), case.upstream(case.want.headers_for_anybody()));
        let response = upstream.send(&self.0.origin, Method::HEAD, HeaderMap::new()).await?;
        let status = response.status();
        if !status.is_success() && !status.is_redirection() {
            return Ok(None);
        }
        Ok(Some(Arc::new(self.head_of(case, &response, asked))))
    }

    /// The head that the origin has for what neighbours hold under a digest, where no neighbour's is believed. None
    /// where the origin must have its own say; what it cannot be asked about has the plainest head.
    pub(super) async fn told_by_origin(&self, case: &Case) -> Option<Admitted> {
        let (asked, want) = (self.0.clock.now(), &case.want);
        let upstream = case.upstream(want.headers_for_anybody());
        let sent = upstream.send(&self.0.origin, Method::HEAD, HeaderMap::new()).await;
        let response = match sent {
            Ok(response) => response,
            Err(error) if error.is_unreachable() => {
                return Some(Arc::new(give::plain_head(case.judge.binding)));
            }
            Err(_) => return None,
        };
        let (status, fields) = (response.status(), response.headers());
        let may_keep = policy::storable(&Method::GET, &want.headers, status, fields, &case.rule).is_ok();
        (may_keep && status == StatusCode::OK).then(|| Arc::new(self.head_of(case, &response, asked)))
    }

    fn head_of(&self, case: &Case, response: &Response<Body>, asked: crate::clock::Timestamp) -> StoredHead {
        if response.status() != StatusCode::OK {
            return give::plain_head(case.judge.binding);
        }
        let now = self.0.clock.now();
        let mut fields = response.headers().clone();
        fields.remove(http::header::SET_COOKIE);
        Answer::keep(&case.want.target, response.status(), &fields, asked, now).head
    }

    async fn serve_admitted(&self, case: &Case, digest: Digest, head: &Admitted) -> Option<Reply> {
        let (size, bytes) = self.open_digest(digest, case).await?;
        let stated = head.get("content-length").and_then(|length| length.parse::<u64>().ok());
        if stated.is_some_and(|stated| stated != size) {
            // the origin names another thing: the client has its own word
            return None;
        }
        let held = Held {
            head: (**head).clone().into(),
            age: None,
            size: Some(size),
            digest: Some(digest),
            bytes,
            slice: None,
            line: None,
        };
        let status = CacheStatus::hit().remarked("let in by the origin");
        Some(Reply { given: Given::Held(Box::new(held)), status })
    }
}

impl Case {
    /// The digest that the URL contains, if it is what this request is judged by.
    pub(super) fn named_by_url(&self) -> Option<Digest> {
        let named = ecosystem::classify(&self.want.target).digest?.sha256()?;
        (self.judge.bound() == Some(Stated::from(named))).then_some(named)
    }

    /// Whether a request of this kind may be met from what is held at all.
    fn may_be_held(&self) -> bool {
        self.want.method == Method::GET && self.rule.cache != Caching::Never && !self.want.is_conditional()
    }
}
