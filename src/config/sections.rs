//! The sections that several rooms share: `[peers]`, and `[index]`.
//!
//! Each has the names and defaults of `config/larder.toml`; an unknown key is an error. What can be judged by
//! one value alone (a size, an address, a seed that cannot be looked up) is refused while it is read; what
//! needs two values is judged in `check`.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::values::{ListenAt, advertise, texts};
use crate::discovery::{Advertise, Seed};
use crate::fetch::{Release, Trust};
use crate::net::interface::Pattern;
use crate::orm::{Server, ServerError};
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
    /// Whether what an administrator of any node of the site blocks for all of it is blocked here.
    pub site_orders: bool,
    /// The address neighbours are told, behind NAT or in a container.
    #[serde(with = "advertise")]
    pub advertise: Option<Advertise>,
}

/// `[index]`: how records are kept, and where besides the embedded index.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IndexConfig {
    /// What the files of the index are sealed with, where this build can do that.
    pub key_file: PathBuf,
    /// A fleet's shared catalogue: the URL of a PostgreSQL database.
    pub catalogue: String,
    /// Where its password stands.
    pub catalogue_password_file: PathBuf,
    /// Further authorities for its certificate.
    pub catalogue_ca_file: PathBuf,
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
            site_orders: true,
            advertise: None,
        }
    }
}

impl IndexConfig {
    /// The database, where one is named. `pass_file` is libpq's, for who names no file of his own.
    pub fn server(&self, pass_file: Option<PathBuf>) -> Result<Option<Server>, ServerError> {
        if self.catalogue.is_empty() {
            return Ok(None);
        }
        let named = |path: &PathBuf| Some(path.clone()).filter(|path| !path.as_os_str().is_empty());
        let server = self.catalogue.parse::<Server>()?.with_pass_file(pass_file);
        let server = server.with_password_file(named(&self.catalogue_password_file));
        Ok(Some(server.with_ca_file(named(&self.catalogue_ca_file))))
    }
}

/// The URL may have a password in it.
impl fmt::Debug for IndexConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexConfig")
            .field("key_file", &self.key_file)
            .field("catalogue", &!self.catalogue.is_empty())
            .field("catalogue_password_file", &self.catalogue_password_file)
            .field("catalogue_ca_file", &self.catalogue_ca_file)
            .finish()
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
