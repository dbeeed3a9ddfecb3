//! Bundles: what is held, carried to a site without a network as one file.
//!
//! A bundle is a tar archive: first `manifest.json`, which lists the blobs and the answers that name them, then
//! `blobs/sha256/<hex>` in the order of that list. What only certain users may have is left out. `export` reads the
//! blobs from the cache's folder, so it wants root or the daemon's user; it writes `BUNDLE.part` and goes on where an
//! earlier one was cut. `import` gives each blob to the daemon, which hashes it; what is there already is skipped, so
//! that a second run goes on as well. A file that is no bundle is imported as one blob.

mod export;
mod import;
mod unpack;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Digest;

pub(super) use export::export;
pub(super) use import::import;
pub use unpack::{Take, UnpackError, Unpacked, unpack};

/// What a manifest says it is.
const FORMAT: &str = "larder bundle";
/// The version written, and the highest read.
const VERSION: u32 = 1;
/// The first entry.
const MANIFEST: &str = "manifest.json";
/// What the names of blobs' entries begin with.
const BLOBS: &str = "blobs/sha256/";
/// The largest manifest read.
const MOST_MANIFEST: u64 = 1 << 30;

/// What a bundle holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Manifest {
    format: String,
    version: u32,
    /// The program that wrote it.
    made_by: String,
    /// When, RFC 3339.
    made_at: String,
    blobs: Vec<Listed>,
    /// Answers that name them, as the daemon shows them.
    resources: Vec<Value>,
}

/// A blob of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// What its bytes hash to.
    pub digest: Digest,
    /// Of that many bytes.
    pub size: u64,
}

impl Listed {
    /// The name of its entry.
    fn name(&self) -> String {
        format!("{BLOBS}{}", self.digest.hex())
    }

    /// The digest in the name of an entry.
    fn digest_in(name: &str) -> Option<Digest> {
        name.strip_prefix(BLOBS).and_then(|hex| Digest::from_hex(hex).ok())
    }
}
