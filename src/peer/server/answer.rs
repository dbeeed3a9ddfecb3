//! One request, one answer.

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode};

use super::{Absent, Caller, Found, Proof, ResourceHead, Server};
use crate::digest::Digest;
use crate::http::inspect::Fault;
use crate::http::{Body, boxed, empty, full};
use crate::peer::wire;
use crate::policy;
use crate::range::{ContentRange, RangeRequest};
use crate::seal::Thing;
use crate::tls::NodeId;

/// How soon a neighbour may come back when all places are taken.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// Why a request is not even looked at.
enum Refusal {
    /// The address is refused since the connection began.
    Banned,
    /// What nobody with the site's secret does.
    Offence(&'static str),
    /// A neighbour that has to ask for a grant first.
    AskAgain(&'static str),
}

impl Server {
    /// The answer to a request; an error ends the connection without one.
    pub(super) async fn answer<B>(
        &self,
        caller: &Caller,
        request: &Request<B>,
    ) -> Result<Response<Body>, Dropped> {
        match self.admit(caller, request) {
            Ok((wire::ORDERS, _)) => Ok(self.orders()),
            Ok((Thing::Blob(digest), asker)) => {
                Ok(self.blob(&digest, asker, request.method(), request.headers()).await)
            }
            Ok((Thing::Resource(key), asker)) if wants_bytes(request.headers()) => {
                Ok(self.bytes_of_resource(key, asker, request.method(), request.headers()).await)
            }
            Ok((Thing::Resource(key), _)) => Ok(self.resource(key, request.headers()).await),
            Err(Refusal::Banned) => Err(Dropped),
            Err(Refusal::Offence(what)) => {
                self.offence(caller.address, what);
                Ok(closing(problem(StatusCode::FORBIDDEN, "not for strangers")))
            }
            Err(Refusal::AskAgain(why)) => {
                tracing::debug!(client.addr = %caller.address, why, "a grant is refused");
                Ok(problem(StatusCode::FORBIDDEN, "the grant has ended: ask again"))
            }
        }
    }

    /// The answer to what was no request beyond doubt; no neighbour sends that.
    pub(super) fn refuse(&self, caller: &Caller, fault: Fault) -> Response<Body> {
        if !fault.is_slowness() {
            self.offence(caller.address, "malformed HTTP");
        }
        closing(problem(fault.status(), &fault.to_string()))
    }

    /// Which thing a request may have, and who asks. Nothing of what this node holds is looked at here.
    fn admit<B>(&self, caller: &Caller, request: &Request<B>) -> Result<(Thing, NodeId), Refusal> {
        if self.0.bans.is_banned(caller.address) {
            return Err(Refusal::Banned);
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err(Refusal::Offence("another method than GET and HEAD"));
        }
        let uri = request.uri();
        let thing = wire::thing_at(uri.path()).filter(|_| uri.query().is_none() && uri.authority().is_none());
        let thing = thing.ok_or(Refusal::Offence("another path than those of the peer port"))?;
        let token = token(request.headers()).ok_or(Refusal::Offence("no token"))?;
        let bearer = self
            .0
            .keys
            .open_bearer(token)
            .map_err(|_no_key| Refusal::Offence("a token that no accepted key opens"))?;
        if bearer.thing != thing {
            return Err(Refusal::AskAgain("the token is for another thing"));
        }
        match caller.proof {
            Proof::Nothing => {}
            Proof::Node(node) if node == bearer.asker => {}
            Proof::Node(_) => return Err(Refusal::AskAgain("the token is another node's")),
            Proof::Missing => return Err(Refusal::AskAgain("the caller has no certificate")),
        }
        // every node of the site may read them, and they are sealed besides
        if thing == wire::ORDERS && bearer.holder == self.0.me {
            self.0.bans.proved(caller.address);
            return Ok((thing, bearer.asker));
        }
        self.0.grants.admit(&bearer, self.0.me).map_err(|why| {
            tracing::debug!(%why, "a token is not admitted");
            Refusal::AskAgain("the grant does not admit it")
        })?;
        self.0.bans.proved(caller.address);
        Ok((thing, bearer.asker))
    }

    /// The site's orders, as a letter.
    fn orders(&self) -> Response<Body> {
        let Some(list) = (self.0.shelf.orders)() else { return problem(StatusCode::NOT_FOUND, "not here") };
        match self.0.keys.seal_letter(&list) {
            Ok(letter) => with_type(Response::new(full(letter)), wire::BLOB_TYPE),
            Err(error) => {
                tracing::warn!(%error, "the site's orders cannot be sealed");
                problem(StatusCode::INTERNAL_SERVER_ERROR, "the orders cannot be sealed")
            }
        }
    }

    async fn head_of(&self, key: [u8; 32], pieces: u64) -> Result<ResourceHead, Response<Body>> {
        let shown = tokio::time::timeout(self.0.limits.shelf, (self.0.shelf.head)(key, pieces)).await;
        match shown {
            Err(_elapsed) => Err(unavailable("the shelf is slow")),
            Ok(Ok(shown)) => Ok(shown),
            Ok(Err(Absent::NotHere)) => Err(problem(StatusCode::NOT_FOUND, "not here")),
            Ok(Err(Absent::Full)) => Err(unavailable("others read from here already")),
            Ok(Err(Absent::Left)) => Err(problem(StatusCode::GONE, "not to be shared: ask the origin")),
        }
    }

    /// The bytes of what a URL led to, arriving or here.
    async fn bytes_of_resource(
        &self,
        key: [u8; 32],
        asker: NodeId,
        method: &Method,
        asked: &HeaderMap,
    ) -> Response<Body> {
        if let Some(response) = self.arriving(Thing::Resource(key), asker, method, asked) {
            return response;
        }
        let head = match self.head_of(key, 0).await {
            Ok(head) => head,
            Err(refused) => return refused,
        };
        let Some(digest) = head.digest else { return problem(StatusCode::NOT_FOUND, "not here") };
        let mut response = self.blob(&digest, asker, method, asked).await;
        if let Some(resource) = head.resource {
            set(&mut response, wire::RESOURCE, &resource.to_string());
        }
        response
    }

    async fn resource(&self, key: [u8; 32], asked: &HeaderMap) -> Response<Body> {
        let pieces = asked.get(wire::PIECES).and_then(|field| field.to_str().ok()?.parse().ok());
        let mut shown = match self.head_of(key, pieces.unwrap_or(0)).await {
            Ok(shown) => shown,
            Err(refused) => return refused,
        };
        // whatever the shelf says, only what may be shared leaves this node
        shown.head = policy::shared_fields(&shown.head);
        match serde_json::to_vec(&shown) {
            Ok(json) => with_type(Response::new(full(json)), "application/json"),
            Err(error) => {
                tracing::warn!(%error, "a stored head cannot be written");
                problem(StatusCode::INTERNAL_SERVER_ERROR, "the stored head cannot be written")
            }
        }
    }

    async fn blob(
        &self,
        digest: &Digest,
        asker: NodeId,
        method: &Method,
        asked: &HeaderMap,
    ) -> Response<Body> {
        if let Some(response) = self.arriving(Thing::Blob(*digest), asker, method, asked) {
            return response;
        }
        let place = if method == Method::HEAD {
            None
        } else {
            let Some(place) = self.0.uplink.place() else {
                return unavailable("all places are taken");
            };
            Some(place)
        };
        let found = tokio::time::timeout(self.0.limits.shelf, (self.0.shelf.open)(*digest)).await;
        let Ok(found) = found else { return unavailable("the shelf is slow") };
        let Some(Found { size, body }) = found else { return problem(StatusCode::NOT_FOUND, "not here") };
        let (status, range) = match wanted(method, asked, digest).map(|range| range.resolve(size)) {
            None => (StatusCode::OK, 0..size),
            Some(Ok(range)) => (StatusCode::PARTIAL_CONTENT, range),
            Some(Err(_outside)) => {
                let mut response = problem(StatusCode::RANGE_NOT_SATISFIABLE, "the blob is shorter");
                set(&mut response, header::CONTENT_RANGE, &ContentRange::unsatisfied(size));
                return response;
            }
        };
        let length = range.end - range.start;
        let content_range = ContentRange::satisfied(&range, size);
        let body = match place {
            Some(place) if length > 0 => {
                let upload = self.0.uplink.send(body(range), length, place);
                boxed(upload.counted(self.0.tally.given(asker)))
            }
            _ => empty(),
        };
        let mut response = with_type(Response::new(body), wire::BLOB_TYPE);
        *response.status_mut() = status;
        set(&mut response, header::CONTENT_LENGTH, &length.to_string());
        set(&mut response, header::ACCEPT_RANGES, "bytes");
        set(&mut response, header::ETAG, &entity_tag(digest));
        set(&mut response, wire::REPR_DIGEST, &digest.repr_digest());
        if status == StatusCode::PARTIAL_CONTENT {
            set(&mut response, header::CONTENT_RANGE, &content_range);
        }
        response
    }
}

/// Ends a connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the address is refused")]
pub(super) struct Dropped;

/// The token of an `Authorization: Bearer` field.
fn token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The range a request asks for. `Range` means nothing to HEAD, nor with an `If-Range` that does not hold.
fn wanted(method: &Method, asked: &HeaderMap, digest: &Digest) -> Option<RangeRequest> {
    let range = asked.get(header::RANGE).filter(|_| method == Method::GET)?;
    let holds = asked.get(header::IF_RANGE).is_none_or(|tag| *tag == *entity_tag(digest));
    RangeRequest::parse(range.to_str().ok()?).filter(|_| holds)
}

/// Whether the bytes of a resource are asked for, and not its head.
fn wants_bytes(asked: &HeaderMap) -> bool {
    asked.get(header::ACCEPT).is_some_and(|field| field == wire::BLOB_TYPE)
}

fn entity_tag(digest: &Digest) -> String {
    format!("\"{digest}\"")
}

pub(super) fn unavailable(why: &str) -> Response<Body> {
    let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, why);
    response.headers_mut().insert(header::RETRY_AFTER, RETRY_SECONDS);
    response
}

pub(super) fn problem(status: StatusCode, detail: &str) -> Response<Body> {
    let title = status.canonical_reason().unwrap_or_default();
    let document = serde_json::json!({
        "type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail,
    });
    let mut response = with_type(Response::new(full(document.to_string())), "application/problem+json");
    *response.status_mut() = status;
    response
}

fn closing(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

pub(super) fn with_type(mut response: Response<Body>, media_type: &'static str) -> Response<Body> {
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// Our own values are always valid; one that is not would be left out rather than harm the answer.
pub(super) fn set(response: &mut Response<Body>, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
