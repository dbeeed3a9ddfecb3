//! An origin with one file: a strong tag, conditions, and ranges where it is told to know them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use larder::digest::Digest;

const TAG: &str = "\"one-version\"";

/// Serves until it is killed.
pub(crate) fn run(address: &str, size: u64, ranges: bool) {
    let body: Arc<[u8]> = body(size).into();
    let listener = TcpListener::bind(address).unwrap();
    println!("ready");
    for stream in listener.incoming() {
        let (stream, body) = (stream.unwrap(), Arc::clone(&body));
        std::thread::spawn(move || drop(serve(stream, &body, ranges)));
    }
}

/// The digest of the file.
pub(crate) fn digest(size: u64) -> String {
    Digest::of(&body(size)).to_string()
}

fn body(size: u64) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..size / 8).flat_map(|_| next()).collect()
}

fn serve(stream: TcpStream, body: &[u8], ranges: bool) -> std::io::Result<()> {
    let mut to = stream.try_clone()?;
    let mut lines = BufReader::new(stream).lines();
    loop {
        let mut fields = Vec::new();
        while let Some(line) = lines.next().transpose()?.filter(|line| !line.is_empty()) {
            fields.push(line);
        }
        if fields.is_empty() {
            return Ok(());
        }
        let field = |name: &str| {
            let value = |line: &String| {
                let (key, value) = line.split_once(": ")?;
                key.eq_ignore_ascii_case(name).then(|| value.to_owned())
            };
            fields.iter().find_map(value)
        };
        let common = format!("ETag: {TAG}\r\nCache-Control: max-age=3600\r\n");
        if field("if-none-match").is_some_and(|tag| tag.contains(TAG)) {
            write!(to, "HTTP/1.1 304 Not Modified\r\n{common}\r\n")?;
            continue;
        }
        let asked = field("range").filter(|_| ranges && field("if-range").is_none_or(|tag| tag == TAG));
        let asked = asked.and_then(|text| span(&text, body.len()));
        let size = body.len();
        match asked {
            Some((first, last)) => write!(
                to,
                "HTTP/1.1 206 Partial Content\r\n{common}Content-Length: {}\r\n\
                 Content-Range: bytes {first}-{last}/{size}\r\n\r\n",
                last + 1 - first
            )?,
            None => write!(to, "HTTP/1.1 200 OK\r\n{common}Content-Length: {size}\r\n\r\n")?,
        }
        let (first, last) = asked.unwrap_or((0, size - 1));
        to.write_all(&body[first..=last])?;
    }
}

fn span(text: &str, size: usize) -> Option<(usize, usize)> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let first: usize = first.parse().ok()?;
    let last = if last.is_empty() { size - 1 } else { last.parse::<usize>().ok()?.min(size - 1) };
    (first <= last).then_some((first, last))
}
