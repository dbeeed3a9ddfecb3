//! Certificates this node makes, and what is read out of the certificates of others.

use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;
use sha2::Digest as _;

use super::{Pin, TlsError};

/// A new key of the one kind nodes use: ECDSA on P-256.
pub(super) fn new_key() -> Result<KeyPair, TlsError> {
    Ok(KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?)
}

/// A certificate that says nothing but the key: the name is the same on all nodes, the dates span any clock.
pub(super) fn self_signed(key: &KeyPair) -> Result<rcgen::Certificate, TlsError> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "larder");
    Ok(params.self_signed(key)?)
}

/// The pin of a certificate's key; none if it is no certificate.
pub fn pin_of_certificate(der: &[u8]) -> Option<Pin> {
    let certificate = CertificateDer::from(der);
    let parsed = ParsedCertificate::try_from(&certificate).ok()?;
    Some(pin_of_key(&parsed.subject_public_key_info()))
}

/// The pin of a public key (SubjectPublicKeyInfo, DER).
pub(super) fn pin_of_key(spki: &[u8]) -> Pin {
    Pin(sha2::Sha256::digest(spki).into())
}
