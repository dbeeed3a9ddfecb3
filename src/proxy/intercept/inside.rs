//! Requests inside an opened connection: for its host and no other.

use http::header::{self, HeaderMap, HeaderValue};
use http::uri::Authority;
use http::{Method, Request, StatusCode};

use super::super::respond;
use crate::http::{Scheme, Target};
use crate::rest::Problem;

/// The origin that a connection was opened to.
#[derive(Debug, Clone)]
pub(in super::super) struct Inside(Target);

impl Inside {
    pub(super) const fn new(origin: Target) -> Self {
        Self(origin)
    }

    /// What a request asks for. Whatever names a host in it must name this one (RFC 9110 section 15.5.20).
    pub(in super::super) fn target<B>(&self, request: &Request<B>) -> Result<Target, Problem> {
        if request.method() == Method::CONNECT {
            return Err(Problem::new(StatusCode::BAD_REQUEST, "bad-target", "Bad target")
                .detail("CONNECT inside an intercepted connection leads nowhere")
                .hint("send CONNECT to the proxy itself"));
        }
        let uri = request.uri();
        let is_https = uri.scheme_str().is_none_or(|scheme| scheme.eq_ignore_ascii_case("https"));
        let in_uri = uri.authority().is_none_or(|authority| self.is(authority));
        let in_field = |host: &HeaderValue| host.as_bytes().try_into().is_ok_and(|host| self.is(&host));
        if !is_https || !in_uri || !request.headers().get_all(header::HOST).iter().all(in_field) {
            return Err(misdirected());
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Target::new(Scheme::Https, &self.0.authority(), path).map_err(|error| respond::bad_target(&error))
    }

    fn is(&self, authority: &Authority) -> bool {
        let text = authority.as_str();
        let port = match text.strip_prefix(authority.host()) {
            Some("" | ":") => Some(Scheme::Https.default_port()),
            Some(_) => authority.port_u16(),
            // there is user information in front
            None => return false,
        };
        authority.host().eq_ignore_ascii_case(self.0.host()) && port == Some(self.0.port())
    }
}

fn misdirected() -> Problem {
    Problem::new(StatusCode::MISDIRECTED_REQUEST, "misdirected", "Another host")
        .detail("the request is for another host than its connection was opened to")
        .hint("open a connection for each host")
}

/// HTTP/2 may send a cookie in several fields, which nothing before it understands (RFC 9113 section 8.2.3).
pub(in super::super) fn join_cookies(headers: &mut HeaderMap) {
    let crumbs: Vec<&[u8]> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if crumbs.len() < 2 {
        return;
    }
    if let Ok(mut whole) = HeaderValue::from_bytes(&crumbs.join(b"; ".as_slice())) {
        whole.set_sensitive(true);
        headers.insert(header::COOKIE, whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(authority: &str) -> Inside {
        Inside::new(Target::new(Scheme::Https, authority, "/").unwrap())
    }

    fn request(method: &str, uri: &str, host: Option<&str>) -> Request<()> {
        let request = Request::builder().method(method).uri(uri);
        host.map_or(Request::builder().method(method).uri(uri), |host| request.header("host", host))
            .body(())
            .unwrap()
    }

    #[test]
    fn a_request_is_for_the_host_of_its_connection() {
        for (authority, uri, host, url) in [
            ("a.test:443", "/x?y", Some("a.test"), "https://a.test/x?y"),
            ("a.test:443", "/x", Some("A.Test:443"), "https://a.test/x"),
            ("a.test:443", "/x", None, "https://a.test/x"),
            ("a.test:443", "https://a.test/x", Some("a.test"), "https://a.test/x"),
            ("a.test:443", "https://a.test:443/a%2Fb", None, "https://a.test/a%2Fb"),
            ("a.test:8443", "/", Some("a.test:8443"), "https://a.test:8443/"),
        ] {
            let target = inside(authority).target(&request("GET", uri, host)).unwrap();
            assert_eq!(target.url(), url, "{uri} {host:?}");
        }
    }

    #[test]
    fn a_request_for_another_host_is_misdirected() {
        for (uri, host) in [
            ("/", Some("b.test")),
            ("/", Some("a.test:8443")),
            ("/", Some("a.test.")),
            ("/", Some("u@a.test")),
            ("/", Some("")),
            ("/", Some("a.test, a.test")),
            ("https://b.test/", Some("a.test")),
            ("https://a.test/", Some("b.test")),
            ("http://a.test/", Some("a.test")),
            ("https://a.test:444/", None),
            ("https://u:p@a.test/", None),
        ] {
            let refused = inside("a.test:443").target(&request("GET", uri, host)).unwrap_err();
            assert_eq!(refused.into_response().status(), 421, "{uri} {host:?}");
        }
        let connect = request("CONNECT", "a.test:443", Some("a.test"));
        assert_eq!(inside("a.test:443").target(&connect).unwrap_err().into_response().status(), 400);
    }

    #[test]
    fn cookies_are_one_field_again() {
        let mut headers = HeaderMap::new();
        headers.append("cookie", HeaderValue::from_static("a=1"));
        join_cookies(&mut headers);
        assert_eq!(headers["cookie"], "a=1");
        headers.append("cookie", HeaderValue::from_static("b=2"));
        headers.append("cookie", HeaderValue::from_static("c=3"));
        join_cookies(&mut headers);
        let all: Vec<_> = headers.get_all("cookie").iter().collect();
        assert_eq!(all, ["a=1; b=2; c=3"]);
    }
}
