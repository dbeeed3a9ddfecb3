//! The task with everything around it: real sockets, real time, and limits of ten seconds where something must
//! happen.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{LazyLock, Mutex};

use tokio::task::JoinHandle;

use super::*;
use crate::clock::SystemClock;
use crate::discovery::{Asker, Config, Holding, Holdings, Network, Parts, Peer, Seed};
use crate::seal::{BootId, Grants, Secret, SiteKeys};
use crate::tls::Identity;

static KEYS: LazyLock<SiteKeys> =
    LazyLock::new(|| SiteKeys::derive("lab", &[Secret::parse(b"a secret of the tests").unwrap()]).unwrap());

#[derive(Default)]
struct Held(Mutex<HashMap<Wanted, Holding>>);

impl Holdings for Held {
    fn lookup(&self, wanted: &Wanted, _: Option<Asker>) -> Option<Holding> {
        self.0.lock().unwrap().get(wanted).cloned()
    }
}

struct Running {
    discovery: Discovery,
    held: Arc<Held>,
    health: Health,
    identity: Identity,
    stop: Shutdown,
    task: JoinHandle<()>,
}

impl Running {
    fn start(
        transport: impl Transport + 'static,
        name: &str,
        endpoints: Vec<Endpoint>,
        seeds: Vec<Seed>,
    ) -> Self {
        Self::start_by(SystemClock::shared(), transport, name, endpoints, seeds)
    }

    fn start_by(
        clock: SharedClock,
        transport: impl Transport + 'static,
        name: &str,
        endpoints: Vec<Endpoint>,
        seeds: Vec<Seed>,
    ) -> Self {
        let (held, health, stop) = (Arc::new(Held::default()), Health::new(), Shutdown::new());
        let identity = Identity::generate().unwrap();
        let config = Config {
            node_name: name.into(),
            version: "0.1.0".into(),
            port: endpoints[0].local.port(),
            tcp_port: 9000,
            https: true,
            http: false,
            endpoints,
            seeds,
            wait_max: Duration::from_millis(250),
            gateway: false,
            advertise: None,
        };
        let parts = Parts {
            node: identity.node(),
            pins: vec![identity.pin()],
            sealer: Sealer::new(KEYS.clone(), BootId::ephemeral().unwrap()).unwrap(),
            grants: Grants::new(SystemClock::shared()),
            holdings: held.clone(),
            clock,
            health: health.clone(),
        };
        let (discovery, service) = Discovery::over(transport, config, parts).unwrap();
        let task = tokio::spawn(service.run(stop.clone()));
        Self { discovery, held, health, identity, stop, task }
    }

    async fn until(&self, what: impl Fn(&Discovery) -> bool) {
        let happened = async {
            while !what(&self.discovery) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), happened).await.expect("it must happen");
    }

    async fn meets(&self, others: usize) -> Vec<Arc<Peer>> {
        self.until(|discovery| discovery.peers().len() == others).await;
        self.discovery.peers()
    }

    async fn stop(self) {
        self.stop.request();
        tokio::time::timeout(Duration::from_secs(10), self.task).await.expect("it stops").unwrap();
    }
}

fn endpoint(last: u8, port: u16) -> Endpoint {
    Endpoint {
        local: SocketAddr::from(([127, 0, 0, last], port)),
        broadcast: Some(SocketAddr::from(([127, 255, 255, 255], port))),
        index: 0,
    }
}

fn free_port() -> u16 {
    std::net::UdpSocket::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port()
}

fn wanted(text: &str) -> Wanted {
    Wanted::Blob(Digest::of(text.as_bytes()))
}

fn complete() -> Holding {
    Holding { complete: true, ..Holding::default() }
}

async fn two_nodes(a: Running, b: Running) {
    let peers = a.meets(1).await;
    assert_eq!((peers[0].name.as_str(), peers[0].node), ("b", b.identity.node()));
    assert_eq!(peers[0].pins, [b.identity.pin()]);
    assert!(a.discovery.heard_lately() && peers[0].last_seen_seconds < 10.0);
    b.meets(1).await;
    b.held.0.lock().unwrap().insert(wanted("x"), complete());
    let mut finding = a.discovery.find(wanted("x"));
    // on a machine under load the answer may come after the decision
    let offer = match finding.decided().await.pop() {
        Some(offer) => offer,
        None => tokio::time::timeout(Duration::from_secs(10), finding.next()).await.unwrap().unwrap(),
    };
    assert!(offer.holding.complete && offer.peer.node == b.identity.node());
    assert_eq!(offer.peer.address.port(), 9000);
    // side by side, none waits for another
    let mut many: Vec<Finding> = (0..50).map(|_| a.discovery.find(wanted("y"))).collect();
    for finding in &mut many {
        assert!(finding.decided().await.is_empty());
    }
    let mut late = a.discovery.find(wanted("z"));
    assert!(late.decided().await.is_empty());
    b.stop().await;
    a.meets(0).await;
    assert!(a.discovery.counts().answers > 0 && a.health.troubles().is_empty());
    let next = tokio::time::timeout(Duration::from_millis(20), late.next()).await;
    assert!(next.is_err(), "it goes on waiting for late offers");
    a.stop().await;
    assert_eq!(late.next().await, None);
}

