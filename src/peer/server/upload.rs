//! A body on its way to a neighbour: counted, held to the rate, and occupying a place until it is gone.

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use http_body::{Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use super::Server;
use crate::http::{Body, BodyError};
use crate::unit::Rate;

/// The size of a part where there is no rate to hold.
const UNLIMITED: usize = usize::MAX;

/// The largest part sent at once. At a low rate the parts are small, so that every reader of many still gets
/// some before it takes this node for dead.
pub(super) fn part(rate: Rate) -> usize {
    const MOST: u64 = 256 * 1024;
    rate.limit().map_or(UNLIMITED, |rate| usize::try_from((rate / 64).clamp(512, MOST)).unwrap_or(512))
}

/// What goes to one neighbour.
pub(super) struct Upload {
    inner: Body,
    left: u64,
    /// What was read but may not leave yet.
    held: Bytes,
    /// What the throttle was asked for, and the wait for it.
    leave: Option<(usize, Leave)>,
    server: Server,
    _place: OwnedSemaphorePermit,
}

type Leave = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Upload {
    pub(super) fn new(inner: Body, length: u64, server: &Server, place: OwnedSemaphorePermit) -> Self {
        let (held, server) = (Bytes::new(), server.clone());
        Self { inner, left: length, held, leave: None, server, _place: place }
    }

    /// The next part of what is held.
    fn send(&mut self, size: usize) -> Frame<Bytes> {
        let part = self.held.split_to(size.min(self.held.len()));
        let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
        self.left = self.left.saturating_sub(length);
        self.server.0.uploaded.fetch_add(length, Ordering::Relaxed);
        Frame::data(part)
    }
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        loop {
            if let Some((size, leave)) = &mut this.leave {
                ready!(leave.as_mut().poll(cx));
                let size = *size;
                this.leave = None;
                return Poll::Ready(Some(Ok(this.send(size))));
            }
            if this.held.has_remaining() {
                let part = this.server.0.part.load(Ordering::Relaxed);
                if part == UNLIMITED {
                    return Poll::Ready(Some(Ok(this.send(part))));
                }
                let (throttle, size) = (this.server.0.throttle.clone(), part.min(this.held.len()));
                this.leave = Some((size, Box::pin(async move { throttle.take(size).await })));
                continue;
            }
            match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                Some(Ok(frame)) => this.held = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
