//! An offer of a thing as the engine sees it, whatever protocol it came by.

use std::net::IpAddr;
use std::sync::Arc;

use crate::discovery::{self, Holding, Peer};
use crate::seal::GrantId;
use crate::tls::NodeId;

/// Somebody holds a wanted thing.
#[derive(Debug, Clone)]
pub(super) struct Offer {
    /// What it holds.
    pub(super) holding: Holding,
    pub(super) way: Way,
}

/// How the holder is reached.
#[derive(Debug, Clone)]
pub(super) enum Way {
    /// A node of the site, by a grant.
    Site { peer: Arc<Peer>, grant: GrantId },
}

/// Who it is: what is blamed for wrong bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lender {
    /// A node of the site.
    Node(NodeId),
}

impl Offer {
    /// Whose it is.
    pub(super) fn lender(&self) -> Lender {
        match &self.way {
            Way::Site { peer, .. } => Lender::Node(peer.node),
        }
    }

    /// The address that `Cache-Status` names.
    pub(super) fn address(&self) -> IpAddr {
        match &self.way {
            Way::Site { peer, .. } => peer.address.ip().to_canonical(),
        }
    }
}

impl From<discovery::Offer> for Offer {
    fn from(offer: discovery::Offer) -> Self {
        let discovery::Offer { peer, holding, grant } = offer;
        Self { holding, way: Way::Site { peer, grant } }
    }
}

impl std::fmt::Display for Lender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Node(node) => node.fmt(f),
        }
    }
}
