//! A download through the node itself: a server of our own on this machine, asked for by way of the proxy port.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::Report;
use crate::config::Config;

/// What is downloaded; short, and never kept.
const BODY: &str = "larder doctor was here\n";
/// The longest any step may take.
const WAIT: Duration = Duration::from_secs(5);

pub(super) fn download(report: &mut Report, config: &Config) {
    let Some(door) = config.proxy.listen.first() else {
        report.warn("download", "proxy.listen is empty: nothing can be downloaded", "");
        return;
    };
    match through(*door) {
        Ok(said) => report.ok("download", format!("through {door}: {said}")),
        Err(what) => report.fail(
            "download",
            format!("through {door}: {what}"),
            "the daemon's log says more; is this machine's address in proxy.allow?",
        ),
    }
}

/// What became of it.
fn through(door: SocketAddr) -> Result<String, String> {
    let said = |error: std::io::Error| {
        use std::io::ErrorKind::{TimedOut, WouldBlock};
        let is_late = matches!(error.kind(), WouldBlock | TimedOut);
        if is_late { format!("nothing came within {} s", WAIT.as_secs()) } else { error.to_string() }
    };
    let local = if door.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
    let origin = TcpListener::bind(local).map_err(said)?;
    let at = origin.local_addr().map_err(said)?;
    let server = std::thread::spawn(move || serve(&origin));
    let answer = ask(door, at);
    // where nobody came the server still waits for somebody: a door may have answered by itself
    drop(TcpStream::connect_timeout(&at, WAIT));
    let served = server.join().map_err(|_| "the server of the test broke".to_owned())?;
    let answer = answer.map_err(said)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("the answer has no end")?;
    let status = head.lines().next().unwrap_or_default();
    if !status.contains(" 200 ") {
        return Err(status.to_owned());
    }
    served.map_err(said)?;
    if body != BODY {
        return Err("other bytes came than were sent".to_owned());
    }
    let field = |line: &str| line.to_ascii_lowercase().strip_prefix("cache-status: ").map(str::to_owned);
    Ok(head.lines().find_map(field).unwrap_or_else(|| "right".to_owned()))
}

/// Answers once.
fn serve(origin: &TcpListener) -> std::io::Result<()> {
    let (mut stream, _) = origin.accept()?;
    stream.set_read_timeout(Some(WAIT))?;
    let (mut head, mut piece) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < 64 * 1024 {
        match stream.read(&mut piece)? {
            0 => return Ok(()),
            read => head.extend_from_slice(piece.get(..read).unwrap_or_default()),
        }
    }
    let length = BODY.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(format!("{head}{BODY}").as_bytes())
}

fn ask(door: SocketAddr, origin: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&door, WAIT)?;
    stream.set_read_timeout(Some(WAIT))?;
    let head = format!(
        "GET http://{origin}/doctor HTTP/1.1\r\nHost: {origin}\r\nLarder-Peers: no\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    let mut answer = String::new();
    stream.take(64 * 1024).read_to_string(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_that_passes_it_on_is_told_from_one_that_does_not() {
        let door = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = door.local_addr().unwrap();
        let proxy = std::thread::spawn(move || {
            let (mut client, _) = door.accept().unwrap();
            let mut head = [0; 512];
            let read = client.read(&mut head).unwrap();
            let text = String::from_utf8_lossy(&head[..read]).into_owned();
            let origin = text.split("://").nth(1).unwrap().split('/').next().unwrap().to_owned();
            let mut to = TcpStream::connect(origin).unwrap();
            to.write_all(b"GET /doctor HTTP/1.1\r\n\r\n").unwrap();
            std::io::copy(&mut to, &mut client).unwrap();
            drop(client);
            let (mut client, _) = door.accept().unwrap();
            assert!(client.read(&mut head).unwrap() > 0);
            client.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").unwrap();
        });
        assert_eq!(through(at), Ok("right".to_owned()));
        assert_eq!(through(at), Err("HTTP/1.1 403 Forbidden".to_owned()));
        proxy.join().unwrap();
    }
}
