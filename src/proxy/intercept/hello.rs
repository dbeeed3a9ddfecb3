//! The first bytes of a client: the beginning of TLS, and for whom, or anything else.
//!
//! They are kept, for whoever goes on with the connection. Whatever is odd (no server name, nothing of HTTP
//! among its protocols, not TLS at all) is no fault: such a connection is the blind tunnel it asked for.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use rustls::server::{Acceptor, ClientHello};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest beginning that is looked at.
const LONGEST: usize = 64 * 1024;
/// The type of a TLS record that carries a handshake (RFC 8446 section 5.1).
const HANDSHAKE: u8 = 22;

/// What a client began with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Look {
    /// TLS that HTTP may follow.
    Tls(Greeting),
    /// Anything else.
    Other,
}

/// What a client says of itself before anything is agreed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Greeting {
    /// The host it wants (RFC 6066 section 3), in lower case.
    pub(super) server_name: String,
    /// A number that is mostly the same for one program, and another for another.
    pub(super) kind: u64,
}

/// The first bytes as they come.
pub(super) struct Hello {
    acceptor: Acceptor,
    seen: Vec<u8>,
}

impl Hello {
    pub(super) fn new() -> Self {
        Self { acceptor: Acceptor::default(), seen: Vec::new() }
    }

    /// Listens until it is clear. May be given up at any time and begun again: nothing is lost.
    pub(super) async fn listen<S: AsyncRead + Unpin>(&mut self, stream: &mut S) -> Look {
        let mut buffer = [0; 2048];
        loop {
            let look = match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => Some(Look::Other),
                Ok(count) => self.feed(buffer.get(..count).unwrap_or_default()),
            };
            if let Some(look) = look {
                return look;
            }
        }
    }

    /// What came so far.
    pub(super) fn into_seen(self) -> Vec<u8> {
        self.seen
    }

    /// Takes more bytes in; tells once it is clear.
    fn feed(&mut self, mut bytes: &[u8]) -> Option<Look> {
        self.seen.extend_from_slice(bytes);
        if self.seen.first().is_some_and(|first| *first != HANDSHAKE) || self.seen.len() > LONGEST {
            return Some(Look::Other);
        }
        while !bytes.is_empty() {
            if self.acceptor.read_tls(&mut bytes).is_err() {
                return Some(Look::Other);
            }
            match self.acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => return Some(look_at(&accepted.client_hello())),
                Err(_) => return Some(Look::Other),
            }
        }
        None
    }
}

fn look_at(hello: &ClientHello<'_>) -> Look {
    let is_http = |name: &[u8]| name == b"h2" || name == b"http/1.1";
    let may_be_http = hello.alpn().is_none_or(|mut names| names.any(is_http));
    match hello.server_name() {
        Some(name) if may_be_http => {
            Look::Tls(Greeting { server_name: name.to_ascii_lowercase(), kind: kind(hello) })
        }
        Some(_) | None => Look::Other,
    }
}

/// Values of the form 0x?A?A mean nothing and change each time (RFC 8701): they are left out.
fn kind(hello: &ClientHello<'_>) -> u64 {
    let means = |value: &u16| value & 0x0f0f != 0x0a0a;
    let mut hasher = DefaultHasher::new();
    let suites = hello.cipher_suites().iter().map(|suite| u16::from(*suite));
    suites.filter(means).for_each(|suite| suite.hash(&mut hasher));
    let schemes = hello.signature_schemes().iter().map(|scheme| u16::from(*scheme));
    schemes.filter(means).for_each(|scheme| scheme.hash(&mut hasher));
    for name in hello.alpn().into_iter().flatten() {
        name.hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, RootCertStore};

    use super::*;

    /// What a client of ours begins with.
    fn beginning(host: &str, protocols: &[&[u8]]) -> Vec<u8> {
        let config = ClientConfig::builder_with_provider(crate::tls::provider());
        let mut config = config
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        wire
    }

    fn look(bytes: &[u8]) -> Option<Look> {
        Hello::new().feed(bytes)
    }

    #[test]
    fn it_is_tls_for_a_named_host_or_something_else() {
        for protocols in [&[][..], &[b"h2".as_slice(), b"http/1.1"], &[b"http/1.1"]] {
            let found = look(&beginning("A.test", protocols)).unwrap();
            assert!(matches!(found, Look::Tls(Greeting { server_name, .. }) if server_name == "a.test"));
        }
        assert_eq!(look(&beginning("a.test", &[b"acme-tls/1"])), Some(Look::Other));
        assert_eq!(look(&beginning("127.0.0.1", &[])), Some(Look::Other), "no name is sent for an address");
        for other in [
            b"SSH-2.0-x\r\n".as_slice(),
            b"GET / HTTP/1.1\r\n\r\n",
            b"\x16\x03\x01\x00\x04\xff\x00\x00\x00",
            b"\x00",
        ] {
            assert_eq!(look(other), Some(Look::Other), "{other:?}");
        }
        assert_eq!(look(&[]), None);
        assert_eq!(look(&[HANDSHAKE]), None);
    }

    #[test]
    fn it_may_come_in_any_pieces_and_is_kept() {
        let whole = beginning("a.test", &[b"h2"]);
        for size in [1, 7, 100, 4096] {
            let mut hello = Hello::new();
            let mut pieces = whole.chunks(size);
            let last = pieces.next_back().unwrap();
            assert!(pieces.all(|piece| hello.feed(piece).is_none()), "{size}");
            assert!(matches!(hello.feed(last), Some(Look::Tls(_))), "{size}");
            assert_eq!(hello.into_seen(), whole);
        }
    }

    #[test]
    fn programs_are_told_apart() {
        let kind = |protocols: &[&[u8]]| match look(&beginning("a.test", protocols)) {
            Some(Look::Tls(greeting)) => greeting.kind,
            other => panic!("{other:?}"),
        };
        assert_eq!(kind(&[b"h2"]), kind(&[b"h2"]));
        assert_ne!(kind(&[b"h2"]), kind(&[b"http/1.1"]));
    }

    #[test]
    fn a_beginning_without_end_is_something_else() {
        let mut hello = Hello::new();
        let record = [&[HANDSHAKE, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff][..], &[0; 0x3ffc]].concat();
        let looks: Vec<_> = (0..10).filter_map(|_| hello.feed(&record)).collect();
        assert_eq!(looks.first(), Some(&Look::Other));
        assert!(hello.seen.len() < 16 * LONGEST);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, flip in 0usize..600) {
            let _unused = look(&bytes);
            let mut hello = beginning("a.test", &[b"h2"]);
            let length = hello.len();
            if let Some(byte) = hello.get_mut(flip % length) {
                *byte ^= 1;
            }
            let _unused = look(&hello);
        }
    }
}
