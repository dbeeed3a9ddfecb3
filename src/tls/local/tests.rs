//! An authority on disk, and what others make of its leaves.

use std::os::unix::fs::PermissionsExt as _;

use proptest::prelude::*;
use rustls::pki_types::{ServerName, UnixTime};

use super::*;
use crate::clock::{Clock as _, SystemClock};

fn now() -> Timestamp {
    SystemClock.now()
}

fn domains(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// What a client that trusts this authority says of a server that presents such a leaf.
fn judged(authority: &LocalAuthority, leaf: CertificateParams, host: &str) -> Result<(), rustls::Error> {
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.certificate.clone()).unwrap();
    let key = authority::new_key().unwrap();
    let leaf = leaf.signed_by(&key, &authority.issuer).unwrap();
    let judge = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build().unwrap();
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let time = UnixTime::since_unix_epoch(Duration::from_secs(now().seconds()));
    judge.verify_server_cert(leaf.der(), &[], &name, &[], time).map(drop)
}

#[test]
fn an_authority_is_made_once_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    assert!(LocalAuthority::load(folder.path()).unwrap().is_none());
    let made =
        LocalAuthority::create(folder.path(), "box1", &domains(&["b.test", "a.test", "b.test"]), now())
            .unwrap();
    let mode = fs::metadata(folder.path().join("ca.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let read = LocalAuthority::load(folder.path()).unwrap().unwrap();
    assert_eq!(read.domains(), ["a.test", "b.test"]);
    assert!(read.name().starts_with("Larder on box1 "), "{}", read.name());
    assert_eq!((read.name(), read.fingerprint()), (made.name(), made.fingerprint()));
    let days = read.not_after().since(now()).as_secs() / DAY;
    assert!((AUTHORITY_DAYS - 2..=AUTHORITY_DAYS).contains(&days), "{days}");
    assert!(!format!("{read:?}").contains("PRIVATE"));
    assert!(LocalAuthority::remove(folder.path()).unwrap());
    assert!(!LocalAuthority::remove(folder.path()).unwrap());
    assert!(LocalAuthority::load(folder.path()).unwrap().is_none());
}

#[test]
fn a_certificate_of_another_key_is_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let make = || LocalAuthority::create(folder.path(), "x", &domains(&["a.test"]), now()).unwrap();
    make();
    let old = fs::read(folder.path().join("ca.crt")).unwrap();
    make();
    for wrong in [old.as_slice(), b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        fs::write(folder.path().join("ca.crt"), wrong).unwrap();
        let error = LocalAuthority::load(folder.path()).unwrap_err();
        assert!(error.to_string().contains("ca.crt"), "{error}");
    }
    fs::write(folder.path().join("ca.key"), "nothing").unwrap();
    assert!(LocalAuthority::load(folder.path()).is_err());
}

#[test]
fn it_vouches_for_its_domains_alone() {
    let folder = tempfile::tempdir().unwrap();
    let authority =
        LocalAuthority::create(folder.path(), "x", &domains(&["a.test", "files.b.test"]), now()).unwrap();
    for (host, may) in [
        ("a.test", true),
        ("x.a.test", true),
        ("y.x.a.test", true),
        ("files.b.test", true),
        ("b.test", false),
        ("nota.test", false),
        ("test", false),
        ("other.org", false),
    ] {
        assert_eq!(authority.permits(host), may, "{host}");
        let judged = judged(&authority, leaf_params(host, now()).unwrap(), host);
        assert_eq!(judged.is_ok(), may, "{host}: {judged:?}");
    }
    for address in ["127.0.0.1", "::1"] {
        assert!(!authority.permits(address));
        let mut leaf = leaf_params("a.test", now()).unwrap();
        leaf.subject_alt_names.push(SanType::IpAddress(address.parse().unwrap()));
        assert!(judged(&authority, leaf, "a.test").is_err(), "{address}");
    }
}

#[test]
fn a_leaf_is_of_its_own_days() {
    let folder = tempfile::tempdir().unwrap();
    let authority = LocalAuthority::create(folder.path(), "x", &domains(&["a.test"]), now()).unwrap();
    let long_ago = Timestamp(now().0 - 1000 * DAY * 30);
    assert!(judged(&authority, leaf_params("a.test", long_ago).unwrap(), "a.test").is_err());
    // A clock out of its mind makes a certificate that nobody takes, and no panic.
    for clock in [Timestamp(0), Timestamp(u64::MAX)] {
        assert!(authority.server("a.test", clock).is_ok());
        assert!(LocalAuthority::create(folder.path(), "x", &domains(&["a.test"]), clock).is_ok());
    }
}

proptest! {
    #[test]
    fn no_certificate_panics(bytes: Vec<u8>, cut in 0usize..2000, flip in 0usize..2000) {
        prop_assert!(der::read(&bytes).is_none());
        let params = authority_params("x", &domains(&["a.test"]), Timestamp::from_seconds(1_800_000_000));
        let mut der = params.self_signed(&authority::new_key().unwrap()).unwrap().der().to_vec();
        prop_assert!(der::read(&der).is_some());
        let length = der.len();
        prop_assert!(der::read(der.get(..cut % length).unwrap()).is_none());
        if let Some(byte) = der.get_mut(flip % length) {
            *byte ^= 0x20;
        }
        let _unused = der::read(&der);
    }
}
