//! From a request to its door.

use std::net::IpAddr;

use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;

use super::direct::{self, Direct};
use super::guard::check_browser;
use super::hops;
use super::intercept::{self, Inside};
use super::mirror::Mirrored;
use super::stream::Abort;
use super::{Proxy, handover, pac, respond};
use crate::digest::{DigestError, Stated};
use crate::fetch::{Reply, Want};
use crate::http::{Body, Interim, InterimOutlet, Target, boxed, hop_by_hop_removed};
use crate::origin::Reach;
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
    /// The origin it leads to, where it is one that was opened.
    pub(super) inside: Option<Inside>,
    /// Where interim answers go.
    pub(super) interim: InterimOutlet,
}

/// A request that found its door.
struct Entered {
    target: Target,
    stated: Option<Stated>,
    door: Door,
    reach: Reach,
}

/// The door a request came through, and so what its answer must lead back to.
enum Door {
    Proxy,
    Prefix(Direct),
    Mirror(Box<Mirrored>),
}

impl Proxy {
    /// Answers one request; whatever goes wrong is an answer too.
    pub(super) async fn answer(&self, request: Request<Incoming>, visit: &Visit) -> Response<Body> {
        self.0.engine.ledger().request();
        let is_connect = request.method() == Method::CONNECT;
        let routed = self.route(request, visit).await;
        visit.interim.close();
        let refused = match routed {
            Ok(response) => return response,
            Err(problem) => respond::refuse(problem, self.via()),
        };
        // what was meant for the other end of a tunnel is no request to us
        if is_connect { respond::closing(refused) } else { refused }
    }

    async fn route(&self, request: Request<Incoming>, visit: &Visit) -> Result<Response<Body>, Problem> {
        self.check_client(visit.client)?;
        if request.method() == Method::CONNECT && visit.inside.is_none() {
            return self.connect(request, visit).await;
        }
        hops::check_expectation(request.headers())?;
        let hops_left = hops::left(&request)?;
        if hops_left == Some(0) {
            return Ok(hops::last_hop());
        }
        if visit.inside.is_none() && pac::is_asked_for(&request) {
            check_browser(request.headers(), &self.0.hosts)?;
            return Ok(pac::script(request.headers(), visit.port));
        }
        let entered = self.enter(&request, visit)?;
        self.check_loop(request.headers(), &entered.target, visit.port)?;
        let mut headers = self.end_to_end(request.headers());
        if visit.inside.is_some()
            && let Some(protocol) = intercept::asked(&request)
        {
            return self.switch(request, headers, &entered.target, &protocol, visit).await;
        }
        let (parts, body) = request.into_parts();
        let ask_peers = parts.headers.get(PEERS).is_none_or(|value| value != "no");
        if let Some(left) = hops_left {
            headers.insert(header::MAX_FORWARDS, HeaderValue::from(left - 1));
        }
        if let Door::Mirror(mirrored) = &entered.door {
            mirrored.prepare(&mut headers);
        }
        let asked = headers.clone();
        let interim = if parts.version == Version::HTTP_11 { visit.interim.begin() } else { None };
        let reply = if is_plain(&parts.method, &body) {
            let want = Want {
                target: entered.target.clone(),
                method: parts.method.clone(),
                headers,
                stated: entered.stated,
                client: visit.client,
                reach: entered.reach,
                ask_peers,
                background: None,
                interim,
            };
            self.0.engine.fetch(want).await
        } else {
            let request = sent_on(&entered.target, parts.method.clone(), headers, body, interim)?;
            self.0.engine.forward(request, &entered.target, &entered.reach).await
        };
        let reply = reply.map_err(|error| respond::problem(&error))?;
        self.leave(entered.door, &entered.target, reply, (&parts, &asked), visit).await
    }

