//! The listeners of the administrator's side and the routes behind them.
//!
//! [`Server::run`] serves until it is asked to stop, then gives running answers [`DRAIN`] to end. A caller that
//! sends its request head slower than [`HEAD_DEADLINE`] is cut; more than [`CONNECTIONS`] at one time wait.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Extension};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get, post, put};
use http::{Request, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::control::{self, Control};
use super::health::{healthz, readyz};
use super::identify::From;
use super::live::Places;
use super::page::{self, Page};
use super::password::Passwords;
use super::session::Sessions;
use super::socket::AdminSocket;
use super::status::{Sources, status};
use super::{Config, describe, gate, login, metrics, records};
use crate::http::inspect::{Inspected, Limits};
use crate::rest::{Api, Hosts, Problem, Token};
use crate::shutdown::{Drain, Shutdown};

/// The longest wait for a request head and for a TLS handshake.
const HEAD_DEADLINE: Duration = Duration::from_secs(10);
/// So long a connection may be idle.
const IDLE: Duration = Duration::from_secs(20);
/// What one request may ask of us: a browser's cookies for other programs of this machine come along.
const LIMITS: Limits =
    Limits { head: 64 * 1024, fields: 100, head_time: HEAD_DEADLINE, body_silence: HEAD_DEADLINE };
/// What running answers get when the server stops.
const DRAIN: Duration = Duration::from_secs(5);
/// Connections at one time.
const CONNECTIONS: usize = 256;
/// The largest request body.
const BODY: usize = 64 * 1024;
/// The largest body of rows.
const ROWS_BODY: usize = 4 * 1024 * 1024;
/// The wait after a listener had no descriptor to give.
const BACK_OFF: Duration = Duration::from_millis(100);

/// The administrator's side, ready to run.
#[derive(Debug, Clone)]
pub struct Server(Arc<Shared>);

/// Where a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// A TCP port, or a socket's caller who is not trusted: the token decides.
    Port,
    /// The Unix socket, by somebody the filesystem let in.
    Socket,
}

/// Bound listeners.
#[derive(Debug, Default)]
pub struct Listeners {
    /// TCP ports.
    pub tcp: Vec<TcpListener>,
    /// The certificate of the ports, where they speak TLS.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// The Unix socket.
    pub socket: Option<AdminSocket>,
}

/// Why the administrator's side ended unasked.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// A task of ours broke.
    #[error("the admin listener broke: {0}")]
    Broken(#[from] tokio::task::JoinError),
}

/// What every handler sees.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) sources: Sources,
    pub(super) control: Control,
    pub(super) token: Token,
    pub(super) hosts: Hosts,
    pub(super) sessions: Sessions,
    pub(super) passwords: Passwords,
    pub(super) places: Places,
    pub(super) page: Page,
    pub(super) docs: Page,
    pub(super) api: Arc<Api>,
    /// Running conversations.
    pub(super) guests: Drain,
    /// Answers that have no end, end with this.
    pub(super) stop: Shutdown,
}

impl Server {
    /// Puts the parts together.
    pub fn new(
        config: &Config,
        token: Token,
        (sources, control, api): (Sources, Control, Api),
        stop: Shutdown,
    ) -> Self {
        let names = config.hosts.iter().cloned().chain([sources.about.name.clone()]);
        let hosts = Hosts::new(names);
        let cookie = format!("larder-{}", sources.about.node.to_string().chars().take(8).collect::<String>());
        let sessions = Sessions::new(cookie, Arc::clone(&sources.clock));
        let passwords = Passwords::new(&config.users, Arc::clone(&sources.clock));
        let api = Arc::new(api.acting(describe::actions()));
        Self(Arc::new(Shared {
            config: config.clone(),
            sources,
            control,
            token,
            hosts,
            sessions,
            passwords,
            places: Places::new(),
            page: Page::front(),
            docs: Page::docs(),
            api,
            guests: Drain::new(),
            stop,
        }))
    }

