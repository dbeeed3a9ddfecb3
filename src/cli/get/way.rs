//! The way to the engine: a running daemon, or one in this process.

use std::net::SocketAddr;
use std::path::PathBuf;

use bytes::Bytes;
use http::header::{HOST, HeaderMap, HeaderValue};
use http::{Method, Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::cli::admin_client::AdminClient;
use crate::cli::{ConfigFile, Exit, Failure, MgetArgs};
use crate::config::{Config, Environment, load, load_secrets};
use crate::daemon::{Folder, Local};
use crate::digest::hex;
use crate::http::{Scheme, Target};

/// Where requests go.
pub(super) struct Way {
    to: To,
    redirects: usize,
}

enum To {
    /// The doors of a running daemon.
    Daemon(SocketAddr),
    /// An engine in this process.
    Here(Box<Local>),
}

impl Way {
    /// The daemon that the configuration names, if it answers; else an engine of our own.
    pub(super) async fn open(node: &ConfigFile, first: &Target, mget: &MgetArgs) -> Result<Self, Failure> {
        let environment = Environment::of_process();
        let mut loaded = load(node.as_deref(), &environment)?;
        let is_own = mget.peer || mget.peer_secret.is_some() || mget.cache_path.is_some();
        let redirects = loaded.config.origin.max_redirects;
        if let Some(doors) = loaded.config.proxy.listen.first().filter(|_| !is_own) {
            let client = AdminClient::to(&loaded)?;
            let alive = tokio::task::spawn_blocking(move || client.alive().is_ok()).await;
            if alive.unwrap_or(false) && TcpStream::connect(doors).await.is_ok() {
                return Ok(Self { to: To::Daemon(*doors), redirects });
            }
        }
        loaded.config.mormot.enabled |= mget.peer || mget.peer_secret.is_some();
        if let Some(file) = &mget.peer_secret {
            loaded.config.mormot.secret_file.clone_from(file);
        }
        let of_service = environment.clone().of_service(loaded.file.as_deref());
        let found = load_secrets(&loaded.config, &of_service)?;
        let mut config = loaded.config;
        use_environment_proxy(&mut config, first);
        let folder = match &mget.cache_path {
            Some(folder) => Folder::Kept(folder.clone()),
            None => Folder::Passing(working_folder(&environment)?),
        };
        let local = Local::open(config, found.secrets, found.mormot, folder).await;
        let local = local.map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
        Ok(Self { to: To::Here(Box::new(local)), redirects })
    }

    /// Whether it leads to a daemon.
    pub(super) fn is_daemon(&self) -> bool {
        matches!(self.to, To::Daemon(_))
    }

    /// How many redirects are followed.
    pub(super) fn redirects(&self) -> usize {
        self.redirects
    }

    /// One request through the doors; redirects are for the caller.
    pub(super) async fn get(&self, target: &Target, fields: HeaderMap) -> Result<Response<Incoming>, String> {
        match &self.to {
            To::Daemon(doors) => {
                let stream = TcpStream::connect(doors).await.map_err(|error| error.to_string())?;
                converse(stream, request(target, fields)?).await
            }
            To::Here(local) => converse(local.connect(), request(target, fields)?).await,
        }
    }

    pub(super) async fn close(self) {
        if let To::Here(local) = self.to {
            local.close().await;
        }
    }
}

/// In absolute form for http; through the prefix door for https, which a tunnel could not cache.
fn request(target: &Target, fields: HeaderMap) -> Result<Request<Empty<Bytes>>, String> {
    let (uri, host) = match target.scheme() {
        Scheme::Http => (target.url(), target.authority()),
        Scheme::Https => (format!("/https/{}{}", target.authority(), target.path()), "localhost".to_owned()),
    };
    let mut request = Request::new(Empty::new());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = uri.parse().map_err(|_ignored| "the URL cannot be sent".to_owned())?;
    *request.headers_mut() = fields;
    let host = HeaderValue::try_from(host).map_err(|_ignored| "the host name cannot be sent".to_owned())?;
    request.headers_mut().insert(HOST, host);
    Ok(request)
}

async fn converse<S>(stream: S, request: Request<Empty<Bytes>>) -> Result<Response<Incoming>, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|e| e.to_string())?;
    // ends with the body, or with this process
    drop(tokio::spawn(connection));
    sender.send_request(request).await.map_err(|error| error.to_string())
}

/// The environment's proxy counts only here, and never where it names a door of Larder itself.
fn use_environment_proxy(config: &mut Config, first: &Target) {
    let Ok(uri) = first.uri() else { return };
    let Some(found) = Matcher::from_env().intercept(&uri) else { return };
    let named = found.uri().to_string();
    let own = config.proxy.listen.iter().any(|door| {
        let port = found.uri().port_u16() == Some(door.port());
        port && found
            .uri()
            .host()
            .is_some_and(|host| host == "localhost" || host.trim_matches(['[', ']']) == door.ip().to_string())
    });
    if own || config.origin.proxy.is_set() {
        return;
    }
    match named.trim_end_matches('/').parse() {
        Ok(parent) => config.origin.proxy = parent,
        Err(error) => tracing::warn!(%error, "the environment's proxy cannot be used"),
    }
}

/// A folder of our own below the user's cache folder, removed at the end.
fn working_folder(environment: &Environment) -> Result<PathBuf, Failure> {
    let base = environment
        .user_folder("XDG_CACHE_HOME", ".cache")
        .map_or_else(std::env::temp_dir, |cache| cache.join("larder"));
    let mut random = [0; 8];
    let named = getrandom::fill(&mut random).map_err(std::io::Error::from);
    let folder = base.join(format!("get-{}", hex(&random)));
    named.and_then(|()| std::fs::create_dir_all(&folder)).map_err(|error| {
        Failure::new(Exit::Failed, format!("cannot make the working folder {}: {error}", folder.display()))
    })?;
    Ok(folder)
}
