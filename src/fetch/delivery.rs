//! Bodies that count what they deliver, and the memory of bodies that had to be cut.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, StreamBody};

use super::again::Again;
use super::ledger::{From, Ledger};
use super::line::Going;
use super::running::Running;
use crate::clock::SharedClock;
use crate::digest::{Hasher, Stated};
use crate::http::{Body, BodyError, boxed};
use crate::index::Index;
use crate::policy::UrlKey;
use crate::range::RangeSet;
use crate::store::{Blob, End, Failure, Follower, Growing};

/// How long a cut is remembered.
const REMEMBER: Duration = Duration::from_secs(7 * 86_400);

/// Which bytes of one transfer were delivered, and from whom they had come.
///
/// What was received and never delivered is settled when the last reader and the transfer are gone.
#[derive(Debug)]
pub(super) struct Tally {
    ledger: Ledger,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    delivered: RangeSet,
    /// Source of the bytes from each offset on, ascending.
    sources: Vec<(u64, From)>,
    received: u64,
}

impl Tally {
    pub(super) fn new(ledger: Ledger, from: From, offset: u64) -> Arc<Self> {
        // what a resumed partial already holds was counted by the run that received it
        let sources = if offset > 0 { vec![(0, From::Cache), (offset, from)] } else { vec![(0, from)] };
        Arc::new(Self { ledger, state: Mutex::new(State { sources, ..State::default() }) })
    }

    /// From `offset` on bytes come from somebody else.
    pub(super) fn source(&self, offset: u64, from: From) {
        let mut state = self.lock();
        state.sources.retain(|(start, _)| *start < offset);
        state.sources.push((offset, from));
    }

    /// So much has been received.
    pub(super) fn received(&self, offset: u64) {
        self.lock().received = offset;
    }

    /// What was received beyond `offset` will not be delivered.
    pub(super) fn take_back(&self, offset: u64) {
        let mut state = self.lock();
        self.discard(&state, offset);
        state.received = state.received.min(offset);
    }

    fn delivered(&self, range: Range<u64>) {
        let mut state = self.lock();
        let fresh = state.delivered.missing(range.clone());
        for gap in &fresh {
            for (part, from) in state.split(gap.clone()) {
                self.ledger.delivered(from, part.end - part.start);
            }
        }
        let again = (range.end - range.start) - fresh.iter().map(|gap| gap.end - gap.start).sum::<u64>();
        self.ledger.delivered(From::Cache, again);
        state.delivered.insert(range);
    }

