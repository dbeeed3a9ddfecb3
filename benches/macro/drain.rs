//! A client that takes what a server can give and does nothing with it.
//!
//! wrk copies 8 KiB at a time and is through with its core before a fast server is. This one reads heads, and has
//! the kernel drop bodies where they lie (`recv` with `MSG_TRUNC`), so that the server's core is the bound.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, recv};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// One `recv` of a body.
const PIECE: usize = 4 << 20;

/// `drain ADDRESS TARGET CONNECTIONS SECONDS`: prints bytes, answers and seconds.
pub(crate) fn main(mut words: impl Iterator<Item = String>) {
    let mut next = || words.next().unwrap();
    let (address, target) = (next(), next());
    let (connections, seconds): (usize, f64) = (next().parse().unwrap(), next().parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (bytes, answers, took) =
        tokio::task::LocalSet::new().block_on(&runtime, run(address, target, connections, seconds));
    println!("{bytes} {answers} {took}");
}

async fn run(address: String, target: String, connections: usize, seconds: f64) -> (u64, u64, f64) {
    let (bytes, answers) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    for _ in 0..connections {
        let (bytes, answers) = (Rc::clone(&bytes), Rc::clone(&answers));
        let (address, target) = (address.clone(), target.clone());
        tokio::task::spawn_local(async move {
            let stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            let request = format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", host(&target));
            loop {
                ask(&stream, request.as_bytes()).await.unwrap();
                let (length, came) = head(&stream).await.unwrap();
                bytes.set(bytes.get() + came);
                drain(&stream, length - came, &bytes).await.unwrap();
                answers.set(answers.get() + 1);
            }
        });
    }
    let start = Instant::now();
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    (bytes.get(), answers.get(), start.elapsed().as_secs_f64())
}

fn host(target: &str) -> &str {
    target.strip_prefix("http://").map_or("bench", |rest| rest.split('/').next().unwrap())
}

async fn ask(stream: &TcpStream, mut request: &[u8]) -> io::Result<()> {
    while !request.is_empty() {
        stream.writable().await?;
        match stream.try_write(request) {
            Ok(sent) => request = request.get(sent..).unwrap(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The length of the body, and how much of it came with the head.
async fn head(stream: &TcpStream) -> io::Result<(u64, u64)> {
    let mut held = Vec::new();
    loop {
        stream.readable().await?;
        let mut part = [0; 1024];
        match stream.try_read(&mut part) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => held.extend_from_slice(part.get(..count).unwrap()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        }
        let Some(end) = held.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(held.get(..end).unwrap()).to_ascii_lowercase();
        assert!(text.starts_with("http/1.1 20"), "{text}");
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:")).unwrap();
        return Ok((length.trim().parse().unwrap(), (held.len() - end - 4) as u64));
    }
}

async fn drain(stream: &TcpStream, mut left: u64, bytes: &Cell<u64>) -> io::Result<()> {
    thread_local! { static SCRATCH: std::cell::RefCell<Vec<u8>> = std::cell::RefCell::new(vec![0; PIECE]); }
    while left > 0 {
        stream.readable().await?;
        let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let came = stream.try_io(Interest::READABLE, || {
            SCRATCH.with_borrow_mut(|scratch| {
                let room = scratch.get_mut(..most).unwrap_or_default();
                Ok(recv(stream, room, RecvFlags::TRUNC | RecvFlags::DONTWAIT)?.1)
            })
        });
        match came {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                left -= count as u64;
                bytes.set(bytes.get() + count as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
