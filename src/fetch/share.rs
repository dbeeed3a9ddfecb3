//! What neighbours may know and have of what this node is itself still receiving.
//!
//! It is offered as partial, never as more: bytes that came from another neighbour go out as they came, unproved, and
//! the reader judges them by a digest, or by what those say who had them from the origin. Only of its own first-hand
//! pieces this node says what they are. The end of a thing of unknown size is told by a trailer once it is proved here.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::HeaderMap;
use http_body::Frame;
use http_body_util::StreamBody;

use super::engine::Engine;
use super::flight::{Found, Shared};
use super::running::Running;
use super::stand::{Reading, Stand};
use crate::digest::Digest;
use crate::discovery::{Asker, Holding, Partial, Wanted};
use crate::http::{Body, BodyError, boxed};
use crate::peer::{Absent, ArrivingHead, Coming, ResourceHead};
use crate::policy;
use crate::seal::Thing;
use crate::store::{End, Follower};
use crate::swarm::Room;
use crate::tls::NodeId;

/// How long a neighbour waits for a head that is being fetched; it gives up after a second.
const HEAD: Duration = Duration::from_millis(900);
/// How long it waits for the next bytes.
const BYTES: Duration = Duration::from_secs(30);
/// How long one that asks for the hash of a piece waits until that piece is here.
const PIECE: Duration = Duration::from_millis(250);
/// How many hashes of pieces one answer tells.
const HASHES: usize = 2048;

impl Engine {
    /// What this node is receiving of a wanted thing, if a neighbour may have it.
    pub fn arriving(&self, wanted: &Wanted, asker: Option<Asker>) -> Option<Holding> {
        let shared = self.shared(match wanted {
            Wanted::Url(url) => url.as_bytes(),
            Wanted::Blob(digest) => digest.as_bytes(),
            Wanted::Stated(key) => key.as_bytes(),
        })?;
        let at = shared.stand.offered()?;
        // whoever this node reads from does not read from here
        if asker.is_some_and(|asker| asker.node == at.root) {
            return None;
        }
        let running = shared.running()?;
        let (busy, readers) = match shared.stand.room(asker) {
            Room::Free => (false, Vec::new()),
            Room::Full(readers) => (true, readers),
        };
        let partial = |received| Some(Partial { root: at.root, depth: at.depth, received, readers });
        let Some(running) = running else {
            return Some(Holding { busy, partial: partial(0), ..Holding::default() });
        };
        let (answer, progress) = (running.answer(), running.growing().progress());
        Some(Holding {
            digest: running.expected(),
            size: progress.total,
            etag: answer.head.get("etag").map(str::to_owned),
            last_modified: answer.head.get("last-modified").map(str::to_owned),
            first_hand: shared.stand.first_hand().is_some_and(|range| range == (0..u64::MAX)),
            resource: Some(running.version()),
            complete: false,
            guarded: false,
            busy,
            partial: partial(progress.received),
        })
    }

    /// The bytes of what this node is receiving, for an asker; none if it receives nothing of this name.
    pub fn arriving_bytes(&self, thing: Thing, asker: NodeId) -> Option<Result<Coming, Absent>> {
        let shared = self.shared(key_of(&thing))?;
        let running = shared.running()??;
        shared.stand.at()?;
        let Some(reading) = shared.stand.enter(asker) else { return Some(Err(Absent::Full)) };
        let (total, resource) = (running.growing().progress().total, *running.version().as_bytes());
        let body = move |range| relay(&running, range, reading);
        Some(Ok(Coming { total, resource: Some(resource), body: Box::new(body) }))
    }

    /// The head of what this node is fetching or has just fetched, with hashes of pieces from one on; waits a little
    /// for a head that is on its way. None if it is nothing of the kind.
    pub async fn arriving_head(&self, key: [u8; 32], pieces: u64) -> Option<Result<ResourceHead, Absent>> {
        let Some(shared) = self.shared(&key) else {
            return self.0.flights.finished(&key).map(|head| Ok(from_piece(head, pieces)));
        };
        if shared.running().is_some_and(|running| running.is_none()) {
            shared.stand.at()?;
        }
        let Ok(found) = tokio::time::timeout(HEAD, shared.watcher.found()).await else {
            return Some(Err(Absent::Full));
        };
        match found {
            Found::Running(running) if shared.stand.at().is_some() => {
                if pieces > 0 && shared.stand.first_hand().is_some_and(|own| own.contains(&pieces)) {
                    // told at once or a little later, it is told in any case
                    let _late = tokio::time::timeout(PIECE, running.growing().has_piece(pieces)).await;
                }
                let now = self.0.clock.now();
                Some(Ok(from_piece(head(&running, &shared.stand, now), pieces)))
            }
            Found::Leave => Some(Err(Absent::Left)),
            Found::Running(_) | Found::Failed(_) => Some(Err(Absent::NotHere)),
            Found::Confirmed(_) | Found::Stale(..) => None,
        }
    }

