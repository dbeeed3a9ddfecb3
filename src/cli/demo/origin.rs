//! The demonstration's origin server: one file of made-up bytes, and a count of what was sent.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::stream;
use http::Response;
use http_body::Frame;
use http_body_util::StreamBody;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::digest::{Digest, Hasher};
use crate::http::{Body, BodyError, boxed};

const PIECE: u64 = 64 * 1024;

/// A running origin; ends when dropped.
pub(super) struct DemoOrigin {
    address: SocketAddr,
    digest: Digest,
    sent: Arc<AtomicU64>,
    _server: JoinSet<()>,
}

impl DemoOrigin {
    pub(super) async fn start(size: u64) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, sent) = (listener.local_addr()?, Arc::new(AtomicU64::new(0)));
        let mut server = JoinSet::new();
        server.spawn(accept(listener, size, Arc::clone(&sent)));
        let digest =
            tokio::task::spawn_blocking(move || digest_of(size)).await.map_err(std::io::Error::other)?;
        Ok(Self { address, digest, sent, _server: server })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/file.bin", self.address)
    }

    pub(super) fn digest(&self) -> Digest {
        self.digest
    }

    /// Bytes of bodies sent so far.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }
}

async fn accept(listener: TcpListener, size: u64, sent: Arc<AtomicU64>) {
    let mut guests = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let sent = Arc::clone(&sent);
        guests.spawn(async move {
            let service = service_fn(move |_request| {
                let response = Response::builder()
                    .header("content-length", size)
                    .header("etag", "\"demo-1\"")
                    .header("cache-control", "max-age=3600")
                    .body(body(size, Arc::clone(&sent)));
                std::future::ready(Ok::<_, Infallible>(response.unwrap_or_default()))
            });
            if let Err(error) = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await {
                tracing::debug!(%error, "a connection to the demonstration's origin ended");
            }
        });
    }
}

fn body(size: u64, sent: Arc<AtomicU64>) -> Body {
    boxed(StreamBody::new(stream::unfold(0, move |at| {
        let sent = Arc::clone(&sent);
        async move {
            if at >= size {
                return None;
            }
            let piece = piece(at / PIECE, (size - at).min(PIECE));
            sent.fetch_add(piece.len() as u64, Ordering::SeqCst);
            let next = at + piece.len() as u64;
            Some((Ok::<_, BodyError>(Frame::data(piece)), next))
        }
    })))
}

/// Bytes that do not repeat, the same in every run.
fn piece(number: u64, length: u64) -> Bytes {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    let length = usize::try_from(length).unwrap_or(0);
    words.flatten().take(length).collect::<Vec<u8>>().into()
}

fn digest_of(size: u64) -> Digest {
    let mut hasher = Hasher::new();
    while hasher.length() < size {
        hasher.update(&piece(hasher.length() / PIECE, (size - hasher.length()).min(PIECE)));
    }
    hasher.finish()
}
