//! An origin that believes nothing: it keeps every byte that came, takes only requests that are beyond doubt,
//! and answers with exactly the bytes it was given.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::find;

/// A running raw origin; its threads end with their connections.
pub struct RawOrigin {
    address: SocketAddr,
    log: Arc<Mutex<Log>>,
}

/// What came in.
#[derive(Default)]
struct Log {
    /// Complete requests, first lines only.
    requests: Vec<String>,
    /// Their heads and bodies.
    whole: Vec<String>,
    /// What no strict reader takes for a request.
    malformed: Vec<String>,
    /// Connections accepted.
    connections: usize,
}

/// What is answered to one path.
#[derive(Clone)]
pub struct Reply {
    /// The bytes, head and all.
    pub bytes: Vec<u8>,
    /// Whether the connection ends behind them.
    pub closes: bool,
}

impl Reply {
    /// These bytes, and the connection stays.
    pub fn kept(bytes: impl AsRef<[u8]>) -> Self {
        Self { bytes: bytes.as_ref().to_vec(), closes: false }
    }
}

impl RawOrigin {
    /// On an ephemeral port; `reply` says what is answered to which target.
    pub fn start(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::<Mutex<Log>>::default();
        let (shared, reply) = (Arc::clone(&log), Arc::new(reply));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                shared.lock().unwrap().connections += 1;
                let (log, reply) = (Arc::clone(&shared), Arc::clone(&reply));
                std::thread::spawn(move || converse(stream, &log, reply.as_ref()));
            }
        });
        Self { address, log }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// First lines of the complete requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.log.lock().unwrap().requests.clone()
    }

    /// The complete requests so far, heads and bodies.
    pub fn whole_requests(&self) -> Vec<String> {
        self.log.lock().unwrap().whole.clone()
    }

    /// What came and was no request.
    pub fn malformed(&self) -> Vec<String> {
        self.log.lock().unwrap().malformed.clone()
    }

    pub fn connections(&self) -> usize {
        self.log.lock().unwrap().connections
    }
}

fn converse(mut stream: TcpStream, log: &Mutex<Log>, reply: &dyn Fn(&str) -> Reply) {
    let mut ahead = Vec::new();
    loop {
        match strict_request(&ahead) {
            Some(Ok(length)) => {
                let request = String::from_utf8_lossy(&ahead[..length]).into_owned();
                ahead.drain(..length);
                let line = request.split("\r\n").next().unwrap_or_default().to_owned();
                let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
                {
                    let mut log = log.lock().unwrap();
                    log.requests.push(line);
                    log.whole.push(request);
                }
                let reply = reply(&target);
                // an error means that nobody wants the answer any more
                let written = stream.write_all(&reply.bytes).is_ok();
                if reply.closes || !written {
                    drop(stream.shutdown(Shutdown::Write));
                    drop(std::io::copy(&mut stream, &mut std::io::sink()));
                    return;
                }
                continue;
            }
            Some(Err(why)) => {
                let shown = format!("{why}: {:?}", String::from_utf8_lossy(&ahead));
                log.lock().unwrap().malformed.push(shown);
                return;
            }
            None => {}
        }
        let mut part = [0; 16 << 10];
        match stream.read(&mut part) {
            Ok(count) if count > 0 => ahead.extend_from_slice(&part[..count]),
            _ => return,
        }
    }
}

/// The length of the request that stands first, once all of it is there; or why it is none.
fn strict_request(bytes: &[u8]) -> Option<Result<usize, &'static str>> {
    let Some(end) = find(bytes, b"\r\n\r\n") else {
        let is_bare = |at: usize| bytes[at] == b'\n' && (at == 0 || bytes[at - 1] != b'\r');
        return (0..bytes.len()).any(is_bare).then_some(Err("LF alone"));
    };
    let head = &bytes[..end];
    if head.contains(&0) || head.windows(2).any(|two| two[0] == b'\r' && two[1] != b'\n') {
        return Some(Err("a control character"));
    }
    let text = String::from_utf8_lossy(head).into_owned();
    if text.replace("\r\n", "").contains(['\r', '\n']) {
        return Some(Err("a line end that is none"));
    }
    let mut lines = text.split("\r\n");
    let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    if first.len() != 3 || first[2] != "HTTP/1.1" || !first[1].starts_with('/') && first[1] != "*" {
        return Some(Err("a request line that is none"));
    }
    let fields: Option<Vec<(String, String)>> = lines
        .map(|line| {
            line.split_once(':').map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        })
        .collect();
    let Some(fields) = fields else { return Some(Err("a field without a colon")) };
    if fields.iter().any(|(name, _)| name.is_empty() || name.contains([' ', '\t'])) {
        return Some(Err("a field name with whitespace"));
    }
    let values = |wanted: &str| -> Vec<&str> {
        fields.iter().filter(|(name, _)| name == wanted).map(|(_, value)| value.as_str()).collect()
    };
    if values("host").len() != 1 {
        return Some(Err("not one Host"));
    }
    let body = end + 4;
    match (values("content-length").as_slice(), values("transfer-encoding").as_slice()) {
        ([], []) => Some(Ok(body)),
        ([length], []) if !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit()) => {
            let whole = body + length.parse::<usize>().unwrap();
            (bytes.len() >= whole).then_some(Ok(whole))
        }
        ([], ["chunked"]) => strict_chunks(&bytes[body..]).map(|end| end.map(|end| body + end)),
        _ => Some(Err("framing in doubt")),
    }
}

fn strict_chunks(bytes: &[u8]) -> Option<Result<usize, &'static str>> {
    let mut at = 0;
    loop {
        let line = find(&bytes[at..], b"\r\n")?;
        let size = &bytes[at..at + line];
        if size.is_empty() || !size.iter().all(u8::is_ascii_hexdigit) {
            return Some(Err("a chunk size that is none"));
        }
        let size = usize::from_str_radix(std::str::from_utf8(size).unwrap(), 16).unwrap();
        at += line + 2 + size;
        let end = bytes.get(at..at + 2)?;
        if end != b"\r\n" {
            return Some(Err("a chunk that does not end"));
        }
        at += 2;
        if size == 0 {
            return Some(Ok(at));
        }
    }
}
