//! An offer of a thing as the engine sees it, whatever protocol it came by.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use super::settings::Release;
use crate::digest::Stated;
use crate::discovery::{self, Holding, Peer};
use crate::seal::GrantId;
use crate::tls::NodeId;
use crate::{mormot, peer};

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
    /// A mORMot peer, by its own answer.
    Mormot(Box<mormot::Offer>),
}

/// Who it is: what is blamed for wrong bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lender {
    /// A node of the site.
    Node(NodeId),
    /// The mORMot peer at this address.
    Mormot(Ipv4Addr),
}

/// Why a lender gave nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum LendError {
    /// A node of the site.
    #[error("{0}")]
    Site(#[from] peer::PullError),
    /// A mORMot peer.
    #[error("{0}")]
    Mormot(#[from] mormot::PullError),
    /// Its network was left.
    #[error("its network is no longer there")]
    Gone,
}

impl Offer {
    /// Whose it is.
    pub(super) fn lender(&self) -> Lender {
        match &self.way {
            Way::Site { peer, .. } => Lender::Node(peer.node),
            Way::Mormot(offer) => Lender::Mormot(offer.told.address),
        }
    }

    /// The address that `Cache-Status` names.
    pub(super) fn address(&self) -> IpAddr {
        match &self.way {
            Way::Site { peer, .. } => peer.address.ip().to_canonical(),
            Way::Mormot(offer) => offer.told.address.into(),
        }
    }

    /// What a mORMot peer said it has of this thing.
    pub(super) fn of_mormot(offer: mormot::Offer, stated: &Stated) -> Self {
        let holding = Holding {
            digest: stated.sha256(),
            size: offer.told.known_size(),
            complete: offer.told.kind == mormot::Kind::ResponseFull,
            ..Holding::default()
        };
        Self { holding, way: Way::Mormot(Box::new(offer)) }
    }

    /// When its bytes go out, where the settings say `release`: of a mORMot peer's nothing goes out unproven.
    pub(super) fn release(&self, release: Release) -> Release {
        match &self.way {
            Way::Site { .. } => release,
            Way::Mormot(_) => Release::Proven,
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
            Self::Mormot(address) => write!(f, "mORMot {address}"),
        }
    }
}
