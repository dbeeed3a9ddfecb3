//! The pages: each one self-contained file whose script and style are pinned by their hashes, so that nothing else
//! runs on it and nothing is loaded from anywhere.

use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use http::HeaderValue;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};

use crate::digest::Digest;

const FRONT: &str = include_str!("ui/index.html");
const DOCS: &str = include_str!("ui/docs.html");

/// The page and the policy that goes with it.
#[derive(Debug, Clone)]
pub(super) struct Page {
    html: &'static str,
    policy: HeaderValue,
}

impl Page {
    /// What operators see first.
    pub(super) fn front() -> Self {
        Self::of(FRONT)
    }

    /// The API described.
    pub(super) fn docs() -> Self {
        Self::of(DOCS)
    }

    fn of(html: &'static str) -> Self {
        let policy = format!(
            "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            hash(between(html, "<script>", "</script>")),
            hash(between(html, "<style>", "</style>")),
        );
        // Only ASCII went into it; if that ever changes, nothing may run.
        let nothing = HeaderValue::from_static("default-src 'none'");
        Self { html, policy: HeaderValue::from_str(&policy).unwrap_or(nothing) }
    }
}

pub(super) fn response(page: &Page) -> Response {
    let mut response = page.html.into_response();
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    fields.insert(CONTENT_SECURITY_POLICY, page.policy.clone());
    response
}

fn hash(text: &str) -> String {
    let digest = base64::engine::general_purpose::STANDARD.encode(Digest::of(text.as_bytes()).as_bytes());
    format!("'sha256-{digest}'")
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let inner = text.split_once(start).map_or("", |(_, rest)| rest);
    inner.split_once(end).map_or("", |(inner, _)| inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_are_whole_and_load_nothing() {
        for html in [FRONT, DOCS] {
            assert_eq!(html.matches("<script").count(), 1);
            assert_eq!(html.matches("<style").count(), 1);
            assert!(!between(html, "<script>", "</script>").is_empty());
            for outside in
                ["src=", "http://", "https://", "@import", "url(", "innerHTML", "style=", "onclick="]
            {
                assert!(!html.contains(outside), "{outside}");
            }
            let policy = Page::of(html).policy;
            assert_eq!(policy.to_str().unwrap().matches("'sha256-").count(), 2);
        }
    }
}
