//! The gate in front of every answer: which host names are answered, who is an administrator, and how long an
//! answer may take.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{OriginalUri, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, HOST, HeaderName, HeaderValue, REFERRER_POLICY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{Method, StatusCode, Version};

use super::access::{Caller, Role, writes};
use super::control::ACTION_DEADLINE;
use super::identify::{Proof, identify, is_own_page};
use super::records::API;
use super::server::{Door, Shared};
use crate::http::inspect::Fault;
use crate::rest::{Api, Ask, Problem, same_site};

/// The longest an answer that only reads may take.
const READ_DEADLINE: Duration = Duration::from_secs(30);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        Self::into_response(self).map(axum::body::Body::new)
    }
}

/// Refuses rebound names and forged writes, and notes who asks.
pub(super) async fn check(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let door = request.extensions().get::<Door>().copied().unwrap_or(Door::Port);
    let (mut head, body) = request.into_parts();
    let caller = match proved(&shared, door, &head).await {
        Ok(caller) => caller,
        Err(problem) => {
            let mut response = IntoResponse::into_response(problem);
            close_up(&mut response);
            return response;
        }
    };
    head.extensions.insert(caller);
    let deadline = if writes(&head.method) { ACTION_DEADLINE } else { READ_DEADLINE };
    let mut response = match tokio::time::timeout(deadline, next.run(Request::from_parts(head, body))).await {
        Ok(response) => response,
        Err(_elapsed) => IntoResponse::into_response(
            Problem::new(StatusCode::GATEWAY_TIMEOUT, "too-slow", "This takes too long")
                .detail("the answer was given up; what was begun may still be done"),
        ),
    };
    close_up(&mut response);
    response
}

/// Who asks, unless the request is another site's doing.
async fn proved(shared: &Shared, door: Door, head: &Parts) -> Result<Caller, Problem> {
    let host = if door == Door::Port { refuse_foreign(shared, head)? } else { "" };
    let Proof { who, by_cookie } = identify(shared, door, &head.headers, &head.extensions).await?;
    if by_cookie && is_guarded(head) && !is_own_page(&head.headers, host) {
        return Err(cross_site());
    }
    Ok(Caller(who))
}

/// The answer to what was no request beyond doubt.
pub(super) fn refuse(fault: Fault) -> Response {
    let mut response = IntoResponse::into_response(Problem::from(fault));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    close_up(&mut response);
    response
}

/// Refuses who has proved nothing, and who may less than the request wants.
pub(super) async fn administrators_only(request: Request, next: Next) -> Response {
    let Some(Caller(Some(who))) = request.extensions().get() else { return token_needed() };
    let path = request.extensions().get::<OriginalUri>().map_or(request.uri().path(), |uri| uri.path());
    let wanted = Role::wanted_by(request.method(), path);
    if who.role < wanted {
        let detail =
            format!("this wants the role {}, and {} is {}", wanted.word(), who.name, who.role.word());
        let problem = Problem::new(StatusCode::FORBIDDEN, "role-needed", "Not for everybody").detail(detail);
        return IntoResponse::into_response(problem);
    }
    next.run(request).await
}

/// Asks for a proof.
pub(super) fn token_needed() -> Response {
    let problem = Problem::new(StatusCode::UNAUTHORIZED, "token-needed", "Only for administrators")
        .detail("this wants the admin token or the Unix socket")
        .hint("send Authorization: Bearer with what stands in <state_dir>/admin.token");
    let mut response = IntoResponse::into_response(problem);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"larder\""));
    response
}

/// The host name a request is for, where it is not another site's doing.
fn refuse_foreign<'h>(shared: &Shared, head: &'h Parts) -> Result<&'h str, Problem> {
    let mut named = head.headers.get_all(HOST).iter();
    let (host, further) = (named.next().map(|host| host.to_str().unwrap_or_default()), named.next());
    let host = head.uri.authority().map(http::uri::Authority::as_str).or(host);
    let bad = || Problem::new(StatusCode::BAD_REQUEST, "bad-host", "The request names no host, or two");
    let host = match host {
        _ if further.is_some() => return Err(bad()),
        Some(host) => host,
        None if head.version == Version::HTTP_10 => "localhost",
        None => return Err(bad()),
    };
    if !shared.hosts.accepts(host) {
        return Err(Problem::new(StatusCode::FORBIDDEN, "host-refused", "Unknown host name")
            .detail("this node does not answer to that name")
            .hint("use its address, or add the name to admin.hosts"));
    }
    if is_guarded(head) && !same_site(&head.headers, host) {
        return Err(cross_site());
    }
    Ok(host)
}

/// The answer to a question that was asked before, for who shows the token: all that the routes would do about it,
/// without them. None where they have to.
pub(super) fn at_hand(shared: &Shared, head: &Parts) -> Option<Response> {
    let below = head.uri.path().strip_prefix(API).filter(|_| head.method == Method::GET)?;
    let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
    let ask = Ask { method: &head.method, path, query, headers: &head.headers, body: b"" };
    if !shared.token.admits(&head.headers) || refuse_foreign(shared, head).is_err() {
        return None;
    }
    let mut response = shared.api.at_hand(below, &ask)?.map(axum::body::Body::new);
    close_up(&mut response);
    Some(response)
}

/// Whether a page of another site must not make this request: it changes something, or opens a WebSocket, which no
/// rule of browsers keeps that page from reading.
fn is_guarded(head: &Parts) -> bool {
    writes(&head.method) || Api::wants_socket(&head.headers)
}

fn cross_site() -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "cross-site", "Request of another site")
        .detail("a page of another site must not change anything here")
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
