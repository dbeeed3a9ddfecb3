//! Reading from a neighbour.
//!
//! Connections are kept for a few seconds and used again, one request at a time. Each request carries a token
//! with a fresh counter. The deadlines are short because there is always another source: connecting, the first
//! byte (TLS included) and every silence afterwards are limited, and a slow reader of ours is not mistaken for
//! a silent neighbour.

mod arriving;
mod error;
mod pool;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub use arriving::Arrived;
pub use error::PullError;

use self::pool::{Key, Lease, Pool};
use super::{Config, Holder, ResourceHead, Tally, Tls, wire};
use crate::clock::SharedClock;
use crate::digest::Digest;
use crate::http::{Body, Watched, boxed, empty, length, part};
use crate::seal::{Bearer, GrantId, SiteKeys, Thing};
use crate::shutdown::Drain;
use crate::tls::{self, Identity, NodeId};

/// A stored head is refused beyond this size.
const MOST_HEAD: usize = 512 * 1024;
/// The site's orders are refused beyond this size.
const MOST_ORDERS: usize = 4 * 1024 * 1024;
/// A refusal's text is read up to this size, for the sake of the connection.
const MOST_REFUSAL: usize = 4 * 1024;

/// How long to wait for a neighbour.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// Until the TCP connection stands: 500 ms. A LAN answers in one.
    pub connect: Duration,
    /// From there until the head of the response: 1 s.
    pub first_byte: Duration,
    /// Between two parts of the body: 2 s.
    pub stall: Duration,
}

/// What a neighbour sends.
#[derive(Debug)]
pub struct Pulled {
    /// The size of the whole.
    pub size: u64,
    /// The bytes from where they were asked for to the end, not proved; its errors are [`PullError`].
    pub body: Body,
}

/// Reads from neighbours; a cheap clone.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    identity: Identity,
    keys: SiteKeys,
    tls: Tls,
    deadlines: Deadlines,
    /// The counter of the last token.
    counter: AtomicU64,
    pool: Arc<Pool>,
    /// The tasks that move bytes of connections.
    tasks: Drain,
    /// Who gave how much.
    tally: Tally,
}

type Sender = SendRequest<Empty<Bytes>>;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
struct Ask {
    thing: Thing,
    /// The first byte.
    from: u64,
    /// The bytes of a resource, not its head.
    bytes: bool,
    /// The first piece whose hash is to be told.
    pieces: u64,
}

impl Client {
    /// Nothing is connected yet. The wall clock only sets where the counters begin, so that those of two runs
    /// of one node never meet.
    pub fn new(
        config: &Config,
        identity: Identity,
        keys: SiteKeys,
        clock: &SharedClock,
        tally: Tally,
    ) -> Self {
        Self::with_deadlines(config, identity, keys, clock, Deadlines::default()).counting(tally)
    }

    /// The same with other deadlines.
    pub fn with_deadlines(
        config: &Config,
        identity: Identity,
        keys: SiteKeys,
        clock: &SharedClock,
        deadlines: Deadlines,
    ) -> Self {
        let counter = AtomicU64::new(clock.now().0 << 20);
        let (pool, tasks) = (Arc::new(Pool::new(clock.clone())), Drain::new());
        let tally = Tally::default();
        Self(Arc::new(Inner { identity, keys, tls: config.tls, deadlines, counter, pool, tasks, tally }))
    }

