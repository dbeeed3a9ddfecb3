//! `GET /proxy.pac`: the settings of a browser, or of whatever reads such scripts. Plain http comes through us,
//! and goes directly where this node does not answer; everything else goes directly, for through us it would be
//! a tunnel that gains nothing.

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response};

use super::mirror::host_of;
use crate::http::{Body, full};

const MEDIA_TYPE: &str = "application/x-ns-proxy-autoconfig";

/// Whether a request is for the script.
pub(super) fn is_asked_for<B>(request: &Request<B>) -> bool {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    reads && request.uri().scheme().is_none() && request.uri().path() == "/proxy.pac"
}

/// The script for a client that knows us by this `Host`.
pub(super) fn script(request: &HeaderMap, port: u16) -> Response<Body> {
    let text = text(&host_of(request, port));
    let mut response = Response::new(full(text.clone()));
    let fields = response.headers_mut();
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    fields.insert(header::CONTENT_LENGTH, HeaderValue::from(text.len()));
    response
}

fn text(here: &str) -> String {
    // a Host that was accepted holds no quote; a script must not depend on it
    let here: String = here.chars().filter(|c| c.is_ascii_alphanumeric() || ".:-_[]".contains(*c)).collect();
    format!(
        "function FindProxyForURL(url, host) {{\n\
         \x20   if (url.substring(0, 5) != \"http:\" || isPlainHostName(host) ||\n\
         \x20       shExpMatch(host, \"127.*\") || host == \"::1\" || host == \"[::1]\") {{\n\
         \x20       return \"DIRECT\";\n\
         \x20   }}\n\
         \x20   return \"PROXY {here}; DIRECT\";\n\
         }}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_stands_behind_the_proxy() {
        let script = text("box:8098\"; evil");
        assert!(script.contains("return \"PROXY box:8098evil; DIRECT\";"), "{script}");
        let request = |uri: &str| Request::builder().uri(uri).body(()).unwrap();
        assert!(is_asked_for(&request("/proxy.pac")) && is_asked_for(&request("/proxy.pac?x")));
        assert!(!is_asked_for(&request("http://h/proxy.pac")) && !is_asked_for(&request("/proxy.pac/")));
    }
}
