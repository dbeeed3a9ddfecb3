//! Who may ask what: the administrator's token, the host names a node answers to, and requests that come from
//! another site's page.
//!
//! The token is 32 random bytes in hexadecimal, in a file only its owner reads; it is compared in constant
//! time and never printed. Host names are checked because a page of any site can make its own name point at
//! 127.0.0.1; addresses cannot be rebound and are always accepted.

use std::fmt;
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use http::HeaderMap;
use http::header::{AUTHORIZATION, ORIGIN};
use http::uri::Authority;
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use crate::digest::hex;

/// Bytes of randomness in a token.
const TOKEN_BYTES: usize = 32;
/// The shortest token an operator may put into the file.
const TOKEN_MIN: usize = 32;

/// The administrator's token.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or made.
    #[error("the admin token {path}: {source}")]
    File {
        /// The token file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("the admin token {path} holds no token: delete the file and a new one is made")]
    Malformed {
        /// The token file.
        path: PathBuf,
    },
    /// The operating system gave no random bytes.
    #[error("no random bytes for an admin token")]
    Random,
}

/// The host names a node answers to, besides addresses.
#[derive(Debug, Clone, Default)]
pub struct Hosts(Vec<String>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Reads the token, or makes one at the first start; a file others can read is closed to them.
    pub fn load_or_create(path: &Path) -> Result<Self, TokenError> {
        match Self::load(path) {
            Err(TokenError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Self::create(path)
            }
            other => {
                if other.is_ok() {
                    close_to_others(path);
                }
                other
            }
        }
    }

    /// Reads the token.
    pub fn load(path: &Path) -> Result<Self, TokenError> {
        let text = std::fs::read_to_string(path).map(Zeroizing::new).map_err(at(path))?;
        let token = text.trim();
        if token.len() < TOKEN_MIN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Malformed { path: path.to_owned() });
        }
        Ok(Self(Zeroizing::new(token.to_owned())))
    }

    /// The field value that proves its holder.
    pub fn to_field(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("Bearer {}", self.0.as_str()))
    }

    /// Whether this is the token, told in constant time.
    pub fn is(&self, text: &str) -> bool {
        text.as_bytes().ct_eq(self.0.as_bytes()).into()
    }

    /// Whether a request carries this token.
    pub fn admits(&self, request: &HeaderMap) -> bool {
        let mut fields = request.get_all(AUTHORIZATION).iter();
        let (Some(field), None) = (fields.next(), fields.next()) else { return false };
        let Ok(field) = field.to_str() else { return false };
        let Some((scheme, value)) = field.split_once(' ') else { return false };
        let equal = self.is(value.trim());
        scheme.eq_ignore_ascii_case("bearer") && equal
    }

    fn create(path: &Path) -> Result<Self, TokenError> {
        let mut random = Zeroizing::new([0_u8; TOKEN_BYTES]);
        getrandom::fill(random.as_mut()).map_err(|_ignored| TokenError::Random)?;
        let token = Zeroizing::new(hex(random.as_ref()));
        write_private(path, &token).map_err(at(path))?;
        Ok(Self(token))
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> TokenError + '_ {
    move |source| TokenError::File { path: path.to_owned(), source }
}

/// Written beside and renamed, so that nobody reads half a token.
fn write_private(path: &Path, token: &str) -> io::Result<()> {
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    file.write_all(token.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}

#[cfg(unix)]
fn close_to_others(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let open = std::fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0);
    if !open {
        return;
    }
    match std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)) {
        Ok(()) => tracing::warn!("the admin token was readable by others; its mode is 0600 again"),
        Err(error) => tracing::warn!(%error, "the admin token is readable by others"),
    }
}

#[cfg(not(unix))]
fn close_to_others(_path: &Path) {}

impl Hosts {
    /// Names a node answers to; `localhost` is always one.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let names = names.into_iter().filter(|name| !name.is_empty());
        Self(names.chain(["localhost".to_owned()]).map(|name| name.to_ascii_lowercase()).collect())
    }

    /// Whether a `Host` (name or address, with or without port) may be answered.
    pub fn accepts(&self, authority: &str) -> bool {
        // most are addresses, and telling that takes no memory
        if authority.parse::<SocketAddr>().is_ok() {
            return true;
        }
        let Ok(authority) = authority.parse::<Authority>() else { return false };
        if authority.as_str().contains('@') {
            return false;
        }
        let host = authority.host();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        bare.parse::<IpAddr>().is_ok() || self.0.contains(&name)
    }
}

/// Whether a request that changes something was not sent by another site's page; programs send neither field.
pub fn same_site(request: &HeaderMap, host: &str) -> bool {
    let fetched =
        request.get_all("sec-fetch-site").iter().all(|site| site == "same-origin" || site == "none");
    let from = request.get_all(ORIGIN).iter().all(|origin| {
        let authority = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        authority.is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host))
    });
    fetched && from
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn with(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(http::HeaderName::from_static(name), value.parse().unwrap())])
    }

    #[test]
    fn a_token_is_made_once_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("admin.token");
        let made = Token::load_or_create(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let again = Token::load_or_create(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(made.0, again.0);
        assert_eq!(made.0.len(), 64);
        assert_eq!(format!("{made:?}"), "Token(…)");
        std::fs::write(&path, "short").unwrap();
        assert!(matches!(Token::load(&path), Err(TokenError::Malformed { .. })));
    }

    #[test]
    fn only_the_token_admits() {
        let token = Token(Zeroizing::new("a".repeat(64)));
        assert!(token.admits(&with("authorization", &token.to_field())));
        assert!(token.admits(&with("authorization", &format!("bearer {}", "a".repeat(64)))));
        for field in ["Bearer", "Bearer ", "Bearer aaa", "Basic YTph"] {
            assert!(!token.admits(&with("authorization", field)), "{field}");
        }
        assert!(!token.admits(&HeaderMap::new()));
        let mut twice = with("authorization", &token.to_field());
        twice.append(AUTHORIZATION, token.to_field().parse().unwrap());
        assert!(!token.admits(&twice));
    }

    #[test]
    fn foreign_host_names_are_refused() {
        let hosts = Hosts::new(["Box1".to_owned(), String::new()]);
        for host in
            ["localhost", "LOCALHOST:8097", "127.0.0.1:8097", "[::1]:8097", "10.1.2.3", "box1.", "box1"]
        {
            assert!(hosts.accepts(host), "{host}");
        }
        for host in ["evil.test", "localhost.evil.test", "", "a@127.0.0.1", "127.0.0.1.evil.test", "[::1"] {
            assert!(!hosts.accepts(host), "{host}");
        }
    }

    #[test]
    fn another_sites_page_cannot_write() {
        let host = "127.0.0.1:8097";
        assert!(same_site(&HeaderMap::new(), host));
        assert!(same_site(&with("origin", "http://127.0.0.1:8097"), host));
        assert!(same_site(&with("sec-fetch-site", "same-origin"), host));
        for origin in ["http://evil.test", "null", "http://127.0.0.1:9999", "http://127.0.0.1:8097.evil.test"]
        {
            assert!(!same_site(&with("origin", origin), host), "{origin}");
        }
        for site in ["cross-site", "same-site"] {
            assert!(!same_site(&with("sec-fetch-site", site), host), "{site}");
        }
    }
}