    /// Counts there who gave how much; before anything was read.
    fn counting(mut self, tally: Tally) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.tally = tally;
        }
        self
    }

    /// Who this node is to the others.
    pub fn node(&self) -> NodeId {
        self.0.identity.node()
    }

    /// Reads a blob from the byte `from` to its end. Where the size is known, the neighbour must say the same.
    pub async fn pull(
        &self,
        holder: &Holder,
        grant: GrantId,
        digest: &Digest,
        size: Option<u64>,
        from: u64,
    ) -> Result<Pulled, PullError> {
        if let Some(size) = size.filter(|size| from >= *size && from > 0) {
            return Ok(Pulled { size, body: empty() });
        }
        let (response, lease) = self
            .ask(holder, grant, Ask { thing: Thing::Blob(*digest), from, bytes: true, pieces: 0 })
            .await?;
        let told = match judge_blob(response.status(), response.headers(), digest, size, from) {
            Ok(told) => told,
            Err(error) => return Err(self.refused(response, lease, error).await),
        };
        let count = told.end - told.start;
        let stall = self.0.deadlines.stall;
        let body = Watched::new(response.into_body(), count, stall, move || lease.give_back());
        let body = body.counted(self.0.tally.received(holder.node));
        Ok(Pulled { size: told.end, body: boxed(body.map_err(PullError::from)) })
    }

    /// Reads the list of the site's orders that a neighbour has; a letter that no accepted key opens is none.
    pub async fn orders(&self, holder: &Holder) -> Result<Vec<u8>, PullError> {
        let ask = Ask { thing: wire::ORDERS, from: 0, bytes: false, pieces: 0 };
        let (response, lease) = self.ask(holder, GrantId([0; 16]), ask).await?;
        if response.status() != StatusCode::OK {
            let error = PullError::of_status(response.status());
            return Err(self.refused(response, lease, error).await);
        }
        let letter = self.whole(response, lease, MOST_ORDERS).await?;
        self.0.keys.open_letter(&letter).map_err(|error| PullError::Protocol(error.to_string()))
    }

    /// Reads a stored head, or that of something arriving with the hashes of its pieces from one on.
    pub async fn head(
        &self,
        holder: &Holder,
        grant: GrantId,
        resource: [u8; 32],
        pieces: u64,
    ) -> Result<ResourceHead, PullError> {
        let (response, lease) = self
            .ask(holder, grant, Ask { thing: Thing::Resource(resource), from: 0, bytes: false, pieces })
            .await?;
        if response.status() != StatusCode::OK {
            let error = PullError::of_status(response.status());
            return Err(self.refused(response, lease, error).await);
        }
        let whole = self.whole(response, lease, MOST_HEAD).await?;
        serde_json::from_slice(&whole)
            .map_err(|error| PullError::Protocol(format!("its stored head cannot be read: {error}")))
    }

    /// Forgets all idle connections and waits until no connection is left; false if the deadline came first.
    pub async fn close(&self, deadline: Duration) -> bool {
        self.0.pool.clear();
        self.0.tasks.wait(deadline).await
    }

    /// One request, on a kept connection where there is one. A kept connection that the other end closed in
    /// the meantime costs a second try, not an error.
    async fn ask(
        &self,
        holder: &Holder,
        grant: GrantId,
        ask: Ask,
    ) -> Result<(Response<Incoming>, Lease), PullError> {
        if self.0.tls == Tls::Pinned && !holder.https {
            return Err(PullError::InClear);
        }
        let key = Key { node: holder.node, address: holder.address, https: holder.https };
        let wait = self.0.deadlines.first_byte;
        if let Some(mut sender) = self.0.pool.take(&key, &holder.pins) {
            let request = self.request(holder, grant, ask)?;
            let sent = tokio::time::timeout(wait, sender.send_request(request)).await;
            if let Ok(response) = sent.map_err(|_elapsed| PullError::Timeout("its answer"))? {
                return Ok((response, Lease::new(&self.0.pool, key, &holder.pins, sender)));
            }
        }
        let request = self.request(holder, grant, ask)?;
        let stream = self.connect(holder.address).await?;
        let exchange = async {
            let mut sender = self.converse(stream, holder).await?;
            let response = sender.send_request(request).await.map_err(PullError::of_http)?;
            Ok::<_, PullError>((response, sender))
        };
        let (response, sender) = tokio::time::timeout(wait, exchange)
            .await
            .map_err(|_elapsed| PullError::Timeout("its answer"))??;
        Ok((response, Lease::new(&self.0.pool, key, &holder.pins, sender)))
    }

    fn request(&self, holder: &Holder, grant: GrantId, ask: Ask) -> Result<Request<Empty<Bytes>>, PullError> {
        let Ask { thing, from, bytes, pieces } = ask;
        let counter = self.0.counter.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let asker = self.0.identity.node();
        let bearer = Bearer { grant, thing, asker, holder: holder.node, counter };
        let token = self.0.keys.seal_bearer(&bearer).map_err(PullError::own)?;
        // a zone is this machine's own name for a link
        let host = SocketAddr::new(holder.address.ip(), holder.address.port()).to_string();
        let mut request = Request::get(wire::path_of(&thing))
            .header(header::HOST, host)
            .header(header::AUTHORIZATION, format!("Bearer {token}"));
        if from > 0 {
            request = request.header(header::RANGE, format!("bytes={from}-"));
        }
        if let (Thing::Resource(_), true) = (thing, bytes) {
            request = request.header(header::ACCEPT, wire::BLOB_TYPE);
        }
        if bytes {
            request = request.header(header::TE, "trailers");
        }
        if pieces > 0 {
            request = request.header(wire::PIECES, pieces.to_string());
        }
        request.body(Empty::new()).map_err(PullError::own)
    }

    async fn connect(&self, address: SocketAddr) -> Result<TcpStream, PullError> {
        let connecting = tokio::time::timeout(self.0.deadlines.connect, TcpStream::connect(address));
        let stream = match connecting.await {
            Ok(result) => result.map_err(|error| PullError::Unreachable(error.to_string()))?,
            Err(_elapsed) => return Err(PullError::Unreachable("no connection in time".to_owned())),
        };
        stream.set_nodelay(true).map_err(PullError::own)?;
        Ok(stream)
    }

    /// TLS where the neighbour speaks it, then HTTP.
    async fn converse(&self, stream: TcpStream, holder: &Holder) -> Result<Sender, PullError> {
        if !holder.https {
            return self.speak(stream).await;
        }
        let configure = || tls::peer_client(&self.0.identity, holder.pins.clone());
        let config = self.0.pool.config(holder.node, &holder.pins, configure).map_err(PullError::own)?;
        let name = ServerName::IpAddress(holder.address.ip().into());
        let stream =
            TlsConnector::from(config).connect(name, stream).await.map_err(|e| PullError::of_tls(&e))?;
        self.speak(stream).await
    }

    async fn speak<S>(&self, stream: S) -> Result<Sender, PullError>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(PullError::of_http)?;
        // ends when the sender and the body are gone, or the neighbour hangs up
        let _joined_by_drain = self.0.tasks.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a neighbour ended");
            }
        });
        Ok(sender)
    }

    /// A body that is not long.
    async fn whole(
        &self,
        response: Response<Incoming>,
        lease: Lease,
        most: usize,
    ) -> Result<Bytes, PullError> {
        let size = length(response.headers())
            .ok_or_else(|| PullError::Protocol("its answer has no length".to_owned()))?;
        let stall = self.0.deadlines.stall;
        let body = Watched::new(response.into_body(), size, stall, move || lease.give_back());
        let whole = Limited::new(body.map_err(PullError::from), most).collect().await;
        Ok(whole.map_err(PullError::of_body)?.to_bytes())
    }

    /// Reads the text of a refusal, so that its connection can be used again, and gives the error back.
    async fn refused(&self, response: Response<Incoming>, lease: Lease, error: PullError) -> PullError {
        let count = length(response.headers()).unwrap_or(u64::MAX);
        if response.status() != StatusCode::OK && count <= u64::try_from(MOST_REFUSAL).unwrap_or(0) {
            let stall = self.0.deadlines.stall;
            let body = Watched::new(response.into_body(), count, stall, move || lease.give_back());
            if let Err(why) = Limited::new(body, MOST_REFUSAL).collect().await {
                tracing::debug!(error = %why, "a refusal could not be read");
            }
        }
        error
    }
}

