//! What the engine may be told.

use serde::{Deserialize, Serialize};

use crate::unit::{ByteSize, Span};

/// Whose word a neighbour's bytes are taken on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// A digest, or the word of witnesses that the origin confirms now.
    #[default]
    Witness,
    /// A digest alone.
    Digest,
}

/// When a neighbour's bytes go out to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Release {
    /// Proven up to 64 MiB, all but the tail above.
    #[default]
    Auto,
    /// Nothing before the proof.
    Proven,
    /// All but the tail at once.
    Stream,
}

/// The engine's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// `peers.trust`.
    pub trust: Trust,
    /// `peers.witnesses`.
    pub witnesses: usize,
    /// `peers.release`; `proven` where peers speak in clear.
    pub release: Release,
    /// `peers.min_size`: smaller things are not asked for.
    pub min_size: ByteSize,
    /// `proxy.stale_if_error`.
    pub stale_if_error: Span,
    /// `origin.sidecars`: whether checksum files are asked for beside large downloads.
    pub sidecars: bool,
    /// `origin.complete_parts`: whether what is missing of a thing that came in parts is fetched for later.
    pub complete_parts: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            trust: Trust::default(),
            witnesses: 1,
            release: Release::default(),
            min_size: ByteSize(2048),
            stale_if_error: Span(std::time::Duration::from_secs(7 * 86_400)),
            sidecars: true,
            complete_parts: true,
        }
    }
}
