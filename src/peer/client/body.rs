//! A body that does not wait for ever, and gives its connection back when it is through.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Sleep;

use super::PullError;
use super::pool::Lease;

/// What arrives from a neighbour.
pub(super) struct Watched {
    inner: Incoming,
    left: u64,
    stall: Duration,
    timer: Pin<Box<Sleep>>,
    /// Whether the timer counts: only while somebody waits for bytes.
    waiting: bool,
    lease: Option<Lease>,
}

impl Watched {
    /// A body of exactly `size` bytes.
    pub(super) fn new(inner: Incoming, size: u64, stall: Duration, lease: Lease) -> Self {
        let timer = Box::pin(tokio::time::sleep(stall));
        let mut body = Self { inner, left: size, stall, timer, waiting: false, lease: Some(lease) };
        if size == 0 {
            body.finish();
        }
        body
    }

    fn finish(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.give_back();
        }
    }

    /// The connection of a body that failed is not used again.
    fn fail<T>(&mut self, error: PullError) -> Poll<Option<Result<T, PullError>>> {
        self.lease = None;
        self.waiting = false;
        Poll::Ready(Some(Err(error)))
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.waiting {
            self.waiting = true;
            self.timer.as_mut().set(tokio::time::sleep(self.stall));
        }
        self.timer.as_mut().poll(cx)
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = PullError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, PullError>>> {
        let this = &mut *self;
        match Pin::new(&mut this.inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                this.waiting = false;
                let length = frame.data_ref().map_or(0, Bytes::len);
                this.left = this.left.saturating_sub(u64::try_from(length).unwrap_or(u64::MAX));
                if this.left == 0 {
                    this.finish();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => this.fail(PullError::Protocol(error.to_string())),
            Poll::Ready(None) if this.left > 0 => {
                this.left = 0;
                this.fail(PullError::Protocol("it ended early".to_owned()))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => match this.poll_timer(cx) {
                Poll::Ready(()) => this.fail(PullError::Timeout("more bytes")),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0 && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
