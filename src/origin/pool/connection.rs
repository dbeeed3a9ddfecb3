//! One connection: the handle that sends, the task that moves its bytes, and how requests are written on it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::task::AbortOnDropHandle;

use super::super::OriginError;
use super::super::dial::{Form, Line, Stream};
use crate::http::Body;

/// What an answer's head may be: signed links, policies and tokens make large ones.
const MOST_FIELDS: usize = 512;
const LARGEST_HEAD: usize = 512 * 1024;
const LARGEST_HEAD_TWO: u32 = 512 * 1024;
/// What an HTTP/2 origin may send ahead of us: enough for a fast line with a long delay.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;
/// When a shared connection with requests on it is asked whether it still lives.
const PING: Duration = Duration::from_secs(15);

/// What sends one request and gives the answer; a request that was not sent at all comes back.
pub(in super::super) type Answer = Result<http::Response<Incoming>, Box<TrySendError<http::Request<Body>>>>;

/// A connection.
#[derive(Debug)]
pub(in super::super) enum Connection {
    /// HTTP/1.1: for one request at a time.
    Single(Single),
    /// HTTP/2: for many.
    Shared(Shared),
}

/// An HTTP/1.1 connection; closed when dropped.
#[derive(Debug)]
pub(in super::super) struct Single {
    sender: http1::SendRequest<Body>,
    wire: Wire,
    _task: AbortOnDropHandle<()>,
}

/// A share in an HTTP/2 connection; closed when all are dropped.
#[derive(Debug, Clone)]
pub(in super::super) struct Shared {
    sender: http2::SendRequest<Body>,
    wire: Wire,
    task: Arc<AbortOnDropHandle<()>>,
}

/// Who is at the other end and how a request is written for it.
#[derive(Debug, Clone)]
pub(in super::super) struct Wire {
    pub(in super::super) remote: SocketAddr,
    pub(in super::super) form: Form,
}

/// Begins HTTP on a fresh line.
pub(super) async fn open(line: Line, host: &str) -> Result<Connection, OriginError> {
    let wire = Wire { remote: line.remote, form: line.form };
    match line.stream {
        Stream::Plain(stream) => begin(stream, wire, host).await,
        Stream::Tls(stream) => begin(stream, wire, host).await,
    }
}

async fn begin<S>(stream: S, wire: Wire, host: &str) -> Result<Connection, OriginError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let io = TokioIo::new(stream);
    let wrong = |error: hyper::Error| OriginError::of_hyper(host, &error);
    if matches!(wire.form, Form::Two) {
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(LARGEST_HEAD_TWO)
            .handshake(io)
            .await
            .map_err(wrong)?;
        let task = Arc::new(moved(connection));
        Ok(Connection::Shared(Shared { sender, wire, task }))
    } else {
        let (sender, connection) = http1::Builder::new()
            .max_headers(MOST_FIELDS)
            .max_header_size(LARGEST_HEAD)
            .max_buf_size(LARGEST_HEAD)
            .handshake(io)
            .await
            .map_err(wrong)?;
        Ok(Connection::Single(Single { sender, wire, _task: moved(connection.with_upgrades()) }))
    }
}

/// The task that moves a connection's bytes, for as long as somebody holds its handle.
fn moved(connection: impl Future<Output = hyper::Result<()>> + Send + 'static) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = %error, "a connection to an origin ended");
        }
    }))
}

impl Connection {
    pub(in super::super) const fn wire(&self) -> &Wire {
        match self {
            Self::Single(single) => &single.wire,
            Self::Shared(shared) => &shared.wire,
        }
    }

    pub(in super::super) async fn send(&mut self, request: http::Request<Body>) -> Answer {
        match self {
            Self::Single(single) => single.sender.try_send_request(request).await.map_err(Box::new),
            Self::Shared(shared) => shared.sender.try_send_request(request).await.map_err(Box::new),
        }
    }
}

impl Single {
    /// Whether a request may be sent now.
    pub(super) fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Waits until a request may be sent; false if none ever will.
    pub(super) async fn settle(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    pub(super) const fn remote(&self) -> SocketAddr {
        self.wire.remote
    }
}

impl Shared {
    /// Closed, or about to: the origin takes no further requests on it.
    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed() || !self.sender.is_ready()
    }

    /// Whether the pool's share is the only one.
    pub(super) fn is_used_by_none(&self) -> bool {
        Arc::strong_count(&self.task) == 1
    }

    pub(super) const fn remote(&self) -> SocketAddr {
        self.wire.remote
    }
}
