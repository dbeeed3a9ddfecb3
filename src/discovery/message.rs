//! What a frame says: the messages of wire version 1.
//!
//! Every message carries who sent it; the kinds and fields a later version adds are skipped by this one. The
//! codec never panics and never allocates more than the frame holds.

mod codec;
mod fields;

pub(super) use codec::{Stamp, stamp, stamped};

use std::net::SocketAddr;

use super::{Holding, Wanted};
use crate::digest::Digest;
use crate::seal::{BootId, GrantId};
use crate::tls::{NodeId, Pin};

/// The most wants of one `Find`.
pub const MAX_WANTS: usize = 16;

/// Names one question of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QueryId(pub [u8; 16]);

/// Random bytes that prove, when they come back, that an address is read by the node that claims it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nonce(pub [u8; 16]);

/// What a node says of itself in every frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender {
    /// Its id, which follows from its first pin.
    pub node: NodeId,
    /// The pins of its keys; two while it changes them.
    pub pins: Vec<Pin>,
    /// Where it serves neighbours; 0 if it does not.
    pub tcp_port: u16,
    /// Whether it serves HTTPS there.
    pub https: bool,
    /// Whether it serves plain HTTP there.
    pub http: bool,
    /// What people call it.
    pub name: String,
    /// The version of its program.
    pub version: String,
    /// Where it wants to be reached instead of the address its frames come from.
    pub advertise: Option<SocketAddr>,
    /// How busy it is: 0 idle, 255 full.
    pub load: u8,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who sent it.
    pub sender: Sender,
    /// Fresh for each frame of one run.
    pub seq: u64,
    /// Please send this back by unicast.
    pub ask: Option<Nonce>,
    /// What the receiver asked for.
    pub echo: Option<Nonce>,
    /// The rest.
    pub kind: Kind,
}

/// What a message is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// I am here.
    Hello {
        /// The first of this run.
        first: bool,
        /// My addresses have changed: forget the others.
        moved: bool,
        /// A gateway let us meet: questions for everybody reach me through it.
        relayed: bool,
        /// A part of what I hold.
        told: Option<Vec<u8>>,
    },
    /// I leave.
    Bye,
    /// Who has this?
    Find {
        /// The question's name.
        query: QueryId,
        /// What is asked for, each with its number within the question.
        wants: Vec<(u8, Wanted)>,
    },
    /// Who has this? Where nobody has, and nobody outranks me, I fetch it for all of us.
    Claim {
        /// The question's name.
        query: QueryId,
        /// Where I stand among those that receive it; none: I have nothing of it yet.
        depth: Option<u8>,
        /// What is asked for, each with its number within the question.
        wants: Vec<(u8, Wanted)>,
    },
    /// I have this.
    Have {
        /// The question.
        query: QueryId,
        /// What I have of it; nothing at all is an answer too.
        answers: Vec<Answer>,
        /// No further frame of mine answers this question.
        done: bool,
    },
    /// I have heard enough answers.
    Enough {
        /// The question.
        query: QueryId,
    },
    /// Your copy gave me wrong bytes: verify it.
    Doubt {
        /// The copy.
        digest: Digest,
    },
    /// A node of another network of mine asks: who has this?
    Relay {
        /// The question's name.
        query: QueryId,
        /// Who asks.
        asker: Beyond,
        /// What is asked for, each with its number within the question.
        wants: Vec<(u8, Wanted)>,
    },
    /// Of a later version.
    Unknown(u8),
}

impl Kind {
    /// A `Hello` to one node, that says nothing but that this one is there.
    pub(super) const fn greeting(first: bool, relayed: bool) -> Self {
        Self::Hello { first, moved: false, relayed, told: None }
    }
}

/// A node of another network, as a gateway knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beyond {
    /// Its id.
    pub node: NodeId,
    /// Its run.
    pub boot: BootId,
    /// An address that it proved to the gateway.
    pub address: SocketAddr,
}

/// The answer to one want.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The number of the want.
    pub want: u8,
    /// What the sender has of it.
    pub holding: Holding,
    /// Admits the asker to it.
    pub grant: GrantId,
}

/// The bytes are no message of this protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a malformed message")]
pub struct Malformed;

#[cfg(test)]
mod tests;
