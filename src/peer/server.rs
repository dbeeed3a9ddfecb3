//! Giving to neighbours: connections, and who may have what.
//!
//! A refused address is dropped before a byte is read. Every wait has a deadline: for the TLS handshake, for
//! the head of each request, for the next one on an idle connection, for the shelf, and for a reader that
//! does not read. Offences are told to the [`BanList`]: a token that no accepted key opens or none at all,
//! another path or method than the two of this port, and what is not HTTP beyond doubt (or no TLS). An
//! everyday refusal (403 to a neighbour whose grant has ended, 404, 416, 503) is none.
//!
//! No answer carries a date. A stop lets running bodies go on; who waits for them is whoever owns the
//! [`Drain`].

mod answer;
mod arriving;

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::{Config, ResourceHead, Tally, Tls};
use crate::ban::BanList;
use crate::digest::Digest;
use crate::http::inspect::Inspected;
use crate::http::{Body, Uplink, inspect};
use crate::net::listener::{Accepted, Acceptor, ConnectionLimit, Permit};
use crate::net::patience::Patient;
use crate::seal::{Grants, SiteKeys, Thing};
use crate::shutdown::{Drain, Shutdown};
use crate::tls::{self, Identity, NodeId, TlsError};

/// A request of ours has a head of well under 1 KiB, and no body.
const MOST_HEAD: usize = 8 * 1024;
const MOST_FIELDS: usize = 64;

/// Where things for neighbours come from.
pub struct Shelf {
    /// Opens a blob that may be given away; it waits until the copy is proven, and gives none where it is
    /// missing or rotten.
    pub open: Box<dyn Fn(Digest) -> Later<Option<Found>> + Send + Sync>,
    /// Shows the head of a response that may be given away, with the hashes of its pieces from one on; it waits a
    /// little for one that is being fetched.
    pub head: ShowHead,
    /// Gives an asker what this node is itself receiving; none if nothing of that name is, an error if enough read
    /// from here.
    pub arriving: GiveArriving,
    /// The list of the site's orders; none where this node does not follow any.
    pub orders: Box<dyn Fn() -> Option<Vec<u8>> + Send + Sync>,
}

type ShowHead = Box<dyn Fn([u8; 32], u64) -> Later<Result<ResourceHead, Absent>> + Send + Sync>;
type GiveArriving = Box<dyn Fn(Thing, NodeId) -> Option<Result<Coming, Absent>> + Send + Sync>;

/// An answer that takes a while.
type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A blob that was found.
pub struct Found {
    /// Its size.
    pub size: u64,
    /// Gives the bytes of a range inside the size.
    pub body: Box<dyn Fn(Range<u64>) -> Body + Send + Sync>,
}

/// Something that is still arriving.
pub struct Coming {
    /// Its size, once known.
    pub total: Option<u64>,
    /// The name of its version.
    pub resource: Option<[u8; 32]>,
    /// Gives the bytes of a range as they come, and after the last one of the whole the trailer `Repr-Digest`.
    pub body: Box<dyn FnOnce(Range<u64>) -> Body + Send>,
}

/// Why a thing is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// It is not here.
    NotHere,
    /// As many read from here as may.
    Full,
    /// It was fetched and is not to be shared: everybody should ask the origin.
    Left,
}

/// What the server needs of the rooms below.
pub struct ServerParts {
    /// This node's key.
    pub identity: Identity,
    /// The keys that open tokens.
    pub keys: SiteKeys,
    /// The grants that this node gave.
    pub grants: Grants,
    /// Who is refused.
    pub bans: BanList,
    /// What may be given.
    pub shelf: Shelf,
    /// The way out.
    pub uplink: Uplink,
    /// How much anybody may ask.
    pub limits: Limits,
    /// Who took how much.
    pub tally: Tally,
}

/// How much, and how long, one connection may ask of this node.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections in all: 1024.
    pub connections: usize,
    /// Connections from one address, behind which there may be many machines: 128.
    pub per_address: usize,
    /// Until the TLS handshake is through: 5 s.
    pub handshake: Duration,
    /// Until the head of a request is whole: 10 s from its first byte, which may take as long again.
    pub header: Duration,
    /// Until the shelf has opened a thing, which may have to be read whole first: 60 s.
    pub shelf: Duration,
    /// Without the reader taking a byte: 20 s.
    pub write: Duration,
}

/// Serves neighbours; a cheap clone.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

struct Inner {
    me: NodeId,
    tls: Option<TlsAcceptor>,
    keys: SiteKeys,
    grants: Grants,
    bans: BanList,
    shelf: Shelf,
    limits: Limits,
    connections: ConnectionLimit,
    uplink: Uplink,
    tally: Tally,
    /// The addresses of this machine that neighbours may come to; none: all of them.
    addresses: ArcSwapOption<Vec<IpAddr>>,
}

/// Who is at the other end.
#[derive(Debug, Clone, Copy)]
struct Caller {
    address: IpAddr,
    /// The id of the key it proved. In clear nobody proves a key, and [`Proof::Nothing`] is asked for.
    proof: Proof,
}

