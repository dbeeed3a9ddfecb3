//! A client on a machine: asks at the given time, compares every byte by its digest, says when it was done.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Child;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use larder::digest::Hasher;

/// What a client got.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Done {
    /// When its answer had ended, in milliseconds since 1970.
    pub(crate) ended_ms: u64,
    /// Whether the answer says that it came from a neighbour.
    pub(crate) from_peer: bool,
    digest: String,
}

/// A client at work.
pub(crate) struct Asking(Child);

impl Asking {
    pub(crate) fn new(child: Child) -> Self {
        Self(child)
    }

    /// Waits for its end; none if it did not get the file with this digest.
    pub(crate) fn finish(self, digest: &str) -> Option<Done> {
        let output = self.0.wait_with_output().unwrap();
        let done: Done = serde_json::from_slice(&output.stdout).ok()?;
        (done.digest == digest).then_some(done)
    }
}

/// Asks, and reads the head: what follows is the body, and whether it is said to come from a neighbour.
pub(crate) fn ask(proxy: &str, url: &str, stated: &str) -> (BufReader<TcpStream>, bool) {
    let mut stream = TcpStream::connect(proxy).unwrap();
    let host = url.split('/').nth(2).unwrap();
    write!(stream, "GET {url} HTTP/1.1\r\nHost: {host}\r\n{stated}Connection: close\r\n\r\n").unwrap();
    let mut from = BufReader::with_capacity(256 * 1024, stream);
    let (mut from_peer, mut line) = (false, String::new());
    while from.read_line(&mut line).unwrap() > 2 {
        from_peer |= line.contains("peer ");
        line.clear();
    }
    (from, from_peer)
}

/// The client itself.
pub(crate) fn run(proxy: &str, url: &str, at_ms: u64, digest: &str) {
    while now_ms() < at_ms {
        std::thread::sleep(Duration::from_millis(1));
    }
    let stated = if digest == "-" { String::new() } else { format!("Larder-Digest: {digest}\r\n") };
    let (mut from, from_peer) = ask(proxy, url, &stated);
    let (mut hasher, mut piece) = (Hasher::new(), vec![0; 256 * 1024]);
    loop {
        match from.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => hasher.update(&piece[..count]),
            // whoever served it is dead
            Err(_) => std::process::exit(1),
        }
    }
    let done = Done { ended_ms: now_ms(), from_peer, digest: hasher.finish().to_string() };
    println!("{}", serde_json::to_string(&done).unwrap());
}

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}
