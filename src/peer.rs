//! HTTP between neighbours: [`Server`] gives what this node holds to whoever has a grant for it, [`Client`]
//! reads from a neighbour, [`rank`](order) chooses among several.
//!
//! Two things can be asked for: `GET /blob/sha256:<hex>` is the bytes of a blob, with ranges;
//! `GET /resource/<hex>` is a response head, as JSON ([`ResourceHead`]), or with `Accept: application/octet-stream`
//! its bytes. Both also give what this node is itself still receiving: ranges that are still to come wait. Every request carries a token
//! sealed with the site's key that names grant, thing, asker and holder. Without such a token nothing is
//! looked up, so that a stranger gets the same answer whether the thing is here or not; three such strangers'
//! requests and the address is refused for a while.
//!
//! The client gives every wait a deadline and tells apart what its caller decides on: to ask again, to go to
//! the next neighbour, to forget this one. What it hands out is not proved: the digest is the caller's to
//! check. This room does not know how neighbours are found; `fetch` brings both together.

mod client;
mod rank;
mod server;
mod tally;
#[cfg(test)]
mod tests;
mod wire;

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

pub use client::{Arrived, Client, Deadlines, PullError, Pulled};
pub use rank::{Standing, order};
pub use server::{Absent, Coming, Found, Limits, Server, ServerParts, Shelf};
pub use tally::{Exchanged, Tally};
pub use wire::{ArrivingHead, ResourceHead};

use crate::http::Uplink;
use crate::net::precedence::Precedence;
use crate::tls::{NodeId, Pin};
use crate::unit::Rate;

/// The settings of `[peers]` that concern transfers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Whether transfers are encrypted and neighbours known by their keys.
    pub tls: Tls,
    /// How much may be sent to neighbours, in all.
    pub upload_rate: Rate,
    /// How many neighbours are served with blobs at once; the others are told to come back.
    pub max_uploads: usize,
}

/// How neighbours talk over TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tls {
    /// TLS, the other end known by the pin of its key. Holders that speak in clear are skipped.
    #[default]
    Pinned,
    /// In clear: the port speaks plain HTTP, and both kinds of holders are read from.
    Off,
}

/// A neighbour to read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its id, which the token names.
    pub node: NodeId,
    /// Where its peer port is.
    pub address: SocketAddr,
    /// The keys it may prove.
    pub pins: Vec<Pin>,
    /// Whether its peer port speaks TLS.
    pub https: bool,
}

impl Config {
    /// The way out to neighbours that these settings describe.
    pub fn uplink(&self, after: Option<Precedence>) -> Uplink {
        Uplink::behind(after, self.upload_rate, self.max_uploads)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self { tls: Tls::default(), upload_rate: Rate(0), max_uploads: 32 }
    }
}
