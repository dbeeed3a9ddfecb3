//! What the daemon's answers hold, as far as the commands read them. Members a newer daemon adds are skipped.

use serde::Deserialize;

use crate::admin::{BanView, CacheView, HealthView, PeerView, SavedView};
use crate::fetch::Traffic;

/// The status document.
#[derive(Debug, Deserialize)]
pub(super) struct Status {
    pub(super) version: String,
    pub(super) node: String,
    pub(super) name: String,
    pub(super) site: String,
    pub(super) uptime_seconds: u64,
    pub(super) health: HealthView,
    pub(super) cache: CacheView,
    #[serde(default)]
    pub(super) saved: SavedView,
    pub(super) traffic: Traffic,
    #[serde(default)]
    pub(super) mormot: Option<Mormot>,
    #[serde(default)]
    pub(super) frames_of_other_secrets: u64,
    /// None to whoever is no administrator, who is told of no transfers and bans either.
    #[serde(default)]
    pub(super) peers: Option<Vec<PeerView>>,
    #[serde(default)]
    pub(super) transfers: Vec<Transfer>,
    #[serde(default)]
    pub(super) bans: Vec<BanView>,
}

impl Status {
    /// The neighbours that it tells of.
    pub(super) fn peers(&self) -> &[PeerView] {
        self.peers.as_deref().unwrap_or_default()
    }
}

/// mORMot peers.
#[derive(Debug, Deserialize)]
pub(super) struct Mormot {
    pub(super) frames_on_peer_port: u64,
    pub(super) network: Option<MormotNetwork>,
}

/// The daemon among mORMot peers.
#[derive(Debug, Deserialize)]
pub(super) struct MormotNetwork {
    pub(super) address: Option<String>,
    pub(super) listening: bool,
    pub(super) peers: u64,
    pub(super) frames: MormotFrames,
}

/// What of their frames tells of a wrong setting.
#[derive(Debug, Deserialize)]
pub(super) struct MormotFrames {
    pub(super) length: u64,
    pub(super) checksum: u64,
}

/// A running transfer.
#[derive(Debug, Deserialize)]
pub(super) struct Transfer {
    pub(super) url: String,
    pub(super) source: String,
    pub(super) received: u64,
    pub(super) size: Option<u64>,
    pub(super) readers: u64,
}

/// A problem document.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProblemText {
    pub(super) title: String,
    pub(super) detail: String,
    pub(super) hint: String,
}
