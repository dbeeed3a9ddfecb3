//! TLS through a proxy for clients that speak in clear: each connection here is a CONNECT and a handshake there.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A running tunnel mouth; it ends when it is dropped.
pub struct Stunnel {
    address: SocketAddr,
    failures: Arc<Mutex<Vec<String>>>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    running: Option<JoinHandle<()>>,
}

/// What is done for each connection.
#[derive(Clone)]
struct Plan {
    proxy: SocketAddr,
    authority: String,
    name: ServerName<'static>,
    tls: Arc<rustls::ClientConfig>,
    failures: Arc<Mutex<Vec<String>>>,
}

impl Stunnel {
    /// Through `proxy` to `authority`, where a server must prove by one of the authorities in `pem` that it is
    /// `name`; offering these protocols.
    pub fn open(proxy: SocketAddr, authority: &str, name: &str, pem: &str, protocols: &[&str]) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let (address, failures) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<String>>>::default());
        let plan = Plan {
            proxy,
            authority: authority.to_owned(),
            name: ServerName::try_from(name.to_owned()).unwrap(),
            tls: client(pem, protocols),
            failures: Arc::clone(&failures),
        };
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let running = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).unwrap();
                let accepting = async {
                    while let Ok((stream, _)) = listener.accept().await {
                        tokio::spawn(plan.clone().carry(stream));
                    }
                };
                tokio::select! {
                    () = accepting => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address, failures, stop: Some(stop), running: Some(running) }
    }

    /// Where clients connect to in clear.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Why connections did not come about or did not end properly, oldest first.
    pub fn failures(&self) -> Vec<String> {
        self.failures.lock().unwrap().clone()
    }
}

impl Drop for Stunnel {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(running) = self.running.take() {
            drop(running.join());
        }
    }
}

impl Plan {
    async fn carry(self, mut near: TcpStream) {
        let failed = match self.connect().await {
            Ok(far) => {
                let mut far = far;
                tokio::io::copy_bidirectional(&mut near, &mut far).await.err().map(|error| error.to_string())
            }
            Err(error) => Some(error),
        };
        if let Some(failed) = failed {
            self.failures.lock().unwrap().push(failed);
            // What did not end properly over there does not here.
            drop(socket2::SockRef::from(&near).set_linger(Some(std::time::Duration::ZERO)));
        }
    }

    async fn connect(&self) -> Result<tokio_rustls::client::TlsStream<TcpStream>, String> {
        let mut stream = TcpStream::connect(self.proxy).await.map_err(|error| error.to_string())?;
        let head = format!("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\n", self.authority);
        stream.write_all(head.as_bytes()).await.map_err(|error| error.to_string())?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(stream.read_u8().await.map_err(|error| error.to_string())?);
        }
        let answer = String::from_utf8_lossy(&answer).into_owned();
        if !answer.starts_with("HTTP/1.1 200") {
            return Err(answer);
        }
        let connector = tokio_rustls::TlsConnector::from(Arc::clone(&self.tls));
        connector.connect(self.name.clone(), stream).await.map_err(|error| error.to_string())
    }
}

/// A client that trusts these authorities (PEM) and no other.
pub fn client(pem: &str, protocols: &[&str]) -> Arc<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}
