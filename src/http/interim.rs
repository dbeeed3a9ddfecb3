//! Interim answers (1xx, RFC 9110 section 15.2) on their way from an origin to the client whose request caused
//! them.
//!
//! The server this house is built on writes none but its own 100, so they are put on the connection beneath it:
//! before the head of the final answer, and only where everything of the answer before has left. Where that is
//! not so (a client that pipelines), after the final head, or beyond a bound, they are dropped, which a proxy's
//! client never notices but for the hint it did not get. 100 and 101 never travel: each connection has its own.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use http::StatusCode;
use http::header::HeaderMap;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::hop_by_hop_removed;

/// So many bytes of interim heads wait for one client at most.
const MOST: usize = 16 * 1024;

/// Where one request's interim answers go.
#[derive(Debug, Clone)]
pub struct Interim {
    outlet: InterimOutlet,
    turn: u64,
}

/// Where the interim answers of one connection's requests come out.
#[derive(Debug, Clone, Default)]
pub struct InterimOutlet(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Counts the requests.
    turn: u64,
    /// The request has no final answer yet.
    open: bool,
    /// All that was written has left.
    settled: bool,
    waiting: Vec<u8>,
    connection: Option<Waker>,
}

/// A connection with room for interim answers before each final one.
#[derive(Debug)]
pub struct InterimStream<S> {
    stream: S,
    outlet: InterimOutlet,
}

impl Interim {
    /// Sends an interim answer on, if its request still waits for the final one.
    pub fn offer(&self, status: StatusCode, fields: &HeaderMap) {
        if !status.is_informational() || matches!(status.as_u16(), 100 | 101) {
            return;
        }
        let head = head(status, fields);
        let mut state = self.outlet.lock();
        if state.turn == self.turn && state.open && state.waiting.len() + head.len() <= MOST {
            state.waiting.extend(head);
            if let Some(connection) = state.connection.take() {
                connection.wake();
            }
        }
    }
}

impl InterimOutlet {
    /// A request came; none where what came before has not all left.
    pub fn begin(&self) -> Option<Interim> {
        let mut state = self.lock();
        state.turn += 1;
        state.open = state.settled;
        state.open.then(|| Interim { outlet: self.clone(), turn: state.turn })
    }

    /// Its final answer is about to be written.
    pub fn close(&self) {
        self.lock().open = false;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> InterimStream<S> {
    /// A fresh connection, and where its interim answers go in.
    pub fn over(stream: S) -> (Self, InterimOutlet) {
        let outlet = InterimOutlet::default();
        outlet.lock().settled = true;
        (Self { stream, outlet: outlet.clone() }, outlet)
    }
}

impl<S: AsyncWrite + Unpin> InterimStream<S> {
    /// Writes what waits.
    fn let_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let waiting = std::mem::take(&mut self.outlet.lock().waiting);
            if waiting.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let wrote = Pin::new(&mut self.stream).poll_write(cx, &waiting);
            let sent = match &wrote {
                Poll::Ready(Ok(sent)) => *sent,
                Poll::Ready(Err(_)) | Poll::Pending => 0,
            };
            // what came meanwhile stands behind it
            let mut state = self.outlet.lock();
            let mut left = waiting.get(sent..).unwrap_or_default().to_vec();
            left.append(&mut state.waiting);
            state.waiting = left;
            drop(state);
            if ready!(wrote)? == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for InterimStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for InterimStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.let_out(cx))?;
        self.outlet.lock().settled = false;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.let_out(cx))?;
        self.outlet.lock().settled = false;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Called when the server's own buffer is empty, and so the moment for what waits.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.outlet.lock().connection = Some(cx.waker().clone());
        ready!(self.let_out(cx))?;
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.outlet.lock().settled = true;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

fn head(status: StatusCode, fields: &HeaderMap) -> Vec<u8> {
    let reason = status.canonical_reason().unwrap_or_default();
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    for (name, value) in &hop_by_hop_removed(fields) {
        head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    head.extend(b"\r\n");
    head
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    fn hint() -> HeaderMap {
        let mut fields = HeaderMap::new();
        fields.insert("link", HeaderValue::from_static("</a>; rel=preload"));
        fields.insert("connection", HeaderValue::from_static("x-hop"));
        fields.insert("x-hop", HeaderValue::from_static("1"));
        fields
    }

    async fn read(client: &mut tokio::io::DuplexStream, bytes: usize) -> String {
        let mut read = vec![0; bytes];
        client.read_exact(&mut read).await.unwrap();
        String::from_utf8(read).unwrap()
    }

    const HINT: &str = "HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n";

    #[tokio::test]
    async fn an_interim_answer_goes_out_before_the_final_one_and_early() {
        let (mut client, server) = tokio::io::duplex(64 * 1024);
        let (mut stream, outlet) = InterimStream::over(server);
        let interim = outlet.begin().unwrap();
        interim.offer(StatusCode::EARLY_HINTS, &hint());
        stream.flush().await.unwrap();
        assert_eq!(read(&mut client, HINT.len()).await, HINT);
        interim.offer(StatusCode::EARLY_HINTS, &hint());
        outlet.close();
        interim.offer(StatusCode::EARLY_HINTS, &hint());
        stream.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
        stream.flush().await.unwrap();
        drop(stream);
        let mut rest = String::new();
        client.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, format!("{HINT}HTTP/1.1 200 OK\r\n"));
    }

    #[tokio::test]
    async fn what_has_not_left_or_is_of_another_request_lets_nothing_in() {
        let (_client, server) = tokio::io::duplex(64 * 1024);
        let (mut stream, outlet) = InterimStream::over(server);
        let first = outlet.begin().unwrap();
        outlet.close();
        stream.write_all(b"200").await.unwrap();
        assert!(outlet.begin().is_none());
        stream.flush().await.unwrap();
        let second = outlet.begin().unwrap();
        first.offer(StatusCode::EARLY_HINTS, &hint());
        assert!(outlet.lock().waiting.is_empty());
        for never in [100, 101, 200] {
            second.offer(StatusCode::from_u16(never).unwrap(), &hint());
        }
        assert!(outlet.lock().waiting.is_empty());
        for _ in 0..1000 {
            second.offer(StatusCode::PROCESSING, &hint());
        }
        assert!(outlet.lock().waiting.len() <= MOST);
    }

    #[tokio::test]
    async fn a_slow_client_gets_the_bytes_in_their_order() {
        let (mut client, server) = tokio::io::duplex(7);
        let (mut stream, outlet) = InterimStream::over(server);
        outlet.begin().unwrap().offer(StatusCode::EARLY_HINTS, &hint());
        let writes = async {
            stream.write_all(b"final").await.unwrap();
            stream.flush().await.unwrap();
        };
        let (read, ()) = tokio::join!(read(&mut client, HINT.len() + 5), writes);
        assert_eq!(read, format!("{HINT}final"));
    }
}
