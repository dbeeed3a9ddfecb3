//! A body held to a pace: a rate shared with other bodies, and behind those who go first.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use http_body::{Frame, SizeHint};

use super::{Background, Body, BodyError};
use crate::net::precedence::Precedence;
use crate::net::throttle::{Throttle, part};
use crate::unit::Rate;

/// The size of a part where there is no rate to hold.
const UNLIMITED: usize = usize::MAX;

/// A rate that many bodies share; a cheap clone.
#[derive(Debug, Clone)]
pub struct Pace(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    throttle: Throttle,
    /// The largest part sent between two looks at the throttle.
    part: AtomicUsize,
}

/// A body at that rate.
pub struct Paced {
    inner: Body,
    /// What was read but may not leave yet.
    held: Bytes,
    /// What was asked for, and the wait for it.
    leave: Option<(usize, Leave)>,
    pace: Pace,
    after: Option<Precedence>,
    /// Until somebody waits for it.
    background: Option<Background>,
}

type Leave = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Pace {
    /// So many bytes a second; 0 for no limit.
    pub fn new(rate: Rate) -> Self {
        let part = AtomicUsize::new(part_of(rate));
        Self(Arc::new(Inner { throttle: Throttle::new(rate), part }))
    }

    /// Changes the rate, for running bodies as well.
    pub fn set(&self, rate: Rate) {
        self.0.part.store(part_of(rate), Ordering::Relaxed);
        self.0.throttle.set(rate);
    }

    /// A body at this pace, and behind those who go first.
    pub fn hold(&self, inner: Body, after: Option<Precedence>) -> Paced {
        Paced { inner, held: Bytes::new(), leave: None, pace: self.clone(), after, background: None }
    }

    /// The same for what nobody waits for yet: it is behind others until somebody does.
    pub fn hold_back(&self, inner: Body, after: Precedence, background: Background) -> Paced {
        Paced { background: Some(background), ..self.hold(inner, Some(after)) }
    }
}

fn part_of(rate: Rate) -> usize {
    rate.limit().map_or(UNLIMITED, |_| part(rate))
}

impl Paced {
    /// The largest part that may leave at once.
    fn part(&self) -> usize {
        let part = self.pace.0.part.load(Ordering::Relaxed);
        self.after().map_or(part, |after| part.min(after.part()))
    }

    /// Whom it is behind now.
    fn after(&self) -> Option<&Precedence> {
        let is_lifted = self.background.as_ref().is_some_and(Background::is_lifted);
        self.after.as_ref().filter(|_| !is_lifted)
    }

    fn ask(&self, size: usize) -> Leave {
        let (pace, after) = (self.pace.clone(), self.after().cloned());
        Box::pin(async move {
            if let Some(after) = after {
                after.after(size).await;
            }
            pace.0.throttle.take(size).await;
        })
    }
}

impl http_body::Body for Paced {
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
                let size = (*size).min(this.held.len());
                this.leave = None;
                return Poll::Ready(Some(Ok(Frame::data(this.held.split_to(size)))));
            }
            if this.held.has_remaining() {
                let part = this.part();
                if part == UNLIMITED {
                    return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.held)))));
                }
                let size = part.min(this.held.len());
                this.leave = Some((size, this.ask(size)));
                continue;
            }
            match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.held = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                ended @ (Some(Err(_)) | None) => return Poll::Ready(ended),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let held = u64::try_from(self.held.len()).unwrap_or(u64::MAX);
        let inner = self.inner.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(held));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(held));
        }
        hint
    }
}

impl std::fmt::Debug for Paced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Paced").field("held", &self.held.len()).finish_non_exhaustive()
    }
}
