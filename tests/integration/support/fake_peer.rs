//! A neighbour that holds the site's secret and means no good: it finds and is found like a real node, and
//! what it serves is a [`Script`].
//!
//! It stands on the library's own rooms for keys, frames and certificates, so it is always a valid member of
//! the site; only its conduct is false. [`Stranger`] is the other side: a client that knocks at a peer port.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use larder::clock::SystemClock;
use larder::digest::{Digest, Stated, StatedKey};
use larder::discovery::{Asker, Config, Discovery, Endpoint, Holding, Holdings, Parts, Wanted};
use larder::http::Target;
use larder::policy::{ResourceKey, UrlKey, Variance};
use larder::seal::{Bearer, BootId, GrantId, Grants, Sealer, Secret, SiteKeys, Thing};
use larder::shutdown::Shutdown;
use larder::telemetry::Health;
use larder::tls::{Identity, NodeId, peer_client, peer_server, pin_of_certificate};
use rustls::pki_types::pem::PemObject as _;

use super::address::OwnAddress;
use super::daemon::{Larder, Site};
use super::origin::{Origin, Seen};
use super::script::Script;
use super::{GUARD, client::Answer};

/// A false neighbour; it says goodbye when it is dropped.
pub struct FakePeer {
    served: Origin,
    claims: Arc<Claims>,
    discovery: Discovery,
    shutdown: Shutdown,
    runtime: Option<tokio::runtime::Runtime>,
    address: OwnAddress,
}

/// What it says it holds.
#[derive(Debug, Default)]
struct Claims {
    /// Digest → size.
    blobs: Mutex<HashMap<Digest, u64>>,
    /// Digest in another algorithm → what it says that is.
    stated: Mutex<HashMap<StatedKey, Digest>>,
    /// URL → what it says it has of it.
    urls: Mutex<HashMap<UrlKey, Holding>>,
}

impl Holdings for Claims {
    fn lookup(&self, wanted: &Wanted, _: Option<Asker>) -> Option<Holding> {
        let digest = match wanted {
            Wanted::Blob(digest) => *digest,
            Wanted::Stated(key) => *self.stated.lock().unwrap().get(key)?,
            Wanted::Url(url) => return self.urls.lock().unwrap().get(url).cloned(),
        };
        let size = *self.blobs.lock().unwrap().get(&digest)?;
        Some(Holding {
            digest: Some(digest),
            size: Some(size),
            first_hand: true,
            complete: true,
            ..Holding::default()
        })
    }
}

impl FakePeer {
    /// Joins the site on an address of its own.
    pub fn join(site: &Site) -> Self {
        let address = OwnAddress::claim();
        let local = SocketAddr::new(address.ip(), site.port());
        let identity = Identity::generate().unwrap();
        let clock = SystemClock::shared();
        let grants = Grants::new(Arc::clone(&clock));
        let claims = Arc::new(Claims::default());
        let config = Config {
            node_name: "fake".into(),
            version: "0.0.0".into(),
            port: site.port(),
            tcp_port: site.port(),
            https: true,
            http: false,
            endpoints: vec![Endpoint {
                local,
                broadcast: Some(SocketAddr::new([127, 255, 255, 255].into(), site.port())),
                index: 0,
            }],
            seeds: Vec::new(),
            wait_max: Duration::from_millis(250),
            gateway: false,
            advertise: None,
        };
        let parts = Parts {
            node: identity.node(),
            pins: vec![identity.pin()],
            sealer: Sealer::new(keys(site), BootId::ephemeral().unwrap()).unwrap(),
            grants,
            holdings: claims.clone(),
            clock,
            health: Health::new(),
        };
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let shutdown = Shutdown::new();
        let entered = runtime.enter();
        let (discovery, service) = Discovery::new(config, parts).unwrap();
        runtime.spawn(service.run(shutdown.clone()));
        drop(entered);
        let served = Origin::start_with_tls(local, peer_server(&identity).unwrap());
        Self { served, claims, discovery, shutdown, runtime: Some(runtime), address }
    }

    /// Says that it holds what `truth` is, and behaves like `conduct` when it is asked for it.
    pub fn offers(&self, truth: &Script, conduct: Script) {
        self.offers_as(truth, truth.size, conduct);
    }

    /// The same with a size of its own invention.
    pub fn offers_as(&self, truth: &Script, size: u64, conduct: Script) {
        let digest = truth.digest();
        self.served.serve(&format!("/blob/{digest}"), conduct);
        self.claims.blobs.lock().unwrap().insert(digest.parse().unwrap(), size);
    }

    /// Says that what it offered as `truth` has this digest.
    pub fn claims_to_be(&self, stated: &Stated, truth: &Script) {
        self.claims.stated.lock().unwrap().insert(stated.key(), truth.digest().parse().unwrap());
    }

