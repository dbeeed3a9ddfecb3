//! Bodies under watch: the response's, which must not fall silent and holds its connection until it ends,
//! and the request's, whose progress shows that a silent origin is merely listening.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Sleep;

use super::OriginError;
use super::pool::Lease;
use crate::http::{Body, BodyError};

/// A response body.
pub(super) struct Watched {
    inner: Incoming,
    host: String,
    stall: Duration,
    /// Runs while the reader waits for us and at no other time: a slow reader is no stall.
    silence: Option<Pin<Box<Sleep>>>,
    lease: Option<Lease>,
    over: bool,
    /// Counts its bytes, where somebody waits for them.
    counter: Option<Arc<AtomicU64>>,
}

impl Watched {
    pub(super) fn new(inner: Incoming, host: String, stall: Duration, lease: Lease) -> Self {
        let mut body =
            Self { inner, host, stall, silence: None, lease: Some(lease), over: false, counter: None };
        if body.inner.is_end_stream() {
            body.give_back();
        }
        body
    }

    /// Its bytes are counted there.
    pub(super) fn counted(self, counter: Option<Arc<AtomicU64>>) -> Self {
        Self { counter, ..self }
    }

    /// All was read: the connection may serve others.
    fn give_back(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.give_back();
        }
    }

    /// Nothing more comes; the connection, if it is this body's alone, closes at once.
    fn fail(&mut self, error: OriginError) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.over = true;
        self.lease = None;
        Poll::Ready(Some(Err(error.into())))
    }

    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let stall = self.stall;
        self.silence.get_or_insert_with(|| Box::pin(tokio::time::sleep(stall))).as_mut().poll(cx)
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.over {
            return Poll::Ready(None);
        }
        match Pin::new(&mut self.inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.silence = None;
                if let (Some(counter), Some(data)) = (&self.counter, frame.data_ref()) {
                    counter.fetch_add(data.len() as u64, Ordering::Relaxed);
                }
                if self.inner.is_end_stream() {
                    self.give_back();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(None) => {
                self.over = true;
                self.give_back();
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(error))) => {
                let error = OriginError::of_hyper(&self.host, &error);
                self.fail(error)
            }
            Poll::Pending if self.poll_silence(cx).is_ready() => {
                let error = OriginError::stalled(&self.host);
                self.fail(error)
            }
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.over || self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// How far a request body is on its way.
#[derive(Debug, Default)]
pub(super) struct Progress {
    frames: AtomicU64,
    /// Its sender has nothing for us at the moment: nobody is to blame for that at the other end.
    is_waiting: AtomicBool,
}

/// A request body that says how far it is.
pub(super) struct Counted {
    inner: Body,
    progress: Arc<Progress>,
}

impl Progress {
    /// Whether the origin was to do something since this number was last given; and the number now.
    pub(super) fn since(&self, seen: u64) -> (bool, u64) {
        let now = self.frames.load(Ordering::Relaxed);
        (now == seen && !self.is_waiting.load(Ordering::Relaxed), now)
    }
}

impl Counted {
    pub(super) const fn new(inner: Body, progress: Arc<Progress>) -> Self {
        Self { inner, progress }
    }
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = Pin::new(&mut self.inner).poll_frame(cx);
        self.progress.is_waiting.store(frame.is_pending(), Ordering::Relaxed);
        if frame.is_ready() {
            self.progress.frames.fetch_add(1, Ordering::Relaxed);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
