//! What goes into the engine and what comes out.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::Claimant;
use crate::discovery::message::Sender;
use crate::discovery::transport::Link;
use crate::discovery::{Holdings, Offer};
use crate::seal::{BootId, Grants};
use crate::tls::NodeId;

/// What an engine is made of.
pub struct Setup {
    /// What this node says of itself.
    pub sender: Sender,
    /// This run.
    pub boot: BootId,
    /// The longest time a find waits.
    pub wait_max: Duration,
    /// What this node has.
    pub holdings: Arc<dyn Holdings>,
    /// The grants it gives.
    pub grants: Grants,
    /// Whether it passes questions on between the networks it is on.
    pub gateway: bool,
    /// Randomness: unpredictable in a service, fixed in a test.
    pub seed: [u8; 32],
}

/// How a frame arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The address it seems to come from.
    pub from: SocketAddr,
    /// Where to answer from.
    pub link: Link,
    /// Whether it was sent to everybody.
    pub broadcast: bool,
}

/// Names one find of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FindingId(pub u64);

/// What the engine wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Seal this body and send it.
    Send {
        /// Whom to.
        to: Destination,
        /// The body.
        body: Vec<u8>,
    },
    /// A neighbour has what this find asked for; it may come after the decision too.
    Offer(FindingId, Box<Offer>),
    /// A neighbour means to fetch from outside what this find, a claim, asked for.
    Claimed(FindingId, Claimant),
    /// Whoever waits for this find need not wait longer.
    Decided(FindingId),
    /// No further offer will come.
    Closed(FindingId),
    /// Another node lives under our id, and it is ours to take a new one.
    Renew,
    /// Something worth a line in the log.
    Event(Event),
}

/// Where a frame goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// One address; no link: any that fits.
    One(SocketAddr, Option<Link>),
    /// Every network, and these addresses that broadcast does not reach; no link: any that fits.
    Everyone(Vec<(SocketAddr, Option<Link>)>),
    /// Every network but that of this link.
    Beyond(Link),
}

/// What happened among the neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A neighbour proved itself for the first time.
    Joined(NodeId, String),
    /// A neighbour runs anew.
    Restarted(NodeId, String),
    /// A neighbour said goodbye.
    Left(NodeId, String),
    /// A neighbour has not been heard for long.
    Lost(NodeId),
    /// A second live node uses the id of a neighbour.
    Clone(NodeId),
    /// A second live node uses our id; it is the other one's to take a new one.
    CloneOfUs,
}

/// What was counted since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Datagrams that arrived.
    pub received: u64,
    /// Frames that were sent, a broadcast once.
    pub sent: u64,
    /// Datagrams that were no frames.
    pub noise: u64,
    /// Of these, as long as the frames of a mORMot peer.
    pub mormot: u64,
    /// Frames under a secret that is not accepted here.
    pub unknown_key: u64,
    /// Frames of a later wire version.
    pub newer: u64,
    /// Frames that the cipher refused.
    pub forged: u64,
    /// Frames that opened and were no message.
    pub malformed: u64,
    /// Own frames that came back.
    pub own: u64,
    /// Frames seen before.
    pub replayed: u64,
    /// Strangers' frames that were not looked at, and strangers that were not answered, for their number.
    pub limited: u64,
    /// Questions of ours.
    pub finds: u64,
    /// Questions of neighbours.
    pub asked: u64,
    /// Answers to questions of ours.
    pub answers: u64,
    /// Questions passed on to other networks.
    pub relayed: u64,
}
