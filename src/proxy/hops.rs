//! Requests that are for us, or whose way has an end: `OPTIONS *`, `Max-Forwards` and `Expect`
//! (RFC 9110 sections 7.6.2, 9.3.7 and 10.1.1).

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode};

use crate::http::{Body, empty};
use crate::rest::Problem;

/// What these doors take.
const METHODS: HeaderValue =
    HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE, CONNECT");

/// How many proxies a request may still pass, this one included; none where it does not say. A `TRACE` that
/// ends here is refused: nobody's fields are shown back.
pub(super) fn left<B>(request: &Request<B>) -> Result<Option<u64>, Problem> {
    let is_trace = match *request.method() {
        Method::OPTIONS => false,
        Method::TRACE => true,
        _ => return Ok(None),
    };
    if request.uri().path() == "*" {
        return Ok(Some(0));
    }
    let field = request.headers().get(header::MAX_FORWARDS).and_then(|value| value.to_str().ok());
    let left = field.and_then(|value| value.parse().ok());
    if is_trace && left == Some(0) {
        return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "no-trace", "Nothing is traced here")
            .detail("Max-Forwards ended the request at this proxy, which does not answer TRACE")
            .hint("send OPTIONS instead, or a larger Max-Forwards"));
    }
    Ok(left)
}

/// What we say as the last hop.
pub(super) fn last_hop() -> Response<Body> {
    let mut response = Response::new(empty());
    let headers = response.headers_mut();
    headers.insert(header::ALLOW, METHODS);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(0));
    response
}

/// Refuses what nobody here can promise; `100-continue` is kept by whoever reads the body.
pub(super) fn check_expectation(headers: &HeaderMap) -> Result<(), Problem> {
    let is_known = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if headers.get_all(header::EXPECT).iter().all(is_known) {
        return Ok(());
    }
    Err(Problem::new(StatusCode::EXPECTATION_FAILED, "expectation", "Unknown expectation")
        .detail("the request expects something else than 100-continue")
        .hint("send it without Expect"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method, uri: &str, forwards: &str) -> Request<()> {
        Request::builder().method(method).uri(uri).header("max-forwards", forwards).body(()).unwrap()
    }

    #[test]
    fn only_options_and_trace_count_hops() {
        for (method, uri, forwards, expected) in [
            (Method::OPTIONS, "http://h/", "0", Ok(Some(0))),
            (Method::OPTIONS, "*", "9", Ok(Some(0))),
            (Method::OPTIONS, "http://h/", "3", Ok(Some(3))),
            (Method::OPTIONS, "http://h/", "many", Ok(None)),
            (Method::TRACE, "http://h/", "0", Err(())),
            (Method::TRACE, "http://h/", "1", Ok(Some(1))),
            (Method::GET, "http://h/", "0", Ok(None)),
        ] {
            let left = left(&request(method.clone(), uri, forwards)).map_err(drop);
            assert_eq!(left, expected, "{method} {uri} {forwards}");
        }
    }

    #[test]
    fn only_one_thing_can_be_expected() {
        for (value, good) in [("100-continue", true), ("100-Continue", true), ("200-ok", false), ("", false)]
        {
            let mut headers = HeaderMap::new();
            headers.insert(header::EXPECT, HeaderValue::from_static(value));
            assert_eq!(check_expectation(&headers).is_ok(), good, "{value}");
        }
    }
}
