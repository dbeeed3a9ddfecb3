//! A body that does not wait for ever, and says when it is through.
//!
//! A slow reader of ours is not mistaken for a silent source: the time counts only while somebody waits.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Sleep;

/// What arrives.
pub struct Watched {
    inner: Incoming,
    /// What is still to come; none where only a trailer tells the end.
    left: Option<u64>,
    /// The trailer came.
    told: bool,
    stall: Duration,
    timer: Pin<Box<Sleep>>,
    /// Whether the timer counts: only while somebody waits for bytes.
    waiting: bool,
    /// Done when it is through; dropped where it fails.
    end: Option<Box<dyn FnOnce() + Send>>,
    /// Counted here as well.
    counter: Option<Arc<AtomicU64>>,
}

/// Why it fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// No byte for too long.
    #[error("no byte came for too long")]
    Stalled,
    /// Fewer bytes than were announced.
    #[error("it ended early")]
    Early,
    /// The connection or its framing.
    #[error("{0}")]
    Broken(String),
}

impl Watched {
    /// A body of exactly `size` bytes, of which there is silence for at most `stall`.
    pub fn new(inner: Incoming, size: u64, stall: Duration, end: impl FnOnce() + Send + 'static) -> Self {
        Self::of(inner, Some(size), stall, end)
    }

    /// A body whose end is told by the trailer `Repr-Digest`: without it, it was cut short.
    pub fn until_trailer(inner: Incoming, stall: Duration, end: impl FnOnce() + Send + 'static) -> Self {
        Self::of(inner, None, stall, end)
    }

    fn of(inner: Incoming, left: Option<u64>, stall: Duration, end: impl FnOnce() + Send + 'static) -> Self {
        let timer = Box::pin(tokio::time::sleep(stall));
        let mut body = Self {
            inner,
            left,
            told: false,
            stall,
            timer,
            waiting: false,
            end: Some(Box::new(end)),
            counter: None,
        };
        if left == Some(0) {
            body.finish();
        }
        body
    }

    /// Its bytes are counted there as well.
    #[must_use]
    pub fn counted(mut self, counter: Arc<AtomicU64>) -> Self {
        self.counter = Some(counter);
        self
    }

    fn finish(&mut self) {
        if let Some(end) = self.end.take() {
            end();
        }
    }

    fn fail<T>(&mut self, error: WatchError) -> Poll<Option<Result<T, WatchError>>> {
        self.end = None;
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
    type Error = WatchError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, WatchError>>> {
        let this = &mut *self;
        match Pin::new(&mut this.inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                this.waiting = false;
                let length = frame.data_ref().map_or(0, Bytes::len);
                let length = u64::try_from(length).unwrap_or(u64::MAX);
                this.left = this.left.map(|left| left.saturating_sub(length));
                this.told |= frame.trailers_ref().is_some_and(|fields| fields.contains_key("repr-digest"));
                if let Some(counter) = &this.counter {
                    counter.fetch_add(length, Ordering::Relaxed);
                }
                if this.left == Some(0) {
                    this.finish();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => this.fail(WatchError::Broken(error.to_string())),
            Poll::Ready(None) if this.left.map_or(!this.told, |left| left > 0) => {
                this.left = Some(0);
                this.fail(WatchError::Early)
            }
            Poll::Ready(None) => {
                this.finish();
                Poll::Ready(None)
            }
            Poll::Pending => match this.poll_timer(cx) {
                Poll::Ready(()) => this.fail(WatchError::Stalled),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0) && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("left", &self.left).finish_non_exhaustive()
    }
}