#[tokio::test]
async fn two_nodes_over_udp_on_loopback() {
    let port = free_port();
    let start = |name, last| {
        Running::start(
            crate::discovery::Udp::new(port, "peers.port"),
            name,
            vec![endpoint(last, port)],
            Vec::new(),
        )
    };
    two_nodes(start("a", 12), start("b", 13)).await;
}

#[tokio::test]
async fn two_nodes_in_memory() {
    let network = Network::new();
    let start = |name, last| Running::start(network.join(), name, vec![endpoint(last, 8096)], Vec::new());
    two_nodes(start("a", 2), start("b", 3)).await;
}

#[tokio::test]
async fn a_seed_is_reached_by_unicast() {
    let network = Network::new();
    network.cut_broadcast(true);
    let a = Running::start(network.join(), "a", vec![endpoint(2, 8096)], Vec::new());
    let seeds = vec!["127.0.0.2".parse().unwrap()];
    let b = Running::start(network.join(), "b", vec![endpoint(3, 8096)], seeds);
    a.meets(1).await;
    b.meets(1).await;
    a.stop().await;
    b.stop().await;
}

#[tokio::test]
async fn d19_a_taken_port_is_a_trouble_and_no_failure() {
    let port = free_port();
    let other = std::net::UdpSocket::bind(("127.0.0.14", port)).unwrap();
    let node = Running::start(
        crate::discovery::Udp::new(port, "peers.port"),
        "a",
        vec![endpoint(14, port)],
        Vec::new(),
    );
    node.until(|discovery| discovery.interfaces().iter().any(|view| view.taken)).await;
    let troubles = node.health.troubles();
    assert!(troubles[0].code == "discovery-port" && troubles[0].reason.contains(&port.to_string()));
    assert!(node.discovery.find(wanted("x")).decided().await.is_empty());
    drop(other);
    node.until(|discovery| discovery.interfaces().iter().all(|view| view.error.is_none())).await;
    assert!(node.health.troubles().is_empty());
    node.stop().await;
}

#[tokio::test]
async fn d05_new_endpoints_are_announced() {
    let network = Network::new();
    let start = |name, last| Running::start(network.join(), name, vec![endpoint(last, 8096)], Vec::new());
    let (a, b) = (start("a", 2), start("b", 3));
    a.meets(1).await;
    b.discovery.set_endpoints(vec![endpoint(44, 8096)]).await;
    let ip = endpoint(44, 0).local.ip();
    a.until(|discovery| discovery.peers().iter().any(|peer| peer.address.ip() == ip)).await;
    a.stop().await;
    b.stop().await;
}

#[tokio::test]
async fn d11_a_clone_is_told_to_renew_and_does() {
    let network = Network::new();
    let a = Running::start(network.join(), "a", vec![endpoint(2, 8096)], Vec::new());
    let b = Running::start(network.join(), "b", vec![endpoint(3, 8096)], Vec::new());
    a.discovery.renamed(b.identity.node(), vec![b.identity.pin()]).await;
    let told = async {
        tokio::select! {
            () = a.discovery.must_renew() => &a,
            () = b.discovery.must_renew() => &b,
        }
    };
    let renewing = tokio::time::timeout(Duration::from_secs(10), told).await.expect("one must renew");
    let fresh = Identity::generate().unwrap();
    renewing.discovery.renamed(fresh.node(), vec![fresh.pin()]).await;
    let knows = |of: &Discovery, node| of.peers().iter().any(|peer| peer.node == node);
    let other = if std::ptr::eq(renewing, &raw const a) { &b } else { &a };
    other.until(|discovery| knows(discovery, fresh.node())).await;
    renewing.until(|discovery| knows(discovery, b.identity.node())).await;
    a.stop().await;
    b.stop().await;
}

#[tokio::test]
async fn a_find_without_a_task_ends_by_itself() {
    let network = Network::new();
    let node = Running::start(network.join(), "a", vec![endpoint(2, 8096)], Vec::new());
    let discovery = node.discovery.clone();
    node.stop().await;
    let mut finding = discovery.find(wanted("x"));
    assert!(finding.decided().await.is_empty() && finding.next().await.is_none());
}

/// The system's clock, two hours ahead.
#[derive(Debug)]
struct Ahead;

impl crate::clock::Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus(Duration::from_secs(7200))
    }
    fn instant(&self) -> Instant {
        SystemClock.instant()
    }
}

#[tokio::test]
async fn how_far_clocks_are_apart_is_known_on_both_sides() {
    let network = Network::new();
    let a = Running::start(network.join(), "a", vec![endpoint(2, 8096)], Vec::new());
    let b = Running::start_by(Arc::new(Ahead), network.join(), "b", vec![endpoint(3, 8096)], Vec::new());
    let off = |discovery: &Discovery, node, ms: i64| {
        discovery.clock_ahead(&node).is_some_and(|ahead| ahead.abs_diff(ms) < 60_000)
    };
    a.until(|discovery| off(discovery, b.identity.node(), 7_200_000)).await;
    b.until(|discovery| off(discovery, a.identity.node(), -7_200_000)).await;
    assert_eq!(a.discovery.clock_ahead(&a.identity.node()), None);
    a.stop().await;
    b.stop().await;
}
