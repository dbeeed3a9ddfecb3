//! The `[origin]` section.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::HeaderValue;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::http::{Scheme, Target};
use crate::unit::{Rate, Span};

/// How origins are reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How long finding and connecting a host may take, TLS included.
    pub connect_timeout: Span,
    /// How long an origin may be silent.
    pub stall_timeout: Span,
    /// How many redirects `get` and prefetch follow.
    pub max_redirects: usize,
    /// How many connections lead to one host.
    pub connections_per_host: usize,
    /// The parent proxy, `http://[user:password@]host:port`; empty for none.
    pub proxy: ParentProxy,
    /// Whether the engine asks origins for checksum files beside large downloads.
    pub sidecars: bool,
    /// Whether the engine fetches what is missing of a thing of which most came in parts.
    pub complete_parts: bool,
    /// Further certificate authorities in PEM form; empty for none.
    pub ca_file: PathBuf,
    /// How much may come from all origins, in all; tunnels apart.
    pub download_rate: Rate,
}

/// The proxy that all requests go through, or none. Printing it hides the password.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ParentProxy(Option<Parent>);

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Parent {
    target: Target,
    credentials: Option<String>,
}

/// A text that is no [`ParentProxy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the parent proxy must be written http://host:port or http://user:password@host:port")]
pub struct ParentProxyError;

impl Default for Config {
    fn default() -> Self {
        Self {
            connect_timeout: Span(Duration::from_secs(10)),
            stall_timeout: Span(Duration::from_secs(30)),
            max_redirects: 10,
            connections_per_host: 16,
            proxy: ParentProxy::default(),
            sidecars: true,
            complete_parts: true,
            ca_file: PathBuf::new(),
            download_rate: Rate(0),
        }
    }
}

impl ParentProxy {
    /// Whether there is one.
    pub fn is_set(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn into_parent(self) -> Option<Parent> {
        self.0
    }
}

impl Parent {
    pub(super) fn host(&self) -> &str {
        self.target.bare_host()
    }

    pub(super) const fn port(&self) -> u16 {
        self.target.port()
    }

    /// The value of `Proxy-Authorization`.
    pub(super) fn authorization(&self) -> Option<HeaderValue> {
        let credentials = self.credentials.as_ref()?;
        let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(credentials))).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Parent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Parent").field(&self.target.authority()).finish()
    }
}

impl FromStr for ParentProxy {
    type Err = ParentProxyError;

    fn from_str(text: &str) -> Result<Self, ParentProxyError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self(None));
        }
        let rest = text.strip_prefix("http://").ok_or(ParentProxyError)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (credentials, authority) = rest
            .rsplit_once('@')
            .map_or((None, rest), |(credentials, authority)| (Some(credentials), authority));
        let target = Target::new(Scheme::Http, authority, "/").map_err(|_ignored| ParentProxyError)?;
        Ok(Self(Some(Parent { target, credentials: credentials.map(unescaped) })))
    }
}

/// Percent-decoding, as a password may hold what a URL may not.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escaped = after.split_at_checked(2).filter(|_| *first == b'%').and_then(|(hex, after)| {
            let byte = u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?;
            Some((byte, after))
        });
        let (byte, after) = escaped.unwrap_or((*first, after));
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl fmt::Display for ParentProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(parent) = &self.0 else { return Ok(()) };
        let hidden = if parent.credentials.is_some() { "…@" } else { "" };
        // The port always, also 80: tools disagree on what a proxy without a port means.
        write!(f, "http://{hidden}{}:{}", parent.target.host(), parent.target.port())
    }
}

impl fmt::Debug for ParentProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl<'de> Deserialize<'de> for ParentProxy {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for ParentProxy {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}
