//! Which requests are let in: framing beyond doubt, a client that is allowed, no loop.

use std::net::IpAddr;

use http::header::{self, HeaderMap};
use http::{Method, Request, StatusCode, Version};

use super::Proxy;
use crate::http::Target;
use crate::rest::Problem;

/// Looks a request's framing over (RFC 9112 section 6): what could be read in two ways is refused.
pub(super) fn check_framing<B>(request: &Request<B>) -> Result<(), Problem> {
    let (headers, version) = (request.headers(), request.version());
    let encodings: Vec<_> = headers.get_all(header::TRANSFER_ENCODING).iter().collect();
    if !encodings.is_empty() && headers.contains_key(header::CONTENT_LENGTH) {
        return Err(malformed("the request has both Content-Length and Transfer-Encoding"));
    }
    if !encodings.is_empty() && version == Version::HTTP_10 {
        return Err(malformed("an HTTP/1.0 request has a Transfer-Encoding"));
    }
    let chunked = |value: &&http::HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    if encodings.len() > 1 || !encodings.iter().all(chunked) {
        return Err(malformed("the request has a Transfer-Encoding other than one `chunked`"));
    }
    if headers.get_all(header::CONTENT_LENGTH).iter().count() > 1 {
        return Err(malformed("the request has more than one Content-Length"));
    }
    let hosts = headers.get_all(header::HOST).iter().count();
    if hosts > 1 || (hosts == 0 && version == Version::HTTP_11 && request.method() != Method::CONNECT) {
        return Err(malformed("the request needs exactly one Host"));
    }
    Ok(())
}

fn malformed(detail: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "malformed-request", "Malformed request")
        .detail(detail)
        .hint("send the request as RFC 9112 describes it")
}

impl Proxy {
    /// Whether this client may use the doors.
    pub(super) fn check_client(&self, client: IpAddr) -> Result<(), Problem> {
        if self.0.config.load().allow.iter().any(|net| net.contains(&client)) {
            return Ok(());
        }
        Err(Problem::new(StatusCode::FORBIDDEN, "client-refused", "Client not allowed")
            .detail("this address may not use larder's doors")
            .hint("add its network to proxy.allow"))
    }

    /// Whether a request has come back to us, or is about to.
    pub(super) fn check_loop(&self, headers: &HeaderMap, target: &Target, port: u16) -> Result<(), Problem> {
        let passed_here = headers
            .get_all(header::VIA)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|hop| hop.split_whitespace().nth(1) == Some(self.0.pseudonym.as_str()));
        if passed_here || (target.port() == port && self.names_this_machine(target.bare_host())) {
            return Err(Problem::new(StatusCode::LOOP_DETECTED, "loop", "Request loop")
                .detail("the request leads back to this proxy")
                .hint("address the origin server, not larder's own port, and do not make two proxies each other's parent"));
        }
        Ok(())
    }

    fn names_this_machine(&self, host: &str) -> bool {
        if host.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let address = host.parse::<IpAddr>().map(|address| address.to_canonical());
        address.is_ok_and(|a| a.is_loopback() || a.is_unspecified() || self.is_own(a))
    }
}

/// What a page of another site could send through a prefix door is refused, as is a foreign host name: else
/// every site behind the prefix would be one web origin, and open to DNS rebinding.
pub(super) fn check_browser(headers: &HeaderMap, hosts: &crate::rest::Hosts) -> Result<(), Problem> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("");
    if !host.is_empty() && !hosts.accepts(host) {
        return Err(Problem::new(StatusCode::FORBIDDEN, "host-refused", "Unknown host name")
            .detail("the prefix doors answer to addresses, localhost and this node's names only")
            .hint("use an address, or add the name to admin.hosts"));
    }
    let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    if site.is_some_and(|site| site != "none" && site != "same-origin") {
        return Err(Problem::new(StatusCode::FORBIDDEN, "cross-site", "Cross-site request")
            .detail("a page of another site may not use the prefix doors")
            .hint("open the address itself"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(version: Version, fields: &[(&'static str, &'static str)]) -> Request<()> {
        let mut request = Request::builder().version(version).uri("http://h/").body(()).unwrap();
        for (name, value) in fields {
            request.headers_mut().append(*name, value.parse().unwrap());
        }
        request
    }

    #[test]
    fn h42_what_can_be_read_in_two_ways_is_refused() {
        let refused: &[&[(&str, &str)]] = &[
            &[("host", "h"), ("content-length", "5"), ("transfer-encoding", "chunked")],
            &[("host", "h"), ("transfer-encoding", "chunked, chunked")],
            &[("host", "h"), ("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")],
            &[("host", "h"), ("transfer-encoding", "gzip, chunked")],
            &[("host", "h"), ("transfer-encoding", "xchunked")],
            &[("host", "h"), ("content-length", "5"), ("content-length", "5")],
            &[("host", "h"), ("host", "i")],
            &[],
        ];
        for fields in refused {
            assert!(check_framing(&request(Version::HTTP_11, fields)).is_err(), "{fields:?}");
        }
        assert!(check_framing(&request(Version::HTTP_10, &[("transfer-encoding", "chunked")])).is_err());
    }

    #[test]
    fn good_framing_passes() {
        for fields in [
            vec![("host", "h")],
            vec![("host", "h"), ("content-length", "5")],
            vec![("host", "h"), ("transfer-encoding", "Chunked")],
        ] {
            assert!(check_framing(&request(Version::HTTP_11, &fields)).is_ok(), "{fields:?}");
        }
        assert!(check_framing(&request(Version::HTTP_10, &[])).is_ok());
    }
}
