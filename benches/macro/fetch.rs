//! A client that takes many small things over a few connections, each once.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// `fetch ADDRESS BEFORE COUNT CONNECTIONS`: asks for BEFORE with each number below COUNT behind it; prints the
/// seconds it took, and of the answers' times in microseconds the median and the 99th percentile.
pub(crate) fn main(mut words: impl Iterator<Item = String>) {
    let mut next = || words.next().unwrap();
    let (address, before) = (next(), next());
    let (count, connections): (usize, usize) = (next().parse().unwrap(), next().parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (took, mut times) =
        tokio::task::LocalSet::new().block_on(&runtime, run(address, before, count, connections));
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default().as_micros();
    println!("{} {} {}", took.as_secs_f64(), at(50), at(99));
}

async fn run(address: String, before: String, count: usize, connections: usize) -> (Duration, Vec<Duration>) {
    let (number, times) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::with_capacity(count))));
    let start = Instant::now();
    let clients: Vec<_> = (0..connections)
        .map(|_| {
            let (number, times) = (Rc::clone(&number), Rc::clone(&times));
            let (address, before) = (address.clone(), before.clone());
            tokio::task::spawn_local(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                stream.set_nodelay(true).unwrap();
                while number.get() < count {
                    let own = number.replace(number.get() + 1);
                    let asked = Instant::now();
                    one(&mut stream, &format!("{before}{own}")).await.unwrap();
                    times.borrow_mut().push(asked.elapsed());
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    (start.elapsed(), times.take())
}

/// One answer, whole.
async fn one(stream: &mut TcpStream, target: &str) -> io::Result<()> {
    let request = format!("GET {target} HTTP/1.1\r\nHost: bench\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut held = Vec::with_capacity(16 * 1024);
    loop {
        if stream.read_buf(&mut held).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some(end) = held.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(held.get(..end).unwrap()).to_ascii_lowercase();
        assert!(text.starts_with("http/1.1 200"), "{text}");
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:")).unwrap();
        let whole = end + 4 + length.trim().parse::<usize>().unwrap();
        while held.len() < whole {
            if stream.read_buf(&mut held).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        return Ok(());
    }
}
