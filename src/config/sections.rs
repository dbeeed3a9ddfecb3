//! The sections that several rooms share: `[peers]`, and `[index]`.
//!
//! Each has the names and defaults of `config/larder.toml`; an unknown key is an error. What can be judged by
//! one value alone (a size, an address, a seed that cannot be looked up) is refused while it is read; what
//! needs two values is judged in `check`.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::values::{ListenAt, advertise, texts};
use crate::discovery::{Advertise, Seed};
use crate::fetch::{Release, Trust};
use crate::net::interface::Pattern;
use crate::peer;
use crate::unit::{ByteSize, Rate, Span};

/// `[peers]`: the neighbours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PeersConfig {
    /// Whether to ask and serve neighbours at all.
    pub enabled: bool,
    /// Where to listen; empty = every usable interface.
    pub listen: Vec<ListenAt>,
    /// The port, UDP and TCP.
    pub port: u16,
    /// Interfaces by name or address; `!name` excludes; empty = physical ones that are up.
    pub interfaces: Vec<Pattern>,
    /// Broadcast addresses; empty = found from the interfaces.
    pub broadcast: Vec<SocketAddr>,
    /// Neighbours reached by unicast.
    #[serde(with = "texts")]
    pub seeds: Vec<Seed>,
    /// Whose word is taken for a digest.
    pub trust: Trust,
    /// How many first-hand witnesses it takes.
    pub witnesses: usize,
    /// When a neighbour's bytes go out.
    pub release: Release,
    /// How transfers between neighbours are protected.
    pub tls: peer::Tls,
    /// Smaller things are not asked for.
    pub min_size: ByteSize,
    /// The longest wait for answers.
    pub wait_max: Span,
    /// Bytes a second given to neighbours.
    pub upload_rate: Rate,
    /// Transfers to neighbours at one time.
    pub max_uploads: usize,
    /// Whether questions are passed on between the networks this node is on.
    pub gateway: bool,
    /// The address neighbours are told, behind NAT or in a container.
    #[serde(with = "advertise")]
    pub advertise: Option<Advertise>,
}

/// `[index]`: where records are kept besides the embedded index.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IndexConfig {
    /// A fleet's shared catalogue.
    pub catalogue: String,
}

impl Default for PeersConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            listen: Vec::new(),
            port: 8096,
            interfaces: Vec::new(),
            broadcast: Vec::new(),
            seeds: Vec::new(),
            trust: Trust::Witness,
            witnesses: 1,
            release: Release::Auto,
            tls: peer::Tls::Pinned,
            min_size: ByteSize(2048),
            wait_max: Span(Duration::from_millis(250)),
            upload_rate: Rate(0),
            max_uploads: 32,
            gateway: false,
            advertise: None,
        }
    }
}

impl PeersConfig {
    /// What the room `peer` needs of it.
    pub fn transfers(&self) -> peer::Config {
        peer::Config { tls: self.tls, upload_rate: self.upload_rate, max_uploads: self.max_uploads }
    }

    /// When bytes go out after all: without TLS nothing goes out unproven.
    pub fn effective_release(&self) -> Release {
        if self.tls == peer::Tls::Off { Release::Proven } else { self.release }
    }
}
