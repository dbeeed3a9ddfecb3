//! The tunnel: bytes of another protocol, untouched, both ways, each side closing its half on its own.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::forward::Visit;
use super::{Proxy, respond};
use crate::fetch::{FetchError, Ledger};
use crate::http::{Body, Scheme, Target, empty};
use crate::rest::Problem;
use crate::shutdown::Shutdown;

/// So long without a byte, a tunnel is idle.
const IDLE: std::time::Duration = std::time::Duration::from_secs(3);

impl Proxy {
    /// Connects, says 200, and lets the bytes flow.
    pub(super) async fn connect(
        &self,
        mut request: Request<Incoming>,
        visit: &Visit,
    ) -> Result<Response<Body>, Problem> {
        let target = self.tunnel_target(&request)?;
        self.check_loop(request.headers(), &target, visit.port)?;
        let reach = self.reach(visit.client);
        if let Some(interceptor) = self.opens(&target) {
            self.0
                .origin
                .check(&target, &reach)
                .await
                .map_err(|e| respond::problem(&FetchError::Origin(e)))?;
            let client = hyper::upgrade::on(&mut request);
            // joined by the drain
            drop(self.0.drain.spawn(self.clone().open(interceptor, client, target, visit.clone())));
            return Ok(Response::new(empty()));
        }
        let server = self.0.origin.tunnel(target.host(), target.port(), &reach).await;
        let server = server.map_err(|error| respond::problem(&FetchError::Origin(error)))?;
        let (upgraded, ledger) = (hyper::upgrade::on(&mut request), self.0.engine.ledger().clone());
        let stop = self.0.stop.clone();
        // joined by the drain
        drop(self.0.drain.spawn(async move {
            match upgraded.await {
                Ok(client) => flow(TokioIo::new(client), server, ledger, stop).await,
                Err(error) => tracing::debug!(%error, "a client left before its tunnel"),
            }
        }));
        Ok(Response::new(empty()))
    }

    fn tunnel_target(&self, request: &Request<Incoming>) -> Result<Target, Problem> {
        let authority = request.uri().authority().filter(|authority| authority.port_u16().is_some());
        let authority = authority.ok_or_else(|| {
            Problem::new(StatusCode::BAD_REQUEST, "bad-target", "Bad target")
                .detail("CONNECT names no host and port")
                .hint("send CONNECT host:443")
        })?;
        let target = Target::new(Scheme::Https, authority.as_str(), "/")
            .map_err(|error| respond::bad_target(&error))?;
        if self.0.config.load().connect_ports.contains(&target.port()) {
            return Ok(target);
        }
        Err(Problem::new(StatusCode::FORBIDDEN, "port-refused", "Port not allowed")
            .detail(format!("tunnels to port {} are not allowed", target.port()))
            .hint("add the port to proxy.connect_ports"))
    }
}

/// Copies both ways until both are done, counting as it flows.
pub(super) async fn flow<C, S>(client: C, server: S, ledger: Ledger, stop: Shutdown)
where
    C: AsyncRead + AsyncWrite + Unpin,
    S: AsyncRead + AsyncWrite + Unpin,
{
    let seen: Arc<AtomicU64> = Arc::default();
    let mut client = Counted { stream: client, ledger: ledger.clone(), seen: Arc::clone(&seen) };
    let mut server = Counted { stream: server, ledger, seen: Arc::clone(&seen) };
    tokio::select! {
        flowed = tokio::io::copy_bidirectional(&mut client, &mut server) => {
            if let Err(error) = flowed {
                tracing::debug!(%error, "a tunnel broke");
            }
        }
        () = idle_at_a_stop(&stop, &seen) => tracing::debug!("an idle tunnel ends with the program"),
    }
}

/// A tunnel through which nothing flows is no running download: it does not hold up a stop.
async fn idle_at_a_stop(stop: &Shutdown, seen: &AtomicU64) {
    stop.requested().await;
    let mut before = u64::MAX;
    while before != seen.load(Ordering::Relaxed) {
        before = seen.load(Ordering::Relaxed);
        tokio::time::sleep(IDLE).await;
    }
}

/// A stream whose every byte read is one that goes through the tunnel.
struct Counted<S> {
    stream: S,
    ledger: Ledger,
    seen: Arc<AtomicU64>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let new = buf.filled().len().saturating_sub(before);
        if new > 0 {
            self.ledger.tunnelled(new as u64);
            self.seen.fetch_add(new as u64, Ordering::Relaxed);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