    /// All routes, for requests that came in at a door.
    pub fn router(&self, door: Door) -> Router {
        Router::new()
            .route("/", get(front))
            .route("/{file}", get(page::file))
            .route("/healthz", get(healthz))
            .route("/readyz", get(readyz))
            .route("/status", get(status))
            .route("/metrics", get(metrics::metrics))
            .route("/api/openapi.json", get(describe::openapi))
            .route("/api/docs", get(describe::docs))
            .route(
                &format!("{}/session", records::API),
                get(login::show).post(login::open).delete(login::close),
            )
            .nest(records::API, api(&self.0))
            .fallback(nothing_here)
            .method_not_allowed_fallback(wrong_method)
            .layer(DefaultBodyLimit::max(BODY))
            .layer(from_fn_with_state(Arc::clone(&self.0), gate::check))
            .layer(Extension(door))
            .with_state(Arc::clone(&self.0))
    }

    /// Where the changes of its records are told.
    #[cfg(test)]
    pub(super) fn feed(&self) -> crate::orm::Feed {
        self.0.api.feed().clone()
    }

    /// Serves until asked to stop.
    pub async fn run(self, listeners: Listeners, shutdown: Shutdown) -> Result<(), AdminError> {
        let desk = Desk {
            shared: Arc::clone(&self.0),
            shutdown,
            guests: self.0.guests.clone(),
            permits: Arc::new(Semaphore::new(CONNECTIONS)),
            port: self.router(Door::Port),
            socket: self.router(Door::Socket),
        };
        let tls = listeners.tls.map(TlsAcceptor::from);
        let mut loops = JoinSet::new();
        for listener in listeners.tcp {
            loops.spawn(desk.clone().serve_port(listener, tls.clone()));
        }
        if let Some(socket) = listeners.socket {
            loops.spawn(desk.clone().serve_socket(socket));
        }
        desk.shutdown.requested().await;
        while let Some(ended) = loops.join_next().await {
            ended?;
        }
        if !desk.guests.wait(DRAIN).await {
            tracing::debug!(guests = desk.guests.guests(), "admin answers were cut");
        }
        Ok(())
    }
}

fn api(shared: &Arc<Shared>) -> Router<Arc<Shared>> {
    // what is done stands beside what is kept: every method that is no action's is about a record
    let records = || any(records::answer).layer(DefaultBodyLimit::max(ROWS_BODY));
    Router::new()
        .route("/bans", post(control::ban).fallback(records::answer))
        .route("/blocks", post(control::block).fallback(records::answer))
        .route("/reload", post(control::reload))
        .route("/log", get(control::log_level).put(control::set_log_level))
        .route("/gc", post(control::gc))
        .route("/purges", post(control::purge))
        .route("/imports", post(control::import).layer(DefaultBodyLimit::max(ROWS_BODY)))
        .route("/blobs/{key}/content", put(control::store))
        .route("/fetches", post(control::fetches).layer(DefaultBodyLimit::max(ROWS_BODY)))
        .route("/explanation", get(control::explanation))
        .route("/configuration", get(control::configuration))
        .route("/blobs/{key}/verify", post(control::verify))
        .route("/blobs/{key}/pin", put(control::pin).delete(control::unpin))
        .route("/{record}", records())
        .route("/{record}/{key}", records())
        .fallback(nothing_here)
        .layer(from_fn_with_state(Arc::clone(shared), records::audit))
        .layer(from_fn(gate::administrators_only))
}

async fn front(axum::extract::State(shared): axum::extract::State<Arc<Shared>>) -> Response {
    page::response(&shared.page)
}

pub(super) async fn nothing_here() -> Response {
    let problem = Problem::new(StatusCode::NOT_FOUND, "not-found", "There is no such thing");
    problem
        .hint("GET /status, /metrics, /healthz, /readyz, /api/docs or /api/v1/…")
        .into_response()
        .into_response()
}

