//! Reading from a peer: one request a connection, always with a closed range or none.
//!
//! A peer of the original refuses whoever earns a 404, 406 or 416 for some seconds. So the token carries no GUID
//! (the answer to "gone" is then 204), and a range never passes the end. What the peer is told of the URL is
//! nothing; it writes it into its log.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpSocket, TcpStream};

use super::engine::Offer;
use super::frame::Keys;
use super::message::{Kind, Message};
use crate::http::{Body, Watched, boxed, empty, part};
use crate::shutdown::Drain;

/// How long to wait for a peer.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// Until the connection stands: 500 ms.
    pub connect: Duration,
    /// From there until the head of the answer: 1 s.
    pub first_byte: Duration,
    /// Between two parts of the body: 2 s.
    pub stall: Duration,
}

/// What a peer sends.
#[derive(Debug)]
pub struct Pulled {
    /// The size of the whole.
    pub size: u64,
    /// The bytes from where they were asked for to the end, not proved.
    pub body: Body,
}

/// Why a peer gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PullError {
    /// No connection, or none that lasted until an answer.
    #[error("the mORMot peer cannot be reached: {0}")]
    Unreachable(String),
    /// It was silent for too long.
    #[error("the mORMot peer was silent for too long")]
    Timeout,
    /// It does not hold the thing any more.
    #[error("the mORMot peer does not hold it any more")]
    Gone,
    /// It refuses this node.
    #[error("the mORMot peer answered with status {0}")]
    Refused(u16),
    /// It does not keep to what was agreed.
    #[error("the mORMot peer's answer is not as agreed: {0}")]
    Protocol(&'static str),
    /// This node itself could not ask.
    #[error("cannot ask the mORMot peer: {0}")]
    Own(String),
}

/// Reads from peers; a cheap clone.
#[derive(Debug, Clone)]
pub struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    keys: Arc<Keys>,
    deadlines: Deadlines,
    received: Arc<AtomicU64>,
    /// The tasks that move bytes of connections.
    tasks: Drain,
}

impl Client {
    /// Nothing is connected yet.
    pub fn new(keys: Arc<Keys>, deadlines: Deadlines) -> Self {
        Self(Arc::new(Inner { keys, deadlines, received: Arc::default(), tasks: Drain::new() }))
    }

    /// Bytes of bodies read from peers so far.
    pub fn received(&self) -> u64 {
        self.0.received.load(Ordering::Relaxed)
    }

    /// Reads what was offered from the byte `from` to its end, by the interface with the address `own`.
    pub async fn pull(
        &self,
        own: Ipv4Addr,
        port: u16,
        offer: &Offer,
        from: u64,
    ) -> Result<Pulled, PullError> {
        let size = offer.told.known_size();
        if let Some(size) = size.filter(|size| from >= *size && from > 0) {
            return Ok(Pulled { size, body: empty() });
        }
        let to = SocketAddrV4::new(offer.told.address, port);
        let request = self.request(to, &offer.told, from)?;
        let stream = self.connect(own, to).await?;
        let response = tokio::time::timeout(self.0.deadlines.first_byte, self.speak(stream, request));
        let response = response.await.map_err(|_elapsed| PullError::Timeout)??;
        let status = response.status();
        let told = match status {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => {
                part(status, response.headers(), from).map_err(PullError::Protocol)?
            }
            StatusCode::NO_CONTENT | StatusCode::NOT_FOUND => return Err(PullError::Gone),
            other => return Err(PullError::Refused(other.as_u16())),
        };
        if size.is_some_and(|size| size != told.end) {
            return Err(PullError::Protocol("it sends another size than it offered"));
        }
        let (stall, counter) = (self.0.deadlines.stall, Arc::clone(&self.0.received));
        let body = Watched::new(response.into_body(), told.end - told.start, stall, || ());
        let body = body.map_frame(move |frame| {
            let length = frame.data_ref().map_or(0, Bytes::len);
            counter.fetch_add(u64::try_from(length).unwrap_or(0), Ordering::Relaxed);
            frame
        });
        Ok(Pulled { size: told.end, body: boxed(body) })
    }

    /// Waits until no connection is left; false if the deadline came first.
    pub async fn close(&self, deadline: Duration) -> bool {
        self.0.tasks.wait(deadline).await
    }

    /// The fields are those of the original, in its order.
    fn request(
        &self,
        to: SocketAddrV4,
        told: &Message,
        from: u64,
    ) -> Result<Request<Empty<Bytes>>, PullError> {
        let own = |error: &dyn std::fmt::Display| PullError::Own(error.to_string());
        let token = Message { kind: Kind::Bearer, uuid: [0; 16], ..*told };
        let token = self.0.keys.seal_token(&token).map_err(|error| own(&error))?;
        let mut request = Request::get("/?larder=peer").header(header::HOST, to.to_string());
        if from > 0 {
            let last =
                told.known_size().ok_or(PullError::Protocol("it did not tell the size"))?.saturating_sub(1);
            request = request.header(header::RANGE, format!("bytes={from}-{last}"));
        }
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}")).map_err(|error| own(&error))?;
        bearer.set_sensitive(true);
        request
            .header(header::ACCEPT, "*/*")
            .header(header::USER_AGENT, "")
            .header(header::CONNECTION, "Keep-Alive")
            .header("keep-alive", "timeout=30")
            .header(header::AUTHORIZATION, bearer)
            .body(Empty::new())
            .map_err(|error| own(&error))
    }

    async fn connect(&self, own: Ipv4Addr, to: SocketAddrV4) -> Result<TcpStream, PullError> {
        let connecting = async {
            let socket = TcpSocket::new_v4()?;
            socket.bind(SocketAddrV4::new(own, 0).into())?;
            let stream = socket.connect(to.into()).await?;
            stream.set_nodelay(true)?;
            Ok::<_, std::io::Error>(stream)
        };
        match tokio::time::timeout(self.0.deadlines.connect, connecting).await {
            Ok(stream) => stream.map_err(|error| PullError::Unreachable(error.to_string())),
            Err(_elapsed) => Err(PullError::Unreachable("no connection in time".to_owned())),
        }
    }

    async fn speak(
        &self,
        stream: TcpStream,
        request: Request<Empty<Bytes>>,
    ) -> Result<Response<Incoming>, PullError> {
        let lost = |error: hyper::Error| match error.is_parse() {
            true => PullError::Protocol("it speaks no HTTP"),
            false => PullError::Unreachable(error.to_string()),
        };
        let (mut sender, connection) = http1::Builder::new()
            .title_case_headers(true)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(lost)?;
        // ends with the body, since the sender goes before it
        let _joined_by_drain = self.0.tasks.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a mORMot peer ended");
            }
        });
        sender.send_request(request).await.map_err(lost)
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            connect: Duration::from_millis(500),
            first_byte: Duration::from_secs(1),
            stall: Duration::from_secs(2),
        }
    }
}
