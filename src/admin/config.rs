//! The `[admin]` section.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use http::HeaderName;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::access::Role;

/// Where the administrator's side listens and which names it answers to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Addresses; those off loopback need a certificate.
    pub listen: Vec<SocketAddr>,
    /// The Unix socket; filled in when the configuration is loaded.
    pub socket: PathBuf,
    /// The certificate chain, PEM.
    pub tls_cert: PathBuf,
    /// Its key, PEM.
    pub tls_key: PathBuf,
    /// Further host names answered, besides addresses.
    pub hosts: Vec<String>,
    /// Administrators with names, besides whoever has the token.
    pub users: Vec<User>,
    /// The field in which a front proxy names the user it has let in; empty: none is believed.
    pub trusted_header: String,
    /// The addresses of that proxy, from which alone the field is believed.
    pub trusted_from: Vec<IpNet>,
    /// What a user may do whom that proxy names and `users` does not; "none": nothing.
    pub trusted_role: TrustedRole,
}

/// An administrator with a name.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// What he is called.
    pub name: String,
    /// What he may do.
    #[serde(default)]
    pub role: Role,
    /// The Argon2id hash of his password; empty where only a front proxy lets him in.
    #[serde(default)]
    pub password: String,
}

/// What somebody may do whom only a front proxy knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustedRole {
    /// Nothing.
    #[default]
    None,
    /// As a viewer.
    Viewer,
    /// As an operator.
    Operator,
    /// As an admin.
    Admin,
}

impl TrustedRole {
    /// The role, if it is one.
    pub(super) const fn role(self) -> Option<Role> {
        match self {
            Self::None => None,
            Self::Viewer => Some(Role::Viewer),
            Self::Operator => Some(Role::Operator),
            Self::Admin => Some(Role::Admin),
        }
    }
}

impl Config {
    /// The trusted field, where there is one.
    pub(super) fn trusted_field(&self) -> Option<HeaderName> {
        HeaderName::from_bytes(self.trusted_header.as_bytes()).ok().filter(|_| !self.trusted_from.is_empty())
    }
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User").field("name", &self.name).field("role", &self.role).finish_non_exhaustive()
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: ["127.0.0.1:8097", "[::1]:8097"].iter().filter_map(|text| text.parse().ok()).collect(),
            socket: PathBuf::new(),
            tls_cert: PathBuf::new(),
            tls_key: PathBuf::new(),
            hosts: vec!["localhost".to_owned()],
            users: Vec::new(),
            trusted_header: String::new(),
            trusted_from: Vec::new(),
            trusted_role: TrustedRole::None,
        }
    }
}
