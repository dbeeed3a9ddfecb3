//! Accepting clients and serving their connections.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::{TcpListener, TcpStream};

use super::Proxy;
use super::stream::{Abort, ClientStream};
use crate::net::listener::{Accepted, Acceptor, ConnectionLimit};
use crate::shutdown::{Drain, Shutdown};

/// A head must be there after this long, also the first byte of it.
const HEAD_DEADLINE: Duration = Duration::from_secs(30);
/// Heads up to this size are read (RFC 9110 section 5.4 asks for no limit in particular); more is a 431.
const HEAD_SIZE: usize = 128 * 1024;
/// Fields in one head.
const HEAD_FIELDS: usize = 512;
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
        self.converse(ClientStream::new(stream, abort.clone()), client, port, abort, stop).await;
    }

    /// Serves one connection inside this process.
    pub async fn serve_local(self, stream: DuplexStream, client: IpAddr, stop: Shutdown) {
        self.converse(stream, client, 0, Abort::default(), stop).await;
    }

    async fn converse<S>(self, stream: S, client: IpAddr, port: u16, abort: Abort, stop: Shutdown)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let io = TokioIo::new(stream);
        let proxy = Arc::new(self);
        let service = service_fn(move |request: Request<Incoming>| {
            let (proxy, abort) = (Arc::clone(&proxy), abort.clone());
            async move { Ok::<_, std::convert::Infallible>(proxy.answer(request, client, port, abort).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_DEADLINE)
            .max_buf_size(HEAD_SIZE)
            .max_headers(HEAD_FIELDS)
            .serve_connection(io, service)
            .with_upgrades();
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stop.requested() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a client's connection ended");
        }
    }
}
