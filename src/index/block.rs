//! Things that nobody gets here, because an administrator of this node or of its site says so.

use std::sync::Arc;

use super::Index;
use crate::clock::Timestamp;
use crate::digest::Digest;
use crate::policy::UrlKey;

/// More things than this are not blocked: every request would pay for the list.
pub const BLOCKS: usize = 10_000;
const BY_SITE: &str = "site: ";

crate::record! {
    /// A thing that nobody gets here.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct BlockRecord in "blocks" [without_rowid], columns BlockColumns {
        key {
            /// `sha256:` or `url:` and 64 hexadecimal digits.
            thing: String,
        }
        /// The digest, or the URL without its query.
        shown: String,
        /// Why, for whoever is refused it.
        reason: String,
        /// When it was blocked.
        since: Timestamp,
        /// The blocked blob that a URL led to, where it is blocked for that alone; `site: ` and the node where it was
        /// ordered for the whole site; empty where it was ordered here for this node.
        because_of: String,
    }
}

impl BlockRecord {
    /// The name of a blob among what is blocked.
    pub fn blob(digest: &Digest) -> String {
        digest.to_string()
    }

    /// Why a thing is blocked that was ordered for the whole site, at this node.
    pub fn by_site(node: &str) -> String {
        format!("{BY_SITE}{node}")
    }

    /// Whether it is blocked because it was ordered for the whole site.
    pub fn is_by_site(because_of: &str) -> bool {
        because_of.starts_with(BY_SITE)
    }

    /// The name of a URL among what is blocked.
    pub fn url(url: &UrlKey) -> String {
        format!("url:{url}")
    }
}

impl Index {
    /// All that is blocked, in no order.
    pub fn blocks(&self) -> Vec<Arc<BlockRecord>> {
        self.0.state.blocks.all()
    }

    /// What a thing is blocked for, by its name among what is blocked.
    pub fn block(&self, thing: &str) -> Option<Arc<BlockRecord>> {
        self.0.state.blocks.get(&thing.to_owned())
    }

    /// Whether a blob is blocked. Costs nothing where nothing is.
    pub fn block_of_blob(&self, digest: &Digest) -> Option<Arc<BlockRecord>> {
        self.has_blocks().then(|| self.block(&BlockRecord::blob(digest))).flatten()
    }

    /// Whether a URL is blocked. Costs nothing where nothing is.
    pub fn block_of_url(&self, url: &UrlKey) -> Option<Arc<BlockRecord>> {
        self.has_blocks().then(|| self.block(&BlockRecord::url(url))).flatten()
    }

    /// Whether anything is blocked.
    pub fn has_blocks(&self) -> bool {
        self.0.state.blocks.len() > 0
    }

    /// Blocks a thing; false where too many are blocked already.
    pub fn put_block(&self, record: BlockRecord) -> bool {
        let blocks = &self.0.state.blocks;
        if blocks.len() >= BLOCKS && blocks.get(&record.thing).is_none() {
            return false;
        }
        blocks.put(record);
        self.0.state_writer.mark();
        true
    }

    /// Lets a thing go again; false where it was not blocked.
    pub fn remove_block(&self, thing: &str) -> bool {
        let removed = self.0.state.blocks.remove(&thing.to_owned()).is_some();
        if removed {
            self.0.state_writer.mark();
        }
        removed
    }
}
