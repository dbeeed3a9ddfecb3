//! Datagrams in memory: one network for any number of nodes, which tests can cut, listen to and speak into.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

use super::{Datagram, InterfaceView, Link, Transport};
use crate::discovery::Endpoint;

/// How many datagrams wait at one endpoint; further ones are lost.
const QUEUE: usize = 4096;

/// The network between memory transports; a cheap clone.
#[derive(Debug, Clone, Default)]
pub struct Network(Arc<Mutex<Hub>>);

#[derive(Debug, Default)]
struct Hub {
    plugs: HashMap<SocketAddr, Plug>,
    broadcast_cut: bool,
    /// Everything that was sent, while somebody records.
    record: Option<Vec<(SocketAddr, Vec<u8>)>>,
}

#[derive(Debug)]
struct Plug {
    endpoint: Endpoint,
    link: Link,
    queue: VecDeque<Datagram>,
    wake: Arc<Notify>,
}

/// One node's side of a [`Network`].
#[derive(Debug)]
pub struct Memory {
    network: Network,
    endpoints: Vec<(Endpoint, Link)>,
    next_link: u32,
    wake: Arc<Notify>,
}

impl Network {
    /// An empty network.
    pub fn new() -> Self {
        Self::default()
    }

    /// A transport on this network; it hears nothing before it has endpoints.
    pub fn join(&self) -> Memory {
        Memory { network: self.clone(), endpoints: Vec::new(), next_link: 0, wake: Arc::new(Notify::new()) }
    }

    /// Whether broadcasts are dropped, as an access point that isolates its clients does.
    pub fn cut_broadcast(&self, cut: bool) {
        self.hub().broadcast_cut = cut;
    }

    /// Begins to record who sent what.
    pub fn record(&self) {
        self.hub().record = Some(Vec::new());
    }

    /// What was recorded since the last call.
    pub fn recorded(&self) -> Vec<(SocketAddr, Vec<u8>)> {
        self.hub().record.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Puts a datagram on the wire that seems to come from anywhere.
    pub fn inject(&self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> bool {
        self.hub().carry(from, to, bytes)
    }

    fn hub(&self) -> std::sync::MutexGuard<'_, Hub> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hub {
    /// Whether anybody heard it.
    fn carry(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> bool {
        if let Some(record) = &mut self.record {
            record.push((from, bytes.to_vec()));
        }
        let (mut heard, cut) = (false, self.broadcast_cut);
        for (address, plug) in &mut self.plugs {
            let broadcast = plug.endpoint.broadcast == Some(to);
            if (*address == to || (broadcast && !cut)) && plug.queue.len() < QUEUE {
                plug.queue.push_back(Datagram { bytes: bytes.to_vec(), from, link: plug.link, broadcast });
                plug.wake.notify_one();
                heard = true;
            }
        }
        heard
    }
}

impl Memory {
    /// A datagram that has already arrived.
    pub fn try_receive(&mut self) -> Option<Datagram> {
        let mut hub = self.network.hub();
        self.endpoints.iter().find_map(|(endpoint, _)| hub.plugs.get_mut(&endpoint.local)?.queue.pop_front())
    }
}

impl Transport for Memory {
    fn set_endpoints(&mut self, endpoints: &[Endpoint], _now: Instant) {
        let mut hub = self.network.hub();
        for (gone, _) in self.endpoints.extract_if(.., |(endpoint, _)| !endpoints.contains(endpoint)) {
            hub.plugs.remove(&gone.local);
        }
        for endpoint in endpoints {
            if self.endpoints.iter().any(|(known, _)| known == endpoint) {
                continue;
            }
            let link = Link(self.next_link);
            self.next_link += 1;
            self.endpoints.push((*endpoint, link));
            let wake = Arc::clone(&self.wake);
            let plug = Plug { endpoint: *endpoint, link, queue: VecDeque::new(), wake };
            hub.plugs.insert(endpoint.local, plug);
        }
    }

    fn maintain(&mut self, _now: Instant) -> Option<Instant> {
        None
    }

    async fn receive(&mut self) -> Option<Datagram> {
        loop {
            if let Some(datagram) = self.try_receive() {
                return Some(datagram);
            }
            let wake = Arc::clone(&self.wake);
            wake.notified().await;
        }
    }

    fn send(&mut self, to: SocketAddr, link: Option<Link>, frame: &[u8]) -> io::Result<()> {
        let from = self.endpoints.iter().find(|(_, known)| Some(*known) == link).or(self.endpoints.first());
        let (from, _) = from.ok_or(io::ErrorKind::NetworkUnreachable)?;
        self.network.hub().carry(from.local, to, frame);
        Ok(())
    }

    fn broadcast(&mut self, frame: &[u8], but: Option<Link>) {
        let mut hub = self.network.hub();
        let but = self.endpoints.iter().find(|(_, link)| Some(*link) == but).map(|(endpoint, _)| endpoint);
        for (endpoint, _) in &self.endpoints {
            if but.is_some_and(|but| but.shares_network(endpoint)) {
                continue;
            }
            if let Some(everybody) = endpoint.broadcast {
                hub.carry(endpoint.local, everybody, frame);
            }
        }
    }

    fn view(&self) -> Vec<InterfaceView> {
        let view = |(endpoint, _): &(Endpoint, Link)| InterfaceView {
            local: endpoint.local,
            broadcast: endpoint.broadcast,
            error: None,
            taken: false,
        };
        self.endpoints.iter().map(view).collect()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let mut hub = self.network.hub();
        for (endpoint, _) in &self.endpoints {
            hub.plugs.remove(&endpoint.local);
        }
    }
}
