//! Who may do what: roles, and which of them a request wants.
//!
//! A viewer looks; an operator also acts on what is kept and on who is refused; an admin also changes how the
//! daemon itself runs. Whoever holds the token, or may use the Unix socket, is an admin.

use http::Method;
use serde::{Deserialize, Serialize};

use super::records::API;

/// What somebody may do; each includes the ones before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sees everything that is listed.
    #[default]
    Viewer,
    /// Pins, removes, verifies, purges, bans.
    Operator,
    /// Reloads the configuration and changes the log.
    Admin,
}

/// Somebody who has proved himself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Who {
    /// As events name him.
    pub name: String,
    /// What he may do.
    pub role: Role,
}

/// Who sent a request, if he proved himself; put into every request by the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller(pub(super) Option<Who>);

impl Role {
    /// As it is written.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// What a request wants of whoever sends it.
    pub(super) fn wanted_by(method: &Method, path: &str) -> Self {
        let below = path.strip_prefix(API).unwrap_or(path);
        match below {
            _ if !writes(method) => Self::Viewer,
            // it only reads, and its text does not fit into a query
            "/sql" => Self::Viewer,
            "/reload" | "/log" => Self::Admin,
            _ => Self::Operator,
        }
    }
}

impl Who {
    /// Whoever holds the token.
    pub(super) fn of_token() -> Self {
        Self { name: "token".to_owned(), role: Role::Admin }
    }
}

/// Whether a request of this method may change something.
pub(super) fn writes(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_wants_the_least_role_that_is_enough() {
        for (method, path, role) in [
            ("GET", "/api/v1/blobs", Role::Viewer),
            ("HEAD", "/api/v1/reload", Role::Viewer),
            ("POST", "/api/v1/sql", Role::Viewer),
            ("DELETE", "/api/v1/blobs/x", Role::Operator),
            ("POST", "/api/v1/bans", Role::Operator),
            ("PATCH", "/api/v1/labels/x", Role::Operator),
            ("POST", "/api/v1/batch", Role::Operator),
            ("POST", "/api/v1/reload", Role::Admin),
            ("PUT", "/api/v1/log", Role::Admin),
        ] {
            assert_eq!(Role::wanted_by(&method.parse().unwrap(), path), role, "{method} {path}");
        }
        assert!(Role::Viewer < Role::Operator && Role::Operator < Role::Admin);
    }
}
