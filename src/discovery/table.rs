//! The neighbours this node believes in.
//!
//! A neighbour stands here under one run, with the addresses that it proved to read: each gave back a nonce sent
//! to it by unicast. A frame alone moves nothing. A run is replaced by a later one, or by any other once it has
//! fallen silent; a neighbour not heard for a few minutes is forgotten.

mod marks;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use marks::Marks;

use super::message::Sender;
use super::transport::Link;
use super::{HEARD_LATELY, Peer};
use crate::seal::{BootId, Window};
use crate::tls::NodeId;

/// How long a silent neighbour is remembered.
const REMEMBERED: Duration = Duration::from_secs(180);
/// How long an address counts as good without being heard from: two `Hello`s and a half.
const PATH_GOOD: Duration = Duration::from_secs(75);
/// How many addresses one neighbour may have.
const PATHS: usize = 4;
/// How many neighbours are remembered.
const MOST: usize = 4096;
/// After so many questions without an answer a neighbour is no longer waited for, and asked by unicast.
const SILENT: u8 = 3;
/// How long a count of the live is good: each question of a large site asks for it.
const COUNTED: Duration = Duration::from_millis(500);

/// One believed neighbour.
#[derive(Debug)]
pub(super) struct Neighbour {
    pub(super) sender: Sender,
    pub(super) boot: BootId,
    pub(super) window: Window,
    paths: Vec<Path>,
    pub(super) last_heard: Instant,
    /// When a frame of it last came by broadcast.
    broadcast_heard: Option<Instant>,
    /// Questions in a row that it did not answer.
    silent: u8,
    /// It hears no broadcast of ours, as far as we can tell.
    deaf: bool,
    /// Questions for everybody reach it through a gateway: nobody waits for its answer, it needs no copy of its own.
    relayed: bool,
    view: Arc<Peer>,
}

/// One address that a neighbour proved to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    pub(super) address: SocketAddr,
    pub(super) link: Link,
    heard: Instant,
}

/// What a proved run or address changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Confirmed {
    Joined,
    Restarted,
    NewPath,
    /// Another run of the same id is alive and later: this one is not believed.
    Conflict,
    /// No room.
    Full,
}

/// All believed neighbours, in the order of their ids: what is sent to them is sent in the same order in every run.
#[derive(Debug, Default)]
pub(super) struct Table {
    neighbours: BTreeMap<NodeId, Neighbour>,
    last_heard: Option<Instant>,
    /// How many were live, and when they were counted.
    counted: Cell<Option<(Instant, usize)>>,
}

impl Table {
    pub(super) fn get_mut(&mut self, node: &NodeId) -> Option<&mut Neighbour> {
        self.neighbours.get_mut(node)
    }

    pub(super) fn get(&self, node: &NodeId) -> Option<&Neighbour> {
        self.neighbours.get(node)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Neighbour> {
        self.neighbours.values()
    }

    /// When any neighbour was last heard.
    pub(super) const fn last_heard(&self) -> Option<Instant> {
        self.last_heard
    }

    /// How many neighbours were heard lately.
    pub(super) fn live(&self, now: Instant) -> usize {
        if let Some((at, count)) = self.counted.get()
            && now.saturating_duration_since(at) < COUNTED
        {
            return count;
        }
        let count = self.iter().filter(|neighbour| neighbour.is_live(now)).count();
        self.counted.set(Some((now, count)));
        count
    }

    /// A fresh frame came from a proved address of this neighbour.
    pub(super) fn touch(&mut self, node: &NodeId, sender: Sender, path: Path, broadcast: bool) {
        let Some(neighbour) = self.neighbours.get_mut(node) else { return };
        let now = path.heard;
        if !neighbour.is_live(now) {
            self.counted.set(None);
        }
        self.last_heard = Some(now);
        neighbour.last_heard = now;
        if broadcast {
            neighbour.broadcast_heard = Some(now);
            neighbour.relayed = false;
        }
        if let Some(known) = neighbour.paths.iter_mut().find(|known| known.address == path.address) {
            *known = path;
        }
        let changed = neighbour.sender != sender;
        neighbour.sender = sender;
        neighbour.refresh(changed);
    }

    /// A nonce came back from this address for this run.
    pub(super) fn confirm(&mut self, sender: Sender, boot: BootId, path: Path, moved: bool) -> Confirmed {
        let now = path.heard;
        let node = sender.node;
        if let Some(known) = self.neighbours.get_mut(&node) {
            if known.boot == boot {
                known.add_path(path, moved);
                known.refresh(true);
                return Confirmed::NewPath;
            }
            if boot < known.boot && known.is_live(now) {
                return Confirmed::Conflict;
            }
        }
        if self.neighbours.len() >= MOST && !self.neighbours.contains_key(&node) {
            return Confirmed::Full;
        }
        self.last_heard = Some(now);
        self.counted.set(None);
        let known = self.neighbours.insert(node, Neighbour::new(sender, boot, path));
        if known.is_some() { Confirmed::Restarted } else { Confirmed::Joined }
    }

    pub(super) fn remove(&mut self, node: &NodeId) -> Option<Neighbour> {
        self.counted.set(None);
        self.neighbours.remove(node)
    }

    /// Forgets who has not been heard for long; returns their names.
    pub(super) fn sweep(&mut self, now: Instant) -> Vec<NodeId> {
        let gone: Vec<NodeId> = self
            .iter()
            .filter(|neighbour| now.duration_since(neighbour.last_heard) >= REMEMBERED)
            .map(|neighbour| neighbour.sender.node)
            .collect();
        for node in &gone {
            self.remove(node);
        }
        gone
    }

    /// A gateway let us meet this neighbour.
    pub(super) fn note_relayed(&mut self, node: &NodeId, relayed: bool) {
        if let Some(neighbour) = self.neighbours.get_mut(node) {
            neighbour.relayed |= relayed;
        }
    }

    /// Our own addresses changed: what was learned about who hears our broadcasts is void.
    pub(super) fn forget_deafness(&mut self) {
        for neighbour in self.neighbours.values_mut() {
            neighbour.deaf = false;
            neighbour.silent = 0;
        }
    }

    /// Where a broadcast does not reach: one address for each neighbour that must be told by unicast.
    pub(super) fn unreached(&self, now: Instant) -> impl Iterator<Item = Path> {
        let needy = self.iter().filter(move |n| n.is_live(now) && !n.relayed && n.needs_unicast(now));
        needy.filter_map(move |n| n.path(now))
    }

    /// Whether broadcasts reach the neighbour that reads this address.
    pub(super) fn is_reached(&self, address: SocketAddr, now: Instant) -> bool {
        let at = |neighbour: &Neighbour| neighbour.paths.iter().any(|path| path.address == address);
        self.iter().any(|neighbour| at(neighbour) && neighbour.is_live(now) && !neighbour.needs_unicast(now))
    }
}

impl Path {
    pub(super) const fn new(address: SocketAddr, link: Link, now: Instant) -> Self {
        Self { address, link, heard: now }
    }
}

impl Neighbour {
    fn new(sender: Sender, boot: BootId, path: Path) -> Self {
        let view = Arc::new(Peer::of(&sender, boot, path.address));
        Self {
            sender,
            boot,
            window: Window::new(),
            paths: vec![path],
            last_heard: path.heard,
            broadcast_heard: None,
            silent: 0,
            deaf: false,
            relayed: false,
            view,
        }
    }

