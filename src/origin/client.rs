//! One request and its answer: written for its connection, waited for, repeated where that is harmless.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderValue, PROXY_AUTHORIZATION, TRANSFER_ENCODING,
    UPGRADE,
};
use http::uri::PathAndQuery;
use http::{Method, StatusCode, Uri, Version};
use http_body::Body as _;

use super::body::{Counted, Progress, Watched};
use super::dial::{Form, PARENT_REFUSES};
use super::interim;
use super::pool::{Lease, Wire};
use super::{Inner, OriginError, Reach, Remote, Switched};
use crate::http::{Background, Body, Interim, Target, TargetError, boxed, empty, hop_by_hop_removed};

/// How often a request is repeated on another connection.
const REPEATS: usize = 2;

/// A request on its way, to be written again if need be.
struct Outgoing {
    method: Method,
    target: Target,
    /// End-to-end fields without `Host`.
    headers: HeaderMap,
    /// None where there is none to send, or where it is on its way.
    body: Option<Body>,
    had_body: bool,
    /// How far the body is.
    progress: Arc<Progress>,
    /// Where interim answers go.
    interim: Option<Interim>,
    /// Nobody waits for it.
    background: Option<Background>,
}

pub(super) async fn send(
    inner: &Inner,
    request: http::Request<Body>,
    reach: &Reach,
) -> Result<http::Response<Body>, OriginError> {
    let mut outgoing = Outgoing::new(request)?;
    let host = outgoing.target.bare_host().to_owned();
    let mut repeats = 0;
    loop {
        let mut lease = inner.pool.lease(&inner.dialer, &outgoing.target, reach, repeats > 0).await?;
        let mut request = outgoing.write(lease.connection.wire())?;
        let interim = interim::pass(&mut request, outgoing.interim.clone());
        let answer = heard(inner.stall, &outgoing.progress, lease.connection.send(request));
        let answer = tokio::select! {
            biased;
            answer = answer => answer,
            () = interim.too_many() => return Err(OriginError::protocol(&host, interim::FLOOD)),
        };
        let mut failure = match answer {
            None => return Err(OriginError::stalled(&host)),
            Some(Ok(response)) => return answered(inner, response, lease, host, outgoing.background),
            Some(Err(failure)) => failure,
        };
        let unsent = failure.take_message().map(http::Request::into_body);
        if repeats == REPEATS || !lease.is_reused() || !outgoing.may_repeat(unsent, failure.error()) {
            return Err(OriginError::of_hyper(&host, failure.error()));
        }
        repeats += 1;
    }
}

/// Never repeated: what was agreed on a connection holds on no other.
pub(super) async fn switch(
    inner: &Inner,
    request: http::Request<Body>,
    protocol: &HeaderValue,
    reach: &Reach,
) -> Result<Switched, OriginError> {
    let mut outgoing = Outgoing::new(request)?;
    let host = outgoing.target.bare_host().to_owned();
    let mut lease = inner.pool.alone(&inner.dialer, &outgoing.target, reach).await?;
    let mut request = outgoing.write(lease.connection.wire())?;
    request.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
    request.headers_mut().insert(UPGRADE, protocol.clone());
    let answer = heard(inner.stall, &outgoing.progress, lease.connection.send(request)).await;
    let answer = answer.ok_or_else(|| OriginError::stalled(&host))?;
    let mut response = answer.map_err(|failure| OriginError::of_hyper(&host, failure.error()))?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return answered(inner, response, lease, host, None).map(Switched::Not);
    }
    let stream = tokio::time::timeout(inner.stall, hyper::upgrade::on(&mut response)).await;
    let stream = stream.map_err(|_elapsed| OriginError::stalled(&host))?;
    let stream = stream.map_err(|error| OriginError::of_hyper(&host, &error))?;
    Ok(Switched::To(response.map(drop), stream))
}

/// Waits for the head of an answer, at most `stall` since the last sign that the body was still taken. While it
/// is the body's sender who pauses, the origin is not silent: it has nothing to answer yet.
async fn heard<T>(stall: Duration, progress: &Progress, answer: impl Future<Output = T>) -> Option<T> {
    let mut answer = pin!(answer);
    let (_, mut seen) = progress.since(0);
    loop {
        if let Ok(answer) = tokio::time::timeout(stall, answer.as_mut()).await {
            return Some(answer);
        }
        let (is_silent, now) = progress.since(seen);
        if is_silent {
            return None;
        }
        seen = now;
    }
}

