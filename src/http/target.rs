//! Request targets: where a request goes, with path and query exactly as the client wrote them.

use std::fmt;

use http::Uri;

/// The two schemes we fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// In clear.
    Http,
    /// Over TLS.
    Https,
}

/// An absolute target: scheme, host, port, and the origin form as it came.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Target {
    scheme: Scheme,
    host: String,
    port: u16,
    path: String,
}

/// Why a target is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Neither http nor https.
    #[error("the target's scheme is neither http nor https")]
    Scheme,
    /// No host, or not a valid one.
    #[error("the target names no valid host")]
    Host,
    /// `user:password@` in a target (RFC 9110 section 4.2.4).
    #[error("the target carries user information: send it as a header field instead")]
    UserInfo,
    /// Not a valid path.
    #[error("the target's path is not valid")]
    Path,
}

impl Scheme {
    /// `http` or `https`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// 80 or 443.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Http, Self::Https].into_iter().find(|scheme| text.eq_ignore_ascii_case(scheme.as_str()))
    }
}

impl Target {
    /// From the absolute form a proxy receives, or from a URL a user wrote.
    pub fn from_uri(uri: &Uri) -> Result<Self, TargetError> {
        let scheme = uri.scheme_str().and_then(Scheme::parse).ok_or(TargetError::Scheme)?;
        let authority = uri.authority().ok_or(TargetError::Host)?;
        let path = uri.path_and_query().map_or("/", |p| p.as_str());
        Self::new(scheme, authority.as_str(), path)
    }

    /// From a path such as `/https/host[:port]/path?query`, whose rest stays exactly as it came. The colon and the
    /// brackets of the authority may be percent-encoded: some programs write every path so.
    pub fn from_prefix(path: &str) -> Result<Self, TargetError> {
        let (scheme, rest) = match (path.strip_prefix("/https/"), path.strip_prefix("/http/")) {
            (Some(rest), _) => (Scheme::Https, rest),
            (None, Some(rest)) => (Scheme::Http, rest),
            (None, None) => return Err(TargetError::Scheme),
        };
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        if !authority.contains('%') {
            return Self::new(scheme, authority, path);
        }
        let written = [("%3a", ":"), ("%5b", "["), ("%5d", "]")];
        let plain = authority.to_ascii_lowercase();
        Self::new(scheme, &written.iter().fold(plain, |text, (code, c)| text.replace(code, c)), path)
    }

    /// From the three parts; the authority may carry a port.
    pub fn new(scheme: Scheme, authority: &str, path: &str) -> Result<Self, TargetError> {
        if authority.contains('@') {
            return Err(TargetError::UserInfo);
        }
        let authority: http::uri::Authority = authority.parse().map_err(|_ignored| TargetError::Host)?;
        if !is_authority(authority.as_str().as_bytes()) {
            return Err(TargetError::Host);
        }
        let port = match authority.as_str().strip_prefix(authority.host()) {
            Some("" | ":") => scheme.default_port(),
            Some(_) => authority.port_u16().ok_or(TargetError::Host)?,
            None => return Err(TargetError::Host),
        };
        let path = match path {
            "" => "/".to_owned(),
            query if query.starts_with('?') => format!("/{query}"),
            path if path.starts_with('/') || path == "*" => path.to_owned(),
            _ => return Err(TargetError::Path),
        };
        Ok(Self { scheme, host: authority.host().to_ascii_lowercase(), port, path })
    }

    /// The scheme.
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host in lower case; an IPv6 address keeps its brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The host without the brackets of an IPv6 address.
    pub fn bare_host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// The port, the scheme's own where none was written.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Path and query exactly as they came.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value of `Host`: the port only where it is not the scheme's own.
    pub fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            self.host.clone()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// `scheme://authority`, the origin of RFC 6454.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme.as_str(), self.authority())
    }

    /// The whole URL. Its query may hold secrets: for the wire and for hashing, never for logs.
    pub fn url(&self) -> String {
        format!("{}{}", self.origin(), self.path)
    }

    /// As a URI that a client can send.
    pub fn uri(&self) -> Result<Uri, TargetError> {
        self.url().parse().map_err(|_ignored| TargetError::Path)
    }

    /// The target that a `Location` or `Content-Location` value names, seen from here (RFC 3986 section 5).
    pub fn join(&self, reference: &str) -> Result<Self, TargetError> {
        let reference = reference.split('#').next().unwrap_or("");
        if let Some(rest) = reference.strip_prefix("//") {
            let at = rest.find(['/', '?']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(at);
            return Self::new(self.scheme, authority, path);
        }
        if let Some((scheme, rest)) = reference.split_once("://")
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        {
            let scheme = Scheme::parse(scheme).ok_or(TargetError::Scheme)?;
            let at = rest.find(['/', '?']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(at);
            return Self::new(scheme, authority, path);
        }
        let path = self.path.split('?').next().unwrap_or("/");
        let joined = match reference.chars().next() {
            None => self.path.clone(),
            Some('/') => reference.to_owned(),
            Some('?') => format!("{path}{reference}"),
            Some(_) => {
                remove_dots(&format!("{}/{reference}", path.rsplit_once('/').map_or("", |(dir, _)| dir)))
            }
        };
        Self::new(self.scheme, &self.authority(), &joined)
    }

    /// What logs and pages show: query values as `…`.
    pub fn shown(&self) -> String {
        let Some((path, query)) = self.path.split_once('?') else { return self.url() };
        let shown: Vec<String> = query
            .split('&')
            .map(|pair| pair.split_once('=').map_or_else(|| "…".to_owned(), |(name, _)| format!("{name}=…")))
            .collect();
        format!("{}{path}?{}", self.origin(), shown.join("&"))
    }
}

/// Whether this is `host` or `host:port` and nothing else: a name of the characters that names have, an IPv4
/// address, or an IPv6 address in brackets. A zone (RFC 6874) means something on one machine alone and is none
/// of it; nor is percent-encoding, which no resolver decodes.
pub(super) fn is_authority(text: &[u8]) -> bool {
    let (host, port) = match text.strip_prefix(b"[") {
        Some(rest) => {
            let Some(end) = rest.iter().position(|byte| *byte == b']') else { return false };
            let (address, port) = rest.split_at(end);
            let address = std::str::from_utf8(address).unwrap_or_default();
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return false;
            }
            (&b"ipv6"[..], port.get(1..).unwrap_or_default())
        }
        None => text.split_at(text.iter().position(|byte| *byte == b':').unwrap_or(text.len())),
    };
    let digits = port.strip_prefix(b":").unwrap_or_default();
    let is_port = port.is_empty()
        || digits.is_empty()
        || (digits.iter().all(u8::is_ascii_digit)
            && std::str::from_utf8(digits).is_ok_and(|digits| digits.parse::<u16>().is_ok()));
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    !host.is_empty() && host.iter().all(is_name) && is_port && (port.is_empty() || port.starts_with(b":"))
}

