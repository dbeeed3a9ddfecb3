//! The `[admin]` section.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

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
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: ["127.0.0.1:8097", "[::1]:8097"].iter().filter_map(|text| text.parse().ok()).collect(),
            socket: PathBuf::new(),
            tls_cert: PathBuf::new(),
            tls_key: PathBuf::new(),
            hosts: vec!["localhost".to_owned()],
        }
    }
}
