//! Blocking: a thing that nobody gets here, and that is here no longer.

use super::build::House;
use super::orders::block_thing;
use crate::admin::{ActionError, BlockRequest, BlockView};
use crate::digest::Digest;
use crate::http::Target;
use crate::index::{BLOCKS, BlockRecord, Ordered};

/// The longest reason, in characters.
const REASON: usize = 200;
/// What is said where nothing is.
const NO_REASON: &str = "an administrator of this machine forbade it";

/// Blocks a thing, here or on every node of the site, and removes what is held of it. Blocks on the disk.
pub(super) fn block(house: &House, request: &BlockRequest) -> Result<BlockView, ActionError> {
    let reason = reason(request)?;
    let (what, shown) = thing(house, &request.thing)?;
    let name = match &what {
        Ordered::Blob(digest) => BlockRecord::blob(digest),
        Ordered::Url(url) => BlockRecord::url(url),
    };
    let mut because = String::new();
    if request.site {
        if !house.orders.is_heard() {
            let what = "this node has joined no site, or has `peers.site_orders = false`: block it for this node alone";
            return Err(ActionError::Refused(what.to_owned()));
        }
        because = house.orders.because();
        let given = house.orders.block(&name, &shown, &reason);
        given.map_err(|error| ActionError::Refused(error.to_string()))?;
    }
    let made = block_thing(&house.engine, &house.cache, what, &shown, &reason, because);
    let (done, removed) = made.map_err(|error| ActionError::Failed(error.to_string()))?;
    if !done {
        let what = format!("{BLOCKS} things are blocked already; lift some that need it no longer");
        return Err(ActionError::Refused(what));
    }
    tracing::info!(block.thing = %shown, block.reason = %reason, block.site = request.site, "blocked");
    Ok(BlockView { thing: name, shown, reason, removed })
}

/// A thing, and what is shown of it.
fn thing(house: &House, text: &str) -> Result<(Ordered, String), ActionError> {
    if let Some(hex) = text.strip_prefix("sha256:") {
        let digest = Digest::from_hex(hex).map_err(|error| ActionError::Unreadable(error.to_string()))?;
        return Ok((Ordered::Blob(digest), BlockRecord::blob(&digest)));
    }
    let target = text.parse().ok().and_then(|uri| Target::from_uri(&uri).ok());
    let target = target.ok_or_else(|| {
        ActionError::Unreadable(format!("`{text}` is neither sha256:HEX nor an http or https URL"))
    })?;
    Ok((Ordered::Url(house.engine.url_key(&target)), target.shown()))
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
