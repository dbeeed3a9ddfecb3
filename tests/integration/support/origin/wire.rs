//! The origin's side of a socket: plain or TLS, reading requests exactly as they came.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use super::super::find;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A request as it was seen.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub target: String,
    pub version: String,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Seen {
    /// The first value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The target up to its query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// What follows the first `?`.
    pub fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// The request line and fields, one a line.
    pub fn text(&self) -> String {
        let mut text = format!("{} {} {}\n", self.method, self.target, self.version);
        self.fields.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\n")));
        text
    }

    fn parse(head: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(head);
        let mut lines = text.split("\r\n");
        let mut first = lines.next()?.split(' ');
        let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
        let version = first.next()?.to_owned();
        let fields = lines.filter_map(|line| line.split_once(':'));
        let fields = fields.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
        Some(Self { method, target, version, fields, body: Vec::new() })
    }
}

/// A self-signed certificate and its key.
pub struct Certificate {
    pub pem: String,
    der: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Certificate {
    /// For 127.0.0.1 and localhost.
    pub fn make() -> Self {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        Self { pem: made.cert.pem(), der: made.cert.der().clone(), key }
    }

    /// The server's side of TLS with it.
    pub fn server(&self) -> Arc<rustls::ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        Arc::new(builder.with_single_cert(vec![self.der.clone()], self.key.clone_key()).unwrap())
    }
}

/// One accepted connection.
pub struct Wire {
    socket: TcpStream,
    tls: Option<Box<rustls::ServerConnection>>,
    ahead: Vec<u8>,
    broken: bool,
}

impl Wire {
    /// Takes an accepted socket; its send buffer is kept small so that "sent" is close to "received".
    pub fn new(socket: TcpStream, tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        drop(socket2::SockRef::from(&socket).set_send_buffer_size(32 << 10));
        drop(socket.set_nodelay(true));
        drop(socket.set_write_timeout(Some(Duration::from_secs(120))));
        let tls = tls.map(|config| Box::new(rustls::ServerConnection::new(config).unwrap()));
        Self { socket, tls, ahead: Vec::new(), broken: false }
    }

    /// A second handle, to break the connection from outside.
    pub fn handle(&self) -> Option<TcpStream> {
        self.socket.try_clone().ok()
    }

    /// Makes the coming close one in the middle: by RST, else by a bare FIN.
    pub fn sever(&mut self, reset: bool) {
        self.broken = true;
        if reset {
            drop(socket2::SockRef::from(&self.socket).set_linger(Some(Duration::ZERO)));
        }
    }

    /// A TLS connection that is not broken on purpose ends with its alert.
    pub fn say_goodbye(&mut self) {
        if let Some(tls) = self.tls.as_mut().filter(|_| !self.broken) {
            tls.send_close_notify();
            drop(tls.complete_io(&mut self.socket));
        }
    }

    /// Whether the other side has closed its end.
    pub fn is_gone(&self) -> bool {
        if self.socket.set_nonblocking(true).is_err() {
            return true;
        }
        let peeked = self.socket.peek(&mut [0]);
        drop(self.socket.set_nonblocking(false));
        match peeked {
            Ok(count) => count == 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }

    /// The next request, or nothing when the connection has ended.
    pub fn read_request(&mut self) -> Option<Seen> {
        let end = loop {
            if let Some(at) = find(&self.ahead, b"\r\n\r\n") {
                break at;
            }
            if self.ahead.len() > 2 << 20 || !self.more() {
                return None;
            }
        };
        let head: Vec<u8> = self.ahead.drain(..end + 4).collect();
        let mut seen = Seen::parse(&head[..end])?;
        if seen.field("Expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
            self.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
        }
        seen.body = self.read_body(&seen)?;
        Some(seen)
    }

    fn read_body(&mut self, seen: &Seen) -> Option<Vec<u8>> {
        if seen.field("Transfer-Encoding").is_some() {
            let mut body = Vec::new();
            loop {
                let line = self.take_line()?;
                let size = usize::from_str_radix(line.split(';').next()?.trim(), 16).ok()?;
                let chunk = self.take(size)?;
                self.take_line()?;
                if size == 0 {
                    return Some(body);
                }
                body.extend(chunk);
            }
        }
        let length = seen.field("Content-Length").and_then(|value| value.parse().ok()).unwrap_or(0);
        self.take(length)
    }

    fn take_line(&mut self) -> Option<String> {
        while find(&self.ahead, b"\r\n").is_none() {
            if !self.more() {
                return None;
            }
        }
        let end = find(&self.ahead, b"\r\n")?;
        let line: Vec<u8> = self.ahead.drain(..end + 2).collect();
        Some(String::from_utf8_lossy(&line[..end]).into_owned())
    }

    fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.ahead.len() < length {
            if !self.more() {
                return None;
            }
        }
        Some(self.ahead.drain(..length).collect())
    }

    fn more(&mut self) -> bool {
        let mut buffer = [0; 16 << 10];
        match self.read(&mut buffer) {
            Ok(count) if count > 0 => {
                self.ahead.extend_from_slice(&buffer[..count]);
                true
            }
            _ => false,
        }
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls.as_mut(), &mut self.socket).read(buffer),
            None => self.socket.read(buffer),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls.as_mut(), &mut self.socket).write(bytes),
            None => self.socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls.as_mut(), &mut self.socket).flush(),
            None => self.socket.flush(),
        }
    }
}
