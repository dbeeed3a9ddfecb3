//! The peer's plain HTTP, both sides, with the answers and the bans of the page.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{File, LOOK, Shared};
use crate::support::client::Answer;
use crate::support::{GUARD, find};

/// A request that came.
#[derive(Clone, Debug)]
pub struct Request {
    pub line: String,
    pub fields: Vec<(String, String)>,
    /// What was answered.
    pub status: u16,
}

/// What was got.
#[derive(Debug)]
pub struct Got {
    pub answer: Answer,
    /// The head as it came.
    pub head: String,
}

impl Request {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// One download, with the fields of the original in their order.
pub fn get(own: Ipv4Addr, peer: SocketAddrV4, method: &str, token: &str, range: Option<&str>) -> Got {
    let range = range.map(|range| format!("Range: bytes={range}\r\n")).unwrap_or_default();
    let head = format!(
        "{method} /?origin.test=pool/file.bin HTTP/1.1\r\nHost: {peer}\r\n{range}Accept: */*\r\nUser-Agent: \r\n\
         Connection: Keep-Alive\r\nKeep-Alive: timeout=30\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddrV4::new(own, 0).into()).unwrap();
    socket.connect_timeout(&SocketAddr::from(peer).into(), GUARD).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(GUARD)).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        if let Some(at) = find(&bytes, b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
            let length = header(&head, "content-length").and_then(|length| length.parse::<usize>().ok());
            let whole = at + 4 + length.filter(|_| method != "HEAD").unwrap_or(0);
            if bytes.len() >= whole {
                let empty = [&bytes[..at + 4], b""].concat();
                let shown = if method == "HEAD" || head.contains(" 204 ") { &empty } else { &bytes };
                return Got { answer: Answer::of_whole(shown), head };
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => {
                let at = find(&bytes, b"\r\n\r\n").unwrap_or(0);
                let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
                return Got { answer: Answer::of_whole(&bytes), head };
            }
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
        }
    }
}

pub(super) fn serve(doors: &TcpListener, shared: &Arc<Shared>) {
    let mut guests = Vec::new();
    while !shared.stop.load(Ordering::SeqCst) {
        match doors.accept() {
            Ok((stream, from)) => {
                let shared = Arc::clone(shared);
                guests.push(std::thread::spawn(move || converse(stream, from.ip(), &shared)));
            }
            Err(_) => std::thread::sleep(LOOK / 4),
        }
    }
    for guest in guests {
        drop(guest.join());
    }
}

fn converse(mut stream: TcpStream, from: IpAddr, shared: &Shared) {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(LOOK)).unwrap();
    if shared.state().bans.contains_key(&from) {
        drop(stream.write_all(b"HTTP/1.0 418 I am a teapot\r\n\r\nyou are banned"));
        return;
    }
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    while !shared.stop.load(Ordering::SeqCst) {
        if let Some(at) = find(&bytes, b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..at]).into_owned();
            bytes.drain(..at + 4);
            if !respond(&mut stream, &head, from, shared) {
                return;
            }
            continue;
        }
        match stream.read(&mut piece) {
            Ok(0) => return,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
            Err(error)
                if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
    }
}

fn header(head: &str, name: &str) -> Option<String> {
    let mut lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    lines.find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
}

/// Answers one request; false ends the connection.
fn respond(stream: &mut TcpStream, head: &str, from: IpAddr, shared: &Shared) -> bool {
    let line = head.lines().next().unwrap_or_default().to_owned();
    let bearer =
        header(head, "authorization").and_then(|field| field.strip_prefix("Bearer ").map(str::to_owned));
    let token = bearer.ok_or("no token".to_owned()).and_then(|token| shared.keys.open_token(&token));
    let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let fields: Vec<(String, String)> =
        fields.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
    let range = header(head, "range");
    let log = |status: u16| {
        let (line, fields) = (line.clone(), fields.clone());
        shared.state().requests.push(Request { line, fields, status });
        if status == 400 || status > 401 {
            shared.ban(from, format!("status {status}"));
        }
    };
    let path = line.split(' ').nth(1).unwrap_or_default();
    let method = line.split(' ').next().unwrap_or_default();
    let right = token.as_ref().is_ok_and(|token| {
        token.kind() == 7
            && token.address() == shared.ip
            && (token.uuid() == [0; 16] || token.uuid() == [0x5a; 16])
    });
    if !matches!(method, "GET" | "HEAD") || path.is_empty() || path.starts_with("/htt") || !right {
        log(403);
        drop(stream.write_all(b"HTTP/1.0 403 Forbidden\r\n\r\n<html>rejected</html>"));
        return false;
    }
    let Ok(token) = &token else { return false };
    let Some(file) = shared.held(&token.hash_hex(), token.size()) else {
        let status = if token.uuid() == [0; 16] { 204 } else { 404 };
        log(status);
        return stream
            .write_all(format!("HTTP/1.1 {status} Nothing\r\nContent-Length: 0\r\n\r\n").as_bytes())
            .is_ok();
    };
    if let Some(status) = file.status {
        log(status);
        return stream
            .write_all(format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n").as_bytes())
            .is_ok();
    }
    match bounds(range.as_deref(), file.bytes.len()) {
        Err(status) => {
            log(status);
            drop(stream.write_all(format!("HTTP/1.0 {status} Rejected\r\n\r\n").as_bytes()));
            false
        }
        Ok((start, end, status)) => {
            log(status);
            send(stream, &file, (start, end, status), method == "HEAD", shared)
        }
    }
}

/// The bytes of a range as the original reads it: closed ones right, open ones of a first request empty, those
/// past the end and several at once an offence.
fn bounds(range: Option<&str>, size: usize) -> Result<(usize, usize, u16), u16> {
    let Some(range) = range.and_then(|range| range.strip_prefix("bytes=").map(str::to_owned)) else {
        return Ok((0, size, 200));
    };
    let Some((first, last)) = range.split_once('-').filter(|_| !range.contains(',')) else { return Err(400) };
    let first: usize = first.parse().unwrap_or(0);
    if first >= size {
        return Err(416);
    }
    match last.parse::<usize>() {
        Ok(last) => Ok((first, (last + 1).min(size), 206)),
        Err(_) => Ok((first, first, 206)),
    }
}

fn send(
    stream: &mut TcpStream,
    file: &File,
    (start, end, status): (usize, usize, u16),
    head_only: bool,
    shared: &Shared,
) -> bool {
    let size = file.bytes.len();
    let range = if status == 206 {
        format!("Content-Range: bytes {start}-{}/{size}\r\n", end as i64 - 1)
    } else {
        String::new()
    };
    let head = format!(
        "HTTP/1.1 {status} OK\r\nServer: mget\r\nAccept-Ranges: bytes\r\n{range}Content-Length: {}\r\n\
         Last-Modified: Mon, 30 Nov 2026 08:00:00 GMT\r\n\r\n",
        end - start
    );
    if stream.write_all(head.as_bytes()).is_err() || head_only {
        return head_only;
    }
    let end = file.cut.map_or(end, |cut| end.min(start + cut));
    let (step, pause) = file.arriving.unwrap_or((size.max(1), std::time::Duration::ZERO));
    for chunk in file.bytes[start..end].chunks(step) {
        if stream.write_all(chunk).is_err() || shared.stop.load(Ordering::SeqCst) {
            return false;
        }
        std::thread::sleep(pause);
    }
    file.cut.is_none()
}
