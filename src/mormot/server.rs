//! Giving to peers over plain HTTP: whoever has a token of this network may read what may be shared.
//!
//! A refusal is an answer and never a ban: the peers' secret has no place in the judgement over addresses, and a
//! network may be on its way from one secret to another. Refusals are rationed by address. "Not here" is 204, for
//! which no original holds anything against anybody.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};

use super::engine::guid;
use super::frame::{Keys, TOKEN};
use super::message::{Hash, Kind, Message};
use crate::ban::BanList;
use crate::clock::SharedClock;
use crate::digest::Digest;
use crate::discovery::{Limit, RateOf};
use crate::http::{Body, Uplink, boxed, empty, full};
use crate::net::listener::{Accepted, Acceptor, ConnectionLimit, Permit};
use crate::net::patience::Patient;
use crate::range::{ContentRange, RangeRequest};
use crate::shutdown::{Drain, Shutdown};
use crate::tls::NodeId;

/// A request has a head of well under 1 KiB, but for the path in it.
const MOST_HEAD: usize = 16 * 1024;
/// How soon a peer may come back when all places are taken.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// Where things for peers come from.
pub struct Shelf {
    /// Opens what may be given away, if it has this size where one is told; it waits until the copy is proven.
    pub open: Box<dyn Fn(Hash, Option<u64>) -> Opening + Send + Sync>,
}

/// An opening that takes a while.
type Opening = Pin<Box<dyn Future<Output = Option<Found>> + Send>>;

/// A thing that was found, whole or arriving.
pub struct Found {
    /// The size of the whole.
    pub size: u64,
    /// Its SHA-256, where that is known.
    pub digest: Option<Digest>,
    /// When it was last changed, as the origin said.
    pub modified: Option<String>,
    /// Gives the bytes of a range inside the size, waiting for those that are still to come.
    pub body: Box<dyn Fn(Range<u64>) -> Body + Send + Sync>,
}

/// What the server needs of the rooms below.
pub struct ServerParts {
    /// What opens tokens.
    pub keys: Arc<Keys>,
    /// Who this node is.
    pub node: NodeId,
    /// Addresses that an administrator refuses, or the peer port had to.
    pub bans: BanList,
    /// What may be given.
    pub shelf: Shelf,
    /// The way out, shared with Larder's own protocol.
    pub uplink: Uplink,
    /// How much anybody may ask.
    pub limits: Limits,
    /// Time.
    pub clock: SharedClock,
}

/// How much, and how long, one connection may ask of this node.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections in all: 512.
    pub connections: usize,
    /// Connections from one address: 64.
    pub per_address: usize,
    /// Until the head of a request is whole, and so for how long an idle connection is kept: 30 s.
    pub header: Duration,
    /// Until the shelf has opened a thing, which may have to be read whole first: 60 s.
    pub shelf: Duration,
    /// Without the reader taking a byte: 20 s.
    pub write: Duration,
}

/// What was answered since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Served {
    /// With bytes or a head.
    pub given: u64,
    /// That it is not here.
    pub missing: u64,
    /// That the token does not admit it.
    pub refused: u64,
    /// Bytes of bodies sent.
    pub bytes: u64,
}

/// Serves peers; a cheap clone.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    parts: ServerParts,
    connections: ConnectionLimit,
    refusals: Mutex<Limit>,
    given: AtomicU64,
    missing: AtomicU64,
    refused: AtomicU64,
    bytes: Arc<AtomicU64>,
}

impl Server {
    /// Serves nobody until [`Server::run`].
    pub fn new(parts: ServerParts) -> Self {
        let connections = ConnectionLimit::new(parts.limits.connections, parts.limits.per_address);
        let rate = |burst, a_minute| RateOf { burst, a_minute };
        let refusals = Limit::new(rate(64, 600), rate(1024, 12_000), parts.clock.instant());
        Self(Arc::new(Inner {
            parts,
            connections,
            refusals: Mutex::new(refusals),
            given: AtomicU64::new(0),
            missing: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            bytes: Arc::default(),
        }))
    }