/// Takes `.` and `..` segments out of a path made by joining (RFC 3986 section 5.2.4).
fn remove_dots(path: &str) -> String {
    let (path, query) = path.split_once('?').map_or((path, None), |(p, q)| (p, Some(q)));
    let mut kept: Vec<&str> = Vec::new();
    let mut parts = path.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        match part {
            "." | ".." => {
                if part == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            other => kept.push(other),
        }
    }
    let path = format!("/{}", kept.join("/"));
    query.map_or_else(|| path.clone(), |query| format!("{path}?{query}"))
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target(url: &str) -> Target {
        Target::from_uri(&url.parse().unwrap()).unwrap()
    }

    #[test]
    fn h27_path_and_query_stay_as_they_came() {
        for path in ["/a%2Fb", "/a%2fb", "/%40x+y=z:q", "//a//b", "/./a/../b", "/?", "/a?b=%2B&c"] {
            assert_eq!(target(&format!("http://h{path}")).path(), path);
        }
    }

    #[test]
    fn an_authority_is_a_host_and_a_port_and_nothing_else() {
        for good in ["h", "h:", "h:80", "a-b_c.example.", "127.0.0.1:65535", "[::1]", "[::1]:8080", "[::1]:"]
        {
            assert!(is_authority(good.as_bytes()), "{good}");
        }
        for wrong in [
            "",
            ":80",
            "u@h",
            "h:65536",
            "h:+80",
            "h:8 0",
            "h h",
            "h/p",
            "h\\x",
            "h,i",
            "a%2eb",
            "[::1",
            "[::1]x",
            "[fe80::1%25eth0]",
            "[v1.x]",
            "::1",
            "h:80:80",
            "[127.0.0.1]",
            "h?",
            "ä",
        ] {
            assert!(!is_authority(wrong.as_bytes()), "{wrong}");
            assert!(Target::new(Scheme::Http, wrong, "/").is_err(), "{wrong}");
        }
    }

    #[test]
    fn authority_is_normalised() {
        assert_eq!(target("HTTP://Example.ORG:80/").authority(), "example.org");
        assert_eq!(target("https://e:444/").authority(), "e:444");
        assert_eq!(target("http://[::1]:8080/").authority(), "[::1]:8080");
        assert_eq!(target("http://[::1]/").bare_host(), "::1");
        assert_eq!(target("http://h?x=1").path(), "/?x=1");
    }

    #[test]
    fn h31_nothing_secret_is_shown() {
        let shown = target("https://h/p?token=abc&flag&x=1").shown();
        assert_eq!(shown, "https://h/p?token=…&…&x=…");
        assert_eq!(Target::from_uri(&"http://u:p@h/".parse().unwrap()), Err(TargetError::UserInfo));
        assert_eq!(format!("{:?}", target("http://h/?k=v")), "http://h/?k=…");
    }

    #[test]
    fn a_prefix_names_scheme_and_authority() {
        for (path, url) in [
            ("/https/h/a%2Fb?x=/y", "https://h/a%2Fb?x=/y"),
            ("/http/h:81", "http://h:81/"),
            ("/http/h%3A81/%3A", "http://h:81/%3A"),
            ("/http/%5B::1%5D%3a81//a", "http://[::1]:81//a"),
            ("/http/[::1]:81//a/../b", "http://[::1]:81//a/../b"),
            ("/https/h?x", "https://h/?x"),
        ] {
            assert_eq!(Target::from_prefix(path).unwrap().url(), url, "{path}");
        }
        for wrong in
            ["", "/", "/ftp/h/", "/https/", "/https//x", "/https/u@h/", "/https/u%40h/", "/https/h%2f/"]
        {
            assert!(Target::from_prefix(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn joins_references() {
        let base = target("http://h:81/a/b?q");
        for (reference, url) in [
            ("c", "http://h:81/a/c"),
            ("../c?x", "http://h:81/c?x"),
            ("/c", "http://h:81/c"),
            ("//i/c", "http://i/c"),
            ("https://i", "https://i/"),
            ("?z#frag", "http://h:81/a/b?z"),
        ] {
            assert_eq!(base.join(reference).unwrap().url(), url, "{reference}");
        }
        assert_eq!(base.join("ftp://x/"), Err(TargetError::Scheme));
    }

    proptest! {
        #[test]
        fn no_reference_panics(reference: String) {
            let _unused = target("http://h/a/b").join(&reference);
        }
    }
}
