//! A stream some of whose bytes were read already, and that may have to end without a word.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::stream::Abort;

/// A stream that begins with what was read of it before.
#[derive(Debug)]
pub(super) struct Rewound<S> {
    seen: Bytes,
    stream: S,
    abort: Abort,
}

impl<S> Rewound<S> {
    /// These bytes first, then the stream. Where `abort` is set it is never closed properly: TLS too would
    /// say that all is complete (RFC 8446 section 6.1).
    pub(super) fn new(seen: impl Into<Bytes>, stream: S, abort: Abort) -> Self {
        Self { seen: seen.into(), stream, abort }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.seen.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let count = self.seen.len().min(buf.remaining());
        buf.put_slice(&self.seen.split_to(count));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.abort.is_set() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn what_was_read_comes_first_and_an_abort_is_no_end() {
        let (mut near, far) = tokio::io::duplex(64);
        let abort = Abort::default();
        let mut stream = Rewound::new(b"GET ".as_slice(), far, abort.clone());
        near.write_all(b"/ HTTP/1.1").await.unwrap();
        let mut got = [0; 14];
        stream.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"GET / HTTP/1.1");
        abort.set();
        assert!(stream.shutdown().await.is_err());
        abort.clear();
        stream.shutdown().await.unwrap();
    }
}
