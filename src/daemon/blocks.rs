//! Blocking: a thing that nobody gets here, and that is here no longer.

use super::build::House;
use crate::admin::{ActionError, BlockRequest, BlockView};
use crate::digest::Digest;
use crate::http::Target;
use crate::index::{BLOCKS, BlockRecord};

/// The longest reason, in characters.
const REASON: usize = 200;
/// What is said where nothing is.
const NO_REASON: &str = "an administrator of this machine forbade it";

/// A thing to block.
enum Thing {
    Blob(Digest),
    Url(Target),
}

/// Blocks a thing, and removes what is held of it: the blob, or the blobs that its URL led to and no other does.
/// Blocks on the disk.
pub(super) fn block(house: &House, request: &BlockRequest) -> Result<BlockView, ActionError> {
    let reason = reason(request)?;
    let (thing, shown, done, removed) = match thing(&request.thing)? {
        Thing::Blob(digest) => {
            let done = house.engine.block_blob(&digest, reason.clone());
            let name = BlockRecord::blob(&digest);
            (name.clone(), name, done, done && remove(house, &digest)?)
        }
        Thing::Url(target) => {
            let url = house.engine.url_key(&target);
            let led: Vec<Digest> =
                house.cache.variants(&url).iter().filter_map(|answer| answer.digest).collect();
            let done = house.engine.block_url(&target, reason.clone());
            let mut removed = false;
            for digest in led.iter().filter(|_| done) {
                let named = !house.cache.index().resources_of(digest).is_empty();
                removed |= !named && remove(house, digest)?;
            }
            (BlockRecord::url(&url), target.shown(), done, removed)
        }
    };
    if !done {
        let what = format!("{BLOCKS} things are blocked already; lift some that need it no longer");
        return Err(ActionError::Refused(what));
    }
    tracing::info!(block.thing = %shown, block.reason = %reason, "blocked");
    Ok(BlockView { thing, shown, reason, removed })
}

fn remove(house: &House, digest: &Digest) -> Result<bool, ActionError> {
    let failed = |error: crate::store::StoreError| ActionError::Failed(error.to_string());
    house.cache.unpin(digest).map_err(failed)?;
    house.cache.remove(digest).map_err(failed)
}

fn thing(text: &str) -> Result<Thing, ActionError> {
    if let Some(hex) = text.strip_prefix("sha256:") {
        return Digest::from_hex(hex)
            .map(Thing::Blob)
            .map_err(|error| ActionError::Unreadable(error.to_string()));
    }
    let target = text.parse().ok().and_then(|uri| Target::from_uri(&uri).ok());
    target.map(Thing::Url).ok_or_else(|| {
        ActionError::Unreadable(format!("`{text}` is neither sha256:HEX nor an http or https URL"))
    })
}

/// What whoever is refused is told, on one line.
fn reason(request: &BlockRequest) -> Result<String, ActionError> {
    let Some(reason) = &request.reason else { return Ok(NO_REASON.to_owned()) };
    if reason.is_empty() || reason.chars().count() > REASON {
        return Err(ActionError::Unreadable(format!("a reason has 1 to {REASON} characters")));
    }
    let one_line: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let reason = one_line.trim();
    Ok(if reason.is_empty() { NO_REASON.to_owned() } else { reason.to_owned() })
}
