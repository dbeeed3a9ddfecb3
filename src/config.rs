//! The configuration: the list of the rooms' settings, read from one TOML file and the environment.
//!
//! [`load`] finds the file, reads it, lays `LARDER_…` variables over it, fills in the folders that depend on
//! who runs the daemon, and judges what clashes. It promises all complaints at once, each with file, line and
//! column, and a note of where every value came from. It opens no socket and makes no folder.
//! [`load_secrets`] reads the site's secrets, which never stand in the file itself.

mod check;
mod complaint;
mod environment;
mod load;
mod secret;
mod sections;
mod show;
mod values;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use check::check_files;
pub use complaint::{Complaint, Complaints, Place};
pub use environment::{Environment, SYSTEM_FILE};
pub use load::{Loaded, Source, Sources, load};
pub use secret::{Secrets, load_index_key, load_secrets};
pub use sections::{IndexConfig, PeersConfig};
pub use show::{redacted, show};
pub use values::{ListenAt, ValueError};

use crate::mirror::Mirrors;
use crate::net::limits::{Limit, Rates};
use crate::policy::Rules;
use crate::telemetry::LogConfig;
use crate::unit::Span;
use crate::{admin, ban, cache, fetch, mormot, origin, proxy};

/// The shipped file: every key with its default.
pub const DEFAULT_FILE: &str = include_str!("../config/larder.toml");

/// All settings. An empty path or name means "the usual one" in the file; [`load`] fills them in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The same on all machines of a site; salts the keys.
    pub site: String,
    /// Where the site's secret stands.
    pub secret_file: PathBuf,
    /// Further secrets understood, for rotation.
    pub accept_secret_files: Vec<PathBuf>,
    /// Identity, index, bans, admin token.
    pub state_dir: PathBuf,
    /// What this node is called.
    pub node_name: String,
    /// How long running downloads may go on at a stop.
    pub drain_timeout: Span,
    /// Where blobs are kept.
    pub cache: cache::Config,
    /// The doors.
    pub proxy: proxy::Config,
    /// https that is opened.
    pub intercept: proxy::InterceptConfig,
    /// The neighbours.
    pub peers: PeersConfig,
    /// mORMot peers.
    pub mormot: mormot::Config,
    /// The way to origin servers.
    pub origin: origin::Config,
    /// The administrator's side.
    pub admin: admin::Config,
    /// Refusal of addresses.
    pub bans: ban::Config,
    /// Records kept elsewhere.
    pub index: IndexConfig,
    /// Other rates at some hours.
    pub limits: Vec<Limit>,
    /// What holds for some URLs.
    pub rule: Rules,
    /// The named mirrors.
    pub mirror: Mirrors,
    /// The log.
    pub log: LogConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            site: "default".to_owned(),
            secret_file: PathBuf::new(),
            accept_secret_files: Vec::new(),
            state_dir: PathBuf::new(),
            node_name: String::new(),
            drain_timeout: Span(std::time::Duration::from_secs(300)),
            cache: cache::Config { dir: PathBuf::new(), ..cache::Config::default() },
            proxy: proxy::Config::default(),
            intercept: proxy::InterceptConfig::default(),
            peers: PeersConfig::default(),
            mormot: mormot::Config::default(),
            origin: origin::Config::default(),
            admin: admin::Config::default(),
            bans: ban::Config::default(),
            index: IndexConfig::default(),
            limits: Vec::new(),
            rule: Rules::default(),
            mirror: Mirrors::default(),
            log: LogConfig::default(),
        }
    }
}

impl Config {
    /// Where the administrator's token stands.
    pub fn token_file(&self) -> PathBuf {
        self.state_dir.join("admin.token")
    }

    /// What the engine needs of it.
    pub fn engine(&self) -> fetch::Config {
        fetch::Config {
            trust: self.peers.trust,
            witnesses: self.peers.witnesses,
            release: self.peers.effective_release(),
            min_size: self.peers.min_size,
            stale_if_error: self.proxy.stale_if_error,
            sidecars: self.origin.sidecars,
            complete_parts: self.origin.complete_parts,
        }
    }

    /// The rates that hold where no `[[limits]]` does.
    pub fn rates(&self) -> Rates {
        Rates { upload: self.peers.upload_rate, download: self.origin.download_rate }
    }

    /// Paths as the file names them, to be read from the file's own folder where they are relative.
    fn paths(&mut self) -> impl Iterator<Item = (String, &mut PathBuf)> {
        let accepted = self.accept_secret_files.iter_mut().map(|path| ("accept_secret_files", path));
        [
            ("secret_file", &mut self.secret_file),
            ("state_dir", &mut self.state_dir),
            ("cache.dir", &mut self.cache.dir),
            ("mormot.secret_file", &mut self.mormot.secret_file),
            ("origin.ca_file", &mut self.origin.ca_file),
            ("admin.socket", &mut self.admin.socket),
            ("admin.tls_cert", &mut self.admin.tls_cert),
            ("admin.tls_key", &mut self.admin.tls_key),
            ("index.key_file", &mut self.index.key_file),
            ("index.catalogue_password_file", &mut self.index.catalogue_password_file),
            ("index.catalogue_ca_file", &mut self.index.catalogue_ca_file),
        ]
        .into_iter()
        .chain(accepted)
        .map(|(key, path)| (key.to_owned(), path))
    }
}
