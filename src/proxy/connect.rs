//! The tunnel: bytes of another protocol, untouched, both ways, each side closing its half on its own.

use std::net::IpAddr;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::{Proxy, respond};
use crate::fetch::FetchError;
use crate::http::{Body, Scheme, Target, empty};
use crate::rest::Problem;

impl Proxy {
    /// Connects, says 200, and lets the bytes flow.
    pub(super) async fn connect(
        &self,
        mut request: Request<Incoming>,
        client: IpAddr,
        port: u16,
    ) -> Result<Response<Body>, Problem> {
        let target = self.tunnel_target(&request)?;
        self.check_loop(request.headers(), &target, port)?;
        let reach = self.reach(client);
        let server = self.0.origin.tunnel(target.host(), target.port(), &reach).await;
        let server = server.map_err(|error| respond::problem(&FetchError::Origin(error)))?;
        let (upgraded, ledger) = (hyper::upgrade::on(&mut request), self.0.engine.ledger().clone());
        // joined by the drain
        drop(self.0.drain.spawn(async move {
            match upgraded.await {
                Ok(client) => ledger.tunnelled(flow(TokioIo::new(client), server).await),
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

/// Copies both ways until both are done; returns the bytes of both.
async fn flow(mut client: TokioIo<hyper::upgrade::Upgraded>, mut server: TcpStream) -> u64 {
    match tokio::io::copy_bidirectional(&mut client, &mut server).await {
        Ok((up, down)) => up + down,
        Err(error) => {
            tracing::debug!(%error, "a tunnel broke");
            0
        }
    }
}
