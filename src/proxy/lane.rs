//! The shortest way: plain requests for small things that were just given out are answered on the connection itself,
//! each with one read and one write.
//!
//! To parse a request into a map, answer it through a service and put the answer together again costs more than all
//! else about a small file. So a connection begins here. As long as each request on it is a GET of an absolute target
//! without a field that means anything, and [`Proxy::known`] has the answer, it stays here; with the first other
//! request it goes to the HTTP server for good, all that was read of that request in front. What is answered here
//! is byte for byte what the server would have answered, which the tests compare.

use std::net::IpAddr;
use std::pin::pin;

use bytes::BytesMut;
use http::Uri;
use http::header::HeaderMap;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::Proxy;
use super::again::{Asked, IDLE_FIELDS};
use super::listener::{IDLE, LIMITS};
use super::respond;
use super::stream::IDLE_WRITE;
use crate::fetch::HeldFile;
use crate::http::inspect::is_bodiless;
use crate::shutdown::Shutdown;

/// What is larger goes out of its file.
const SMALL: u64 = 64 * 1024;
/// Room for a head: a longer one is not plain.
const HEAD: usize = 2048;
/// So much of the room for answers stays with an idle connection.
const KEPT: usize = 4096;

impl Proxy {
    /// Serves a connection until a request comes that is not plain: what was read of that; none where the connection
    /// has ended.
    pub(super) async fn serve_plain(
        &self,
        stream: &mut TcpStream,
        client: IpAddr,
        stop: &Shutdown,
    ) -> Option<BytesMut> {
        let port = stream.local_addr().map_or(0, |address| address.port());
        let door = respond::lines_of_hit(self.via());
        let (mut stopping, mut idle) = (pin!(stop.requested()), pin!(sleep(IDLE)));
        let (mut head, mut answer) = (BytesMut::new(), Vec::new());
        loop {
            tokio::select! {
                biased;
                () = stopping.as_mut() => return None,
                ready = stream.readable() => ready.ok()?,
                () = idle.as_mut() => return None,
            }
            // an idle connection that never asked has no buffer
            head.reserve(HEAD);
            match stream.try_read_buf(&mut head) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                Err(_) => return None,
            }
            let Some(file) = self.at_once(&head, client, port, (&mut answer, &door)) else {
                return Some(head);
            };
            match timeout(IDLE_WRITE, stream.write_all(&answer)).await {
                Ok(Ok(())) => file.delivered(),
                Ok(Err(_)) | Err(_) => return None,
            }
            head.clear();
            answer.clear();
            answer.shrink_to(KEPT);
            idle.set(sleep(IDLE));
        }
    }

    fn at_once(
        &self,
        head: &[u8],
        client: IpAddr,
        port: u16,
        (answer, door): (&mut Vec<u8>, &[u8]),
    ) -> Option<HeldFile> {
        let target = plain_target(head).filter(|_| is_bodiless(head, &LIMITS))?;
        let uri = target.parse::<Uri>().ok()?;
        let asked = Asked { uri: &uri, headers: &HeaderMap::new(), most: SMALL };
        let file = self.known(&asked, client, port)?.at_once(answer, door)?;
        self.0.engine.ledger().request();
        Some(file)
    }
}

/// The target of a request, where that is all there is to it.
fn plain_target(head: &[u8]) -> Option<&str> {
    let lines = std::str::from_utf8(head).ok()?.strip_suffix("\r\n\r\n")?;
    let (request, fields) = lines.split_once("\r\n").unwrap_or((lines, ""));
    let target = request.strip_prefix("GET ")?.strip_suffix(" HTTP/1.1")?;
    let is_plain = target.starts_with("http://") && fields.split("\r\n").all(is_idle);
    is_plain.then_some(target)
}

fn is_idle(field: &str) -> bool {
    let Some((name, value)) = field.split_once(':') else { return false };
    IDLE_FIELDS.iter().any(|idle| name.eq_ignore_ascii_case(idle.as_str()))
        || name.eq_ignore_ascii_case("connection") && value.trim().eq_ignore_ascii_case("keep-alive")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_request_is_answered_at_once() {
        let head = |first: &str, field: &str| format!("{first}\r\nHost: h\r\n{field}\r\n");
        let of = |head: &str| plain_target(head.as_bytes()).map(str::to_owned);
        let get = "GET http://h/p?q HTTP/1.1";
        for field in ["", "Accept: */*\r\n", "user-agent:x\r\n", "Connection: Keep-Alive\r\n"] {
            assert_eq!(of(&head(get, field)).as_deref(), Some("http://h/p?q"), "{field:?}");
        }
        for field in [
            "Range: bytes=0-1\r\n",
            "Authorization: x\r\n",
            "Cookie: a\r\n",
            "Cache-Control: no-cache\r\n",
            "If-None-Match: *\r\n",
            "Connection: close\r\n",
            "Connection: keep-alive, host\r\n",
            "Via: 1.1 x\r\n",
            "X-Unknown: 1\r\n",
            "Content-Length: 0\r\n",
            "Larder-Digest: sha256:00\r\n",
            "no field\r\n",
        ] {
            assert_eq!(of(&head(get, field)), None, "{field:?}");
        }
        for first in [
            "HEAD http://h/p HTTP/1.1",
            "GET http://h/p HTTP/1.0",
            "GET /p HTTP/1.1",
            "GET https://h/p HTTP/1.1",
            "get http://h/p HTTP/1.1",
        ] {
            assert_eq!(of(&head(first, "")), None, "{first}");
        }
        assert_eq!(of("GET http://h/p HTTP/1.1\r\nHost: h\r\n"), None, "not whole");
        assert_eq!(of(&format!("{}GET", head(get, ""))), None, "more follows");
    }
}
