//! Upgrades inside an opened connection, WebSocket above all: led through to the origin.

use http::header::{self, HeaderMap, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;

use super::super::connect::flow;
use super::super::forward::Visit;
use super::super::{Proxy, respond};
use crate::fetch::Switched;
use crate::http::{Body, Target, boxed, empty, hop_by_hop_removed};
use crate::rest::Problem;

/// The protocol that a request asks for instead (RFC 9110 section 7.8). HTTP/2 in clear is none: under TLS it is
/// agreed on in the handshake.
pub(in super::super) fn asked<B>(request: &Request<B>) -> Option<HeaderValue> {
    let asks = request.headers().get_all(header::CONNECTION).iter().any(|field| {
        let names = field.to_str().unwrap_or_default().split(',');
        names.into_iter().any(|name| name.trim().eq_ignore_ascii_case("upgrade"))
    });
    let protocol = request.headers().get(header::UPGRADE)?;
    let is_http = protocol.as_bytes().eq_ignore_ascii_case(b"h2c");
    (asks && !is_http && request.version() == Version::HTTP_11).then(|| protocol.clone())
}

impl Proxy {
    /// Asks the origin for the other protocol, and leads it through where it agrees.
    pub(in super::super) async fn switch(
        &self,
        mut request: Request<Incoming>,
        headers: HeaderMap,
        target: &Target,
        protocol: &HeaderValue,
        visit: &Visit,
    ) -> Result<Response<Body>, Problem> {
        let client = hyper::upgrade::on(&mut request);
        let (parts, body) = request.into_parts();
        let mut asked = Request::new(boxed(body));
        *asked.method_mut() = parts.method.clone();
        *asked.uri_mut() = target.uri().map_err(|error| respond::bad_target(&error))?;
        *asked.headers_mut() = headers;
        let switched = self.0.engine.switch(asked, protocol, &self.reach(visit.client)).await;
        let (head, server) = match switched.map_err(|error| respond::problem(&error))? {
            Switched::To(head, server) => (head, server),
            Switched::Not(reply) => {
                let refused =
                    respond::response(*reply, &parts.method, &parts.headers, self.via(), &visit.abort);
                return Ok(refused);
            }
        };
        let (ledger, stop) = (self.0.engine.ledger().clone(), self.0.stop.clone());
        // joined by the drain
        drop(self.0.drain.spawn(async move {
            match client.await {
                Ok(client) => flow(TokioIo::new(client), TokioIo::new(server), ledger, stop).await,
                Err(error) => tracing::debug!(%error, "a client left before its upgrade"),
            }
        }));
        Ok(agreed(head, protocol))
    }
}

/// The origin's 101 as ours: the two fields of its connection are those of the client's too.
fn agreed(head: Response<()>, asked: &HeaderValue) -> Response<Body> {
    let (head, ()) = head.into_parts();
    let protocol = head.headers.get(header::UPGRADE).unwrap_or(asked).clone();
    let mut response = Response::new(empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = hop_by_hop_removed(&head.headers);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    response.headers_mut().insert(header::UPGRADE, protocol);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_asks_for_another_protocol() {
        let with = |fields: &[(&'static str, &'static str)], version| {
            let mut request = Request::builder().version(version).body(()).unwrap();
            for (name, value) in fields {
                request.headers_mut().append(*name, HeaderValue::from_static(value));
            }
            asked(&request).map(|protocol| protocol.to_str().unwrap().to_owned())
        };
        let one = Version::HTTP_11;
        let socket = [("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")];
        assert_eq!(with(&socket, one).as_deref(), Some("websocket"));
        assert_eq!(with(&[("connection", "upgrade"), ("upgrade", "x/1")], one).as_deref(), Some("x/1"));
        assert_eq!(with(&socket, Version::HTTP_10), None);
        assert_eq!(with(&socket, Version::HTTP_2), None);
        assert_eq!(with(&[("upgrade", "websocket")], one), None);
        assert_eq!(with(&[("connection", "upgrade")], one), None);
        assert_eq!(with(&[("connection", "Upgrade, HTTP2-Settings"), ("upgrade", "h2c")], one), None);
    }
}
