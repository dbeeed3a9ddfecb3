//! Who on the site has this: neighbours find each other and ask each other by sealed datagrams.
#![doc = include_str!("discovery/PROTOCOL.md")]

mod config;
mod engine;
mod holding;
mod limit;
mod message;
mod peer;
mod random;
mod service;
mod table;
mod transport;
mod wait;

use std::time::Duration;

pub use config::{Advertise, Config, ConfigError, Endpoint, Seed};
pub use engine::{
    Action, Arrival, Asking, CLAIMS, Claimant, Counts, Destination, Engine, Event, FindingId, OFFERS, Setup,
};
pub use holding::{Asker, Holding, Holdings, Partial, Wanted};
pub use limit::{Limit, Rate as RateOf};
pub use message::{Answer, Beyond, Kind, MAX_WANTS, Malformed, Message, Nonce, QueryId, Sender};
pub use peer::{Offer, Peer};
pub use service::{Discovery, Finding, Heard, Parts, Service, StartError};
pub use table::Marks;
pub use transport::{Datagram, InterfaceView, Link, Memory, Network, Transport, Udp};
pub use wait::Wait;

/// A neighbour heard within this time is there.
pub const HEARD_LATELY: Duration = Duration::from_secs(60);
