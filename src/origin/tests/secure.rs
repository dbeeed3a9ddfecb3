//! Tests of `origin::secure`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

use super::support::{fast, get, origin, soon, text};
use crate::http::{Body, empty};
use crate::origin::{Config, OriginError, Reach};

struct Secure {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    folder: tempfile::TempDir,
    _task: AbortOnDropHandle<()>,
}

#[derive(Clone, Copy, PartialEq)]
enum Speaks {
    Http,
    /// Half a body, then a connection that ends without TLS' own end.
    Half,
}

/// An https origin for 127.0.0.1 with an authority of its own, in `ca.pem`.
fn serve(alpn: &'static [&'static str], speaks: Speaks) -> Secure {
    let mut authority = CertificateParams::new(Vec::<String>::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = rustls::ServerConfig::builder_with_provider(crate::tls::provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|p| p.as_bytes().to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    let (address, connections) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&connections);
    let task = tokio::spawn(async move {
        let mut running = tokio::task::JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, counter) = (acceptor.clone(), Arc::clone(&counter));
            running.spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                counter.fetch_add(1, Ordering::SeqCst);
                if speaks == Speaks::Half {
                    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nhalf").await.unwrap();
                    stream.flush().await.unwrap();
                    return;
                }
                let builder = auto::Builder::new(TokioExecutor::new());
                let ended = builder.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
                drop(ended);
            });
        }
    });
    Secure { address, connections, folder, _task: AbortOnDropHandle::new(task) }
}

/// Says what was asked.
async fn answer(
    request: http::Request<hyper::body::Incoming>,
) -> Result<http::Response<Full<Bytes>>, Infallible> {
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let host = request.headers().get("host").map(|h| h.to_str().unwrap().to_owned());
    if request.method() == http::Method::HEAD {
        return Ok(http::Response::new(Full::default()));
    }
    let said = format!("{:?} {} host={host:?}", request.version(), request.uri());
    Ok(http::Response::new(Full::from(said)))
}

impl Secure {
    fn trusted(&self) -> Config {
        Config { ca_file: self.folder.path().join("ca.pem"), ..fast() }
    }

    fn get(&self, path: &str) -> http::Request<Body> {
        get(&format!("https://{}{path}", self.address))
    }
}

#[tokio::test]
async fn https_is_trusted_by_ca_file_alone() {
    let server = serve(&["http/1.1"], Speaks::Http);
    let response = soon(origin(server.trusted()).send(server.get("/a%2Fb"), &Reach::Anywhere)).await.unwrap();
    let said = text(response).await.unwrap();
    assert_eq!(said, format!("HTTP/1.1 /a%2Fb host=Some(\"{}\")", server.address));
    let error = soon(origin(fast()).send(server.get("/"), &Reach::Anywhere)).await.unwrap_err();
    assert!(matches!(&error, OriginError::Tls { host, .. } if host == "127.0.0.1"), "{error}");
    let other = format!("https://127.0.0.2:{}/", server.address.port());
    let error = soon(origin(server.trusted()).send(get(&other), &Reach::Anywhere)).await.unwrap_err();
    assert!(error.is_unreachable(), "{error}");
    let missing = Config { ca_file: "/nowhere/ca.pem".into(), ..fast() };
    let error = crate::origin::Origin::new(missing, crate::clock::SystemClock::shared()).unwrap_err();
    assert!(error.to_string().starts_with("origin.ca_file: "), "{error}");
}

#[tokio::test]
async fn http2_shares_one_connection() {
    let server = serve(&["h2", "http/1.1"], Speaks::Http);
    let origin = origin(Config { connections_per_host: 2, ..server.trusted() });
    let first = soon(origin.send(server.get("/?"), &Reach::Anywhere)).await.unwrap();
    assert_eq!(first.version(), http::Version::HTTP_2);
    let said = text(first).await.unwrap();
    assert_eq!(said, format!("HTTP/2.0 https://{}/? host=None", server.address));
    let mut crowd = tokio::task::JoinSet::new();
    for n in 0..30 {
        let (origin, request) = (origin.clone(), server.get(&format!("/{n}")));
        crowd.spawn(async move {
            let response = origin.send(request, &Reach::Anywhere).await.unwrap();
            assert!(text(response).await.unwrap().contains(&format!("/{n} ")));
        });
    }
    soon(crowd.join_all()).await;
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    let mut head = server.get("/");
    *head.method_mut() = http::Method::HEAD;
    let head = soon(origin.send(head.map(|_| empty()), &Reach::Anywhere)).await.unwrap();
    assert_eq!(text(head).await.unwrap(), "");
}

#[tokio::test]
async fn an_end_without_tls_own_end_is_a_truncation() {
    let server = serve(&["http/1.1"], Speaks::Half);
    let response = soon(origin(server.trusted()).send(server.get("/"), &Reach::Anywhere)).await.unwrap();
    let error = text(response).await.unwrap_err().downcast::<OriginError>().unwrap();
    assert!(matches!(&*error, OriginError::Protocol { .. }), "{error}");
}
