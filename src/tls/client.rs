//! The calling ends: towards a neighbour known by its pins, and towards origins on the internet.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, version,
};

use super::{Identity, Pin, TlsError, algorithms, authority, provider};

/// Sessions kept for resumption: a configuration serves one neighbour.
const PEER_SESSIONS: usize = 4;

/// Towards a neighbour that must prove one of the keys it announced; presents this node's own certificate.
pub fn peer_client(identity: &Identity, pins: Vec<Pin>) -> Result<Arc<ClientConfig>, TlsError> {
    let (chain, key) = identity.credentials();
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned(pins)))
        .with_client_auth_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.enable_sni = false;
    config.resumption = Resumption::in_memory_sessions(PEER_SESSIONS);
    Ok(Arc::new(config))
}

/// Towards origins: the system's authorities and those of `ca_file`.
///
/// A system without authorities is no error: then only what `ca_file` names can be reached by https, and
/// each refusal says so.
pub fn origin_client(ca_file: Option<&Path>) -> Result<ClientConfig, TlsError> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    for error in &system.errors {
        tracing::warn!(error = %error, "cannot read some of the system's certificate authorities");
    }
    let (taken, _unreadable) = roots.add_parsable_certificates(system.certs);
    if taken == 0 && ca_file.is_none() {
        tracing::warn!("the system has no certificate authorities: https origins cannot be verified");
    }
    if let Some(path) = ca_file {
        add_file(&mut roots, path)?;
    }
    Ok(ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// Whether the system has any authority by which an origin can prove who it is.
pub fn has_system_authorities() -> bool {
    !rustls_native_certs::load_native_certs().certs.is_empty()
}

/// Whether a handshake failed because the neighbour has another key than the one it was known by.
pub fn is_pin_mismatch(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(cause, Some(rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)))
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), TlsError> {
    let content = || TlsError::Content { path: path.to_owned(), what: "certificate authority in PEM form" };
    let pem = std::fs::read(path).map_err(TlsError::file(path))?;
    let mut found = false;
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.map_err(|_ignored| content())?).map_err(|_ignored| content())?;
        found = true;
    }
    if found { Ok(()) } else { Err(content()) }
}

/// Takes a certificate whose key is one of the pins. Any other is refused with the one error that nothing
/// else in a peer's handshake gives.
#[derive(Debug)]
struct Pinned(Vec<Pin>);

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match authority::pin_of_certificate(end_entity) {
            None => Err(rustls::Error::InvalidCertificate(CertificateError::BadEncoding)),
            Some(pin) if self.0.contains(&pin) => Ok(ServerCertVerified::assertion()),
            Some(_) => {
                Err(rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &algorithms())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &algorithms())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        algorithms().supported_schemes()
    }
}
