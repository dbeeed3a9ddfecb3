//! What operators see and turn: health, status, metrics, the page, and the calls of the command line.
//!
//! Counters, health and readiness are open to whoever can reach the port; what names URLs, files or addresses,
//! and whatever changes something, wants the token or the Unix socket. `Host` and `Origin` are checked against
//! rebinding and forgery. The room knows no other room's insides: everything it shows and does comes from
//! [`Sources`] and [`Control`], which whoever builds the daemon fills. It fails with problem documents.
//!
//! *Invariant*: what is shown is read from snapshots, never by locking the path of a download.

mod access;
mod config;
mod control;
mod describe;
mod gate;
mod given;
mod health;
mod identify;
mod live;
mod login;
mod metrics;
mod page;
mod password;
mod records;
mod server;
mod session;
mod socket;
mod status;
#[cfg(test)]
pub(crate) mod tests;
mod views;

pub use access::{Role, Who};
pub use config::{Config, TrustedRole, User};
pub use control::{Action, ActionError, Control};
pub use health::Readiness;
pub use password::{hash_password, is_password_hash};
pub use records::Deed;
pub use server::{AdminError, Door, Listeners, Server};
pub use socket::AdminSocket;
pub use status::Sources;
pub use views::{
    About, BanRequest, BanView, BlockRequest, BlockView, CacheView, ExplanationView, FetchOutcome, FetchView,
    FetchesRequest, FetchesView, GcRequest, GcView, GivenBlob, HealthView, ImportRequest, ImportedResource,
    ImportedView, LogRequest, LogView, MormotView, PeerView, PurgeRequest, PurgeView, ReloadView, SavedView,
    SettingView, StatusView, StoredView, VerifyView,
};