/// What the handshake proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// There is no handshake on this port.
    Nothing,
    /// TLS without a certificate of the caller.
    Missing,
    /// The caller holds the key of this node.
    Node(NodeId),
}

impl Server {
    /// Serves nobody until [`Server::run`].
    pub fn new(config: &Config, parts: ServerParts) -> Result<Self, TlsError> {
        let ServerParts { identity, keys, grants, bans, shelf, uplink, limits, tally } = parts;
        let tls = match config.tls {
            Tls::Pinned => Some(TlsAcceptor::from(tls::peer_server(&identity)?)),
            Tls::Off => None,
        };
        Ok(Self(Arc::new(Inner {
            me: identity.node(),
            tls,
            keys,
            grants,
            bans,
            shelf,
            limits,
            connections: ConnectionLimit::new(limits.connections, limits.per_address),
            uplink,
            tally,
            addresses: ArcSwapOption::empty(),
        })))
    }

    /// Accepts on one of this node's peer addresses until asked to stop. Connections run on `drain` and
    /// outlive the stop by what they are just sending.
    pub async fn run(&self, listener: TcpListener, shutdown: &Shutdown, drain: &Drain) -> io::Result<()> {
        let acceptor = Acceptor::new(listener, self.0.connections.clone());
        acceptor
            .run(shutdown, |accepted| match accepted {
                Accepted::Admitted { stream, from, permit } => {
                    if self.0.bans.is_banned(from.ip()) || !self.serves_at(&stream) {
                        return;
                    }
                    let guest = self.clone().serve(stream, from.ip(), permit, shutdown.clone());
                    let _joined_by_drain = drain.spawn(guest);
                }
                Accepted::Crowded { from, .. } => {
                    tracing::debug!(client.addr = %from, "too many connections from one address");
                }
            })
            .await
    }

    /// From now on only connections to these addresses of this machine are served, whatever is listened on.
    pub fn serve_only_at(&self, addresses: Vec<IpAddr>) {
        self.0.addresses.store(Some(Arc::new(addresses)));
    }

    fn serves_at(&self, stream: &TcpStream) -> bool {
        let addresses = self.0.addresses.load();
        let Some(addresses) = addresses.as_deref() else { return true };
        stream.local_addr().is_ok_and(|at| addresses.contains(&at.ip().to_canonical()))
    }

    /// The way out.
    pub fn uplink(&self) -> &Uplink {
        &self.0.uplink
    }

    async fn serve(self, stream: TcpStream, address: IpAddr, permit: Permit, shutdown: Shutdown) {
        let stream = Patient::new(stream, self.0.limits.write);
        match &self.0.tls {
            None => self.converse(stream, Caller { address, proof: Proof::Nothing }, &shutdown).await,
            Some(acceptor) => {
                match tokio::time::timeout(self.0.limits.handshake, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => {
                        let pin = tls::pin_of_peer(stream.get_ref().1.peer_certificates());
                        let proof = pin.map_or(Proof::Missing, |pin| Proof::Node(NodeId::of(&pin)));
                        self.converse(stream, Caller { address, proof }, &shutdown).await;
                    }
                    Ok(Err(error)) if tls::is_no_tls(&error) => self.offence(address, "no TLS"),
                    Ok(Err(error)) => tracing::debug!(client.addr = %address, %error, "no TLS handshake"),
                    Err(_elapsed) => tracing::debug!(client.addr = %address, "no TLS handshake in time"),
                }
            }
        }
        drop(permit);
    }

    async fn converse<S>(&self, stream: S, caller: Caller, shutdown: &Shutdown)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let limits = &self.0.limits;
        let (stream, inspection) = Inspected::new(
            stream,
            inspect::Limits {
                head: MOST_HEAD,
                fields: MOST_FIELDS,
                head_time: limits.header,
                body_silence: limits.header,
            },
        );
        let service = service_fn(move |request| {
            let (server, inspection) = (self.clone(), inspection.clone());
            async move {
                match inspection.enter() {
                    Some(fault) => Ok(server.refuse(&caller, fault)),
                    None => server.answer(&caller, &request).await,
                }
            }
        });
        let mut connection = pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limits.header * 2)
                .max_header_size(MOST_HEAD)
                .auto_date_header(false)
                .serve_connection(TokioIo::new(stream), service)
        );
        let result = tokio::select! {
            result = connection.as_mut() => result,
            () = shutdown.requested() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        match result {
            Err(error) if error.is_parse() => self.offence(caller.address, "malformed HTTP"),
            Err(error) => tracing::debug!(client.addr = %caller.address, %error, "a connection ended early"),
            Ok(()) => {}
        }
    }

    fn offence(&self, address: IpAddr, what: &str) {
        tracing::debug!(client.addr = %address, what, "an offence at the peer port");
        self.0.bans.strike(address, what);
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            per_address: 128,
            handshake: Duration::from_secs(5),
            header: Duration::from_secs(10),
            shelf: Duration::from_secs(60),
            write: Duration::from_secs(20),
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("node", &self.0.me).finish_non_exhaustive()
    }
}
