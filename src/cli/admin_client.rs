//! How commands reach the daemon: the Unix socket first, else the admin port with the token.
//!
//! The node is found by its configuration. Where the state folder is the usual one, the system service's socket
//! under /run is tried too. A daemon that does not answer within [`DEADLINE`] is not there; an answer that says
//! no becomes a failure with the daemon's own words.

mod upload;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::answers::ProblemText;
use super::{ConfigFile, Exit, Failure};
use crate::config::{Config, Environment, Loaded, load};
use crate::rest::Token;

/// The longest wait for a connection and for a plain answer.
const DEADLINE: Duration = Duration::from_secs(10);
/// The longest wait for something that reads or removes blobs.
const LONG: Duration = Duration::from_secs(16 * 60);
/// The largest answer read.
const ANSWER: usize = 256 * 1024 * 1024;
/// Where the system service has its socket.
const SERVICE_SOCKET: &str = "/run/larder/admin.sock";

/// A way to one node's daemon.
#[derive(Debug)]
pub(crate) struct AdminClient {
    runtime: tokio::runtime::Runtime,
    sockets: Vec<PathBuf>,
    ports: Vec<SocketAddr>,
    token_file: PathBuf,
}

/// Why there is no answer at all.
#[derive(Debug)]
struct Unreachable(Vec<String>);

impl AdminClient {
    /// To the node a configuration describes.
    pub(crate) fn of(node: &ConfigFile) -> Result<Self, Failure> {
        let loaded = load(node.as_deref(), &Environment::of_process())?;
        Self::to(&loaded)
    }

    /// To the node of a loaded configuration.
    pub(crate) fn to(loaded: &Loaded) -> Result<Self, Failure> {
        let config = &loaded.config;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime
            .map_err(|error| Failure::new(Exit::Failed, format!("cannot start a runtime: {error}")))?;
        let service = !loaded.sources.is_set("state_dir") || config.state_dir == Path::new("/var/lib/larder");
        let mut sockets = vec![config.admin.socket.clone()];
        if service && !loaded.sources.is_set("admin.socket") {
            sockets.push(PathBuf::from(SERVICE_SOCKET));
        }
        Ok(Self { runtime, sockets, ports: ports(config), token_file: config.token_file() })
    }

    /// Asks and reads the answer.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        parse(&self.ask(Method::GET, path, None, DEADLINE)?)
    }

    /// Does something that answers.
    pub(crate) fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, Failure> {
        let body = body.map(serde_json::to_vec).transpose();
        let body = body.map_err(|error| Failure::new(Exit::Failed, format!("cannot write JSON: {error}")))?;
        parse(&self.ask(method, path, body.map(Bytes::from), LONG)?)
    }

    /// Does something that answers nothing.
    pub(crate) fn act(&self, method: Method, path: &str) -> Result<(), Failure> {
        self.ask(method, path, None, LONG).map(drop)
    }

    /// Gives so many bytes of a reader, and reads the answer.
    pub(crate) fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        size: u64,
        from: &mut dyn io::Read,
    ) -> Result<T, Failure> {
        let sent = self.runtime.block_on(self.upload(path, size, from));
        let (status, body) = sent.map_err(|why| {
            Failure::new(Exit::Failed, format!("the daemon did not take it: {}", why.0.join("; ")))
        })?;
        if status.is_success() { parse(&body) } else { Err(refusal(status, &body)) }
    }

    async fn upload(
        &self,
        path: &str,
        size: u64,
        from: &mut dyn io::Read,
    ) -> Result<(StatusCode, Bytes), Unreachable> {
        let (body, pieces) = upload::body(size);
        let request = |host: &str, token: Option<&Token>| {
            let request = request(&Method::PUT, path, host, token, None)?;
            let (mut head, _) = request.into_parts();
            head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
            Ok::<_, http::Error>(Request::from_parts(head, body))
        };
        let talk = async {
            for socket in &self.sockets {
                if let Ok(Ok(stream)) = tokio::time::timeout(DEADLINE, UnixStream::connect(socket)).await {
                    return speak(stream, request("localhost", None)).await;
                }
            }
            for port in &self.ports {
                if let Ok(Ok(stream)) = tokio::time::timeout(DEADLINE, TcpStream::connect(port)).await {
                    let token = Token::load(&self.token_file).ok();
                    return speak(stream, request(&port.to_string(), token.as_ref())).await;
                }
            }
            Err("nobody answers".into())
        };
        let (answer, ()) = tokio::join!(within(LONG, talk), upload::feed(from, size, pieces));
        answer
    }

    /// Whether anybody answers, and if not, why.
    pub(crate) fn alive(&self) -> Result<(), String> {
        self.runtime.block_on(self.reach("/healthz")).map_err(|why| why.0.join("; "))
    }

    fn ask(&self, method: Method, path: &str, body: Option<Bytes>, wait: Duration) -> Result<Bytes, Failure> {
        let answer = self.runtime.block_on(self.exchange(&method, path, body, wait)).map_err(|why| {
            Failure::new(Exit::Failed, format!("the daemon does not answer: {}", why.0.join("; ")))
                .hint("start it with `larder run` or `systemctl start larder`, or name its --config")
        })?;
        let (status, body) = answer;
        if status.is_success() { Ok(body) } else { Err(refusal(status, &body)) }
    }

    async fn reach(&self, path: &str) -> Result<(), Unreachable> {
        self.exchange(&Method::GET, path, None, DEADLINE).await.map(drop)
    }

    /// Tries one way after the other; a refusal by the first that answers is the answer.
    async fn exchange(
        &self,
        method: &Method,
        path: &str,
        body: Option<Bytes>,
        wait: Duration,
    ) -> Result<(StatusCode, Bytes), Unreachable> {
        let mut tried = Vec::new();
        for socket in &self.sockets {
            match tokio::time::timeout(DEADLINE, UnixStream::connect(socket)).await {
                Ok(Ok(stream)) => {
                    let request = request(method, path, "localhost", None, body.clone());
                    return within(wait, speak(stream, request)).await;
                }
                Ok(Err(error)) => tried.push(format!("{}: {}", socket.display(), absent(&error))),
                Err(_elapsed) => tried.push(format!("{}: no connection in time", socket.display())),
            }
        }
        for port in &self.ports {
            match tokio::time::timeout(DEADLINE, TcpStream::connect(port)).await {
                Ok(Ok(stream)) => {
                    let token = Token::load(&self.token_file).ok();
                    let request = request(method, path, &port.to_string(), token.as_ref(), body.clone());
                    return within(wait, speak(stream, request)).await;
                }
                Ok(Err(error)) => tried.push(format!("{port}: {}", absent(&error))),
                Err(_elapsed) => tried.push(format!("{port}: no connection in time")),
            }
        }
        Err(Unreachable(tried))
    }
}

