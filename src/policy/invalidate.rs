//! What an unsafe request makes worthless (RFC 9111 section 4.4).

use http::header::{self, HeaderMap};
use http::{Method, StatusCode};

use crate::http::Target;

/// The targets whose kept answers must be asked for again after this response: the request's own, and those of
/// `Location` and `Content-Location` on the same origin, where an unsafe or unknown method succeeded.
pub fn invalidated(
    method: &Method,
    target: &Target,
    status: StatusCode,
    response: &HeaderMap,
) -> Vec<Target> {
    let safe = [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::CONNECT].contains(method);
    if safe || !(status.is_success() || status.is_redirection()) {
        return Vec::new();
    }
    let mut targets = vec![target.clone()];
    for name in [header::LOCATION, header::CONTENT_LOCATION] {
        let reference = response.get(name).and_then(|value| value.to_str().ok());
        let named = reference.and_then(|reference| target.join(reference).ok());
        targets.extend(named.filter(|named| named.origin() == target.origin() && named != target));
    }
    targets.dedup();
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_methods_that_succeed_invalidate() {
        let base = Target::from_uri(&"http://h/a/b?c".parse().unwrap()).unwrap();
        for (method, status, fields, want) in [
            ("POST", 200, vec![], vec!["http://h/a/b?c"]),
            ("PUT", 204, vec![], vec!["http://h/a/b?c"]),
            ("DELETE", 302, vec![], vec!["http://h/a/b?c"]),
            ("PURGE-IT", 200, vec![], vec!["http://h/a/b?c"]),
            ("M-SEARCH", 201, vec![("location", "/x")], vec!["http://h/a/b?c", "http://h/x"]),
            (
                "POST",
                201,
                vec![("location", "http://h:80/x"), ("content-location", "y")],
                vec!["http://h/a/b?c", "http://h/x", "http://h/a/y"],
            ),
            (
                "POST",
                201,
                vec![("location", "/x"), ("content-location", "/x")],
                vec!["http://h/a/b?c", "http://h/x"],
            ),
            ("POST", 201, vec![("location", "http://other/x")], vec!["http://h/a/b?c"]),
            ("POST", 201, vec![("location", "https://h/x")], vec!["http://h/a/b?c"]),
            ("POST", 201, vec![("location", "http://h:81/x")], vec!["http://h/a/b?c"]),
            ("POST", 201, vec![("location", "/a/b?c")], vec!["http://h/a/b?c"]),
            ("POST", 201, vec![("location", "mailto:x")], vec!["http://h/a/b?c", "http://h/a/mailto:x"]),
            ("POST", 400, vec![("location", "/x")], vec![]),
            ("POST", 500, vec![], vec![]),
            ("GET", 200, vec![("location", "/x")], vec![]),
            ("HEAD", 200, vec![], vec![]),
            ("OPTIONS", 200, vec![], vec![]),
            ("TRACE", 200, vec![], vec![]),
        ] {
            let fields: HeaderMap = fields
                .into_iter()
                .map(|(n, v): (&str, &str)| (n.parse().unwrap(), v.parse().unwrap()))
                .collect();
            let method = method.parse().unwrap();
            let got = invalidated(&method, &base, StatusCode::from_u16(status).unwrap(), &fields);
            assert_eq!(got.iter().map(Target::url).collect::<Vec<_>>(), want, "{method} {status} {fields:?}");
        }
    }
}