    /// What was answered.
    pub fn served(&self) -> Served {
        let read = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        Served {
            given: read(&self.0.given),
            missing: read(&self.0.missing),
            refused: read(&self.0.refused),
            bytes: read(&self.0.bytes),
        }
    }

    /// How many connections there are, as the protocol tells it.
    pub fn connections(&self) -> u16 {
        let open = self.0.parts.limits.connections.saturating_sub(self.0.connections.free());
        u16::try_from(open).unwrap_or(u16::MAX)
    }

    /// The way out.
    pub fn uplink(&self) -> &Uplink {
        &self.0.parts.uplink
    }

    /// Accepts at the address `own` until asked to stop. Connections run on `drain` and outlive the stop by what
    /// they are just sending.
    pub async fn run(
        &self,
        listener: TcpListener,
        own: Ipv4Addr,
        shutdown: &Shutdown,
        drain: &Drain,
    ) -> io::Result<()> {
        let acceptor = Acceptor::new(listener, self.0.connections.clone());
        acceptor
            .run(shutdown, |accepted| match accepted {
                Accepted::Admitted { stream, from, permit } => {
                    if !self.0.parts.bans.is_banned(from.ip()) {
                        let guest = self.clone().serve(stream, from.ip(), own, permit, shutdown.clone());
                        let _joined_by_drain = drain.spawn(guest);
                    }
                }
                Accepted::Crowded { from, .. } => {
                    tracing::debug!(client.addr = %from, "too many connections from one address");
                }
            })
            .await
    }