    fn shared(&self, key: &[u8; 32]) -> Option<Shared> {
        let (flights, digest) = (&self.0.flights, Digest::from_bytes(*key));
        let is_it =
            |running: &Running| running.expected() == Some(digest) || running.version().as_bytes() == key;
        flights.shared(key).or_else(|| flights.shared_where(is_it))
    }
}

impl Shared {
    /// The transfer, or none inside where its head is still to come; nothing where it can no longer be had.
    fn running(&self) -> Option<Option<Arc<Running>>> {
        match self.watcher.now() {
            None => Some(None),
            Some(Found::Running(running)) => running.can_be_shared().then_some(Some(running)),
            Some(Found::Confirmed(_) | Found::Stale(..) | Found::Leave | Found::Failed(_)) => None,
        }
    }
}

fn key_of(thing: &Thing) -> &[u8; 32] {
    match thing {
        Thing::Blob(digest) => digest.as_bytes(),
        Thing::Resource(key) => key,
    }
}

/// What stays to be told of a transfer that ended well, where neighbours took part in it.
pub(super) fn told(
    running: &Running,
    stand: Option<&Stand>,
    now: crate::clock::Timestamp,
) -> Option<ResourceHead> {
    let stand = stand?;
    stand.at()?;
    Some(head(running, stand, now))
}

/// What is told of a transfer.
fn head(running: &Running, stand: &Stand, now: crate::clock::Timestamp) -> ResourceHead {
    let (answer, growing) = (running.answer(), running.growing());
    let progress = growing.progress();
    let digest = match progress.end {
        Some(End::Complete(digest)) => Some(digest),
        Some(End::Failed(_)) | None => None,
    };
    let first_hand = stand.first_hand();
    let pieces = first_hand.clone().map_or((0, Vec::new()), |range| {
        let from = usize::try_from(range.start).unwrap_or(usize::MAX);
        let most = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        (range.start, growing.pieces(from).into_iter().take(most).collect())
    });
    ResourceHead {
        head: policy::shared_fields(&answer.head),
        age: policy::age(&answer, now).as_secs(),
        digest,
        size: progress.total.unwrap_or(0),
        resource: Some(running.version()),
        first_hand: first_hand == Some(0..u64::MAX),
        arriving: stand.at().map(|at| ArrivingHead {
            total: progress.total,
            received: progress.received,
            root: at.root,
            depth: at.depth,
            pieces,
        }),
    }
}

/// The same with hashes from this piece on.
fn from_piece(mut head: ResourceHead, from: u64) -> ResourceHead {
    if let Some(arriving) = &mut head.arriving {
        let (first, hashes) = &mut arriving.pieces;
        let skipped = usize::try_from(from.saturating_sub(*first)).unwrap_or(usize::MAX).min(hashes.len());
        hashes.drain(..skipped);
        *first = (*first).max(from);
        hashes.truncate(HASHES);
    }
    head
}

/// What one neighbour reads.
struct Relay {
    follower: Follower,
    running: Arc<Running>,
    _reading: Reading,
    ended: bool,
}

fn relay(running: &Arc<Running>, range: Range<u64>, reading: Reading) -> Body {
    let until = (range.end != u64::MAX).then_some(range.end);
    let follower = running.growing().relay(range.start, until);
    let relay = Relay { follower, running: Arc::clone(running), _reading: reading, ended: until.is_some() };
    boxed(StreamBody::new(stream::try_unfold(relay, |mut relay| async move {
        let next = tokio::time::timeout(BYTES, relay.follower.next()).await;
        match next
            .map_err(|_elapsed| BodyError::from("nothing came for too long"))?
            .map_err(BodyError::from)?
        {
            Some((_, bytes)) => Ok::<_, BodyError>(Some((Frame::data(bytes), relay))),
            None if relay.ended => Ok(None),
            None => {
                relay.ended = true;
                Ok(trailer(&relay.running).map(|frame| (frame, relay)))
            }
        }
    })))
}

/// The proof that this was all.
fn trailer(running: &Running) -> Option<Frame<Bytes>> {
    let Some(End::Complete(digest)) = running.growing().progress().end else { return None };
    let mut fields = HeaderMap::new();
    fields.insert("repr-digest", digest.repr_digest().parse().ok()?);
    Some(Frame::trailers(fields))
}
