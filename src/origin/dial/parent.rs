//! CONNECT through the parent proxy.

use http::header::HeaderValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::super::OriginError;

/// The longest answer that is read.
const LONGEST_ANSWER: usize = 16 * 1024;
const END: &[u8] = b"\r\n\r\n";

/// Asks the proxy at the other end to connect a host. Afterwards the stream is the host's, and not a byte
/// of what the host may have said already is lost.
pub(super) async fn connect(
    stream: &mut TcpStream,
    host: &str,
    port: u16,
    authorization: Option<HeaderValue>,
) -> Result<(), OriginError> {
    let failed = |why: String| OriginError::connect(host, format!("the parent proxy {why}"));
    let shown = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let mut request = format!("CONNECT {shown}:{port} HTTP/1.1\r\nHost: {shown}:{port}\r\n").into_bytes();
    if let Some(value) = authorization {
        request.extend_from_slice(b"Proxy-Authorization: ");
        request.extend_from_slice(value.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    stream.write_all(&request).await.map_err(|e| failed(format!("does not listen: {e}")))?;
    let head = head(stream).await.map_err(|e| failed(format!("does not answer: {e}")))?;
    match status(&head) {
        Some(200..=299) => Ok(()),
        Some(407) => Err(OriginError::connect(host, super::PARENT_REFUSES)),
        Some(status) => Err(failed(format!("answers {status}"))),
        None => Err(failed("gives no valid answer".to_owned())),
    }
}

/// Reads exactly to the end of the answer's head: looks first, takes afterwards.
async fn head(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut seen = [0_u8; 1024];
    loop {
        let length = stream.peek(&mut seen).await?;
        let before = head.len();
        head.extend(seen.iter().take(length));
        let end = head.windows(END.len()).position(|bytes| bytes == END).map(|at| at + END.len());
        if length == 0 || (end.is_none() && head.len() > LONGEST_ANSWER) {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        head.truncate(end.unwrap_or(head.len()));
        let mut taken = vec![0; head.len() - before];
        stream.read_exact(&mut taken).await?;
        if end.is_some() {
            return Ok(head);
        }
    }
}

fn status(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    words.next().filter(|version| version.starts_with("HTTP/1."))?;
    words.next().filter(|code| code.len() == 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_a_status_line_has_a_status() {
        assert_eq!(status(b"HTTP/1.1 200 Connection established\r\n\r\n"), Some(200));
        assert_eq!(status(b"HTTP/1.0 407\r\n\r\n"), Some(407));
        for line in ["", "HTTP/2 200", "HTTP/1.1 2000 OK", "SSH-2.0-x", "HTTP/1.1"] {
            assert_eq!(status(line.as_bytes()), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_panics(answer: Vec<u8>) {
            prop_assert!(status(&answer).is_none_or(|status| status < 1000));
        }
    }
}
