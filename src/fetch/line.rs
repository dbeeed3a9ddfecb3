//! The line that the log has of each download: what, from where, how many bytes, how long, and why.
//!
//! It is written at INFO when the body has gone, whole or not, and when there was none because it failed; an answer
//! without a body (HEAD, 304) is no download. The URL stands in it without query values and userinfo, who asked does
//! not. Its target is [`TARGET`], so that `log.level = "info,larder::download=off"` leaves it out.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::Method;
use http_body::{Frame, SizeHint};

use super::error::FetchError;
use super::outcome::CacheStatus;
use super::running::Running;
use super::want::Want;
use crate::clock::SharedClock;
use crate::http::{Body, BodyError, Target, boxed};
use crate::telemetry::DOWNLOADS as TARGET;

/// What is known of a download before any of it goes out.
#[derive(Debug, Clone)]
pub(super) struct Line {
    url: String,
    clock: SharedClock,
    began: Instant,
    source: String,
    why: &'static str,
    stored: bool,
    status: u16,
}

/// A download that goes out; its end is its line.
#[derive(Debug)]
pub(super) struct Going {
    line: Arc<Line>,
    /// Whose bytes come last is known at the end.
    running: Option<Arc<Running>>,
    /// How many bytes there should be, where that is known.
    wanted: Option<u64>,
    bytes: AtomicU64,
    ended: AtomicBool,
    failure: Option<String>,
}

impl Line {
    /// Of a want that is to be met; none where nobody reads it.
    pub(super) fn begin(want: &Want, clock: &SharedClock) -> Option<Self> {
        let is_read = tracing::enabled!(target: TARGET, tracing::Level::INFO);
        (is_read && want.method == Method::GET).then(|| Self::of(&want.target, clock))
    }

    /// Of what is given out of the store without a thought.
    pub(super) fn of_known(target: &Target, clock: &SharedClock) -> Option<Arc<Self>> {
        let is_read = tracing::enabled!(target: TARGET, tracing::Level::INFO);
        is_read.then(|| Arc::new(Self::of(target, clock).told(&CacheStatus::hit(), 200)))
    }

    fn of(target: &Target, clock: &SharedClock) -> Self {
        Self {
            url: target.shown(),
            clock: Arc::clone(clock),
            began: clock.instant(),
            source: String::new(),
            why: "",
            stored: false,
            status: 0,
        }
    }

    /// With how the answer came about, and its status.
    pub(super) fn told(mut self, status: &CacheStatus, code: u16) -> Self {
        self.status = code;
        let detail = status.detail.as_deref();
        self.source = if status.hit { "cache" } else { detail.unwrap_or("origin") }.to_owned();
        self.why = match status {
            CacheStatus { hit: true, .. } => "hit",
            CacheStatus { collapsed: true, .. } => "collapsed",
            CacheStatus { fwd, .. } => fwd.unwrap_or("unknown"),
        };
        self.stored = status.stored;
        self
    }

    /// There is no answer; where the door asks again, the next try says what came of it.
    pub(super) fn failed(&self, error: &FetchError) {
        if matches!(error, FetchError::Again) {
            return;
        }
        let seconds = self.seconds();
        tracing::info!(target: TARGET, url = %self.url, %error, seconds, "download failed");
    }

    fn seconds(&self) -> f64 {
        let passed = self.clock.instant().saturating_duration_since(self.began);
        (passed.as_secs_f64() * 1000.0).round() / 1000.0
    }
}

impl Going {
    /// Nothing of it has gone yet.
    pub(super) fn new(line: &Arc<Line>, wanted: Option<u64>) -> Self {
        Self {
            line: Arc::clone(line),
            running: None,
            wanted,
            bytes: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            failure: None,
        }
    }

    /// So much of it went.
    pub(super) fn took(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// It came for later, and nobody takes it now.
    pub(super) fn arrived(mut self, running: &Arc<Running>, bytes: u64, is_whole: bool) {
        self.running = Some(Arc::clone(running));
        self.took(bytes);
        self.ended.store(is_whole, Ordering::Relaxed);
        self.failure = (!is_whole).then(|| "it did not come to its end".to_owned());
    }

    fn is_whole(&self) -> bool {
        let bytes = self.bytes.load(Ordering::Relaxed);
        self.failure.is_none()
            && (self.ended.load(Ordering::Relaxed) || self.wanted.is_some_and(|all| bytes >= all))
    }
}

/// A body that has its line at its end.
pub(super) fn watched(
    body: Body,
    line: &Arc<Line>,
    wanted: Option<u64>,
    running: Option<&Arc<Running>>,
) -> Body {
    let mut going = Going::new(line, wanted);
    going.running = running.map(Arc::clone);
    boxed(Watched { body, going })
}

struct Watched {
    body: Body,
    going: Going,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        match &frame {
            Poll::Ready(Some(Ok(frame))) => {
                self.going.took(frame.data_ref().map_or(0, Bytes::len) as u64);
            }
            Poll::Ready(Some(Err(error))) => self.going.failure = Some(error.to_string()),
            Poll::Ready(None) => self.going.ended.store(true, Ordering::Relaxed),
            Poll::Pending => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        let (bytes, seconds) = (*self.bytes.get_mut(), self.line.seconds());
        let Line { url, why, stored, status, .. } = &*self.line;
        let last = self.running.as_ref().map(|running| running.detail());
        let source = last.as_deref().unwrap_or(&self.line.source);
        if let Some(error) = &self.failure {
            tracing::info!(target: TARGET, url, source, bytes, seconds, why, status, error, "download broke off");
        } else if !self.is_whole() {
            tracing::info!(target: TARGET, url, source, bytes, seconds, why, status, "download left by its client");
        } else if *why == "hit" {
            // apart from the others: many hits must not silence them
            tracing::info!(target: TARGET, url, source, bytes, seconds, why, status, "download");
        } else {
            tracing::info!(target: TARGET, url, source, bytes, seconds, why, status, stored, "download");
        }
    }
}
