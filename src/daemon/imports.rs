//! Importing: blobs that an administrator gives, hashed as they come, and the answers that name them.

use bytes::Bytes;
use http_body_util::BodyExt as _;

use super::build::House;
use crate::admin::{ActionError, GivenBlob, ImportRequest, ImportedResource, ImportedView, StoredView};
use crate::cache::{NoRoom, Provenance, Reservation};
use crate::index::ResourceRecord;
use crate::store::Ingest;

/// Bytes collected before they are written.
const PIECE: usize = 1 << 20;

/// Stores one blob, if it is what its digest says.
pub(super) async fn store(house: House, given: GivenBlob) -> Result<StoredView, ActionError> {
    let (digest, size) = (given.digest, given.size);
    if let Some(size) = house.cache.holds(&digest) {
        return Ok(StoredView { digest, size });
    }
    let beginning = house.clone();
    let begun = blocking(move || beginning.cache.begin(size)).await?;
    let mut coming =
        begun.map(|(ingest, room)| Coming { ingest, room }).map_err(|refused| no_room(&refused))?;
    let mut body = given.body;
    let mut pieces = Vec::<Bytes>::new();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| ActionError::Refused(format!("the blob did not come whole: {error}")))?;
        pieces.extend(frame.into_data().ok());
        if pieces.iter().map(Bytes::len).sum::<usize>() >= PIECE {
            coming = write(&house, coming, std::mem::take(&mut pieces)).await?;
        }
    }
    coming = write(&house, coming, pieces).await?;
    let Coming { ingest, room } = coming;
    if ingest.digest() != digest {
        let what = format!("these bytes are {}, not {digest}", ingest.digest());
        return Err(ActionError::Mismatch(what));
    }
    let how = Provenance { first_hand: false, guarded: false };
    let committed = blocking(move || house.cache.commit(ingest, how)).await?;
    drop(room);
    let committed = committed.map_err(|error| ActionError::Failed(error.to_string()))?;
    Ok(StoredView { digest, size: committed.stamp.size })
}

/// A blob on its way, and the room it has.
struct Coming {
    ingest: Ingest,
    room: Reservation,
}

async fn write(house: &House, mut coming: Coming, pieces: Vec<Bytes>) -> Result<Coming, ActionError> {
    let house = house.clone();
    blocking(move || {
        let more: usize = pieces.iter().map(Bytes::len).sum();
        let length = coming.ingest.length().saturating_add(u64::try_from(more).unwrap_or(u64::MAX));
        if length > coming.room.bytes() {
            house.cache.extend(&mut coming.room, length).map_err(|refused| no_room(&refused))?;
        }
        let appended = pieces.iter().try_for_each(|piece| coming.ingest.append(piece));
        appended.map_err(|error| ActionError::Failed(error.to_string())).map(|()| coming)
    })
    .await?
}

/// Notes answers whose blobs are held; none takes the place of one that is known here.
pub(super) fn learn(house: &House, request: ImportRequest) -> ImportedView {
    let mut view = ImportedView::default();
    for given in request.resources {
        let record = record(given);
        let held = record.digest.is_none_or(|digest| house.cache.holds(&digest).is_some());
        let known = house.cache.variants(&record.url_key);
        if !held || known.iter().any(|answer| answer.variance == record.variance) {
            view.passed_over += 1;
            continue;
        }
        house.cache.put_resource(record);
        view.answers += 1;
    }
    view
}

fn record(given: ImportedResource) -> ResourceRecord {
    ResourceRecord {
        url_key: given.url_key,
        resource_key: given.resource_key,
        shown_url: given.shown_url,
        variance: given.variance,
        answer: given.answer,
        digest: given.digest,
        size: given.size,
        // whoever vouches for it is not here
        first_hand: false,
        shareable: given.shareable,
    }
}

fn no_room(refused: &NoRoom) -> ActionError {
    ActionError::Refused(refused.to_string())
}

async fn blocking<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> Result<T, ActionError> {
    tokio::task::spawn_blocking(act).await.map_err(|error| ActionError::Failed(error.to_string()))
}
