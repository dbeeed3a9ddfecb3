//! Making connections: names to addresses, addresses to sockets, sockets to TLS, through the parent proxy
//! where there is one; all within one deadline.

mod parent;
mod tcp;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::HeaderValue;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::config::Parent;
use super::{Config, OriginError, Reach};
use crate::http::{Scheme, Target};

const H2: &[u8] = b"h2";
const H1: &[u8] = b"http/1.1";
/// What is wrong when the parent proxy answers 407.
pub(super) const PARENT_REFUSES: &str = "the parent proxy wants other credentials (origin.proxy)";

/// Connects hosts.
#[derive(Debug)]
pub(super) struct Dialer {
    deadline: Duration,
    tls: Arc<rustls::ClientConfig>,
    /// The same for HTTP/1.1 alone, and for no HTTP at all.
    tls_one: Arc<rustls::ClientConfig>,
    tls_bare: Arc<rustls::ClientConfig>,
    parent: Option<Parent>,
    resolver: tcp::Resolver,
}

/// A fresh connection, ready for HTTP.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) stream: Stream,
    pub(super) remote: SocketAddr,
    pub(super) form: Form,
}

/// What carries the bytes.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// How a request is to be written on a connection.
#[derive(Debug, Clone)]
pub(super) enum Form {
    /// HTTP/1.1, only the path: to the origin itself.
    Path,
    /// HTTP/1.1, the whole URL: to the parent proxy, with its credentials.
    Whole(Option<HeaderValue>),
    /// HTTP/2.
    Two,
}

impl Dialer {
    pub(super) fn new(config: Config) -> Result<Self, OriginError> {
        let deadline = config.connect_timeout.0;
        let ca_file = Some(config.ca_file.as_path()).filter(|path| !path.as_os_str().is_empty());
        let mut tls = crate::tls::origin_client(ca_file)
            .map_err(|error| OriginError::Setup(format!("origin.ca_file: {error}")))?;
        let tls_bare = Arc::new(tls.clone());
        tls.alpn_protocols = vec![H1.to_vec()];
        let tls_one = Arc::new(tls.clone());
        tls.alpn_protocols = vec![H2.to_vec(), H1.to_vec()];
        let (parent, resolver) = (config.proxy.into_parent(), tcp::Resolver::new(deadline));
        Ok(Self { deadline, tls: Arc::new(tls), tls_one, tls_bare, parent, resolver })
    }

    /// How long connecting may take.
    pub(super) const fn deadline(&self) -> Duration {
        self.deadline
    }

    /// A connection on which this target can be asked for.
    pub(super) async fn line(&self, target: &Target, reach: &Reach) -> Result<Line, OriginError> {
        self.in_time(target.bare_host(), self.line_untimed(target, reach, &self.tls)).await
    }

    /// The same where only HTTP/1.1 will do.
    pub(super) async fn line_of_one(&self, target: &Target, reach: &Reach) -> Result<Line, OriginError> {
        self.in_time(target.bare_host(), self.line_untimed(target, reach, &self.tls_one)).await
    }

    /// TLS to a host without a word about what it will carry.
    pub(super) async fn bare(
        &self,
        target: &Target,
        reach: &Reach,
    ) -> Result<TlsStream<TcpStream>, OriginError> {
        let host = target.bare_host();
        self.in_time(host, async {
            let stream = self.through(host, target.port(), reach).await?;
            secure(&self.tls_bare, host, stream).await
        })
        .await
    }

    /// A connection to a host that we know nothing more of.
    pub(super) async fn tunnel(
        &self,
        host: &str,
        port: u16,
        reach: &Reach,
    ) -> Result<TcpStream, OriginError> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        self.in_time(host, self.through(host, port, reach)).await
    }

    /// Whether the address at the other end is the origin's own.
    pub(super) const fn is_direct(&self) -> bool {
        self.parent.is_none()
    }

    async fn in_time<T>(
        &self,
        host: &str,
        connecting: impl Future<Output = Result<T, OriginError>>,
    ) -> Result<T, OriginError> {
        match tokio::time::timeout(self.deadline, connecting).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(OriginError::ConnectTimeout { host: host.to_owned() }),
        }
    }

    async fn line_untimed(
        &self,
        target: &Target,
        reach: &Reach,
        tls: &Arc<rustls::ClientConfig>,
    ) -> Result<Line, OriginError> {
        let host = target.bare_host();
        match (target.scheme(), &self.parent) {
            (Scheme::Http, None) => {
                let stream = self.resolver.connect(host, target.port(), reach).await?;
                Line::new(host, Stream::Plain(stream), Form::Path)
            }
            (Scheme::Http, Some(parent)) => {
                if !reach.permits_name(host) {
                    return Err(OriginError::Denied { host: host.to_owned() });
                }
                let stream = self.resolver.connect(parent.host(), parent.port(), &Reach::Anywhere).await?;
                Line::new(host, Stream::Plain(stream), Form::Whole(parent.authorization()))
            }
            (Scheme::Https, _) => {
                let stream = self.through(host, target.port(), reach).await?;
                let stream = secure(tls, host, stream).await?;
                let two = stream.get_ref().1.alpn_protocol() == Some(H2);
                Line::new(host, Stream::Tls(Box::new(stream)), if two { Form::Two } else { Form::Path })
            }
        }
    }

    /// Whether the host may be reached, as far as can be told without reaching it.
    pub(super) async fn check(&self, host: &str, port: u16, reach: &Reach) -> Result<(), OriginError> {
        if !reach.permits_name(host) && (self.parent.is_some() || host.parse::<std::net::IpAddr>().is_ok()) {
            return Err(OriginError::Denied { host: host.to_owned() });
        }
        if self.parent.is_some() {
            return Ok(());
        }
        self.resolver.permitted(host, port, reach).await.map(drop)
    }

    /// To the host, by the parent proxy's CONNECT where there is one.
    async fn through(&self, host: &str, port: u16, reach: &Reach) -> Result<TcpStream, OriginError> {
        let Some(parent) = &self.parent else {
            return self.resolver.connect(host, port, reach).await;
        };
        if !reach.permits_name(host) {
            return Err(OriginError::Denied { host: host.to_owned() });
        }
        let mut stream = self.resolver.connect(parent.host(), parent.port(), &Reach::Anywhere).await?;
        parent::connect(&mut stream, host, port, parent.authorization()).await?;
        Ok(stream)
    }
}

async fn secure(
    tls: &Arc<rustls::ClientConfig>,
    host: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, OriginError> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_ignored| OriginError::BadTarget(crate::http::TargetError::Host))?;
    TlsConnector::from(Arc::clone(tls))
        .connect(name, stream)
        .await
        .map_err(|error| OriginError::Tls { host: host.to_owned(), why: error.to_string() })
}

impl Line {
    fn new(host: &str, stream: Stream, form: Form) -> Result<Self, OriginError> {
        let tcp = match &stream {
            Stream::Plain(tcp) => tcp,
            Stream::Tls(tls) => tls.get_ref().0,
        };
        let remote = tcp.peer_addr().map_err(|error| OriginError::connect(host, error))?;
        let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
        Ok(Self { stream, remote, form })
    }
}
