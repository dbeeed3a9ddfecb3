//! Handshakes in memory, and the identity on disk.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};

use super::*;

/// Runs a handshake in memory; the first error of either side.
fn shake(
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
) -> Result<(ClientConnection, ServerConnection), rustls::Error> {
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut client = ClientConnection::new(client, name)?;
    let mut server = ServerConnection::new(server)?;
    for _ in 0..8 {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        let mut rest = wire.as_slice();
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            server.process_new_packets()?;
        }
        let mut wire = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        let mut rest = wire.as_slice();
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets()?;
        }
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok((client, server))
}

#[test]
fn both_ends_learn_the_others_pin() {
    let (one, two) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let client = peer_client(&one, vec![Pin([0; 32]), two.pin()]).unwrap();
    let (mut at_client, mut at_server) = shake(client, peer_server(&two).unwrap()).unwrap();
    assert_eq!(pin_of_peer(at_server.peer_certificates()), Some(one.pin()));
    assert_eq!(pin_of_peer(at_client.peer_certificates()), Some(two.pin()));
    assert_eq!(at_client.alpn_protocol(), Some(b"http/1.1".as_slice()));
    at_client.writer().write_all(b"hello").unwrap();
    let mut wire = Vec::new();
    at_client.write_tls(&mut wire).unwrap();
    at_server.read_tls(&mut wire.as_slice()).unwrap();
    at_server.process_new_packets().unwrap();
    let mut got = [0; 5];
    at_server.reader().read_exact(&mut got).unwrap();
    assert_eq!(&got, b"hello");
}

#[test]
fn a_resumed_session_still_tells_the_pin() {
    let (one, two) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let client = peer_client(&one, vec![two.pin()]).unwrap();
    let server = peer_server(&two).unwrap();
    shake(client.clone(), server.clone()).unwrap();
    let (at_client, at_server) = shake(client, server).unwrap();
    assert_eq!(at_client.handshake_kind(), Some(rustls::HandshakeKind::Resumed));
    assert_eq!(pin_of_peer(at_server.peer_certificates()), Some(one.pin()));
}

#[test]
fn another_key_is_a_pin_mismatch() {
    let (one, two) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let client = peer_client(&one, vec![one.pin()]).unwrap();
    let error = shake(client, peer_server(&two).unwrap()).unwrap_err();
    assert!(is_pin_mismatch(&io::Error::other(error)));
}

/// The certificate of another node without its key: the pin is right, the signature cannot be.
#[test]
fn a_borrowed_certificate_proves_nothing() {
    let (one, two) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let signer = provider().key_provider.load_private_key(one.credentials().1).unwrap();
    let borrowed = rustls::sign::CertifiedKey::new(two.credentials().0, signer);
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(borrowed)));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let client = peer_client(&one, vec![two.pin()]).unwrap();
    let error = shake(client, Arc::new(config)).unwrap_err();
    assert!(!is_pin_mismatch(&io::Error::other(error.clone())), "{error}");
    assert!(matches!(error, rustls::Error::InvalidCertificate(_)), "{error}");
}

#[test]
fn a_client_without_certificate_has_no_pin() {
    let two = Identity::generate().unwrap();
    let mut config = (*peer_client(&two, vec![two.pin()]).unwrap()).clone();
    config.client_auth_cert_resolver = Arc::new(Nothing);
    let (_client, at_server) = shake(Arc::new(config), peer_server(&two).unwrap()).unwrap();
    assert_eq!(pin_of_peer(at_server.peer_certificates()), None);
}

#[derive(Debug)]
struct Nothing;

