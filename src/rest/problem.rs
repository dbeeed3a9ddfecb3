//! Problem documents (RFC 9457): an error as a sentence for one reader, with what to do about it.

use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;

use crate::http::inspect::Fault;
use crate::http::{Body, full};

/// An error answer, `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    #[serde(serialize_with = "as_number")]
    status: StatusCode,
    #[serde(skip_serializing_if = "String::is_empty")]
    detail: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    hint: String,
}

impl Problem {
    /// The media type.
    pub const MEDIA_TYPE: &'static str = "application/problem+json";

    /// A problem of a kind: `code` names the kind for programs, `title` for people; both never vary.
    pub fn new(status: StatusCode, code: &str, title: &'static str) -> Self {
        Self {
            kind: format!("urn:larder:problem:{code}"),
            title,
            status,
            detail: String::new(),
            hint: String::new(),
        }
    }

    /// What happened this time.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// What the reader can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// The HTTP status.
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The document.
    pub fn to_json(&self) -> Vec<u8> {
        // The five members are text and a number: there is nothing that could fail to be written.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The answer: never stored, with the document as its body.
    pub fn into_response(self) -> Response<Body> {
        let mut response = Response::new(full(self.to_json()));
        *response.status_mut() = self.status;
        let fields = response.headers_mut();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static(Self::MEDIA_TYPE));
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        let (code, title, hint) = match fault.status() {
            StatusCode::REQUEST_TIMEOUT => {
                ("request-timeout", "The request did not come in time", "send it again, without pauses")
            }
            StatusCode::URI_TOO_LONG => {
                ("target-too-long", "The target is too long", "send what is long in the body")
            }
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => (
                "head-too-large",
                "The header section is too large",
                "send fewer or shorter fields: cookies, mostly",
            ),
            StatusCode::HTTP_VERSION_NOT_SUPPORTED => {
                ("version", "The version is not supported", "speak HTTP/1.1")
            }
            _ => ("malformed-request", "Malformed request", "send the request as RFC 9112 describes it"),
        };
        Self::new(fault.status(), code, title).detail(fault.to_string()).hint(hint)
    }
}

fn as_number<S: serde::Serializer>(status: &StatusCode, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u16(status.as_u16())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_the_five_members() {
        let problem = Problem::new(StatusCode::FORBIDDEN, "host-refused", "Unknown host name")
            .detail("evil.test is not a name of this node")
            .hint("add it to admin.hosts");
        let json: serde_json::Value = serde_json::from_slice(&problem.to_json()).unwrap();
        assert_eq!(
            json,
            serde_json::json!({"type": "urn:larder:problem:host-refused", "title": "Unknown host name",
                "status": 403, "detail": "evil.test is not a name of this node", "hint": "add it to admin.hosts"})
        );
        let response = problem.into_response();
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
    }

    #[test]
    fn leaves_out_what_there_is_not() {
        let json = Problem::new(StatusCode::NOT_FOUND, "not-found", "Not found").to_json();
        assert!(!String::from_utf8(json).unwrap().contains("hint"));
    }
}
