//! A scripted origin: each connection runs a closure that reads and writes raw bytes.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::BodyExt as _;
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use crate::clock::SystemClock;
use crate::http::{Body, BodyError, empty};
use crate::origin::{Config, Origin};

#[derive(Default)]
struct Seen {
    heads: Mutex<Vec<String>>,
    connections: AtomicUsize,
    open: AtomicUsize,
    most: AtomicUsize,
}

pub(super) struct Server {
    pub(super) address: SocketAddr,
    seen: Arc<Seen>,
    _task: AbortOnDropHandle<()>,
}

/// One connection, as its script sees it.
pub(super) struct Client {
    pub(super) stream: TcpStream,
    seen: Arc<Seen>,
}

pub(super) fn serve<F, Script>(script: F) -> Server
where
    F: Fn(Client) -> Script + Send + 'static,
    Script: Future<Output = ()> + Send + 'static,
{
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    let (address, seen) = (listener.local_addr().unwrap(), Arc::<Seen>::default());
    let all = Arc::clone(&seen);
    let task = tokio::spawn(async move {
        let mut running = tokio::task::JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            all.connections.fetch_add(1, Ordering::SeqCst);
            let open = all.open.fetch_add(1, Ordering::SeqCst) + 1;
            all.most.fetch_max(open, Ordering::SeqCst);
            running.spawn(script(Client { stream, seen: Arc::clone(&all) }));
        }
    });
    Server { address, seen, _task: AbortOnDropHandle::new(task) }
}

impl Server {
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All request heads so far.
    pub(super) fn heads(&self) -> Vec<String> {
        self.seen.heads.lock().unwrap().clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// The most connections that were open at once.
    pub(super) fn most(&self) -> usize {
        self.seen.most.load(Ordering::SeqCst)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.seen.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Client {
    /// The next request head, with its empty line; none at the end.
    pub(super) async fn head(&mut self) -> Option<String> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.stream.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).unwrap();
        self.seen.heads.lock().unwrap().push(head.clone());
        Some(head)
    }

    pub(super) async fn say(&mut self, text: &str) {
        self.say_bytes(text.as_bytes()).await;
    }

    pub(super) async fn say_bytes(&mut self, bytes: &[u8]) {
        // The client may be gone already: that is its right.
        if self.stream.write_all(bytes).await.is_err() {
            self.wait_for_end().await;
        }
    }

    /// Reads until the client closes.
    pub(super) async fn wait_for_end(&mut self) {
        let mut waste = [0; 4096];
        while self.stream.read(&mut waste).await.is_ok_and(|n| n > 0) {}
    }

    /// Ends the connection by RST.
    pub(super) fn reset(self) {
        SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).unwrap();
    }
}

/// Ordinary settings with short deadlines, long enough for a busy machine.
pub(super) fn fast() -> Config {
    let five: crate::unit::Span = "5s".parse().unwrap();
    Config { connect_timeout: five, stall_timeout: five, ..Config::default() }
}

pub(super) fn origin(config: Config) -> Origin {
    Origin::new(config, SystemClock::shared()).unwrap()
}

pub(super) fn get(url: &str) -> http::Request<Body> {
    http::Request::get(url).body(empty()).unwrap()
}

pub(super) async fn text(response: http::Response<Body>) -> Result<String, BodyError> {
    let bytes = soon(response.into_body().collect()).await?.to_bytes();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A guard against hanging, not a measurement.
pub(super) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what).await.expect("it must not hang")
}
