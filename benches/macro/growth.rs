//! Whether what a client feels grows with what is held: one request after the other on one connection.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use super::programs::address;

/// Latencies in microseconds: the middle, and that of the slowest of a hundred.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl std::fmt::Display for Latency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0} / {:.0}", self.p50, self.p99)
    }
}

/// Asks for each of these of the server at this port, and reads the answers whole.
pub(crate) fn ask(port: u16, targets: &[String], origin: u16) -> Latency {
    let mut stream = TcpStream::connect(address(port)).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    let mut took: Vec<f64> = targets
        .iter()
        .map(|target| {
            let begun = Instant::now();
            let request = format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{origin}\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            read_answer(&mut answers);
            begun.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    took.sort_by(f64::total_cmp);
    let at = |share: usize| *took.get(took.len() * share / 100).unwrap();
    Latency { p50: at(50), p99: at(99) }
}

fn read_answer(from: &mut BufReader<TcpStream>) {
    let (mut length, mut line) = (0_u64, String::new());
    from.read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 200"), "{line}");
    loop {
        line.clear();
        from.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; usize::try_from(length).unwrap()];
    from.read_exact(&mut body).unwrap();
}
