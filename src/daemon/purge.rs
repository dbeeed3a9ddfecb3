//! Purging: forgetting what URLs led to, and removing the bytes that nothing else names.

use std::collections::BTreeSet;

use super::build::House;
use crate::admin::{ActionError, PurgeRequest, PurgeView};
use crate::digest::Digest;
use crate::http::Target;
use crate::policy::UrlKey;

/// Forgets the answers of one URL, or of all that begin with what stands before a `*`. Blobs that another URL
/// names too stay, and so do those that are pinned. Blocks.
pub(super) fn purge(house: &House, request: &PurgeRequest) -> Result<PurgeView, ActionError> {
    let urls = urls(house, &request.url)?;
    let index = house.cache.index();
    let mut done = PurgeView { dry_run: request.dry_run, ..PurgeView::default() };
    let mut digests = BTreeSet::new();
    for url in &urls {
        let answers = index.variants(url);
        done.answers = done.answers.saturating_add(u64::try_from(answers.len()).unwrap_or(u64::MAX));
        digests.extend(answers.iter().filter_map(|answer| answer.digest));
        if !request.dry_run {
            house.cache.forget_url(url);
        }
    }
    for digest in digests {
        let named = index.resources_of(&digest).iter().any(|answer| !urls.contains(&answer.url_key));
        if !named {
            remove(house, &digest, request.dry_run, &mut done)?;
        }
    }
    Ok(done)
}

fn remove(house: &House, digest: &Digest, dry_run: bool, done: &mut PurgeView) -> Result<(), ActionError> {
    let Some(size) = house.cache.holds(digest) else { return Ok(()) };
    if house.cache.is_pinned(digest) {
        done.pinned += 1;
        return Ok(());
    }
    if !dry_run {
        house.cache.remove(digest).map_err(|error| ActionError::Failed(error.to_string()))?;
    }
    done.blobs += 1;
    done.bytes = done.bytes.saturating_add(size);
    Ok(())
}

fn urls(house: &House, text: &str) -> Result<BTreeSet<UrlKey>, ActionError> {
    let Some(beginning) = text.strip_suffix('*') else {
        let target = text.parse().ok().and_then(|uri| Target::from_uri(&uri).ok());
        let target = target.ok_or_else(|| {
            ActionError::Unreadable(format!(
                "`{text}` is no http or https URL; a * at the end means all that begin so"
            ))
        })?;
        return Ok(BTreeSet::from([house.engine.url_key(&target)]));
    };
    let is_url = ["http://", "https://"]
        .iter()
        .any(|scheme| beginning.len() > scheme.len() && beginning.starts_with(scheme));
    if !is_url || beginning.contains(['?', '*']) {
        let what = "write the beginning of a URL and one * at its end; queries are not kept in clear, so it has none";
        return Err(ActionError::Unreadable(what.to_owned()));
    }
    Ok(house.cache.index().urls_where(|answer| answer.shown_url.starts_with(beginning)))
}
