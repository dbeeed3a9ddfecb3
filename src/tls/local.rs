//! The authority of this machine alone, in whose name connections are intercepted.
//!
//! `ca.key` (0600) and `ca.crt` in the state folder. What it may vouch for stands in its certificate, in a
//! critical extension (RFC 5280 section 4.2.1.10): the DNS names it was made for and what lies below them, no
//! address, servers only, no further authority. So the key, stolen, speaks for no other site. It cannot be
//! changed: other names need another key and certificate, and whoever trusted the old one trusts nothing of
//! the new one.
//!
//! Leaf certificates live a week and are made when they are needed, each with a key of its own.

mod der;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs, io};

use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose, NameConstraints, PublicKeyData as _, SanType,
    date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use zeroize::Zeroizing;

use super::files::{Staged, read_certificate, read_key};
use super::{TlsError, authority, provider};
use crate::clock::Timestamp;
use der::Facts;

const KEY_FILE: &str = "ca.key";
const CERTIFICATE_FILE: &str = "ca.crt";

/// How long the authority lasts.
const AUTHORITY_DAYS: u64 = 5 * 365;
/// How long a leaf lasts. Both begin a day early, for clocks that are a little behind.
const LEAF_DAYS: u64 = 7;
const DAY: u64 = 86_400;
/// No clock is believed that says more: the year 9000, well within what a certificate can say.
const LATEST: u64 = 221_845_392_000;

/// What connections that we open to clients speak, the better one first.
const SPOKEN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The authority of this machine.
pub struct LocalAuthority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
    facts: Facts,
}

impl LocalAuthority {
    /// The one in this state folder, if there is one.
    pub fn load(state_dir: &Path) -> Result<Option<Self>, TlsError> {
        let key = match read_key(&state_dir.join(KEY_FILE)) {
            Err(TlsError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            other => other?,
        };
        let path = Self::certificate_file(state_dir);
        let pin = authority::pin_of_key(&key.subject_public_key_info());
        let found = read_certificate(&path, &pin).and_then(|certificate| {
            let (facts, pem) = (der::read(&certificate)?, fs::read_to_string(&path).ok()?);
            Some(Self { issuer: Issuer::new(subject(&facts.name), key), certificate, pem, facts })
        });
        found.map(Some).ok_or(TlsError::Content { path, what: "certificate of the authority in ca.key" })
    }

    /// Makes one for these domains and all below them, in the place of one that may be there.
    pub fn create(
        state_dir: &Path,
        name: &str,
        domains: &[String],
        now: Timestamp,
    ) -> Result<Self, TlsError> {
        let key = authority::new_key()?;
        let mark: String = format!("{:?}", authority::pin_of_key(&key.subject_public_key_info()));
        let mark: String = mark.chars().take(8).collect();
        let params = authority_params(&format!("Larder on {name} {mark}"), domains, now);
        let made = params.self_signed(&key)?;
        let write = |file: &str, content: &[u8], mode| {
            let path = state_dir.join(file);
            let new = Staged::write(&path, content, mode).map_err(TlsError::file(&path))?;
            new.replace(&path).map_err(TlsError::file(&path))
        };
        // The key comes first: a key without its certificate is no authority, and is said to be none.
        write(KEY_FILE, Zeroizing::new(key.serialize_pem()).as_bytes(), 0o600)?;
        write(CERTIFICATE_FILE, made.pem().as_bytes(), 0o644)?;
        Self::load(state_dir)?.ok_or_else(|| TlsError::Content {
            path: state_dir.join(KEY_FILE),
            what: "authority, although it was just made",
        })
    }

    /// Removes it from the state folder; whether there was one.
    pub fn remove(state_dir: &Path) -> Result<bool, TlsError> {
        let mut there = false;
        for file in [KEY_FILE, CERTIFICATE_FILE] {
            let path = state_dir.join(file);
            match fs::remove_file(&path) {
                Ok(()) => there = true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(TlsError::file(&path)(error)),
            }
        }
        Ok(there)
    }

    /// Where its certificate stands, for trust stores.
    pub fn certificate_file(state_dir: &Path) -> PathBuf {
        state_dir.join(CERTIFICATE_FILE)
    }

    /// What it is called in lists of authorities.
    pub fn name(&self) -> &str {
        &self.facts.name
    }

    /// The domains it may vouch for, sorted.
    pub fn domains(&self) -> &[String] {
        &self.facts.domains
    }

    /// The last moment it counts.
    pub fn not_after(&self) -> Timestamp {
        self.facts.not_after
    }

    /// SHA-256 of the certificate, as trust stores show it.
    pub fn fingerprint(&self) -> String {
        crate::digest::Digest::of(&self.certificate).hex()
    }

    /// The certificate for trust stores.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Whether it may vouch for this host name (in lower case).
    pub fn permits(&self, host: &str) -> bool {
        let below = |domain: &String| {
            host.strip_suffix(domain.as_str()).is_some_and(|left| left.is_empty() || left.ends_with('.'))
        };
        host.parse::<std::net::IpAddr>().is_err() && self.facts.domains.iter().any(below)
    }

    /// The server's side of TLS for this host name, with a fresh key and leaf. To be made anew after
    /// [`Self::RENEW`].
    pub fn server(&self, host: &str, now: Timestamp) -> Result<Arc<ServerConfig>, TlsError> {
        let key = authority::new_key()?;
        let leaf = leaf_params(host, now)?.signed_by(&key, &self.issuer)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key)?;
        config.alpn_protocols = SPOKEN.map(<[u8]>::to_vec).to_vec();
        Ok(Arc::new(config))
    }

    /// How long a leaf is used before another one is made.
    pub const RENEW: Duration = Duration::from_secs(LEAF_DAYS / 2 * DAY);
}

impl fmt::Debug for LocalAuthority {
    /// Never the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalAuthority").field("name", &self.facts.name).finish_non_exhaustive()
    }
}

/// What an issuer's name is made of: it must be the same in every leaf.
fn subject(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn authority_params(name: &str, domains: &[String], now: Timestamp) -> CertificateParams {
    let mut params = subject(name);
    let any_address = [std::net::Ipv4Addr::UNSPECIFIED.into(), std::net::Ipv6Addr::UNSPECIFIED.into()];
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: domains.iter().cloned().map(GeneralSubtree::DnsName).collect(),
        excluded_subtrees: any_address
            .map(|address| GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(address, 0)))
            .to_vec(),
    });
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    last(&mut params, now, AUTHORITY_DAYS);
    params
}

fn leaf_params(host: &str, now: Timestamp) -> Result<CertificateParams, TlsError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "Larder, on this machine");
    params.subject_alt_names = vec![SanType::DnsName(host.try_into()?)];
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    last(&mut params, now, LEAF_DAYS);
    Ok(params)
}

/// From a day ago for so many days to come.
fn last(params: &mut CertificateParams, now: Timestamp, days: u64) {
    let start = Duration::from_secs(now.seconds().clamp(DAY, LATEST) - DAY);
    params.not_before = date_time_ymd(1970, 1, 1) + start;
    params.not_after = params.not_before + Duration::from_secs((days + 1) * DAY);
}
