//! The URL prefix doors: `/https/host[:port]/path?query`, `/http/…`, and the same behind `/@sha256:<hex>/`.
//!
//! For programs that cannot use a proxy, and for https that may then be cached. Answers lead back through the
//! same door: `Location` is rewritten, and a page is put into a sandbox of its own.

use http::header::{self, HeaderValue};
use http::{Response, StatusCode};

use super::{forward, respond};
use crate::digest::{DigestError, Stated};
use crate::http::{Body, Target, TargetError};
use crate::rest::Problem;

/// The door a request came through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Direct {
    /// The digest in the path.
    pub(super) digest: Option<Stated>,
}

/// Whether a path is meant for a prefix door.
pub(super) fn is_door(path: &str) -> bool {
    ["/https/", "/http/", "/@"].iter().any(|start| path.starts_with(start))
}

/// Reads the path of a prefix door; the rest of it stays exactly as it came.
pub(super) fn parse(path: &str) -> Result<(Target, Direct), Problem> {
    let (digest, rest) = match path.strip_prefix("/@") {
        None => (None, path),
        Some(rest) => {
            let at = rest.find('/').unwrap_or(rest.len());
            let (digest, rest) = rest.split_at(at);
            let digest = digest.replace("%3A", ":").replace("%3a", ":");
            (Some(digest.parse().map_err(bad_digest)?), rest)
        }
    };
    let target = Target::from_prefix(rest).map_err(|error| match error {
        TargetError::Scheme => no_door(),
        TargetError::Host | TargetError::UserInfo | TargetError::Path => respond::bad_target(&error),
    })?;
    Ok((target, Direct { digest }))
}

fn bad_digest(error: DigestError) -> Problem {
    forward::bad_digest("what follows /@", error, "ask for /@sha256:<hex>/https/host/path")
}

fn no_door() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "no-such-door", "No such door")
        .detail("this is larder's proxy port; the path names none of its doors")
        .hint("use this address as an HTTP proxy, or ask for /https/host/path, /http/host/path or /m/<mirror>/path")
}

/// Makes an answer lead back through the door.
pub(super) fn lead_back(response: &mut Response<Body>, door: &Direct, target: &Target) {
    // where the thing lies elsewhere, it is there that it must have the digest
    let digest = door.digest.filter(|_| response.status().is_redirection());
    let before = digest.map_or_else(String::new, |digest| format!("/@{digest}"));
    for name in [header::LOCATION, header::CONTENT_LOCATION] {
        let led = response.headers().get(&name).and_then(|value| value.to_str().ok()).and_then(|reference| {
            let to = target.join(reference).ok()?;
            let fragment =
                reference.split_once('#').map_or_else(String::new, |(_, fragment)| format!("#{fragment}"));
            HeaderValue::try_from(format!(
                "{before}/{}/{}{}{fragment}",
                to.scheme().as_str(),
                to.authority(),
                to.path()
            ))
            .ok()
        });
        if let Some(led) = led {
            response.headers_mut().insert(name, led);
        }
    }
    sandbox(response);
}

/// Puts a page into a sandbox of its own: all sites behind this port would be one web origin.
pub(super) fn sandbox(response: &mut Response<Body>) {
    let is_page =
        response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(
            |kind| {
                let kind = kind.to_ascii_lowercase();
                ["text/html", "application/xhtml", "image/svg", "text/xml", "application/xml"]
                    .iter()
                    .any(|page| kind.starts_with(page))
            },
        );
    if is_page {
        response.headers_mut().append(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use proptest::prelude::*;

    #[test]
    fn the_path_behind_the_prefix_stays_as_it_came() {
        assert_eq!(parse("/http/h%3A81//a%2Fb?x").unwrap().0.url(), "http://h:81//a%2Fb?x");
        for wrong in ["/", "/ftp/h/", "/https/", "/https//x", "/https/u@h/", "/@sha256:00/https/h/", "/@"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_digest_in_front_is_read() {
        let digest = Digest::of(b"x");
        let (target, door) = parse(&format!("/@{digest}/https/h/p")).unwrap();
        assert_eq!((target.url().as_str(), door.digest), ("https://h/p", Some(digest.into())));
        let (_, door) = parse(&format!("/@{digest}/https/h/p").replace(':', "%3A")).unwrap();
        assert_eq!(door.digest, Some(digest.into()));
    }

    #[test]
    fn answers_lead_back() {
        let target = parse("/https/h/a/b").unwrap().0;
        let door = Direct { digest: None };
        for (location, led) in [
            ("https://i/c?d#e", "/https/i/c?d#e"),
            ("/c", "/https/h/c"),
            ("c", "/https/h/a/c"),
            ("http://h:81/", "/http/h:81/"),
        ] {
            let mut response =
                Response::builder().header("location", location).body(crate::http::empty()).unwrap();
            lead_back(&mut response, &door, &target);
            assert_eq!(response.headers()["location"], led);
        }
        let digest = Digest::of(b"x");
        let moved = Response::builder().status(302).header("location", "https://i/c");
        let mut moved = moved.body(crate::http::empty()).unwrap();
        lead_back(&mut moved, &Direct { digest: Some(digest.into()) }, &target);
        assert_eq!(moved.headers()["location"], format!("/@{digest}/https/i/c").as_str());
        let mut page = Response::builder()
            .header("content-type", "text/html; charset=utf-8")
            .body(crate::http::empty())
            .unwrap();
        lead_back(&mut page, &door, &target);
        assert_eq!(page.headers()["content-security-policy"], "sandbox");
    }

    proptest! {
        #[test]
        fn no_path_panics(path: String) {
            let _unused = parse(&path);
        }
    }
}
