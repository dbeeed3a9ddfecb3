//! What other rooms see of a neighbour, and what it offers.

use std::net::SocketAddr;
use std::sync::Arc;

use serde::Serialize;

use super::Holding;
use super::message::Sender;
use crate::seal::{BootId, GrantId};
use crate::tls::{NodeId, Pin};

/// One neighbour that proved its address; serializes as status shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Peer {
    /// Its id.
    pub node: NodeId,
    /// What people call it.
    pub name: String,
    /// Where it serves neighbours, over TCP.
    pub address: SocketAddr,
    /// The pins of its keys, one of which its certificate must have.
    #[serde(skip)]
    pub pins: Vec<Pin>,
    /// Its present run.
    #[serde(skip)]
    pub boot: BootId,
    /// Whether it serves HTTPS.
    pub https: bool,
    /// Whether it serves plain HTTP.
    pub http: bool,
    /// The version of its program.
    pub version: String,
    /// How busy it said it was: 0 idle, 255 full.
    pub load: u8,
    /// How long ago it was heard.
    pub last_seen_seconds: f64,
}

/// A neighbour has a wanted thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The neighbour.
    pub peer: Arc<Peer>,
    /// What it has.
    pub holding: Holding,
    /// Admits this node to it: to the blob, and for a URL to the stored head too.
    pub grant: GrantId,
}

impl Peer {
    /// The neighbour behind `sender`, whose frames come from the proved address `from`.
    pub(super) fn of(sender: &Sender, boot: BootId, from: SocketAddr) -> Self {
        let mut address = sender.advertise.unwrap_or(from);
        if sender.advertise.is_none_or(|advertised| advertised.port() == 0) {
            address.set_port(sender.tcp_port);
        }
        Self {
            node: sender.node,
            name: sender.name.clone(),
            address,
            pins: sender.pins.clone(),
            boot,
            https: sender.https,
            http: sender.http,
            version: sender.version.clone(),
            load: sender.load,
            last_seen_seconds: 0.0,
        }
    }

    /// Whether it serves neighbours at all.
    pub fn serves(&self) -> bool {
        self.address.port() != 0 && (self.https || self.http)
    }
}
