//! From `CONNECT` to the first request inside, or to the tunnel after all.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use rustls::AlertDescription;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::super::Proxy;
use super::super::connect::flow;
use super::super::forward::Visit;
use super::super::listener::LIMITS;
use super::super::rewound::Rewound;
use super::hello::{Greeting, Hello, Look};
use super::refusals::{Client, Refusal};
use super::{Inside, Interceptor};
use crate::http::Target;
use crate::origin::{OriginError, Reach};

/// A client that has said nothing for so long may be waiting for the server to speak first.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the rest of a beginning may take, and the handshake after it.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// What the first read of a request takes.
const FIRST: usize = 4096;

type Raw = TokioIo<Upgraded>;
type Opened = TlsStream<Rewound<Raw>>;

/// A connection that was asked for, and what is known of it.
struct Call {
    proxy: Proxy,
    interceptor: Arc<Interceptor>,
    target: Target,
    visit: Visit,
    reach: Reach,
}

/// How a connection began.
struct Begun {
    look: Look,
    seen: Vec<u8>,
    /// The origin's end, where it was connected meanwhile.
    server: Option<TcpStream>,
}

impl Proxy {
    /// The interceptor, if connections to this target are opened.
    pub(in super::super) fn opens(&self, target: &Target) -> Option<Arc<Interceptor>> {
        let interceptor = self.0.interceptor.load_full();
        interceptor.opens(target.host()).then_some(interceptor)
    }

    /// Goes on with a connection that was granted. Ends with it, or when asked to stop. Boxed, because the
    /// requests inside come by the same way as the one that asked for the connection.
    pub(in super::super) fn open(
        self,
        interceptor: Arc<Interceptor>,
        client: OnUpgrade,
        target: Target,
        visit: Visit,
    ) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let reach = self.reach(visit.client);
            let call = Call { proxy: self, interceptor, target, visit, reach };
            match client.await {
                Ok(client) => call.answer(TokioIo::new(client)).await,
                Err(error) => tracing::debug!(%error, "a client left before its tunnel"),
            }
        })
    }
}

impl Call {
    async fn answer(self, mut client: Raw) {
        let stop = self.proxy.0.stop.clone();
        let begun = tokio::select! {
            () = stop.requested() => return,
            begun = self.begin(&mut client) => begun,
        };
        let begun = match begun {
            Ok(begun) => begun,
            Err(error) => return tracing::debug!(%error, "a tunnel leads nowhere"),
        };
        match self.way(&begun.look) {
            Some(greeting) => {
                let client = Rewound::new(begun.seen, client, self.visit.abort.clone());
                self.serve(client, greeting).await;
            }
            None => self.tunnel(client, begun).await,
        }
    }

    /// What the client begins with. Where it does not begin, the origin may: it is connected, and whoever
    /// speaks first shows what this is.
    async fn begin(&self, client: &mut Raw) -> Result<Begun, OriginError> {
        let mut hello = Hello::new();
        if let Ok(look) = tokio::time::timeout(PATIENCE, hello.listen(client)).await {
            return Ok(Begun { look, seen: hello.into_seen(), server: None });
        }
        let server = self.dial().await?;
        let look = tokio::select! {
            look = hello.listen(client) => look,
            _ready = server.readable() => Look::Other,
            () = tokio::time::sleep(HANDSHAKE) => Look::Other,
        };
        Ok(Begun { look, seen: hello.into_seen(), server: Some(server) })
    }

    /// The greeting of a client whose connection is opened; none for one that is tunnelled.
    fn way(&self, look: &Look) -> Option<Greeting> {
        let Look::Tls(greeting) = look else { return None };
        let is_opened = greeting.server_name == self.target.host()
            && !self.interceptor.lets_alone(&self.client(greeting));
        is_opened.then(|| greeting.clone())
    }

    fn client(&self, greeting: &Greeting) -> Client {
        Client { address: self.visit.client, host: self.target.host().to_owned(), greeting: greeting.kind }
    }

    async fn dial(&self) -> Result<TcpStream, OriginError> {
        self.proxy.0.origin.tunnel(self.target.host(), self.target.port(), &self.reach).await
    }

    /// What was asked for: the bytes as they are.
    async fn tunnel(self, client: Raw, begun: Begun) {
        let server = match begun.server {
            Some(server) => Ok(server),
            None => self.dial().await,
        };
        match server {
            Ok(server) => {
                self.flow(Rewound::new(begun.seen, client, self.visit.abort.clone()), server).await;
            }
            Err(error) => tracing::debug!(%error, "a tunnel leads nowhere"),
        }
    }

    async fn flow(
        &self,
        client: impl AsyncRead + AsyncWrite + Unpin,
        server: impl AsyncRead + AsyncWrite + Unpin,
    ) {
        let ledger = self.proxy.0.engine.ledger().clone();
        flow(client, server, ledger, self.proxy.0.stop.clone()).await;
    }

