//! The short way: a plain request for what was just given out is answered at once.

use std::net::IpAddr;

use http::header::{self, HeaderMap, HeaderName};
use http::{Method, Request, Response, Uri};
use hyper::body::Incoming;

use super::forward::Visit;
use super::{Proxy, respond};
use crate::fetch::Held;
use crate::http::{Body, Target};
use crate::origin::Reach;

/// Fields that change nothing about what is answered out of the store.
pub(super) const IDLE_FIELDS: [HeaderName; 6] = [
    header::HOST,
    header::USER_AGENT,
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    HeaderName::from_static("proxy-connection"),
];

/// Fields that only change what is made of it.
const CONDITIONS: [HeaderName; 4] =
    [header::RANGE, header::IF_RANGE, header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE];

/// What matters of a plain request.
pub(super) struct Asked<'a> {
    /// Its target, which must be an absolute one.
    pub uri: &'a Uri,
    pub headers: &'a HeaderMap,
    /// Nothing larger is wanted.
    pub most: u64,
}

impl Proxy {
    /// The answer to a request that needs no thought; none where it does.
    pub(super) fn again(&self, request: &Request<Incoming>, visit: &Visit) -> Option<Response<Body>> {
        let is_plain = matches!(*request.method(), Method::GET | Method::HEAD)
            && visit.inside.is_none()
            && request.uri().scheme().is_some()
            && http_body::Body::is_end_stream(request.body())
            && is_harmless(request.headers());
        if !is_plain {
            return None;
        }
        let asked = Asked { uri: request.uri(), headers: request.headers(), most: u64::MAX };
        let held = self.known(&asked, visit.client, visit.port)?;
        self.0.engine.ledger().request();
        Some(respond::again(&held, request.method(), request.headers(), self.via()))
    }

    /// What was just given out, and is to be given again to this client.
    pub(super) fn known(&self, asked: &Asked<'_>, client: IpAddr, port: u16) -> Option<Held> {
        self.check_client(client).ok()?;
        let target = Target::from_uri(asked.uri).ok()?;
        if self.leads_here(&target, port) || !matches!(self.reach(client), Reach::Anywhere) {
            return None;
        }
        self.0.engine.again(&target, asked.headers, client, asked.most)
    }
}

fn is_harmless(headers: &HeaderMap) -> bool {
    headers.iter().all(|(name, value)| {
        // what else stands there would name fields to leave out
        let stays = || *name == header::CONNECTION && matches!(value.as_bytes(), b"keep-alive" | b"close");
        IDLE_FIELDS.contains(name) || CONDITIONS.contains(name) || stays()
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_plain_requests_go_the_short_way() {
        for (name, value, plain) in [
            ("host", "h", true),
            ("user-agent", "curl/8", true),
            ("range", "bytes=1-2", true),
            ("connection", "keep-alive", true),
            ("connection", "close, range", false),
            ("authorization", "Basic eA==", false),
            ("cookie", "a=b", false),
            ("cache-control", "no-cache", false),
            ("pragma", "no-cache", false),
            ("if-match", "*", false),
            ("if-unmodified-since", "Sat, 29 Oct 1994 19:43:31 GMT", false),
            ("via", "1.1 larder-00000000", false),
            ("larder-digest", "sha256:00", false),
            ("expect", "100-continue", false),
            ("x-unknown", "1", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
            assert_eq!(is_harmless(&headers), plain, "{name}: {value}");
        }
    }
}
