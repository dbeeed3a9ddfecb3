//! Problem documents (RFC 9457): an error as a sentence for one reader, with what to do about it.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;

use crate::http::inspect::Fault;
use crate::http::{Body, full};
use crate::orm::{DbError, Kind};

/// An error answer, `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Problem(Box<Document>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Document {
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    #[serde(serialize_with = "as_number")]
    status: StatusCode,
    #[serde(skip_serializing_if = "String::is_empty")]
    detail: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    hint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allowed: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<usize>,
}

impl Problem {
    /// The media type.
    pub const MEDIA_TYPE: &'static str = "application/problem+json";

    /// A problem of a kind: `code` names the kind for programs, `title` for people; both never vary.
    pub fn new(status: StatusCode, code: &str, title: &'static str) -> Self {
        Self(Box::new(Document {
            kind: format!("urn:larder:problem:{code}"),
            title,
            status,
            detail: String::new(),
            hint: String::new(),
            field: None,
            allowed: Vec::new(),
            operation: None,
        }))
    }

    /// What its JSON looks like, as JSON schema.
    pub(super) fn schema() -> serde_json::Value {
        let text = || serde_json::json!({"type": "string"});
        serde_json::json!({
            "type": "object",
            "required": ["type", "title", "status"],
            "properties": {
                "type": text(), "title": text(), "detail": text(), "hint": text(), "field": text(),
                "status": {"type": "integer"}, "operation": {"type": "integer"},
                "allowed": {"type": "array", "items": text()},
            },
        })
    }

    /// What happened this time.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = detail.into();
        self
    }

    /// What the reader can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = hint.into();
        self
    }

    /// Which part of the request is wrong.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.0.field = Some(field.into());
        self
    }

    /// What could have stood there.
    #[must_use]
    pub fn allowed(mut self, allowed: Vec<String>) -> Self {
        self.0.allowed = allowed;
        self
    }

    /// Of a batch, the operation of this place is meant.
    #[must_use]
    pub fn at(mut self, operation: usize) -> Self {
        self.0.operation = Some(operation);
        self
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// The document.
    pub fn to_json(&self) -> Vec<u8> {
        // The members are texts and numbers: there is nothing that could fail to be written.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The answer: never stored, with the document as its body.
    pub fn into_response(self) -> Response<Body> {
        let mut response = Response::new(full(self.to_json()));
        *response.status_mut() = self.0.status;
        let fields = response.headers_mut();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static(Self::MEDIA_TYPE));
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.0.status == StatusCode::SERVICE_UNAVAILABLE {
            fields.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
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

impl From<DbError> for Problem {
    /// What a caller learns of a database's troubles: what he can do about them, and no path of a file.
    fn from(error: DbError) -> Self {
        let problem = |status, code, title| Self::new(status, code, title);
        match error.kind() {
            Kind::Constraint => broken_rule(&error.to_string()),
            Kind::Missing => problem(StatusCode::NOT_FOUND, "not-found", "There is no such thing"),
            Kind::Stale => problem(StatusCode::PRECONDITION_FAILED, "changed", "It was changed meanwhile")
                .detail(error.to_string()),
            Kind::Busy => problem(StatusCode::SERVICE_UNAVAILABLE, "busy", "Somebody else is at it")
                .detail("the database is in use by others")
                .hint("try again in a moment"),
            Kind::Slow => problem(StatusCode::GATEWAY_TIMEOUT, "too-slow", "This takes too long")
                .hint("ask for less: a smaller limit, or a filter on the key"),
            Kind::Full => problem(StatusCode::INSUFFICIENT_STORAGE, "disk-full", "No space")
                .detail("the filesystem of the state folder is full"),
            Kind::Damaged | Kind::Newer | Kind::Unreadable | Kind::Other => {
                tracing::warn!(%error, "a question to the database failed");
                problem(StatusCode::INTERNAL_SERVER_ERROR, "failed", "It was tried and failed")
                    .detail("the database cannot be read or written; the log says more")
            }
        }
    }
}

/// A row that its table does not take: because of other rows, or of itself.
fn broken_rule(said: &str) -> Problem {
    let others = ["UNIQUE", "PRIMARY KEY", "FOREIGN KEY", "taken"].iter().any(|word| said.contains(word));
    let problem = if others {
        Problem::new(StatusCode::CONFLICT, "conflict", "Another row is in the way")
    } else {
        Problem::new(StatusCode::BAD_REQUEST, "bad-row", "The row breaks a rule of its table")
    };
    problem.detail(said)
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