    pub(super) fn is_live(&self, now: Instant) -> bool {
        now.duration_since(self.last_heard) < HEARD_LATELY
    }

    /// Whether this address was proved.
    pub(super) fn reads(&self, address: SocketAddr) -> bool {
        self.paths.iter().any(|path| path.address == address)
    }

    /// The address to use: the first proved one that is still good, else the one heard last.
    pub(super) fn path(&self, now: Instant) -> Option<Path> {
        let good = |path: &&Path| now.duration_since(path.heard) < PATH_GOOD;
        self.paths.iter().find(good).or_else(|| self.paths.iter().max_by_key(|path| path.heard)).copied()
    }

    /// An address of it that can be reached from other networks, best this one.
    pub(super) fn routable(&self, from: SocketAddr) -> Option<SocketAddr> {
        let is_local = |address: &SocketAddr| match address.ip() {
            IpAddr::V6(ip) => ip.is_unicast_link_local(),
            IpAddr::V4(ip) => ip.is_link_local(),
        };
        let all = std::iter::once(from).chain(self.paths.iter().map(|path| path.address));
        all.into_iter().find(|address| !is_local(address))
    }

    /// Whether a question waits for its answer.
    pub(super) const fn is_awaited(&self) -> bool {
        self.silent < SILENT && !self.relayed
    }

    /// It answered a question.
    pub(super) const fn answered(&mut self) {
        self.silent = 0;
    }

    /// It did not answer a question within a second.
    pub(super) const fn fell_silent(&mut self) {
        self.silent = self.silent.saturating_add(1);
        self.deaf |= self.silent >= SILENT - 1;
    }

    /// What other rooms see of it.
    pub(super) fn view(&self) -> Arc<Peer> {
        Arc::clone(&self.view)
    }

    fn needs_unicast(&self, now: Instant) -> bool {
        let heard = self.broadcast_heard.is_some_and(|heard| now.duration_since(heard) < REMEMBERED);
        self.deaf || !heard
    }

    fn add_path(&mut self, path: Path, moved: bool) {
        if moved {
            self.paths.clear();
        }
        self.paths.retain(|known| known.address != path.address);
        if self.paths.len() >= PATHS {
            let stalest = self.paths.iter().enumerate().min_by_key(|(_, known)| known.heard);
            if let Some((place, _)) = stalest {
                self.paths.remove(place);
            }
        }
        self.paths.push(path);
    }

    /// Makes the view anew where it no longer tells the truth.
    fn refresh(&mut self, changed: bool) {
        let Some(path) = self.path(self.last_heard) else { return };
        let fresh = Peer::of(&self.sender, self.boot, path.address);
        if changed || fresh.address != self.view.address {
            self.view = Arc::new(fresh);
        }
    }
}
