//! The client's connection: reset instead of closed where a close would look like a good end, and given up
//! when the client takes nothing for too long.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use crate::net::sendfile::FileOutlet;

/// How long, and for how many bytes, what a client still sends is read after our last word: closing over unread
/// bytes would reset the connection, and the client could lose the answer.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 256 * 1024;

/// How long a client may take nothing of what is there for it.
pub(super) const IDLE_WRITE: Duration = Duration::from_secs(300);

/// Set when the connection must end with a reset.
#[derive(Debug, Clone, Default)]
pub(super) struct Abort(Arc<AtomicBool>);

impl Abort {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(super) fn clear(&self) {
        self.0.store(false, Ordering::SeqCst);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// A client's connection.
#[derive(Debug)]
pub(super) struct ClientStream {
    stream: TcpStream,
    abort: Abort,
    files: FileOutlet,
    waiting: Option<Pin<Box<Sleep>>>,
    lingering: Option<Lingering>,
}

/// Reading what is left after the last answer.
#[derive(Debug)]
struct Lingering {
    until: Pin<Box<Sleep>>,
    left: usize,
}

impl ClientStream {
    /// What is given to `files` goes out here.
    pub(super) fn new(stream: TcpStream, abort: Abort, files: FileOutlet) -> Self {
        Self { stream, abort, files, waiting: None, lingering: None }
    }

    fn linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(lingering) = &mut self.lingering else { return Poll::Ready(Ok(())) };
        let mut scratch = [0; 8 * 1024];
        while lingering.left > 0 && lingering.until.as_mut().poll(cx).is_pending() {
            let mut room = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut room)) {
                Ok(()) if !room.filled().is_empty() => {
                    lingering.left = lingering.left.saturating_sub(room.filled().len());
                }
                Ok(()) | Err(_) => break,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Bounds how long a write that cannot go on waits.
    fn bound<T>(&mut self, cx: &mut Context<'_>, wrote: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if wrote.is_ready() {
            self.waiting = None;
            return wrote;
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(IDLE_WRITE)));
        match waiting.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

use std::future::Future as _;

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.bound(cx, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let wrote = this.files.poll_write_vectored(&mut this.stream, cx, bufs);
        this.bound(cx, wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.abort.is_set() {
            // a FIN would tell an HTTP/1.0 client that the body is complete
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            let until = Box::pin(tokio::time::sleep(LINGER));
            self.lingering = Some(Lingering { until, left: LINGER_BYTES });
        }
        self.linger(cx)
    }
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        if self.abort.is_set()
            && let Err(error) = self.stream.set_zero_linger()
        {
            tracing::debug!(%error, "failed to have a connection reset");
        }
    }
}
