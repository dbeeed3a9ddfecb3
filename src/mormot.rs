//! Among the peers of mORMot 2: nodes with that protocol's secret find each other by broadcast and give each
//! other files over plain HTTP; this node is one of them.
//!
//! The codec ([`Message`], [`Keys`]) and the [`Engine`] are pure; [`Service`] is the one task around them,
//! [`Client`] reads from a peer, [`Server`] gives to one. How a site moves over, `mormot/MIGRATION.md` tells.
//!
//! Promises: the weaknesses of that protocol stay in this room. Its secret is its own; a frame bans nobody and
//! moves no address that other rooms know; what comes from here is unproven and the digest is the caller's to
//! check; only what the caller's [`Holdings`] say may be shared is told of or given. Everything is bounded, and
//! a port that is taken is a trouble in health and tried again.
//!
#![doc = include_str!("mormot/PROTOCOL.md")]

mod client;
mod counts;
mod engine;
mod frame;
mod marker;
mod message;
mod rank;
mod seat;
mod secret;
mod server;
mod service;

use serde::{Deserialize, Serialize};

pub use client::{Client, Deadlines, PullError, Pulled};
pub use counts::Counts;
pub use engine::{Action, Asked, Engine, Held, Holdings, Me, Offer};
pub use frame::{FRAME, Frame, Keys, Refusal, SealError, TOKEN};
pub use marker::Marker;
pub use message::{Algorithm, Hardware, Hash, Kind, Message, timestamp};
pub use seat::{Seat, seat};
pub use secret::{Secret, SecretError};
pub use server::{Found, Limits, Served, Server, ServerParts, Shelf};
pub use service::{Mormot, Parts, Service, View};

/// The settings of `[mormot]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Whether to ask and serve mORMot peers at all.
    pub enabled: bool,
    /// Where the secret of those peers stands: the text, or `hex:` and its bytes in hexadecimal.
    pub secret_file: std::path::PathBuf,
    /// Their port, UDP and TCP.
    pub port: u16,
    /// The interface by name or IPv4 address; empty = found.
    pub interface: String,
    /// The broadcast address; empty = the interface's own.
    #[serde(with = "seat::broadcast")]
    pub broadcast: Option<std::net::Ipv4Addr>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: false,
            secret_file: std::path::PathBuf::new(),
            port: 8099,
            interface: String::new(),
            broadcast: None,
        }
    }
}
