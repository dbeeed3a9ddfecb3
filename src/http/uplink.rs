//! What goes to neighbours: so many bodies at one time, all of them held to one rate and counted.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Body, BodyError, Pace, Paced};
use crate::net::precedence::Precedence;
use crate::unit::Rate;

/// The way out to neighbours, by whatever protocol; a cheap clone.
#[derive(Debug, Clone)]
pub struct Uplink(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    places: Arc<Semaphore>,
    most: usize,
    pace: Pace,
    /// This machine's own clients go first.
    after: Option<Precedence>,
    /// Bytes of bodies sent so far.
    sent: AtomicU64,
}

/// The right to send one body; given back when dropped.
#[derive(Debug)]
pub struct Place(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl Uplink {
    /// So many bytes a second, 0 for no limit, in at most so many bodies at one time.
    pub fn new(rate: Rate, most: usize) -> Self {
        Self::behind(None, rate, most)
    }

    /// The same, behind those who go first.
    pub fn behind(after: Option<Precedence>, rate: Rate, most: usize) -> Self {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Self(Arc::new(Inner {
            places: Arc::new(Semaphore::new(most)),
            most,
            pace: Pace::new(rate),
            after,
            sent: AtomicU64::new(0),
        }))
    }

    /// Changes the rate, for running bodies as well.
    pub fn set_rate(&self, rate: Rate) {
        self.0.pace.set(rate);
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
        self.relay(inner, Some(length), place)
    }

    /// The same, or one whose end is told by a trailer.
    pub fn relay(&self, inner: Body, length: Option<u64>, place: Place) -> Upload {
        Upload {
            inner: self.0.pace.hold(inner, self.0.after.clone()),
            left: length,
            uplink: self.clone(),
            also: None,
            _place: place,
        }
    }
}

/// What goes to one neighbour.
pub struct Upload {
    inner: Paced,
    /// What is still to be sent; none where only a trailer tells the end.
    left: Option<u64>,
    uplink: Uplink,
    /// Counted here as well.
    also: Option<Arc<AtomicU64>>,
    _place: Place,
}

impl Upload {
    /// Its bytes are counted there as well.
    #[must_use]
    pub fn counted(mut self, counter: Arc<AtomicU64>) -> Self {
        self.also = Some(counter);
        self
    }

    fn count(&mut self, length: usize) {
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        self.left = self.left.map(|left| left.saturating_sub(length));
        for counter in [Some(&self.uplink.0.sent), self.also.as_deref()].into_iter().flatten() {
            counter.fetch_add(length, Ordering::Relaxed);
        }
    }
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            self.count(frame.data_ref().map_or(0, Bytes::len));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upload").field("left", &self.left).finish_non_exhaustive()
    }
}
