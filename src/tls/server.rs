//! The listening ends: the peer port, and the admin port where it has a certificate.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme, version,
};

use super::{Identity, Pin, TlsError, algorithms, authority, provider};

/// What every listener of ours speaks.
const HTTP_1: &[u8] = b"http/1.1";

/// The peer port: presents this node's certificate and asks for the other end's.
///
/// Any key is welcome as long as the other end proves that it holds it; [`pin_of_peer`] tells which key it
/// was. A client without a certificate gets through the handshake too, so that it can be told in HTTP what it
/// lacks; it has no pin and is admitted to nothing.
pub fn peer_server(identity: &Identity) -> Result<Arc<ServerConfig>, TlsError> {
    let (chain, key) = identity.credentials();
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&version::TLS13])?
        .with_client_cert_verifier(Arc::new(AnyKey))
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![HTTP_1.to_vec()];
    Ok(Arc::new(config))
}

/// A listener with an administrator's certificate: PEM files, the chain with the leaf first.
pub fn listener(cert: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let pem = std::fs::read(cert).map_err(TlsError::file(cert))?;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .ok()
        .filter(|chain: &Vec<_>| !chain.is_empty())
        .ok_or_else(|| TlsError::Content { path: cert.to_owned(), what: "certificate in PEM form" })?;
    let pem = zeroize::Zeroizing::new(std::fs::read(key).map_err(TlsError::file(key))?);
    let key = PrivateKeyDer::from_pem_slice(&pem)
        .map_err(|_ignored| TlsError::Content { path: key.to_owned(), what: "private key in PEM form" })?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![HTTP_1.to_vec()];
    Ok(Arc::new(config))
}

/// The key the other end of a finished handshake has proved, from what
/// [`peer_certificates`](rustls::CommonState::peer_certificates) says.
pub fn pin_of_peer(certificates: Option<&[CertificateDer<'_>]>) -> Option<Pin> {
    certificates?.first().and_then(|leaf| authority::pin_of_certificate(leaf))
}

/// Whether a handshake failed because what came was no TLS at all, not merely a handshake that did not suit.
pub fn is_no_tls(error: &io::Error) -> bool {
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(cause, Some(rustls::Error::InvalidMessage(_)))
}

/// Takes any key that is proved.
#[derive(Debug)]
struct AnyKey;

impl ClientCertVerifier for AnyKey {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        match authority::pin_of_certificate(end_entity) {
            Some(_) => Ok(ClientCertVerified::assertion()),
            None => Err(rustls::Error::InvalidCertificate(CertificateError::BadEncoding)),
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