impl rustls::client::ResolvesClientCert for Nothing {
    fn resolve(
        &self,
        _hints: &[&[u8]],
        _schemes: &[rustls::SignatureScheme],
    ) -> Option<Arc<rustls::sign::CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

#[test]
fn plain_text_is_no_tls() {
    let mut server = ServerConnection::new(peer_server(&Identity::generate().unwrap()).unwrap()).unwrap();
    server.read_tls(&mut b"GET / HTTP/1.1\r\n\r\n".as_slice()).unwrap();
    let error = server.process_new_packets().unwrap_err();
    assert!(is_no_tls(&io::Error::new(io::ErrorKind::InvalidData, error)));
    assert!(!is_no_tls(&io::ErrorKind::UnexpectedEof.into()));
}

#[test]
fn an_identity_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let first = Identity::load_or_create(dir.path()).unwrap();
    assert_eq!(first.node(), NodeId::of(&first.pin()));
    let mode = std::fs::metadata(dir.path().join("identity.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = Identity::load_or_create(dir.path()).unwrap();
    assert_eq!((again.pin(), again.credentials().0), (first.pin(), first.credentials().0));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "no temporary file stays");
}

#[test]
fn a_lost_or_foreign_certificate_is_made_anew() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let first = Identity::load_or_create(dir.path()).unwrap();
    Identity::load_or_create(other.path()).unwrap();
    let crt = dir.path().join("identity.crt");
    std::fs::copy(other.path().join("identity.crt"), &crt).unwrap();
    assert_eq!(Identity::load_or_create(dir.path()).unwrap().pin(), first.pin());
    std::fs::remove_file(&crt).unwrap();
    let again = Identity::load_or_create(dir.path()).unwrap();
    assert_eq!(pin_of_certificate(&again.credentials().0[0]), Some(first.pin()));
    assert!(crt.exists());
}

#[test]
fn a_damaged_key_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("identity.key");
    std::fs::write(&key, "nonsense").unwrap();
    let error = Identity::load_or_create(dir.path()).unwrap_err();
    assert!(error.to_string().contains("identity.key"), "{error}");
    assert_eq!(std::fs::read(&key).unwrap(), b"nonsense");
}

#[test]
fn a_key_open_to_others_is_closed_again() {
    let dir = tempfile::tempdir().unwrap();
    let first = Identity::load_or_create(dir.path()).unwrap();
    let key = dir.path().join("identity.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(Identity::load_or_create(dir.path()).unwrap().pin(), first.pin());
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn d11_a_clone_takes_a_new_identity() {
    let dir = tempfile::tempdir().unwrap();
    let first = Identity::load_or_create(dir.path()).unwrap();
    let second = Identity::renew(dir.path()).unwrap();
    assert_ne!(first.node(), second.node());
    assert_eq!(Identity::load_or_create(dir.path()).unwrap().pin(), second.pin());
}

#[test]
fn no_key_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let identity = Identity::load_or_create(dir.path()).unwrap();
    assert_eq!(format!("{identity:?}"), format!("Identity {{ node: {}, .. }}", identity.node()));
}

#[test]
fn a_listener_wants_a_certificate_and_its_key() {
    let dir = tempfile::tempdir().unwrap();
    Identity::load_or_create(dir.path()).unwrap();
    let (crt, key) = (dir.path().join("identity.crt"), dir.path().join("identity.key"));
    assert!(listener(&crt, &key).is_ok());
    for (cert, key) in [(&key, &key), (&crt, &crt)] {
        assert!(matches!(listener(cert, key), Err(TlsError::Content { .. })));
    }
    assert!(matches!(listener(&dir.path().join("none"), &key), Err(TlsError::File { .. })));
    let other = tempfile::tempdir().unwrap();
    Identity::load_or_create(other.path()).unwrap();
    assert!(matches!(listener(&crt, &other.path().join("identity.key")), Err(TlsError::Use(_))));
}

#[test]
fn an_origin_may_be_vouched_for_by_ca_file() {
    let dir = tempfile::tempdir().unwrap();
    Identity::load_or_create(dir.path()).unwrap();
    let (crt, key) = (dir.path().join("identity.crt"), dir.path().join("identity.key"));
    assert!(origin_client(Some(&crt)).is_ok());
    assert!(matches!(origin_client(Some(&key)), Err(TlsError::Content { .. })));
    assert!(matches!(origin_client(Some(&dir.path().join("none"))), Err(TlsError::File { .. })));
}
