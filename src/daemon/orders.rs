//! What is blocked for the whole site: given on any node, followed by all.
//!
//! Each `Hello` names the list of orders of its node. Who hears another name than its own asks that node for the list,
//! over the port on which neighbours prove who they are, and takes over what is later ([`Orders`]). What a frame says is
//! a reason to ask and no more; a letter that no accepted key opens is no list.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};

use super::DaemonError;
use crate::cache::Cache;
use crate::clock::SharedClock;
use crate::discovery::Discovery;
use crate::fetch::{Engine, Neighbours};
use crate::index::{BlockRecord, EventRecord, Order, Ordered, Orders, TooManyOrders};
use crate::shutdown::Shutdown;
use crate::tls::NodeId;

/// Under this name the list is kept.
const SETTING: &str = "site-orders";
/// How often it is tried to reach a node that named another list, and how many tries it is worth: who is new has to be
/// known first. Its next `Hello` is another reason.
const TRY_EVERY: Duration = Duration::from_millis(250);
const TRIES: u32 = 40;
/// So many nodes are asked one after another.
const WAITING: usize = 64;

/// The orders that this node knows; a cheap clone.
#[derive(Clone)]
pub(super) struct SiteOrders(Arc<Inner>);

struct Inner {
    list: Mutex<Orders>,
    is_followed: bool,
    is_joined: AtomicBool,
    /// This node, as others are told.
    me: String,
    cache: Cache,
    engine: Engine,
    clock: SharedClock,
    given: Notify,
}

/// A node named a list of orders.
pub(super) type Heard = (NodeId, [u8; 16]);

/// Where nodes that named a list wait.
pub(super) fn waiting() -> (mpsc::Sender<Heard>, mpsc::Receiver<Heard>) {
    mpsc::channel(WAITING)
}

impl SiteOrders {
    /// Those known at the last stop.
    pub(super) fn new(
        is_followed: bool,
        me: String,
        engine: Engine,
        cache: Cache,
        clock: SharedClock,
    ) -> Self {
        let mut list = Orders::default();
        match cache.index().setting(SETTING).map(|kept| Orders::from_json(kept.as_bytes())) {
            Some(Ok(kept)) => drop(list.merge(kept)),
            Some(Err(error)) => {
                tracing::warn!(%error, "the orders of the site cannot be read: neighbours are asked")
            }
            None => {}
        }
        Self(Arc::new(Inner {
            list: Mutex::new(list),
            is_followed,
            is_joined: AtomicBool::new(false),
            me,
            cache,
            engine,
            clock,
            given: Notify::new(),
        }))
    }

    /// The name of the list; none where it is empty or nobody follows it.
    pub(super) fn name(&self) -> Option<[u8; 16]> {
        self.0.is_followed.then(|| self.list().name()).flatten()
    }

    /// The list, for another node.
    pub(super) fn told(&self) -> Option<Vec<u8>> {
        self.0.is_followed.then(|| self.list().to_json().ok()).flatten()
    }

    /// Whether this node follows orders.
    pub(super) fn is_followed(&self) -> bool {
        self.0.is_followed
    }

    /// Whether there is a site that hears what is ordered here.
    pub(super) fn is_heard(&self) -> bool {
        self.0.is_followed && self.0.is_joined.load(Ordering::Relaxed)
    }

    /// Orders that a thing is blocked on all nodes; blocking it here is for the caller.
    pub(super) fn block(&self, thing: &str, shown: &str, reason: &str) -> Result<(), TooManyOrders> {
        self.give(thing, shown, reason, false)
    }

    /// Why a thing is blocked that this node orders for the site.
    pub(super) fn because(&self) -> String {
        BlockRecord::by_site(&self.0.me)
    }

    /// Lets a thing go again, on all nodes where it is blocked for the site. False where it was not blocked.
    pub(super) fn unblock(&self, thing: &str) -> bool {
        let Some(block) = self.0.cache.index().block(thing) else { return false };
        if BlockRecord::is_by_site(&block.because_of) {
            let given = self.give(thing, &block.shown, &block.reason, true);
            debug_assert!(given.is_ok(), "what is lifted is never too much");
        }
        let done = self.0.engine.unblock(thing);
        let order = self.list().of(thing).cloned();
        if let Some(order) = order.filter(|_| self.0.is_followed) {
            self.apply(&order);
        }
        done
    }

    fn give(&self, thing: &str, shown: &str, reason: &str, lifted: bool) -> Result<(), TooManyOrders> {
        let text = |text: &str| text.chars().filter(|c| !c.is_control()).take(200).collect::<String>();
        let order = Order {
            thing: thing.to_owned(),
            shown: text(shown),
            reason: text(reason),
            stamp: 0,
            at: self.0.clock.now(),
            by: self.0.me.clone(),
            lifted,
        };
        let mut list = self.list();
        list.give(order)?;
        self.keep(&list);
        drop(list);
        self.0.given.notify_one();
        Ok(())
    }

    /// Takes over what is later in a neighbour's list. Blocks on the disk.
    fn take(&self, json: &[u8]) -> Result<(), serde_json::Error> {
        let theirs = Orders::from_json(json)?;
        let news = {
            let mut list = self.list();
            let news = list.merge(theirs);
            self.keep(&list);
            news
        };
        for order in &news {
            self.apply(order);
            self.note(order);
        }
        Ok(())
    }

