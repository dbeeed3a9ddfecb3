//! The pages, all of them in the binary: the front page with its scripts and style as files of their own, and the
//! description of the API as one file whose script and style are pinned by their hashes. Nothing else runs on
//! them, and nothing is loaded from anywhere but this node.

use axum::extract::Path;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use http::HeaderValue;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};

use crate::digest::Digest;

const FRONT: &str = include_str!("ui/index.html");
/// What the front page loads: each with its media type.
const FILES: [(&str, &str, &str); 4] = [
    ("app.css", "text/css; charset=utf-8", include_str!("ui/app.css")),
    ("app.js", "text/javascript; charset=utf-8", include_str!("ui/app.js")),
    ("views.js", "text/javascript; charset=utf-8", include_str!("ui/views.js")),
    ("draw.js", "text/javascript; charset=utf-8", include_str!("ui/draw.js")),
];
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
        let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
        Self { html: FRONT, policy: HeaderValue::from_static(policy) }
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

/// A file of the front page.
pub(super) async fn file(Path(name): Path<String>) -> Response {
    let Some((_, kind, text)) = FILES.iter().find(|(file, ..)| *file == name) else {
        return super::server::nothing_here().await;
    };
    ([(CONTENT_TYPE, *kind)], *text).into_response()
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
    fn the_docs_are_whole_and_load_nothing() {
        assert_eq!((DOCS.matches("<script").count(), DOCS.matches("<style").count()), (1, 1));
        assert!(!between(DOCS, "<script>", "</script>").is_empty());
        for outside in ["src=", "http://", "https://", "@import", "url(", "innerHTML", "style=", "onclick="] {
            assert!(!DOCS.contains(outside), "{outside}");
        }
        assert_eq!(Page::docs().policy.to_str().unwrap().matches("'sha256-").count(), 2);
    }

    #[test]
    fn the_front_page_is_light_and_loads_only_its_own_files() {
        let all: String = FILES.iter().map(|(_, _, text)| *text).chain([FRONT]).collect();
        assert!(all.len() <= 150 * 1024, "{} bytes", all.len());
        for outside in [
            "//cdn",
            "@import",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "eval(",
            " style=",
            "onclick=",
        ] {
            assert!(!all.contains(outside), "{outside}");
        }
        let loaded: Vec<&str> = ["src=\"", "href=\""]
            .iter()
            .flat_map(|start| FRONT.split(start).skip(1))
            .filter_map(|rest| rest.split('"').next())
            .filter(|target| !target.starts_with(['#', '/']) && !target.starts_with("data:"))
            .collect();
        for target in &loaded {
            assert!(FILES.iter().any(|(name, ..)| name == target), "{target}");
        }
        assert!(!FRONT.contains("<style") && FRONT.matches("<script").count() == 1);
    }
}
