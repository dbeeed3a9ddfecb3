//! From a request to its door.

use std::net::IpAddr;

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;

use super::direct::{self, Direct};
use super::guard::{check_browser, check_framing};
use super::stream::Abort;
use super::{Proxy, respond};
use crate::digest::Digest;
use crate::fetch::{FetchError, Reply, Want};
use crate::http::{Body, Target, boxed, hop_by_hop_removed};
use crate::origin::OriginError;
use crate::rest::Problem;

/// The field by which a client states the digest that a thing must have; it never leaves this node.
const STATED: &str = "larder-digest";

/// The field by which a client asks that no neighbour be asked (`no`); it never leaves this node either.
const PEERS: &str = "larder-peers";

/// Who sends requests over a connection, and where it came in.
#[derive(Debug, Clone)]
pub(super) struct Visit {
    /// Who.
    pub(super) client: IpAddr,
    /// The port of ours that was connected; 0 inside this process.
    pub(super) port: u16,
    /// Makes the connection end with a reset.
    pub(super) abort: Abort,
}

/// A request that found its door.
struct Entered {
    target: Target,
    stated: Option<Digest>,
    /// The prefix that answers must lead back to; none for the forward proxy.
    door: Option<Direct>,
}

impl Proxy {
    /// Answers one request; whatever goes wrong is an answer too.
    pub(super) async fn answer(&self, request: Request<Incoming>, visit: &Visit) -> Response<Body> {
        self.0.engine.ledger().request();
        let answered = self.route(request, visit).await;
        answered.unwrap_or_else(|problem| respond::refuse(problem, &self.via()))
    }

    async fn route(&self, request: Request<Incoming>, visit: &Visit) -> Result<Response<Body>, Problem> {
        check_framing(&request)?;
        self.check_client(visit.client)?;
        if request.method() == Method::CONNECT {
            return self.connect(request, visit).await;
        }
        let entered = self.enter(&request)?;
        self.check_loop(request.headers(), &entered.target, visit.port)?;
        let (parts, body) = request.into_parts();
        let mut headers = hop_by_hop_removed(&parts.headers);
        let ask_peers = headers.get(PEERS).is_none_or(|value| value != "no");
        for name in ["host", STATED, PEERS, "expect"] {
            headers.remove(name);
        }
        self.add_via(&mut headers);
        let is_plain =
            matches!(parts.method, Method::GET | Method::HEAD) && http_body::Body::is_end_stream(&body);
        let reply = if is_plain {
            let want = Want {
                target: entered.target.clone(),
                method: parts.method.clone(),
                headers,
                stated: entered.stated,
                client: visit.client,
                reach: self.reach(visit.client),
                ask_peers,
            };
            self.0.engine.fetch(want).await
        } else {
            self.forward(&entered.target, parts.method.clone(), headers, body, visit.client).await
        };
        let reply = reply.map_err(|error| respond::problem(&error))?;
        let mut response = respond::response(reply, &parts.method, &parts.headers, &self.via(), &visit.abort);
        if let Some(door) = &entered.door {
            direct::lead_back(&mut response, door, &entered.target);
        }
        Ok(response)
    }

    fn enter(&self, request: &Request<Incoming>) -> Result<Entered, Problem> {
        let stated = stated(request.headers())?;
        if request.uri().scheme().is_some() {
            let target = Target::from_uri(request.uri()).map_err(|error| respond::bad_target(&error))?;
            return Ok(Entered { target, stated, door: None });
        }
        check_browser(request.headers(), &self.0.hosts)?;
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let (target, door) = direct::parse(path)?;
        let stated = door.digest.or(stated);
        Ok(Entered { target, stated, door: Some(door) })
    }

    async fn forward(
        &self,
        target: &Target,
        method: Method,
        headers: HeaderMap,
        body: Incoming,
        client: IpAddr,
    ) -> Result<Reply, FetchError> {
        let mut request = Request::new(boxed(body));
        *request.method_mut() = method;
        *request.uri_mut() =
            target.uri().map_err(|error| FetchError::Origin(OriginError::BadTarget(error)))?;
        *request.headers_mut() = headers;
        self.0.engine.forward(request, target, &self.reach(client)).await
    }

    fn add_via(&self, headers: &mut HeaderMap) {
        if let Ok(via) = HeaderValue::try_from(self.via()) {
            headers.append(header::VIA, via);
        }
    }
}

fn stated(headers: &HeaderMap) -> Result<Option<Digest>, Problem> {
    let mut fields = headers.get_all(STATED).iter();
    let Some(field) = fields.next() else { return Ok(None) };
    let only = fields.next().is_none().then_some(field);
    let digest = only.and_then(|field| field.to_str().ok()?.trim().parse().ok());
    digest.map(Some).ok_or_else(|| {
        Problem::new(StatusCode::BAD_REQUEST, "bad-digest", "Unreadable digest")
            .detail("Larder-Digest is not one `sha256:` with 64 hexadecimal characters")
            .hint("write Larder-Digest: sha256:<hex>")
    })
}