    /// Does what an order says. What this node's own administrator blocked stays.
    fn apply(&self, order: &Order) {
        let index = self.0.cache.index();
        let block = index.block(&order.thing);
        let is_by_site = block.as_ref().is_some_and(|block| BlockRecord::is_by_site(&block.because_of));
        match order.what() {
            Some(_) if order.lifted => {
                if is_by_site {
                    self.0.engine.unblock(&order.thing);
                }
            }
            Some(what) if block.is_none() || is_by_site => {
                let because = BlockRecord::by_site(&order.by);
                let made =
                    block_thing(&self.0.engine, &self.0.cache, what, &order.shown, &order.reason, because);
                if !made.is_ok_and(|made| made.0) {
                    tracing::warn!(block.thing = %order.shown, "what the site blocks could not be blocked and removed here");
                }
            }
            Some(_) | None => {}
        }
    }

    /// The audit names who ordered it.
    fn note(&self, order: &Order) {
        let what = if order.lifted { "the site lets a thing go again" } else { "the site blocks a thing" };
        tracing::info!(block.thing = %order.shown, block.reason = %order.reason, block.by = %order.by, "{what}");
        let (method, status) = if order.lifted { ("DELETE", 204) } else { ("POST", 201) };
        self.0.cache.index().put_event(EventRecord {
            id: 0,
            at: self.0.clock.now(),
            door: "site".to_owned(),
            who: order.by.clone(),
            method: method.to_owned(),
            path: format!("/api/v1/blocks/{}", order.thing),
            status,
        });
    }

    fn keep(&self, list: &Orders) {
        match list.to_json().map(String::from_utf8) {
            Ok(Ok(json)) => self.0.cache.index().put_setting(SETTING, &json),
            Ok(Err(_)) | Err(_) => tracing::error!("the orders of the site cannot be written"),
        }
    }

    fn list(&self) -> std::sync::MutexGuard<'_, Orders> {
        self.0.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what is ordered here at once, and asks the nodes that named another list.
    pub(super) async fn run(
        self,
        mut heard: mpsc::Receiver<Heard>,
        (discovery, neighbours): (Discovery, Neighbours),
        is_gateway: bool,
        stop: Shutdown,
    ) -> Result<(), DaemonError> {
        self.0.is_joined.store(true, Ordering::Relaxed);
        let mut waiting: HashMap<NodeId, ([u8; 16], u32)> = HashMap::new();
        loop {
            tokio::select! {
                () = stop.requested() => return Ok(()),
                () = self.0.given.notified() => discovery.hello(),
                Some((node, list)) = heard.recv() => {
                    if waiting.len() < WAITING || waiting.contains_key(&node) {
                        waiting.insert(node, (list, 0));
                    }
                }
                () = tokio::time::sleep(TRY_EVERY), if !waiting.is_empty() => {
                    let before = self.name();
                    self.ask(&mut waiting, &neighbours).await;
                    // the other networks of a gateway do not hear who ordered it
                    if is_gateway && self.name() != before {
                        discovery.hello();
                    }
                }
            }
        }
    }

    async fn ask(&self, waiting: &mut HashMap<NodeId, ([u8; 16], u32)>, neighbours: &Neighbours) {
        for (node, (list, tries)) in std::mem::take(waiting) {
            // meanwhile another may have told it
            if self.name() == Some(list) {
                continue;
            }
            match neighbours.orders(node).await {
                Some(Ok(json)) => self.took(node, json).await,
                Some(Err(error)) => {
                    tracing::debug!(peer.node = %node, %error, "a neighbour did not tell its orders")
                }
                None if tries < TRIES => {
                    waiting.insert(node, (list, tries + 1));
                }
                None => {}
            }
        }
    }

    async fn took(&self, node: NodeId, json: Vec<u8>) {
        let orders = self.clone();
        match tokio::task::spawn_blocking(move || orders.take(&json)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(peer.node = %node, %error, "a neighbour's orders cannot be read")
            }
            Err(error) => tracing::error!(%error, "taking over orders broke off"),
        }
    }
}

/// Blocks a thing and removes what is held of it: the blob, or the blobs that its URL led to and no other does; whether
/// it is blocked, and whether anything was removed. Blocks on the disk.
pub(super) fn block_thing(
    engine: &Engine,
    cache: &Cache,
    what: Ordered,
    shown: &str,
    reason: &str,
    because: String,
) -> Result<(bool, bool), crate::store::StoreError> {
    let remove = |digest| {
        cache.unpin(digest)?;
        cache.remove(digest)
    };
    match what {
        Ordered::Blob(digest) => {
            let done = engine.block_blob(&digest, reason.to_owned(), because);
            Ok((done, done && remove(&digest)?))
        }
        Ordered::Url(url) => {
            let led: Vec<_> = cache.variants(&url).iter().filter_map(|answer| answer.digest).collect();
            let done = engine.block_url(url, shown.to_owned(), reason.to_owned(), because);
            let mut removed = false;
            for digest in led.iter().filter(|_| done) {
                let is_named = !cache.index().resources_of(digest).is_empty();
                removed |= !is_named && remove(digest)?;
            }
            Ok((done, removed))
        }
    }
}
