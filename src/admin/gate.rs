//! The gate in front of every answer: which host names are answered, who is an administrator, and how long an
//! answer may take.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, HOST, HeaderName, HeaderValue, REFERRER_POLICY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, StatusCode, Version};

use super::control::ACTION_DEADLINE;
use super::server::{Door, Shared};
use crate::http::inspect::Fault;
use crate::rest::{Problem, same_site};

/// The longest an answer that only reads may take.
const READ_DEADLINE: Duration = Duration::from_secs(30);

/// Whether a request comes from an administrator; put into every request by [`check`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Administrator(pub(super) bool);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        Self::into_response(self).map(axum::body::Body::new)
    }
}

/// Refuses rebound names and forged writes, and notes who asks.
pub(super) async fn check(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let door = request.extensions().get::<Door>().copied().unwrap_or(Door::Port);
    let writes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if door == Door::Port
        && let Err(problem) = refuse_foreign(&shared, &request, writes)
    {
        return problem.into_response().map(axum::body::Body::new);
    }
    let administrator = door == Door::Socket || shared.token.admits(request.headers());
    request.extensions_mut().insert(Administrator(administrator));
    let deadline = if writes { ACTION_DEADLINE } else { READ_DEADLINE };
    let mut response = match tokio::time::timeout(deadline, next.run(request)).await {
        Ok(response) => response,
        Err(_elapsed) => IntoResponse::into_response(
            Problem::new(StatusCode::GATEWAY_TIMEOUT, "too-slow", "This takes too long")
                .detail("the answer was given up; what was begun may still be done"),
        ),
    };
    close_up(&mut response);
    response
}

/// The answer to what was no request beyond doubt.
pub(super) fn refuse(fault: Fault) -> Response {
    let mut response = IntoResponse::into_response(Problem::from(fault));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    close_up(&mut response);
    response
}

/// Refuses who has no token.
pub(super) async fn administrators_only(request: Request, next: Next) -> Response {
    if request.extensions().get() == Some(&Administrator(true)) {
        return next.run(request).await;
    }
    let problem = Problem::new(StatusCode::UNAUTHORIZED, "token-needed", "Only for administrators")
        .detail("this wants the admin token or the Unix socket")
        .hint("send Authorization: Bearer with what stands in <state_dir>/admin.token");
    let mut response = IntoResponse::into_response(problem);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"larder\""));
    response
}

fn refuse_foreign(shared: &Shared, request: &Request, writes: bool) -> Result<(), Problem> {
    let mut named = request.headers().get_all(HOST).iter();
    let (host, further) = (named.next().map(|host| host.to_str().unwrap_or_default()), named.next());
    let host = request.uri().authority().map(http::uri::Authority::as_str).or(host);
    let bad = || Problem::new(StatusCode::BAD_REQUEST, "bad-host", "The request names no host, or two");
    let host = match host {
        _ if further.is_some() => return Err(bad()),
        Some(host) => host,
        None if request.version() == Version::HTTP_10 => "localhost",
        None => return Err(bad()),
    };
    if !shared.hosts.accepts(host) {
        return Err(Problem::new(StatusCode::FORBIDDEN, "host-refused", "Unknown host name")
            .detail("this node does not answer to that name")
            .hint("use its address, or add the name to admin.hosts"));
    }
    if writes && !same_site(request.headers(), host) {
        return Err(Problem::new(StatusCode::FORBIDDEN, "cross-site", "Request of another site")
            .detail("a page of another site must not change anything here"));
    }
    Ok(())
}

/// What every answer says to browsers.
fn close_up(response: &mut Response) {
    const STRICT: &str = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
    let fields = response.headers_mut();
    let defaults: [(HeaderName, &'static str); 4] = [
        (CONTENT_SECURITY_POLICY, STRICT),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in defaults {
        fields.entry(name).or_insert(HeaderValue::from_static(value));
    }
}
