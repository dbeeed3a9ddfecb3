//! What neighbours may know of and have from this node's cache.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::orders::{Heard, SiteOrders};
use crate::cache::Cache;
use crate::clock::SharedClock;
use crate::digest::Digest;
use crate::discovery::{Asker, Holding, Holdings, Wanted};
use crate::fetch::Engine;
use crate::index::ResourceRecord;
use crate::peer::{self, Absent, Found, ResourceHead, Shelf};
use crate::policy::{self, ResourceKey, UrlKey};
use crate::tls::NodeId;

/// Answers neighbours' questions from memory.
#[derive(Clone)]
pub(super) struct Shared {
    cache: Cache,
    engine: Engine,
    server: peer::Server,
    orders: SiteOrders,
    /// Who named another list of orders than this node's.
    heard: mpsc::Sender<Heard>,
}

impl Shared {
    pub(super) fn new(
        cache: Cache,
        engine: Engine,
        server: peer::Server,
        (orders, heard): (SiteOrders, mpsc::Sender<Heard>),
    ) -> Self {
        Self { cache, engine, server, orders, heard }
    }

    fn of_blob(&self, digest: &Digest) -> Option<Holding> {
        let (size, resource, guarded) = shareable(&self.cache, digest)?;
        Some(Holding {
            digest: Some(*digest),
            size: Some(size),
            resource,
            complete: true,
            busy: self.server.uplink().is_busy(),
            guarded,
            ..Holding::default()
        })
    }

    fn of_resource(&self, record: &ResourceRecord) -> Option<Holding> {
        let digest = record.digest.filter(|digest| self.cache.holds(digest).is_some())?;
        let head = &record.answer.head;
        Some(Holding {
            digest: Some(digest),
            size: Some(record.size),
            etag: head.get("etag").map(str::to_owned),
            last_modified: head.get("last-modified").map(str::to_owned),
            first_hand: record.first_hand,
            resource: Some(record.resource_key),
            complete: true,
            busy: self.server.uplink().is_busy(),
            guarded: false,
            partial: None,
        })
    }

    /// What is held whole.
    fn held(&self, wanted: &Wanted) -> Option<Holding> {
        match wanted {
            Wanted::Url(url) => {
                let variants = self.cache.variants(url);
                let shareable =
                    variants.iter().filter(|record| record.shareable && record.answer.head.status == 200);
                shareable.filter_map(|record| self.of_resource(record)).next()
            }
            Wanted::Stated(key) => self.of_blob(&self.cache.index().blob_of(key)?),
            Wanted::Blob(digest) => self.of_blob(digest),
        }
    }
}

impl Holdings for Shared {
    fn lookup(&self, wanted: &Wanted, asker: Option<Asker>) -> Option<Holding> {
        let arriving = || {
            let holding = self.engine.arriving(wanted, asker)?;
            Some(Holding { busy: holding.busy || self.server.uplink().is_busy(), ..holding })
        };
        self.held(wanted).or_else(arriving)
    }

    fn load(&self) -> u8 {
        u8::try_from(self.server.uplink().uploads().saturating_mul(8)).unwrap_or(u8::MAX)
    }

    fn tell(&self) -> Option<Vec<u8>> {
        let (part, is_due) = self.cache.tell();
        if is_due {
            let cache = self.cache.clone();
            let shared =
                move |digest: &Digest| shareable(&cache, digest).is_some_and(|(.., guarded)| !guarded);
            let cache = self.cache.clone();
            // joined by nobody but the runtime: it ends with a look over the index
            drop(tokio::task::spawn_blocking(move || cache.reckon_roll(shared)));
        }
        part
    }

    fn told(&self, by: NodeId, part: &[u8]) {
        self.cache.hear(by, part);
    }

    fn orders(&self) -> Option<[u8; 16]> {
        self.orders.name()
    }

    fn orders_heard(&self, node: NodeId, list: [u8; 16]) {
        // who finds no room names its list again with its next greeting
        if self.orders.name() != Some(list) && self.heard.try_send((node, list)).is_err() {
            tracing::trace!(peer.node = %node, "too many lists of orders at once");
        }
    }

    fn left(&self, node: &NodeId) {
        self.cache.unhear(node);
    }

    fn doubted(&self, digest: &Digest) {
        let (cache, digest) = (self.cache.clone(), *digest);
        // joined by nobody but the runtime: it ends with the read of one file
        drop(tokio::spawn(async move {
            let verdict = cache.verify(&digest).await;
            tracing::info!(blob.digest = %digest, ?verdict, "a neighbour doubted a blob: read again");
        }));
    }
}

/// The size of a blob that neighbours may have, the name of a response that it belongs to, and whether only those
/// may have it whom the origin lets in. What answered credentials is given out by its digest, and without the URLs
/// that led to it.
pub(super) fn shareable(cache: &Cache, digest: &Digest) -> Option<(u64, Option<ResourceKey>, bool)> {
    let size = cache.holds(digest)?;
    let (records, guarded) = (cache.index().resources_of(digest), cache.is_guarded(digest));
    let shared = records.iter().find(|record| record.shareable);
    let may_leave = guarded || records.is_empty() || shared.is_some();
    may_leave.then(|| (size, shared.map(|record| record.resource_key), guarded))
}

/// What the peer server gives out.
pub(super) fn shelf(cache: &Cache, engine: &Engine, clock: &SharedClock, orders: &SiteOrders) -> Shelf {
    let orders = orders.clone();
    let (blobs, heads, clock) = (cache.clone(), cache.clone(), Arc::clone(clock));
    let (arriving, fetching) = (engine.clone(), engine.clone());
    Shelf {
        open: Box::new(move |digest| {
            let cache = blobs.clone();
            Box::pin(async move {
                let blob = cache.open_proven(&digest).await?;
                let size = blob.size();
                Some(Found { size, body: Box::new(move |range| blob.body(range)) })
            })
        }),
        head: Box::new(move |key, pieces| {
            let (cache, engine, clock) = (heads.clone(), fetching.clone(), Arc::clone(&clock));
            Box::pin(async move {
                match engine.arriving_head(key, pieces).await {
                    Some(told) => told,
                    None => stored_head(&cache, key, &clock).ok_or(Absent::NotHere),
                }
            })
        }),
        arriving: Box::new(move |thing, asker| arriving.arriving_bytes(thing, asker)),
        orders: Box::new(move || orders.told()),
    }
}

/// The head of a stored response, by its own name or by its URL's.
fn stored_head(cache: &Cache, key: [u8; 32], clock: &SharedClock) -> Option<ResourceHead> {
    let by_url = || {
        let variants = cache.variants(&UrlKey::from_bytes(key)).into_iter();
        variants.filter(|record| record.answer.head.status == 200).max_by_key(|r| r.answer.response_time)
    };
    let record = cache.resource(&ResourceKey::from_bytes(key)).or_else(by_url)?;
    record.shareable.then(|| ResourceHead {
        head: policy::shared_fields(&record.answer.head),
        age: policy::age(&record.answer, clock.now()).as_secs(),
        digest: record.digest,
        size: record.size,
        resource: Some(record.resource_key),
        first_hand: record.first_hand,
        arriving: None,
    })
}
