//! The doors: what programs point at.
//!
//! A connection is accepted, what comes on it is looked over ([`crate::http::inspect`]), and each request goes
//! through one door: forward proxy (absolute form), tunnel (`CONNECT`, opened where [`intercept`] is told to),
//! URL prefix (`/https/host/…`), prefix with the digest the thing must have (`/@sha256:…/https/host/…`), or a
//! named mirror (`/m/<name>/…`, `/v2/…`). Errors become responses in [`respond`] and only there.
//!
//! Promises: the target goes on byte for byte; fields of one connection stay on it; a request that is not
//! framed beyond doubt is refused, so that nothing is smuggled; a body that cannot be completed never looks
//! complete. Never writes to the disk.

mod again;
mod connect;
mod direct;
mod forward;
mod guard;
mod handover;
mod hops;
mod intercept;
mod lane;
mod listener;
mod mirror;
mod outgoing;
mod pac;
mod respond;
mod rewound;
mod settings;
mod stream;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::HeaderValue;

use crate::clock::SharedClock;
use crate::fetch::Engine;
use crate::mirror::Mirrors;
use crate::net::sendfile::Standin;
use crate::origin::{Origin, Reach};
use crate::rest::Hosts;
use crate::shutdown::{Drain, Shutdown};
use crate::tls::NodeId;

use handover::Handover;

pub use intercept::{Config as InterceptConfig, HostPattern, Interceptor, OnRefusal, PatternError};
pub use settings::Config;

/// The doors of one node; a cheap clone.
#[derive(Debug, Clone)]
pub struct Proxy(Arc<Inner>);

/// What the doors are built from.
#[derive(Debug)]
pub struct Parts {
    /// The settings.
    pub config: Config,
    /// The named mirrors.
    pub mirrors: Mirrors,
    /// Who meets the wants.
    pub engine: Engine,
    /// Where tunnels lead.
    pub origin: Origin,
    /// Which https is opened.
    pub interceptor: Interceptor,
    /// This node, for `Via`.
    pub node: NodeId,
    /// The host names under which the prefix doors answer.
    pub hosts: Hosts,
    /// The addresses of this machine, kept up to date by whoever watches the interfaces.
    pub own_addresses: Arc<ArcSwap<Vec<IpAddr>>>,
    /// The addresses the administration listens on.
    pub admin: Vec<SocketAddr>,
    /// Time.
    pub clock: SharedClock,
    /// Where tunnels are waited for.
    pub drain: Drain,
    /// When to stop.
    pub stop: Shutdown,
}

#[derive(Debug)]
struct Inner {
    config: ArcSwap<Config>,
    mirrors: ArcSwap<Mirrors>,
    engine: Engine,
    origin: Origin,
    interceptor: ArcSwap<Interceptor>,
    pseudonym: String,
    /// What `Via` carries: protocol and pseudonym (RFC 9110 section 7.6.3).
    via: HeaderValue,
    /// What stands for files on their way out.
    standin: Standin,
    /// Files that clients of this machine fetch.
    handover: Handover,
    hosts: Hosts,
    own_addresses: Arc<ArcSwap<Vec<IpAddr>>>,
    admin: Vec<SocketAddr>,
    drain: Drain,
    stop: Shutdown,
}

impl Proxy {
    /// Ready to serve.
    pub fn new(parts: Parts) -> Self {
        let pseudonym = format!("larder-{}", parts.node.short());
        let via = HeaderValue::try_from(format!("1.1 {pseudonym}"));
        Self(Arc::new(Inner {
            config: ArcSwap::from_pointee(parts.config),
            mirrors: ArcSwap::from_pointee(parts.mirrors),
            engine: parts.engine,
            origin: parts.origin,
            interceptor: ArcSwap::from_pointee(parts.interceptor),
            pseudonym,
            via: via.unwrap_or(HeaderValue::from_static("1.1 larder")),
            standin: Standin::new(),
            handover: Handover::new(parts.clock),
            hosts: parts.hosts,
            own_addresses: parts.own_addresses,
            admin: parts.admin,
            drain: parts.drain,
            stop: parts.stop,
        }))
    }

    /// New settings from a reloaded configuration, for requests to come.
    pub fn set_config(&self, config: Config) {
        self.0.config.store(Arc::new(config));
    }

    /// New mirrors from a reloaded configuration, for requests to come.
    pub fn set_mirrors(&self, mirrors: Mirrors) {
        self.0.mirrors.store(Arc::new(mirrors));
    }

    /// Which https is opened from now on. What was remembered of clients is forgotten: they may trust by now.
    pub fn set_interceptor(&self, interceptor: Interceptor) {
        self.0.interceptor.store(Arc::new(interceptor));
    }

    fn via(&self) -> &HeaderValue {
        &self.0.via
    }

    /// Where a client's requests may go: only those of this machine reach what only this machine should.
    /// Where a client's requests may go.
    pub fn reach(&self, client: IpAddr) -> Reach {
        if client.is_loopback() || self.is_own(client) || !self.0.config.load().deny_private {
            return Reach::Anywhere;
        }
        Reach::Public { refuse: self.0.admin.iter().map(SocketAddr::ip).collect() }
    }

    fn is_own(&self, address: IpAddr) -> bool {
        self.0.own_addresses.load().contains(&address)
    }
}