    fn discard(&self, state: &State, from: u64) {
        for gap in state.delivered.missing(from..state.received.max(from)) {
            for (part, from) in state.split(gap) {
                if from != From::Cache {
                    self.ledger.discarded(from, part.end - part.start);
                }
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let state = std::mem::take(&mut *self.lock());
        self.discard(&state, 0);
    }
}

impl State {
    /// The parts of a range by source.
    fn split(&self, range: Range<u64>) -> Vec<(Range<u64>, From)> {
        let ends = self.sources.iter().skip(1).map(|(start, _)| *start).chain([u64::MAX]);
        let spans = self.sources.iter().zip(ends);
        spans
            .map(|((start, from), end)| (range.start.max(*start)..range.end.min(end), *from))
            .filter(|(part, _)| part.start < part.end)
            .collect()
    }
}

/// Where a cut of this client's body is written down.
#[derive(Debug, Clone)]
pub struct Cuts {
    index: Index,
    clock: SharedClock,
    client: IpAddr,
    url: UrlKey,
}

impl Cuts {
    pub(super) fn new(index: Index, clock: SharedClock, client: IpAddr, url: UrlKey) -> Self {
        Self { index, clock, client, url }
    }

    /// A client that holds the first `at` bytes of something wrong must not be given the rest of it.
    fn note(&self, at: u64) {
        if at > 0 {
            self.index.put_cut(self.client, &self.url, at, self.clock.now().plus(REMEMBER));
        }
    }

    /// Written down before it is known whether the bytes are wrong: whatever happens to this client, to the
    /// source or to this process, the rest is not added to them.
    fn open(self) -> OpenCut {
        let before = self.index.cut(self.client, &self.url, self.clock.now());
        self.note(u64::MAX);
        OpenCut { cuts: self, before, at: 0 }
    }
}

/// Unproven bytes went to a client.
#[derive(Debug)]
pub(super) struct OpenCut {
    cuts: Cuts,
    /// What was remembered of this client and URL before.
    before: Option<u64>,
    at: u64,
}

impl OpenCut {
    /// The proof came, or did not.
    pub(super) fn settle(self, end: &End) {
        let Cuts { index, client, url, .. } = &self.cuts;
        index.lift_cut(*client, url);
        let at = match end {
            End::Complete(_) => self.before.unwrap_or(0),
            End::Failed(_) => self.before.unwrap_or(0).max(self.at),
        };
        self.cuts.note(at);
    }
}

/// What one reader of a running transfer has of it that is not proved.
struct Reading {
    running: Arc<Running>,
    cuts: Cuts,
    open: Option<OpenCut>,
}

impl Reading {
    fn took(&mut self, range: &Range<u64>) {
        self.running.tally().delivered(range.clone());
        if self.open.is_none() && self.running.is_unproven() {
            self.open = Some(self.cuts.clone().open());
        }
        if let Some(open) = &mut self.open {
            open.at = range.end;
        }
    }

    fn failed(&mut self, failure: &Failure, at: u64) {
        if self.open.is_none() && matches!(failure, Failure::Digest | Failure::Changed) {
            self.cuts.note(at);
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            self.running.park(open);
        }
    }
}

/// A slice of a blob.
pub(super) fn of_blob(blob: &Blob, range: Range<u64>, ledger: Ledger, going: Option<Going>) -> Body {
    blob.told_body(range, move |length| {
        ledger.delivered(From::Cache, length);
        if let Some(going) = &going {
            going.took(length);
        }
    })
}

/// A body whose every byte comes from one source and reaches one client.
pub(super) fn counted(body: Body, ledger: Ledger, from: From) -> Body {
    let hint = body.size_hint();
    let counted = body.map_frame(move |frame| {
        if let Some(data) = frame.data_ref() {
            ledger.delivered(from, data.len() as u64);
        }
        frame
    });
    boxed(Hinted { body: boxed(counted), hint })
}

/// A body that says its length although it was mapped.
struct Hinted {
    body: Body,
    hint: http_body::SizeHint,
}

impl http_body::Body for Hinted {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = std::pin::Pin::new(&mut self.body).poll_frame(cx);
        if let std::task::Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(data) = frame.data_ref()
            && let Some(exact) = self.hint.exact()
        {
            self.hint = http_body::SizeHint::with_exact(exact.saturating_sub(data.len() as u64));
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.hint
    }
}

/// A body that passes through and must have this digest: its end waits for the proof.
pub(super) fn judged(body: Body, stated: Stated, cuts: Cuts) -> Body {
    const TAIL: usize = 64 * 1024;
    let hasher = Hasher::beside(Some(stated.algorithm()));
    let state = (body, hasher, VecDeque::<Bytes>::new(), 0u64, cuts);
    boxed(StreamBody::new(stream::try_unfold(
        state,
        move |(mut body, mut hasher, mut held, mut given, cuts)| async move {
            loop {
                let waiting: usize = held.iter().map(Bytes::len).sum();
                if waiting > TAIL
                    && let Some(mut next) = held.pop_front()
                {
                    // never more than leaves the whole tail here
                    let free = (waiting - TAIL).min(next.len());
                    if free < next.len() {
                        held.push_front(next.split_off(free));
                    }
                    given += next.len() as u64;
                    return Ok(Some((Frame::data(next), (body, hasher, held, given, cuts))));
                }
                match body.frame().await.transpose()? {
                    Some(frame) => {
                        if let Ok(data) = frame.into_data() {
                            hasher.update(&data);
                            held.push_back(data);
                        }
                    }
                    None if !hasher.found().is(&stated) => {
                        cuts.note(given);
                        return Err(BodyError::from(Failure::Digest));
                    }
                    None => {
                        let rest = held.pop_front();
                        return Ok(rest.map(|rest| (Frame::data(rest), (body, hasher, held, given, cuts))));
                    }
                }
            }
        },
    )))
}

/// A slice of a running transfer. What of it cannot be read back is asked for again, where that can be done.
pub(super) fn of_growing(
    running: &Arc<Running>,
    (start, end): (u64, Option<u64>),
    cuts: Cuts,
    again: Again,
) -> Body {
    let follower = running.growing().follow(start, end);
    let reading = Reading { running: Arc::clone(running), cuts, open: None };
    let here = follow(follower, reading, Reading::took, Reading::failed);
    let state = (here, start, Some((Arc::clone(running), again)));
    boxed(StreamBody::new(stream::try_unfold(state, move |(mut body, mut at, mut again)| async move {
        loop {
            match body.frame().await {
                Some(Ok(frame)) => {
                    at += frame.data_ref().map_or(0, |data| data.len() as u64);
                    return Ok(Some((frame, (body, at, again))));
                }
                Some(Err(error)) => {
                    let lost = matches!(error.downcast_ref::<Failure>(), Some(Failure::Unreadable(_)));
                    let Some((running, again)) = again.take().filter(|_| lost) else { return Err(error) };
                    body = again.rest(&running, at, end).await.ok_or(error)?;
                }
                None => return Ok(None),
            }
        }
    })))
}

/// A slice of what is arriving, for whom nothing is counted or remembered here.
pub(super) fn of_lending(growing: &Growing, range: Range<u64>) -> Body {
    follow(growing.follow(range.start, Some(range.end)), (), |(), _| (), |(), _, _| ())
}

/// A slice of a blob that is being proved again.
pub(super) fn of_proof(growing: &Growing, start: u64, end: Option<u64>, cuts: Cuts, ledger: Ledger) -> Body {
    follow(
        growing.follow(start, end),
        (cuts, ledger),
        |(_, ledger), range| ledger.delivered(From::Cache, range.end - range.start),
        |(cuts, _), _failure, at| cuts.note(at),
    )
}

/// Reads on; `took` is told of every piece, `failed` of an end that is none.
fn follow<S: Send + 'static>(
    follower: Follower,
    state: S,
    took: impl Fn(&mut S, &Range<u64>) + Copy + Send + 'static,
    failed: impl Fn(&mut S, &Failure, u64) + Copy + Send + 'static,
) -> Body {
    boxed(StreamBody::new(stream::try_unfold(
        (follower, state),
        move |(mut follower, mut state)| async move {
            match follower.next().await {
                Ok(Some((from, bytes))) => {
                    took(&mut state, &(from..from + bytes.len() as u64));
                    Ok(Some((Frame::data(bytes), (follower, state))))
                }
                Ok(None) => Ok(None),
                Err(failure) => {
                    failed(&mut state, &failure, follower.position());
                    Err(BodyError::from(failure))
                }
            }
        },
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ManualClock, Timestamp};
    use crate::digest::Digest;

    fn sums(ledger: &Ledger) -> (u64, u64, u64, u64, u64) {
        let t = ledger.traffic();
        (t.bytes_to_clients, t.bytes_from_cache, t.bytes_from_peers, t.bytes_from_origin, t.bytes_discarded)
    }

    #[test]
    fn the_first_delivery_counts_for_the_source_and_the_next_for_the_cache() {
        let ledger = Ledger::new();
        let tally = Tally::new(ledger.clone(), From::Peer, 0);
        tally.received(100);
        tally.source(60, From::Origin);
        tally.delivered(0..50);
        tally.delivered(40..80);
        assert_eq!(sums(&ledger), (90, 10, 60, 20, 0));
        tally.received(120);
        drop(tally);
        assert_eq!(sums(&ledger), (90, 10, 60, 60, 40));
    }

    #[test]
    fn taking_back_discards_what_came() {
        let ledger = Ledger::new();
        let tally = Tally::new(ledger.clone(), From::Peer, 0);
        tally.received(30);
        tally.take_back(0);
        tally.source(0, From::Origin);
        tally.received(10);
        tally.delivered(0..10);
        drop(tally);
        assert_eq!(sums(&ledger), (10, 0, 30, 10, 30));
    }

    #[test]
    fn what_a_partial_held_is_from_the_cache() {
        let ledger = Ledger::new();
        let tally = Tally::new(ledger.clone(), From::Origin, 10);
        tally.received(15);
        tally.delivered(0..15);
        drop(tally);
        assert_eq!(sums(&ledger), (15, 10, 0, 5, 0));
    }

    async fn judge(frames: Vec<usize>, right: bool) -> (usize, bool) {
        let whole: Vec<u8> = (0..frames.iter().sum::<usize>()).map(|i| i.to_le_bytes()[0]).collect();
        let digest = if right { Digest::of(&whole) } else { Digest::of(b"other") };
        let mut rest = Bytes::from(whole);
        let frames =
            frames.into_iter().map(move |length| Ok::<_, BodyError>(Frame::data(rest.split_to(length))));
        let frames: Vec<_> = frames.collect();
        let clock: SharedClock = ManualClock::new(Timestamp(0));
        let folder = tempfile::tempdir().unwrap();
        let index =
            Index::open(folder.path(), Arc::clone(&clock), crate::telemetry::Health::new()).unwrap().0;
        let url = UrlKey::from_bytes([0; 32]);
        let cuts = Cuts::new(index, clock, IpAddr::from([127, 0, 0, 1]), url);
        let mut body = judged(boxed(StreamBody::new(stream::iter(frames))), digest.into(), cuts);
        let mut given = 0;
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => given += frame.data_ref().map_or(0, Bytes::len),
                Err(_) => return (given, false),
            }
        }
        (given, true)
    }

    #[tokio::test]
    async fn the_tail_of_what_passes_through_waits_for_the_judgement_however_it_comes() {
        for frames in [vec![300_000], vec![10; 5], vec![60_000, 60_000, 60_000], vec![1, 200_000, 1], vec![]]
        {
            let size: usize = frames.iter().sum();
            assert_eq!(judge(frames.clone(), true).await, (size, true));
            let (given, whole) = judge(frames, false).await;
            assert!(!whole && given <= size.saturating_sub(64 * 1024), "{given} of {size}");
        }
    }
}
