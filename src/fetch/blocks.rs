//! What nobody gets here, because an administrator says so.
//!
//! A blocked URL is refused before anybody is asked. So is a blocked blob, as soon as it is known that a want is for
//! it: by the client's own digest, by the URL, by what was learned. Where only its end shows what a download was, the
//! last bytes wait for that while anything is blocked: they do not go out, nothing is kept, and its URL is blocked too.

use std::sync::Arc;

use super::engine::{Case, Engine};
use super::error::FetchError;
use super::flight::FlightKey;
use super::judge::TAIL;
use crate::digest::{Digest, Stated};
use crate::index::BlockRecord;
use crate::policy::UrlKey;
use crate::store::Hold;

impl Engine {
    /// Blocks a URL by its key: what it led to is forgotten, and nobody joins what runs. False where too much is
    /// blocked. `because_of`: see [`BlockRecord`].
    pub fn block_url(&self, url: UrlKey, shown: String, reason: String, because_of: String) -> bool {
        let done = self.put_block(BlockRecord::url(&url), shown, reason, because_of);
        self.0.cache.forget_url(&url);
        self.0.flights.part_from(FlightKey::Url(url));
        done
    }

    /// Blocks a blob; taking it away is for the caller. False where too much is blocked.
    pub fn block_blob(&self, digest: &Digest, reason: String, because_of: String) -> bool {
        let name = BlockRecord::blob(digest);
        let done = self.put_block(name.clone(), name, reason, because_of);
        self.0.flights.part_from(FlightKey::Stated(Stated::from(*digest)));
        done
    }

    /// Lets a thing go again, and every URL that was blocked because it led there. False where it was not blocked.
    pub fn unblock(&self, thing: &str) -> bool {
        let index = self.0.cache.index();
        for led in index.blocks().iter().filter(|block| block.because_of == thing) {
            index.remove_block(&led.thing);
        }
        index.remove_block(thing)
    }

    fn put_block(&self, thing: String, shown: String, reason: String, because_of: String) -> bool {
        let since = self.0.clock.now();
        self.0.cache.index().put_block(BlockRecord { thing, shown, reason, since, because_of })
    }

    /// Refuses what is blocked.
    pub(super) fn refuse_blocked(&self, url: &UrlKey, digest: Option<Digest>) -> Result<(), FetchError> {
        let index = self.0.cache.index();
        let of_blob = || digest.and_then(|digest| index.block_of_blob(&digest));
        let Some(block) = index.block_of_url(url).or_else(of_blob) else { return Ok(()) };
        self.note_refused(*url, &block.reason);
        Err(FetchError::Blocked(block.reason.clone()))
    }

    /// Whether what this download turned out to be is blocked: then its URL is from now on.
    pub(super) fn found_blocked(&self, case: &Case, digest: &Digest) -> Option<Arc<BlockRecord>> {
        let index = self.0.cache.index();
        if let Some(block) = index.block_of_url(&case.url) {
            return Some(block);
        }
        let block = index.block_of_blob(digest)?;
        let (shown, reason) = (case.want.target.shown(), block.reason.clone());
        tracing::warn!(url = %shown, blob.digest = %digest, "a URL leads to what is blocked: it is blocked too");
        self.put_block(BlockRecord::url(&case.url), shown, reason, block.thing.clone());
        Some(block)
    }

    /// How much waits for its proof, while anything is blocked: the end at least.
    pub(super) fn hold_for_blocks(&self, hold: Hold) -> Hold {
        if self.0.cache.index().has_blocks() { hold.stricter(Hold::Tail(TAIL)) } else { hold }
    }
}