    /// The answer, leading back to its door.
    async fn leave(
        &self,
        door: Door,
        target: &Target,
        reply: Reply,
        (parts, asked): (&Parts, &HeaderMap),
        visit: &Visit,
    ) -> Result<Response<Body>, Problem> {
        if !matches!(door, Door::Mirror(_))
            && let Some(response) = self.handed(&reply, (&parts.method, &parts.headers, asked), visit.client)
        {
            return Ok(response);
        }
        let mut response = respond::response(reply, &parts.method, asked, self.via(), &visit.abort);
        match door {
            Door::Proxy => Ok(response),
            Door::Prefix(door) => {
                direct::lead_back(&mut response, &door, target);
                Ok(response)
            }
            Door::Mirror(mirrored) => mirrored.dress(response, &parts.method, &visit.abort).await,
        }
    }

    fn enter(&self, request: &Request<Incoming>, visit: &Visit) -> Result<Entered, Problem> {
        let stated = stated(request.headers())?;
        let reach = self.reach(visit.client);
        if let Some(inside) = &visit.inside {
            return Ok(Entered { target: inside.target(request)?, stated, door: Door::Proxy, reach });
        }
        if request.uri().scheme().is_some() {
            let target = Target::from_uri(request.uri()).map_err(|error| respond::bad_target(&error))?;
            // a program that uses us as its proxy may have the address of one of our doors as well
            if !(self.leads_here(&target, visit.port) && self.is_door(target.path())) {
                return Ok(Entered { target, stated, door: Door::Proxy, reach });
            }
        }
        check_browser(request.headers(), &self.0.hosts)?;
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        if let Some(mirrored) = Mirrored::enter(&self.0.mirrors.load(), path, request.headers(), visit.port) {
            let mirrored = mirrored?;
            let (target, stated) =
                (mirrored.target().clone(), mirrored.digest().map(Stated::from).or(stated));
            // where the operator wrote the address, it is he who opened it
            let reach = if mirrored.is_own() { Reach::Anywhere } else { reach };
            return Ok(Entered { target, stated, door: Door::Mirror(Box::new(mirrored)), reach });
        }
        let (target, door) = direct::parse(path)?;
        let stated = door.digest.or(stated);
        Ok(Entered { target, stated, door: Door::Prefix(door), reach })
    }

    fn is_door(&self, path: &str) -> bool {
        direct::is_door(path) || self.0.mirrors.load().enter(path).is_some()
    }

    /// The fields that go on, and our own.
    fn end_to_end(&self, received: &HeaderMap) -> HeaderMap {
        let mut headers = hop_by_hop_removed(received);
        for name in ["host", STATED, PEERS, handover::ASKED, "expect"] {
            headers.remove(name);
        }
        intercept::join_cookies(&mut headers);
        self.add_via(&mut headers);
        headers
    }

    fn add_via(&self, headers: &mut HeaderMap) {
        headers.append(header::VIA, self.via().clone());
    }
}

/// Whether a request asks for a thing and brings nothing along.
fn is_plain(method: &Method, body: &Incoming) -> bool {
    matches!(*method, Method::GET | Method::HEAD) && http_body::Body::is_end_stream(body)
}

/// The client's request as it goes on.
fn sent_on(
    target: &Target,
    method: Method,
    headers: HeaderMap,
    body: Incoming,
    interim: Option<Interim>,
) -> Result<Request<Body>, Problem> {
    let mut request = Request::new(boxed(body));
    *request.method_mut() = method;
    *request.uri_mut() = target.uri().map_err(|error| respond::bad_target(&error))?;
    *request.headers_mut() = headers;
    if let Some(interim) = interim {
        request.extensions_mut().insert(interim);
    }
    Ok(request)
}

fn stated(headers: &HeaderMap) -> Result<Option<Stated>, Problem> {
    let mut fields = headers.get_all(STATED).iter();
    let Some(field) = fields.next() else { return Ok(None) };
    let only = fields.next().is_none().then_some(field);
    let text = only.and_then(|field| field.to_str().ok()).ok_or(DigestError::Value);
    let digest = text.and_then(|text| text.trim().parse());
    digest.map(Some).map_err(|error| bad_digest("Larder-Digest", error, "write Larder-Digest: sha256:<hex>"))
}

/// What a client states cannot be read.
pub(super) fn bad_digest(what: &str, error: DigestError, hint: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "bad-digest", "Unreadable digest")
        .detail(format!("{what} is not one `algorithm:` with its value in hexadecimal: {error}"))
        .hint(hint)
}
