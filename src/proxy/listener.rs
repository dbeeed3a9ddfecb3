//! Accepting clients and serving their connections.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::forward::Visit;
use super::stream::{Abort, ClientStream};
use super::{Proxy, respond};
use crate::http::inspect::{Fault, Inspected, Limits};
use crate::http::{Body, BodyError, boxed};
use crate::net::listener::{Accepted, Acceptor, ConnectionLimit};
use crate::shutdown::{Drain, Shutdown};

/// What one request may ask of us. RFC 9110 section 5.4 asks for no size in particular; more is a 431.
const LIMITS: Limits = Limits {
    head: 128 * 1024,
    fields: 512,
    head_time: Duration::from_secs(30),
    body_silence: Duration::from_secs(60),
};
/// So long a connection may be idle between two requests, and before the first one.
const IDLE: Duration = Duration::from_secs(60);
/// How long the last bytes of an answer have to leave when the program stops.
const LAST_BYTES: Duration = Duration::from_secs(1);
/// Connections of all clients together, and of one address.
const CONNECTIONS: usize = 16_384;
const CONNECTIONS_OF_ONE: usize = 2_048;

impl Proxy {
    /// Serves on these listeners until asked to stop; connections end on the drain.
    pub async fn run(self, listeners: Vec<TcpListener>, stop: Shutdown, drain: Drain) -> std::io::Result<()> {
        let limit = ConnectionLimit::new(CONNECTIONS, CONNECTIONS_OF_ONE);
        let mut doors = tokio::task::JoinSet::new();
        for listener in listeners {
            let (proxy, stop, drain) = (self.clone(), stop.clone(), drain.clone());
            let acceptor = Acceptor::new(listener, limit.clone());
            doors.spawn(async move {
                let serve = |accepted| proxy.admit(accepted, &stop, &drain);
                acceptor.run(&stop, serve).await
            });
        }
        while let Some(ended) = doors.join_next().await {
            ended.map_err(std::io::Error::other)??;
        }
        Ok(())
    }

    fn admit(&self, accepted: Accepted, stop: &Shutdown, drain: &Drain) {
        match accepted {
            Accepted::Admitted { stream, from, permit } => {
                let (proxy, stop) = (self.clone(), stop.clone());
                // joined by the drain
                drop(drain.spawn(async move {
                    proxy.serve(stream, from.ip(), stop).await;
                    drop(permit);
                }));
            }
            Accepted::Crowded { stream, from } => {
                tracing::debug!(client.address = %from, "too many connections of one address: closed");
                drop(stream);
            }
        }
    }

    async fn serve(self, stream: TcpStream, client: IpAddr, stop: Shutdown) {
        let abort = Abort::default();
        let port = stream.local_addr().map_or(0, |address| address.port());
        let visit = Visit { client, port, abort: abort.clone() };
        self.converse(ClientStream::new(stream, abort), visit, stop).await;
    }

    /// Serves one connection inside this process.
    pub async fn serve_local(self, stream: DuplexStream, client: IpAddr, stop: Shutdown) {
        self.converse(stream, Visit { client, port: 0, abort: Abort::default() }, stop).await;
    }

    async fn converse<S>(self, stream: S, visit: Visit, stop: Shutdown)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (stream, inspection) = Inspected::new(stream, LIMITS);
        let io = TokioIo::new(stream);
        let (here, busy) = (Arc::new((self, visit)), Busy::default());
        let at_work = busy.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let (here, guest) = (Arc::clone(&here), at_work.enter());
            let inspection = inspection.clone();
            async move {
                let (proxy, visit) = here.as_ref();
                let response = match inspection.enter() {
                    Some(fault) => proxy.refuse(fault, visit.client),
                    None => {
                        let response = proxy.answer(request, visit).await;
                        // a body that broke on its way is what went wrong, whoever noticed it
                        let broken = inspection.fault().filter(|_| response.status().is_server_error());
                        broken.map_or(response, |fault| proxy.refuse(fault, visit.client))
                    }
                };
                Ok::<_, std::convert::Infallible>(response.map(|body| guest.until_end_of(body)))
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .max_buf_size(LIMITS.head)
            .max_headers(LIMITS.fields)
            .serve_connection(io, service)
            .with_upgrades();
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stop.requested() => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = connection.as_mut() => ended,
                    // half a request is none
                    () = busy.idle() => return,
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a client's connection ended");
        }
    }
}

impl Proxy {
    /// The answer to what was no request beyond doubt.
    fn refuse(&self, fault: Fault, client: IpAddr) -> http::Response<Body> {
        tracing::debug!(client.address = %client, %fault, "a request is refused");
        respond::closing(respond::refuse(fault.into(), &self.via()))
    }
}

/// Whether a connection has a request in hand, from its head to the last byte of its answer.
#[derive(Clone)]
struct Busy(watch::Sender<usize>);

/// One request in hand.
struct InHand(watch::Sender<usize>);

impl Default for Busy {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Busy {
    fn enter(&self) -> InHand {
        self.0.send_modify(|requests| *requests += 1);
        InHand(self.0.clone())
    }

    /// Waits until nothing has been in hand for a moment, in which the last bytes leave.
    async fn idle(&self) {
        let mut requests = self.0.subscribe();
        loop {
            if requests.wait_for(|requests| *requests == 0).await.is_err() {
                return;
            }
            if tokio::time::timeout(LAST_BYTES, requests.changed()).await.is_err() {
                return;
            }
        }
    }
}

impl InHand {
    fn until_end_of(self, body: Body) -> Body {
        boxed(Held { body, _in_hand: self })
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.send_modify(|requests| *requests = requests.saturating_sub(1));
    }
}

/// A body that is in hand.
struct Held {
    body: Body,
    _in_hand: InHand,
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, BodyError>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