async fn wrong_method() -> Response {
    let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", "Not by this method");
    problem.into_response().into_response()
}

/// The routes for one caller of a port.
fn desk_port(routes: &Router, from: std::net::SocketAddr) -> Router {
    routes.clone().layer(Extension(From(from)))
}

impl Shared {
    /// Whether cookies must not leave over plain http.
    pub(super) fn is_secure(&self) -> bool {
        !self.config.tls_cert.as_os_str().is_empty()
    }
}

/// What the accept loops share.
#[derive(Clone)]
struct Desk {
    shared: Arc<Shared>,
    shutdown: Shutdown,
    guests: Drain,
    permits: Arc<Semaphore>,
    port: Router,
    socket: Router,
}

impl Desk {
    async fn serve_port(self, listener: TcpListener, tls: Option<TlsAcceptor>) {
        while let Some((stream, permit)) = self.next(|| listener.accept()).await {
            let (stream, from) = stream;
            let port = desk_port(&self.port, from);
            let (desk, tls) = (self.clone(), tls.clone());
            self.guests.spawn(async move {
                match tls {
                    None => desk.converse(stream, port, permit).await,
                    Some(tls) => match tokio::time::timeout(HEAD_DEADLINE, tls.accept(stream)).await {
                        Ok(Ok(stream)) => desk.converse(stream, port, permit).await,
                        Ok(Err(error)) => tracing::debug!(%error, "an admin caller failed to speak TLS"),
                        Err(_elapsed) => tracing::debug!("an admin caller was too slow to speak TLS"),
                    },
                }
            });
        }
    }

    async fn serve_socket(self, socket: AdminSocket) {
        while let Some(((stream, user, trusted), permit)) = self.next(|| socket.accept()).await {
            let desk = self.clone();
            let router = if trusted { &self.socket } else { &self.port }.clone().layer(Extension(user));
            self.guests.spawn(async move { desk.converse(stream, router, permit).await });
        }
    }

    /// The next caller and its place; none when it is time to stop.
    async fn next<T, F>(&self, accept: impl Fn() -> F) -> Option<(T, OwnedSemaphorePermit)>
    where
        F: Future<Output = io::Result<T>>,
    {
        loop {
            let admitted = async {
                let permit = Arc::clone(&self.permits).acquire_owned().await.ok()?;
                Some((accept().await, permit))
            };
            let admitted = tokio::select! {
                () = self.shutdown.requested() => return None,
                admitted = admitted => admitted?,
            };
            match admitted {
                (Ok(caller), permit) => return Some((caller, permit)),
                (Err(error), _) => {
                    tracing::warn!(%error, "an admin caller could not be accepted");
                    tokio::time::sleep(BACK_OFF).await;
                }
            }
        }
    }

    async fn converse<S>(&self, stream: S, router: Router, permit: OwnedSemaphorePermit)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (stream, inspection) = Inspected::new(stream, LIMITS);
        let routes = TowerToHyperService::new(router);
        let shared = &self.shared;
        let service = service_fn(move |request: Request<Incoming>| {
            let (inspection, routes) = (inspection.clone(), routes.clone());
            async move {
                match inspection.enter() {
                    Some(fault) => Ok(gate::refuse(fault)),
                    None => {
                        let (head, body) = request.into_parts();
                        if body.is_end_stream()
                            && let Some(answer) = gate::at_hand(shared, &head)
                        {
                            return Ok(answer);
                        }
                        let answer = routes.call(Request::from_parts(head, body)).await;
                        // what comes after that is no HTTP
                        if answer
                            .as_ref()
                            .is_ok_and(|answer| answer.status() == StatusCode::SWITCHING_PROTOCOLS)
                        {
                            inspection.release();
                        }
                        answer
                    }
                }
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .max_buf_size(LIMITS.head)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.shutdown.requested() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "an admin connection broke");
        }
        drop(permit);
    }
}