/// What most often keeps a connection from being made, in fewer words than the system's.
fn absent(error: &io::Error) -> String {
    let kind = error.kind();
    if kind == io::ErrorKind::NotFound {
        "no such socket".to_owned()
    } else if kind == io::ErrorKind::ConnectionRefused {
        "nothing listens".to_owned()
    } else {
        error.to_string()
    }
}

/// Ports to try; where they speak TLS, the Unix socket is the way.
fn ports(config: &Config) -> Vec<SocketAddr> {
    if !config.admin.tls_cert.as_os_str().is_empty() {
        return Vec::new();
    }
    let reachable = |mut address: SocketAddr| {
        if address.ip().is_unspecified() {
            address.set_ip(match address.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        address
    };
    config.admin.listen.iter().copied().filter(|address| address.port() != 0).map(reachable).collect()
}

fn request(
    method: &Method,
    path: &str,
    host: &str,
    token: Option<&Token>,
    body: Option<Bytes>,
) -> Result<Request<Full<Bytes>>, http::Error> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, host)
        .header(ACCEPT, "application/json, application/problem+json");
    if body.is_some() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    if let Some(token) = token {
        let mut value = HeaderValue::from_str(&token.to_field())?;
        value.set_sensitive(true);
        request = request.header(AUTHORIZATION, value);
    }
    request.body(Full::new(body.unwrap_or_default()))
}

async fn within<T>(
    wait: Duration,
    talk: impl Future<Output = Result<T, Box<dyn std::error::Error + Send + Sync>>>,
) -> Result<T, Unreachable> {
    match tokio::time::timeout(wait, talk).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(Unreachable(vec![error.to_string()])),
        Err(_elapsed) => Err(Unreachable(vec![format!("no answer within {} s", wait.as_secs())])),
    }
}

async fn speak<S, B>(
    stream: S,
    request: Result<Request<B>, http::Error>,
) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = request?;
    let talk = async {
        let (head, body) = sender.send_request(request).await?.into_parts();
        let body = Limited::new(body, ANSWER).collect().await?.to_bytes();
        // The connection ends when nobody can send on it any more.
        drop(sender);
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>((head.status, body))
    };
    let (answer, ended) = tokio::join!(talk, connection);
    let answer = answer?;
    ended.map_err(io::Error::other)?;
    Ok(answer)
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::new(Exit::Failed, format!("the daemon's answer cannot be read: {error}")))
}

fn refusal(status: StatusCode, body: &[u8]) -> Failure {
    let problem: ProblemText = serde_json::from_slice(body).unwrap_or_default();
    let exit = match status {
        StatusCode::NOT_FOUND => Exit::NotFound,
        StatusCode::UNPROCESSABLE_ENTITY => Exit::Mismatch,
        _ => Exit::Failed,
    };
    let said = match (problem.title.is_empty(), problem.detail.is_empty()) {
        (true, _) => format!("the daemon answered {status}"),
        (false, true) => problem.title,
        (false, false) => format!("{}: {}", problem.title, problem.detail),
    };
    Failure::new(exit, said).hint(problem.hint)
}
