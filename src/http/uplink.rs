//! What goes to neighbours: so many bodies at one time, all of them held to one rate and counted.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Body, BodyError};
use crate::net::throttle::Throttle;
use crate::unit::Rate;

/// The size of a part where there is no rate to hold.
const UNLIMITED: usize = usize::MAX;

/// The way out to neighbours, by whatever protocol; a cheap clone.
#[derive(Debug, Clone)]
pub struct Uplink(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    places: Arc<Semaphore>,
    most: usize,
    throttle: Throttle,
    /// The largest part sent between two looks at the throttle.
    part: AtomicUsize,
    /// Bytes of bodies sent so far.
    sent: AtomicU64,
}

/// The right to send one body; given back when dropped.
#[derive(Debug)]
pub struct Place(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl Uplink {
    /// So many bytes a second, 0 for no limit, in at most so many bodies at one time.
    pub fn new(rate: Rate, most: usize) -> Self {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Self(Arc::new(Inner {
            places: Arc::new(Semaphore::new(most)),
            most,
            throttle: Throttle::new(rate),
            part: AtomicUsize::new(part(rate)),
            sent: AtomicU64::new(0),
        }))
    }

    /// Changes the rate, for running bodies as well.
    pub fn set_rate(&self, rate: Rate) {
        self.0.part.store(part(rate), Ordering::Relaxed);
        self.0.throttle.set(rate);
    }

    /// How many bytes of bodies were sent.
    pub fn sent(&self) -> u64 {
        self.0.sent.load(Ordering::Relaxed)
    }

    /// How many bodies are being sent.
    pub fn uploads(&self) -> usize {
        self.0.most.saturating_sub(self.0.places.available_permits())
    }

    /// Whether nobody more can be served.
    pub fn is_busy(&self) -> bool {
        self.0.places.available_permits() == 0
    }

    /// A place, if one is free.
    pub fn place(&self) -> Option<Place> {
        Arc::clone(&self.0.places).try_acquire_owned().ok().map(Place)
    }

    /// A body of so many bytes that occupies the place until it is gone.
    pub fn send(&self, inner: Body, length: u64, place: Place) -> Upload {
        Upload {
            inner,
            left: length,
            held: Bytes::new(),
            leave: None,
            uplink: self.clone(),
            also: None,
            _place: place,
        }
    }
}

/// The largest part sent at once. At a low rate the parts are small, so that every reader of many still gets
/// some before it takes this node for dead.
fn part(rate: Rate) -> usize {
    const MOST: u64 = 256 * 1024;
    rate.limit().map_or(UNLIMITED, |rate| usize::try_from((rate / 64).clamp(512, MOST)).unwrap_or(512))
}

/// What goes to one neighbour.
pub struct Upload {
    inner: Body,
    left: u64,
    /// What was read but may not leave yet.
    held: Bytes,
    /// What the throttle was asked for, and the wait for it.
    leave: Option<(usize, Leave)>,
    uplink: Uplink,
    /// Counted here as well.
    also: Option<Arc<AtomicU64>>,
    _place: Place,
}

type Leave = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Upload {
    /// Its bytes are counted there as well.
    #[must_use]
    pub fn counted(mut self, counter: Arc<AtomicU64>) -> Self {
        self.also = Some(counter);
        self
    }

    /// The next part of what is held.
    fn send(&mut self, size: usize) -> Frame<Bytes> {
        let part = self.held.split_to(size.min(self.held.len()));
        let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
        self.left = self.left.saturating_sub(length);
        for counter in [Some(&self.uplink.0.sent), self.also.as_deref()].into_iter().flatten() {
            counter.fetch_add(length, Ordering::Relaxed);
        }
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
                let part = this.uplink.0.part.load(Ordering::Relaxed);
                if part == UNLIMITED {
                    return Poll::Ready(Some(Ok(this.send(part))));
                }
                let (throttle, size) = (this.uplink.0.throttle.clone(), part.min(this.held.len()));
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

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upload").field("left", &self.left).finish_non_exhaustive()
    }
}