    /// Says that it had `lie` from the origin under this URL, with the validators of `truth`, and serves `conduct`.
    pub fn witnesses(&self, url: &str, truth: &Script, lie: &Script, conduct: Script) {
        self.offers(lie, conduct);
        let key = UrlKey::of(&Target::from_uri(&url.parse().unwrap()).unwrap(), &[]);
        let (etag, last_modified) = (truth.etag_value(), truth.last_modified.clone());
        let validator = etag.as_deref().or(last_modified.as_deref());
        let holding = Holding {
            digest: Some(lie.digest().parse().unwrap()),
            size: Some(truth.size),
            resource: Some(ResourceKey::of(&key, &Variance::default(), validator)),
            etag,
            last_modified,
            first_hand: true,
            complete: true,
            ..Holding::default()
        };
        self.claims.urls.lock().unwrap().insert(key, holding);
    }

    /// The requests for the bytes of `truth`.
    pub fn asked_for(&self, truth: &Script) -> Vec<Seen> {
        self.served.requests(&format!("/blob/{}", truth.digest()))
    }

    pub fn ip(&self) -> IpAddr {
        self.address.ip()
    }

    /// Goes away without a goodbye.
    pub fn die(&mut self) {
        self.served.stop();
    }

    /// Waits until the two know each other.
    pub fn meets(&self, node: &Larder) {
        super::wait_until("the node to see the fake", || node.peers().contains(&"fake".to_owned()));
        super::wait_until("the fake to see the node", || !self.discovery.peers().is_empty());
    }
}

impl Drop for FakePeer {
    fn drop(&mut self) {
        self.shutdown.request();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }
}

fn keys(site: &Site) -> SiteKeys {
    let secret = Secret::parse(site.secret().as_bytes()).unwrap();
    SiteKeys::derive(site.name(), &[secret]).unwrap()
}

/// Somebody with a certificate of his own who knocks at a node's peer port over TLS.
pub struct Stranger {
    identity: Identity,
    holder: NodeId,
    to: SocketAddr,
    from: OwnAddress,
    tls: Arc<rustls::ClientConfig>,
}

impl Stranger {
    /// Knows the node's pin, as everybody on the wire who is told it.
    pub fn before(node: &Larder) -> Self {
        let text = std::fs::read(node.state_dir().join("identity.crt")).unwrap();
        let der =
            rustls::pki_types::CertificateDer::from_pem_slice(&text).map_or(text.clone(), |der| der.to_vec());
        let pin = pin_of_certificate(&der).unwrap();
        let identity = Identity::generate().unwrap();
        let tls = peer_client(&identity, vec![pin]).unwrap();
        Self { identity, holder: NodeId::of(&pin), to: node.peer(), from: OwnAddress::claim(), tls }
    }

    pub fn ip(&self) -> IpAddr {
        self.from.ip()
    }

    /// A token as a member of `site` makes it, for a grant that nobody gave.
    pub fn made_up_bearer(&self, site: &Site, digest: &str, counter: u64) -> String {
        let bearer = Bearer {
            grant: GrantId([7; 16]),
            thing: Thing::Blob(digest.parse().unwrap()),
            asker: self.identity.node(),
            holder: self.holder,
            counter,
        };
        keys(site).seal_bearer(&bearer).unwrap()
    }

    /// One request on a fresh connection; no answer is an error.
    pub fn ask(&self, method: &str, path: &str, bearer: Option<&str>) -> std::io::Result<Answer> {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(self.ip(), 0).into())?;
        socket.connect_timeout(&self.to.into(), GUARD)?;
        socket.set_read_timeout(Some(GUARD))?;
        let mut socket = std::net::TcpStream::from(socket);
        let name = rustls::pki_types::ServerName::IpAddress(self.to.ip().into());
        let mut tls =
            rustls::ClientConnection::new(Arc::clone(&self.tls), name).map_err(std::io::Error::other)?;
        let mut stream = rustls::Stream::new(&mut tls, &mut socket);
        let token = bearer.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\n{token}Connection: close\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        match (bytes.is_empty(), read) {
            (true, Err(error)) => Err(error),
            (true, Ok(_)) => Err(std::io::ErrorKind::UnexpectedEof.into()),
            // Without its alert the end is judged by the length in the head.
            (false, _) => Ok(Answer::of_whole(&bytes)),
        }
    }
}

#[test]
fn two_fakes_of_one_site_find_each_other() {
    let site = Site::new();
    let (a, b) = (FakePeer::join(&site), FakePeer::join(&site));
    let stranger = FakePeer::join(&site.strangers());
    super::wait_until("two fakes to meet", || {
        a.discovery.peers().len() == 1 && b.discovery.peers().len() == 1
    });
    assert_eq!(a.discovery.peers()[0].address.ip(), b.ip());
    assert!(stranger.discovery.peers().is_empty());
}