    async fn serve(self, stream: TcpStream, from: IpAddr, own: Ipv4Addr, permit: Permit, shutdown: Shutdown) {
        let limits = self.0.parts.limits;
        let service = service_fn(move |request| {
            let server = self.clone();
            async move { Ok::<_, std::convert::Infallible>(server.answer(&request, from, own).await) }
        });
        let mut connection = pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.header)
                .max_header_size(MOST_HEAD)
                .auto_date_header(false)
                .title_case_headers(true)
                .serve_connection(TokioIo::new(Patient::new(stream, limits.write)), service)
        );
        let result = tokio::select! {
            result = connection.as_mut() => result,
            () = shutdown.requested() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = result {
            tracing::debug!(client.addr = %from, %error, "a mORMot peer's connection ended early");
        }
        drop(permit);
    }

    async fn answer<B>(&self, request: &Request<B>, from: IpAddr, own: Ipv4Addr) -> Response<Body> {
        let bearer = match self.admit(request, own) {
            Ok(bearer) => bearer,
            Err(why) => return self.refuse(from, why),
        };
        let is_head = request.method() == Method::HEAD;
        let place = if is_head { None } else { self.uplink().place() };
        if place.is_none() && !is_head {
            return unavailable("all places are taken");
        }
        let opening = (self.0.parts.shelf.open)(bearer.hash, bearer.known_size());
        let found = match tokio::time::timeout(self.0.parts.limits.shelf, opening).await {
            Ok(Some(found)) => found,
            Ok(None) => {
                self.0.missing.fetch_add(1, Ordering::Relaxed);
                return with(StatusCode::NO_CONTENT, empty());
            }
            Err(_elapsed) => return unavailable("the shelf is slow"),
        };
        let range = match place {
            Some(_) => wanted(request.headers()),
            None => None,
        };
        let (status, range) = match range.map(|range| range.resolve(found.size)) {
            None => (StatusCode::OK, 0..found.size),
            Some(Ok(range)) => (StatusCode::PARTIAL_CONTENT, range),
            Some(Err(_outside)) => {
                let mut response = text(StatusCode::RANGE_NOT_SATISFIABLE, "the file is shorter");
                set(&mut response, header::CONTENT_RANGE, &ContentRange::unsatisfied(found.size));
                return response;
            }
        };
        self.0.given.fetch_add(1, Ordering::Relaxed);
        let length = range.end - range.start;
        let content_range = ContentRange::satisfied(&range, found.size);
        let body = match place {
            Some(place) if length > 0 => {
                let body = (found.body)(range);
                boxed(self.uplink().send(body, length, place).counted(Arc::clone(&self.0.bytes)))
            }
            _ => empty(),
        };
        let mut response = with(status, body);
        set(&mut response, header::ACCEPT_RANGES, "bytes");
        set(&mut response, header::CONTENT_LENGTH, &length.to_string());
        if status == StatusCode::PARTIAL_CONTENT {
            set(&mut response, header::CONTENT_RANGE, &content_range);
        }
        if let Some(modified) = &found.modified {
            set(&mut response, header::LAST_MODIFIED, modified);
        }
        if let Some(digest) = &found.digest {
            set(&mut response, HeaderName::from_static("repr-digest"), &digest.repr_digest());
        }
        response
    }

    /// The token of a request that may be looked at. Nothing of what this node holds is looked at here.
    fn admit<B>(&self, request: &Request<B>, own: Ipv4Addr) -> Result<Message, &'static str> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Err("another method than GET and HEAD");
        }
        if request.uri().path().starts_with("/htt") {
            return Err("nothing is fetched for others");
        }
        let token = token(request.headers()).ok_or("no token")?;
        let bearer = self.0.parts.keys.open_token(token).map_err(|_refusal| "a token of another network")?;
        let parts = &self.0.parts;
        if bearer.kind != Kind::Bearer {
            return Err("a message that is no token");
        }
        if bearer.address != own {
            return Err("a token for another address");
        }
        if bearer.uuid != [0; 16] && bearer.uuid != guid(parts.node.as_bytes()) {
            return Err("a token for another node");
        }
        Ok(bearer)
    }

    fn refuse(&self, from: IpAddr, why: &'static str) -> Response<Body> {
        tracing::debug!(client.addr = %from, why, "a mORMot peer is refused");
        self.0.refused.fetch_add(1, Ordering::Relaxed);
        let now = self.0.parts.clock.instant();
        let admitted = self.0.refusals.lock().unwrap_or_else(PoisonError::into_inner).admits(from, now);
        let (status, why) = if admitted {
            (StatusCode::FORBIDDEN, "not for strangers")
        } else {
            (StatusCode::TOO_MANY_REQUESTS, "too many refusals")
        };
        let mut response = text(status, why);
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

/// The token of an `Authorization: Bearer` field; what follows it is not looked at, as the originals do.
fn token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().get(..TOKEN))?
}

/// The range a request asks for; several at once, and what is none, mean the whole (RFC 9110 section 14.2).
fn wanted(asked: &HeaderMap) -> Option<RangeRequest> {
    // there are no entity tags here that a condition could hold for
    let range = asked.get(header::RANGE).filter(|_| !asked.contains_key(header::IF_RANGE))?;
    RangeRequest::parse(range.to_str().ok()?)
}

fn with(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    set(&mut response, header::SERVER, concat!("larder/", env!("CARGO_PKG_VERSION")));
    response
}

fn text(status: StatusCode, why: &'static str) -> Response<Body> {
    let mut response = with(status, full(why));
    set(&mut response, header::CONTENT_TYPE, "text/plain");
    response
}

fn unavailable(why: &'static str) -> Response<Body> {
    let mut response = text(StatusCode::SERVICE_UNAVAILABLE, why);
    response.headers_mut().insert(header::RETRY_AFTER, RETRY_SECONDS);
    response
}

/// A value that could not stand in a field would be left out rather than harm the answer.
fn set(response: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            per_address: 64,
            header: Duration::from_secs(30),
            shelf: Duration::from_secs(60),
            write: Duration::from_secs(20),
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("served", &self.served()).finish_non_exhaustive()
    }
}
