//! The fault origin: an HTTP/1.1 server on raw sockets that does what a [`Script`] says and remembers
//! everything it saw and sent. Threads only; it knows nothing of Larder.

mod answer;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use super::GUARD;
use super::script::Script;

pub use wire::{Certificate, Seen, Wire};

/// A running fault origin; it ends when it is dropped.
pub struct Origin {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
    certificate: Option<Certificate>,
}

/// What the connection threads share.
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    scripts: HashMap<String, Script>,
    log: Vec<Seen>,
    sent: HashMap<String, u64>,
    cuts: HashMap<String, u32>,
    released: HashSet<String>,
    counter: u64,
    oldest_signature: u64,
    connections: HashMap<usize, TcpStream>,
    opened: usize,
    stopped: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl Origin {
    /// On an ephemeral port of 127.0.0.1.
    pub fn start() -> Self {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into())
    }

    /// On any address; port 0 takes a free one.
    pub fn start_at(address: SocketAddr) -> Self {
        Self::listen(address, None, None)
    }

    /// The same over TLS as somebody else has set it up.
    pub fn start_with_tls(address: SocketAddr, tls: Arc<rustls::ServerConfig>) -> Self {
        Self::listen(address, Some(tls), None)
    }

    /// The same over TLS, with a self-signed certificate for 127.0.0.1 and localhost.
    pub fn start_tls() -> Self {
        let certificate = Certificate::make();
        Self::listen((Ipv4Addr::LOCALHOST, 0).into(), Some(certificate.server()), Some(certificate))
    }

    fn listen(
        address: SocketAddr,
        tls: Option<Arc<rustls::ServerConfig>>,
        certificate: Option<Certificate>,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap_or_else(|e| panic!("cannot bind {address}: {e}"));
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        let accepting = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    if shared.state().stopped {
                        return;
                    }
                    let wire = Wire::new(stream, tls.clone());
                    let shared = Arc::clone(&shared);
                    std::thread::spawn(move || converse(wire, &shared));
                }
            }
        });
        Self { address, shared, accepting: Some(accepting), certificate }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate to trust, PEM; only of a TLS origin.
    pub fn certificate(&self) -> &str {
        self.certificate.as_ref().map(|certificate| certificate.pem.as_str()).unwrap()
    }

    /// The URL of a path here.
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.address)
    }

    /// From now on `path` behaves like `script`; a second call is a new version. Gives the URL.
    pub fn serve(&self, path: &str, script: Script) -> String {
        let mut state = self.shared.state();
        state.cuts.remove(path);
        state.released.remove(path);
        state.scripts.insert(path.into(), script);
        self.url(path)
    }

    /// Every request seen for `path`, whatever its query.
    pub fn requests(&self, path: &str) -> Vec<Seen> {
        self.shared.state().log.iter().filter(|seen| seen.path() == path).cloned().collect()
    }

    /// The GET requests seen for `path`.
    pub fn gets(&self, path: &str) -> Vec<Seen> {
        self.requests(path).into_iter().filter(|seen| seen.method == "GET").collect()
    }

    /// Every request seen.
    pub fn all_requests(&self) -> Vec<Seen> {
        self.shared.state().log.clone()
    }

    /// Body bytes written for `path` so far.
    pub fn bytes_sent(&self, path: &str) -> u64 {
        self.shared.state().sent.get(path).copied().unwrap_or(0)
    }

    /// Lets held bodies of `path` go on.
    pub fn release(&self, path: &str) {
        self.shared.state().released.insert(path.into());
        self.shared.changed.notify_all();
    }

    /// Ends every link signed so far.
    pub fn expire_links(&self) {
        let mut state = self.shared.state();
        state.oldest_signature = state.counter + 1;
    }

    /// Connections open now.
    pub fn open_connections(&self) -> usize {
        self.shared.state().connections.len()
    }

    /// Stops listening and breaks every connection, as a machine that goes down.
    pub fn stop(&mut self) {
        let Some(accepting) = self.accepting.take() else { return };
        let connections = {
            let mut state = self.shared.state();
            state.stopped = true;
            std::mem::take(&mut state.connections)
        };
        self.shared.changed.notify_all();
        for connection in connections.into_values() {
            // An error means that it is closed already.
            drop(connection.shutdown(std::net::Shutdown::Both));
        }
        drop(TcpStream::connect_timeout(&self.wake_address(), Duration::from_secs(1)));
        drop(accepting.join());
    }

    fn wake_address(&self) -> SocketAddr {
        let ip = self.address.ip();
        let ip = if ip.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { ip };
        (ip, self.address.port()).into()
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.stop();
    }
}

/// One connection, request after request.
fn converse(mut wire: Wire, shared: &Shared) {
    let Some(handle) = wire.handle() else { return };
    let number = {
        let mut state = shared.state();
        state.opened += 1;
        let number = state.opened;
        state.connections.insert(number, handle);
        number
    };
    while let Some(seen) = wire.read_request() {
        let script = {
            let mut state = shared.state();
            state.log.push(seen.clone());
            let script = state.scripts.get(seen.path()).cloned();
            script.or_else(|| seen.query().map(Script::from_query))
        };
        shared.changed.notify_all();
        let script = script.unwrap_or_else(|| Script::new(0).status(404).cache_control("no-store"));
        if !answer::answer(&mut wire, &seen, &script, shared) {
            break;
        }
    }
    wire.say_goodbye();
    // The last handle goes here, so that a reset is one.
    shared.state().connections.remove(&number);
}

/// Waits at the gate of `path`; false when the other side left or the origin was stopped.
fn wait_for_release(wire: &Wire, path: &str, shared: &Shared) -> bool {
    let mut state = shared.state();
    let start = std::time::Instant::now();
    while !state.released.contains(path) {
        if state.stopped || wire.is_gone() || start.elapsed() > GUARD * 2 {
            return false;
        }
        state = shared.changed.wait_timeout(state, Duration::from_millis(20)).unwrap().0;
    }
    true
}