/// Whether an answer's framing is one that everybody reads alike. hyper undoes `chunked` wherever it stands last
/// and knows no other coding; what is left of one would be taken for the thing itself (RFC 9112 section 6.1).
fn is_framed_beyond_doubt(response: &http::Response<hyper::body::Incoming>) -> bool {
    let mut codings = response.headers().get_all(TRANSFER_ENCODING).iter();
    let Some(coding) = codings.next() else { return true };
    coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked") && codings.next().is_none()
}

fn answered(
    inner: &Inner,
    response: http::Response<hyper::body::Incoming>,
    lease: Lease,
    host: String,
    background: Option<Background>,
) -> Result<http::Response<Body>, OriginError> {
    if !is_framed_beyond_doubt(&response) {
        return Err(OriginError::protocol(
            &host,
            "its answer has a Transfer-Encoding other than one `chunked`",
        ));
    }
    let wire = lease.connection.wire();
    let remote = Remote(wire.remote);
    if response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED && matches!(wire.form, Form::Whole(_)) {
        // It concerns us and not the client, whose own credentials would not help.
        return Err(OriginError::connect(&host, PARENT_REFUSES));
    }
    let (mut parts, body) = response.into_parts();
    if parts.headers.contains_key(TRANSFER_ENCODING) {
        // the chunks tell the length, whatever else was written (RFC 9112 section 6.3)
        parts.headers.remove(CONTENT_LENGTH);
    }
    parts.headers = hop_by_hop_removed(&parts.headers);
    parts.extensions.insert(remote);
    let foreground = background.is_none().then(|| Arc::clone(&inner.foreground));
    let body = boxed(Watched::new(body, host, inner.stall, lease).counted(foreground));
    let paced = match background {
        Some(background) => inner.pace.hold_back(body, inner.behind.clone(), background),
        None => inner.pace.hold(body, None),
    };
    Ok(http::Response::from_parts(parts, boxed(paced)))
}

impl Outgoing {
    fn new(request: http::Request<Body>) -> Result<Self, OriginError> {
        let (mut parts, body) = request.into_parts();
        let (interim, background) = (parts.extensions.remove(), parts.extensions.remove());
        let target = Target::from_uri(&parts.uri)?;
        let mut headers = hop_by_hop_removed(&parts.headers);
        headers.remove(HOST);
        headers.remove(EXPECT);
        let progress = Arc::<Progress>::default();
        let had_body = !body.is_end_stream();
        let body = had_body.then(|| boxed(Counted::new(body, Arc::clone(&progress))));
        Ok(Self { method: parts.method, target, headers, body, had_body, progress, interim, background })
    }

    /// Whether the request can be written again, now that its connection failed.
    fn may_repeat(&mut self, unsent: Option<Body>, error: &hyper::Error) -> bool {
        if let Some(body) = unsent {
            self.body = Some(body).filter(|_| self.had_body);
            return true;
        }
        let answered = error.is_parse() || error.is_timeout();
        self.method.is_safe() && !self.had_body && !answered
    }

    fn write(&mut self, wire: &Wire) -> Result<http::Request<Body>, OriginError> {
        let mut request = http::Request::new(self.body.take().unwrap_or_else(empty));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri(&wire.form)?;
        let headers = match &wire.form {
            Form::Two => {
                *request.version_mut() = Version::HTTP_2;
                self.headers.clone()
            }
            Form::Path => self.headers_for_one(None)?,
            Form::Whole(credentials) => self.headers_for_one(credentials.as_ref())?,
        };
        *request.headers_mut() = headers;
        Ok(request)
    }

    fn uri(&self, form: &Form) -> Result<Uri, OriginError> {
        match form {
            Form::Path => {
                let path =
                    PathAndQuery::try_from(self.target.path()).map_err(|_ignored| TargetError::Path)?;
                Ok(Uri::from(path))
            }
            Form::Whole(_) | Form::Two => Ok(self.target.uri()?),
        }
    }

    /// `Host` first, as RFC 9110 section 7.2 advises.
    fn headers_for_one(&self, credentials: Option<&HeaderValue>) -> Result<HeaderMap, OriginError> {
        let host = HeaderValue::try_from(self.target.authority()).map_err(|_ignored| TargetError::Host)?;
        let mut headers = HeaderMap::with_capacity(self.headers.len() + 2);
        headers.insert(HOST, host);
        if let Some(credentials) = credentials {
            headers.insert(PROXY_AUTHORIZATION, credentials.clone());
        }
        for (name, value) in &self.headers {
            headers.append(name, value.clone());
        }
        Ok(headers)
    }
}