/// The bytes a response to a request for a blob brings: from where to the end of the whole.
fn judge_blob(
    status: StatusCode,
    headers: &HeaderMap,
    digest: &Digest,
    size: Option<u64>,
    from: u64,
) -> Result<Range<u64>, PullError> {
    let wrong = |what: &str| Err(PullError::Protocol(what.to_owned()));
    let told = match status {
        StatusCode::OK | StatusCode::PARTIAL_CONTENT => match part(status, headers, from) {
            Ok(told) => told,
            Err(what) => return wrong(what),
        },
        StatusCode::RANGE_NOT_SATISFIABLE => return wrong("it holds less than is held here already"),
        other => return Err(PullError::of_status(other)),
    };
    if size.is_some_and(|size| size != told.end) {
        return wrong("it sends another size than it offered");
    }
    let stated = headers.get(wire::REPR_DIGEST).and_then(|field| field.to_str().ok());
    match stated.and_then(Digest::from_repr_digest) {
        Some(stated) if stated != *digest => wrong("it states another digest than it was asked for"),
        _ => Ok(told),
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            connect: Duration::from_millis(500),
            first_byte: Duration::from_secs(1),
            stall: Duration::from_secs(2),
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("node", &self.0.identity.node()).finish_non_exhaustive()
    }
}
