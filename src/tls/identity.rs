//! Who a node is: its id, the pin of its key, and the key itself.
//!
//! The key is made at the first start and stays: `identity.key` (0600) in the state folder, and beside it the
//! self-signed certificate, `identity.crt`, which is made anew whenever it is missing or does not fit the key.
//! A key that cannot be read is never replaced in silence, because neighbours know the node by it.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::{fmt, io};

use rcgen::{KeyPair, PublicKeyData as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::files::{Staged, read_certificate, read_key};
use super::{TlsError, authority};

const KEY_FILE: &str = "identity.key";
const CERTIFICATE_FILE: &str = "identity.crt";

/// A node's id: the first 16 bytes of SHA-256 over its public key (SPKI), as a UUIDv8.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(uuid::Uuid);

/// SHA-256 over a node's public key (SubjectPublicKeyInfo, DER).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pin(pub [u8; 32]);

/// This node's key and certificate; a cheap clone.
#[derive(Clone)]
pub struct Identity(Arc<Inner>);

struct Inner {
    node: NodeId,
    pin: Pin,
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl Identity {
    /// The identity kept in the state folder; made there at the first start.
    pub fn load_or_create(state_dir: &Path) -> Result<Self, TlsError> {
        let path = state_dir.join(KEY_FILE);
        let key = match read_key(&path) {
            Err(TlsError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                create_key(&path)?
            }
            other => other?,
        };
        let path = state_dir.join(CERTIFICATE_FILE);
        let pin = authority::pin_of_key(&key.subject_public_key_info());
        let certificate = match read_certificate(&path, &pin) {
            Some(kept) => kept,
            None => create_certificate(&path, &key)?,
        };
        Ok(Self::of(&key, pin, certificate))
    }

    /// Gives the state folder a new identity in the place of the old one: two machines made from one image
    /// would otherwise be the same node.
    pub fn renew(state_dir: &Path) -> Result<Self, TlsError> {
        let path = state_dir.join(KEY_FILE);
        let key = authority::new_key()?;
        let pem = Zeroizing::new(key.serialize_pem());
        let new = Staged::write(&path, pem.as_bytes(), 0o600).map_err(TlsError::file(&path))?;
        new.replace(&path).map_err(TlsError::file(&path))?;
        Self::load_or_create(state_dir)
    }

    /// An identity that lives as long as this process.
    pub fn generate() -> Result<Self, TlsError> {
        let key = authority::new_key()?;
        let certificate = authority::self_signed(&key)?.der().clone();
        let pin = authority::pin_of_key(&key.subject_public_key_info());
        Ok(Self::of(&key, pin, certificate))
    }

    /// The node's id.
    pub fn node(&self) -> NodeId {
        self.0.node
    }

    /// The pin of the node's key.
    pub fn pin(&self) -> Pin {
        self.0.pin
    }

    /// What a TLS configuration presents and signs with.
    pub(super) fn credentials(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        (vec![self.0.certificate.clone()], PrivateKeyDer::Pkcs8(self.0.key.clone_key()))
    }

    fn of(key: &KeyPair, pin: Pin, certificate: CertificateDer<'static>) -> Self {
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Self(Arc::new(Inner { node: NodeId::of(&pin), pin, certificate, key }))
    }
}

impl fmt::Debug for Identity {
    /// Never the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("node", &self.0.node).finish_non_exhaustive()
    }
}

/// Linking the finished file to its name cannot overwrite: of two processes starting at once both end up
/// with the key of the faster one.
fn create_key(path: &Path) -> Result<KeyPair, TlsError> {
    let key = authority::new_key()?;
    let pem = Zeroizing::new(key.serialize_pem());
    let new = Staged::write(path, pem.as_bytes(), 0o600).map_err(TlsError::file(path))?;
    match new.claim(path) {
        Ok(()) => Ok(key),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read_key(path),
        Err(error) => Err(TlsError::file(path)(error)),
    }
}

fn create_certificate(path: &Path, key: &KeyPair) -> Result<CertificateDer<'static>, TlsError> {
    let certificate = authority::self_signed(key)?;
    let new = Staged::write(path, certificate.pem().as_bytes(), 0o644).map_err(TlsError::file(path))?;
    new.replace(path).map_err(TlsError::file(path))?;
    Ok(certificate.der().clone())
}

impl NodeId {
    /// The id that belongs to a pin.
    pub fn of(pin: &Pin) -> Self {
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(pin.0).for_each(|(to, from)| *to = from);
        Self(uuid::Uuid::new_v8(bytes))
    }

    /// From the 16 bytes on the wire.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(uuid::Uuid::from_bytes(bytes))
    }

    /// The 16 bytes on the wire.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The first 8 hexadecimal characters, for `Via`.
    pub fn short(&self) -> String {
        self.0.simple().to_string().chars().take(8).collect()
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for NodeId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(Self)
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::digest::hex(&self.0))
    }
}
