//! Server and client over loopback.

mod pulling;
mod serving;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::ban::{self, BanList};
use crate::clock::{ManualClock, SharedClock, SystemClock, Timestamp};
use crate::digest::Digest;
use crate::http::{Body, BodyError, StoredHead};
use crate::seal::{Bearer, GrantId, Grants, Secret, SiteKeys, Thing};
use crate::shutdown::{Drain, Shutdown};
use crate::tls::Identity;

/// A guard against hanging, ten times what anything here takes.
const HANG: Duration = Duration::from_secs(20);
const PATIENT: Deadlines = Deadlines { connect: HANG, first_byte: HANG, stall: HANG };

/// One node that serves, on a port of its own.
struct Node {
    server: Server,
    holder: Holder,
    grants: Grants,
    bans: BanList,
    stop: Shutdown,
    drain: Drain,
}

/// How a [`Node`] is made.
struct Making {
    config: Config,
    limits: Limits,
    never: Vec<ipnet::IpNet>,
    secret: &'static str,
    blobs: Vec<Bytes>,
    /// Bodies end after this many bytes and stay open, as those of a node that hangs.
    hang_after: Option<u64>,
}

const SECRET: &str = "a secret of the tests of this room";

impl Default for Making {
    fn default() -> Self {
        Self {
            config: Config::default(),
            limits: Limits::default(),
            never: Vec::new(),
            secret: SECRET,
            blobs: Vec::new(),
            hang_after: None,
        }
    }
}

fn keys(secret: &str) -> SiteKeys {
    SiteKeys::derive("test", &[Secret::parse(secret.as_bytes()).unwrap()]).unwrap()
}

fn in_clear() -> Config {
    Config { tls: Tls::Off, ..Config::default() }
}

fn clock() -> SharedClock {
    SystemClock::shared()
}

/// A blob of so many bytes, none like its neighbours.
fn bytes(size: u32) -> Bytes {
    (0..size).map(|n| u8::try_from(n.wrapping_mul(2_654_435_761) >> 24).unwrap()).collect()
}

impl Making {
    fn holding(blob: Bytes) -> Self {
        Self { blobs: vec![blob], ..Self::default() }
    }

    async fn start(self) -> Node {
        let identity = Identity::generate().unwrap();
        let bans = BanList::new(ban::Config { never: self.never, ..ban::Config::default() }, clock());
        let grants = Grants::new(clock());
        let shelf = shelf(self.blobs, self.hang_after);
        let parts = ServerParts {
            identity: identity.clone(),
            keys: keys(self.secret),
            grants: grants.clone(),
            bans: bans.clone(),
            shelf,
            uplink: self.config.uplink(None),
            limits: self.limits,
            tally: Tally::default(),
        };
        let server = Server::new(&self.config, parts).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, drain) = (Shutdown::new(), Drain::new());
        let (running, stopped, guests) = (server.clone(), stop.clone(), drain.clone());
        tokio::spawn(async move { running.run(listener, &stopped, &guests).await.unwrap() });
        let https = self.config.tls == Tls::Pinned;
        let holder = Holder { node: identity.node(), address, pins: vec![identity.pin()], https };
        Node { server, holder, grants, bans, stop, drain }
    }
}

fn shelf(blobs: Vec<Bytes>, hang_after: Option<u64>) -> Shelf {
    let held: Arc<HashMap<_, _>> = Arc::new(blobs.into_iter().map(|b| (Digest::of(&b), b)).collect());
    Shelf {
        open: Box::new(move |digest| {
            let blob = held.get(&digest).cloned();
            Box::pin(async move {
                let blob = blob?;
                let size = u64::try_from(blob.len()).unwrap();
                let body = move |range: std::ops::Range<u64>| part(&blob, range, hang_after);
                Some(Found { size, body: Box::new(body) })
            })
        }),
        arriving: Box::new(|_, _| None),
        orders: Box::new(|| Some(b"[]".to_vec())),
        head: Box::new(|key, _| {
            Box::pin(async move {
                let fields = [("etag", "\"a\""), ("set-cookie", "sid=1"), ("date", "today")];
                let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
                let head = StoredHead { status: 200, fields };
                let shown = (key == [1; 32]).then(|| ResourceHead {
                    head,
                    age: 3,
                    digest: Some(Digest::of(b"body")),
                    size: 4,
                    resource: None,
                    first_hand: false,
                    arriving: None,
                });
                shown.ok_or(Absent::NotHere)
            })
        }),
    }
}

/// A part of a blob in several frames.
fn part(blob: &Bytes, range: std::ops::Range<u64>, hang_after: Option<u64>) -> Body {
    let at = |n: u64| usize::try_from(n).unwrap();
    let given = blob.slice(at(range.start)..at(range.end.min(hang_after.unwrap_or(u64::MAX))));
    let pieces = given.chunks(64 * 1024).map(|c| given.slice_ref(c));
    let frames = pieces.map(|piece| Ok::<_, BodyError>(http_body::Frame::data(piece))).collect::<Vec<_>>();
    let frames = futures_util::stream::iter(frames);
    match hang_after {
        None => crate::http::boxed(http_body_util::StreamBody::new(frames)),
        Some(_) => crate::http::boxed(http_body_util::StreamBody::new(futures_util::StreamExt::chain(
            frames,
            futures_util::stream::pending(),
        ))),
    }
}

impl Node {
    fn grant(&self, asker: &Identity, thing: Thing) -> GrantId {
        self.grants.issue(asker.node(), thing).unwrap()
    }
}

/// A client with an identity, as `fetch` has one.
struct Reader {
    identity: Identity,
    client: Client,
}

impl Reader {
    fn new() -> Self {
        Self::with(&Config::default(), SECRET, PATIENT)
    }

    fn with(config: &Config, secret: &str, deadlines: Deadlines) -> Self {
        let identity = Identity::generate().unwrap();
        let client = Client::with_deadlines(config, identity.clone(), keys(secret), &clock(), deadlines);
        Self { identity, client }
    }

    async fn pull(&self, node: &Node, blob: &Digest, from: u64) -> Result<Pulled, PullError> {
        let grant = node.grant(&self.identity, Thing::Blob(*blob));
        self.client.pull(&node.holder, grant, blob, None, from).await
    }

    async fn bytes(&self, node: &Node, blob: &Digest, from: u64) -> Result<Bytes, PullError> {
        Ok(self.pull(node, blob, from).await?.body.collect().await.unwrap().to_bytes())
    }
}

/// Sends raw bytes to a node and gives back what comes until the connection ends.
async fn raw(address: SocketAddr, request: &str) -> String {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let mut answer = Vec::new();
        // a node that refuses the address hangs up before it has read anything: that is an answer too
        if stream.write_all(request.as_bytes()).await.is_ok()
            && let Err(error) = stream.read_to_end(&mut answer).await
        {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
        }
        String::from_utf8_lossy(&answer).into_owned()
    };
    tokio::time::timeout(HANG, exchange).await.unwrap()
}

/// A request with a token, in raw form.
fn asking(method: &str, thing: Thing, token: &str, more: &str) -> String {
    let path = wire::path_of(&thing);
    format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n{more}\r\n"
    )
}

/// Waits until something is so.
async fn until(what: impl Fn() -> bool) {
    let waiting = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(HANG, waiting).await.unwrap();
}