    /// TLS in the host's name, and the requests inside it.
    async fn serve(self, client: Rewound<Raw>, greeting: Greeting) {
        let Some(opened) = self.handshake(client, &greeting).await else { return };
        let stop = self.proxy.0.stop.clone();
        let first = tokio::select! {
            () = stop.requested() => return,
            first = self.first(opened, &greeting) => first,
        };
        let Some((opened, seen)) = first else { return };
        let protocol = opened.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        if protocol.is_none() && !seen.first().is_some_and(u8::is_ascii_alphabetic) {
            return self.lead_through(opened, seen).await;
        }
        let visit = Visit { inside: Some(Inside::new(self.target)), ..self.visit };
        let opened = Rewound::new(seen, opened, visit.abort.clone());
        if protocol.is_some_and(|protocol| protocol == b"h2") {
            self.proxy.converse_in_two(opened, visit, stop).await;
        } else {
            self.proxy.converse(opened, visit, None, stop).await;
        }
    }

    async fn handshake(&self, client: Rewound<Raw>, greeting: &Greeting) -> Option<Opened> {
        let config = match self.interceptor.server(self.target.host()) {
            Ok(config) => config?,
            Err(error) => {
                tracing::error!(%error, "failed to make a certificate");
                return None;
            }
        };
        match tokio::time::timeout(HANDSHAKE, TlsAcceptor::from(config).accept(client)).await {
            Ok(Ok(opened)) => Some(opened),
            Ok(Err(error)) => {
                self.note(&error, greeting);
                None
            }
            Err(_elapsed) => {
                tracing::debug!("a client did not finish its handshake in time");
                None
            }
        }
    }

    /// The first bytes inside: only then is it sure that the client trusts us, for some look at the
    /// certificate after the handshake. Empty where the client waits for the server to speak first.
    async fn first(&self, mut opened: Opened, greeting: &Greeting) -> Option<(Opened, Vec<u8>)> {
        let is_named = opened.get_ref().1.alpn_protocol().is_some();
        let mut seen = vec![0; FIRST];
        let patience = if is_named { LIMITS.head_time } else { PATIENCE };
        match tokio::time::timeout(patience, opened.read(&mut seen)).await {
            Ok(Ok(0)) => {
                self.interceptor.refused(&self.client(greeting), Refusal::Closed);
                None
            }
            Ok(Ok(count)) => {
                self.interceptor.trusts(&self.client(greeting));
                seen.truncate(count);
                Some((opened, seen))
            }
            Ok(Err(error)) => {
                self.note(&error, greeting);
                None
            }
            Err(_elapsed) if is_named => None,
            Err(_elapsed) => Some((opened, Vec::new())),
        }
    }

    /// A protocol that is not HTTP: led through as it is, under TLS on both sides.
    async fn lead_through(self, opened: Opened, seen: Vec<u8>) {
        match self.proxy.0.origin.secure(&self.target, &self.reach).await {
            Ok(server) => self.flow(Rewound::new(seen, opened, self.visit.abort.clone()), server).await,
            Err(error) => tracing::debug!(%error, "a protocol inside TLS leads nowhere"),
        }
    }

    /// Whether a connection failed because the client does not trust us, in which case it is remembered.
    fn note(&self, error: &io::Error, greeting: &Greeting) {
        match refusal(error) {
            Some(how) => self.interceptor.refused(&self.client(greeting), how),
            None => tracing::debug!(%error, "a handshake with a client failed"),
        }
    }
}

/// The alerts by which clients say that they do not like a certificate (RFC 8446 section 6.2).
fn refusal(error: &io::Error) -> Option<Refusal> {
    if let Some(rustls::Error::AlertReceived(alert)) =
        error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>())
    {
        let about_us = matches!(
            alert,
            AlertDescription::UnknownCA
                | AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::AccessDenied
                | AlertDescription::BadCertificateStatusResponse
                | AlertDescription::EncryptedClientHelloRequired
        );
        return about_us.then_some(Refusal::Alert);
    }
    let closed = [
        io::ErrorKind::UnexpectedEof,
        io::ErrorKind::ConnectionReset,
        io::ErrorKind::BrokenPipe,
        io::ErrorKind::ConnectionAborted,
    ];
    closed.contains(&error.kind()).then_some(Refusal::Closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_about_the_certificate_are_a_refusal() {
        let alert = |alert| io::Error::new(io::ErrorKind::InvalidData, rustls::Error::AlertReceived(alert));
        for (error, how) in [
            (alert(AlertDescription::UnknownCA), Some(Refusal::Alert)),
            (alert(AlertDescription::BadCertificate), Some(Refusal::Alert)),
            (alert(AlertDescription::HandshakeFailure), None),
            (alert(AlertDescription::ProtocolVersion), None),
            (io::ErrorKind::UnexpectedEof.into(), Some(Refusal::Closed)),
            (io::ErrorKind::ConnectionReset.into(), Some(Refusal::Closed)),
            (io::ErrorKind::TimedOut.into(), None),
        ] {
            assert_eq!(refusal(&error), how, "{error}");
        }
    }
}
