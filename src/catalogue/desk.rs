//! What is asked of the database and written into it: typed, in steps that are small enough for one deadline. Every
//! call blocks.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::records::{HoldingRecord, NodeRecord};
use super::{Known, LIVE, Me, REMEMBERED};
use crate::clock::Timestamp;
use crate::digest::Digest;
use crate::orm::{
    Action, DbError, Engine, KeyParts as _, Operation, Outcome, Query, Record as _, Repository,
};
use crate::seal::BootId;
use crate::tls::NodeId;

/// The most rows compared in one step.
pub(super) const STEP: usize = 500;
/// The most rows written in one step: whoever looks something up waits for no more than that.
const WRITTEN: usize = 100;
/// The most rows that are looked at for one digest.
const LOOKED_AT: u64 = 64;
/// The most nodes that one answer names.
const NAMED: usize = 4;
/// The most addresses of one node that are believed.
const ADDRESSES: usize = 4;

/// One node's side of the catalogue.
pub(super) struct Desk<'d> {
    pub(super) engine: &'d dyn Engine,
    pub(super) me: &'d Me,
    pub(super) registration: u64,
}

/// What one step of comparing came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Compared {
    /// Where the next one goes on; none if this was the last.
    pub(super) next: Option<Digest>,
    /// What was wrong there.
    pub(super) mended: usize,
}

impl<'d> Desk<'d> {
    /// Says who this node is. What it told before stays good if it was not away for so long that somebody may be
    /// sweeping it up.
    pub(super) fn register(engine: &'d dyn Engine, me: &'d Me, now: Timestamp) -> Result<Self, DbError> {
        let nodes = Repository::<NodeRecord, _>::new(engine);
        let before = nodes.get(&key(me.node))?;
        let still = before.filter(|row| row.site == me.site && now.since(row.seen_at) < REMEMBERED / 2);
        let registration = match still {
            Some(row) => row.registration,
            None => getrandom::u64().map_err(|error| DbError::Io(error.into()))?,
        };
        let desk = Self { engine, me, registration };
        nodes.upsert(&desk.row(now))?;
        Ok(desk)
    }

    /// Says that this node is there still; false if its row is gone.
    pub(super) fn beat(&self, now: Timestamp) -> Result<bool, DbError> {
        let nodes = Repository::<NodeRecord, _>::new(self.engine);
        Ok(nodes.update(&self.row(now), None)? != Outcome::Missing)
    }

    /// Says goodbye: what was told stays, for the next start.
    pub(super) fn leave(&self, now: Timestamp) -> Result<(), DbError> {
        let gone = Timestamp(now.0.saturating_sub(u64::try_from(LIVE.as_millis()).unwrap_or(0)));
        self.beat(gone).map(drop)
    }

    /// Tells what is held and what is held no more.
    pub(super) fn tell(&self, news: &BTreeMap<Digest, Option<u64>>) -> Result<(), DbError> {
        let news: Vec<_> = news.iter().collect();
        for step in news.chunks(WRITTEN) {
            let rows: Vec<_> = step.iter().map(|(digest, size)| (**digest, **size)).collect();
            self.write(&rows)?;
        }
        Ok(())
    }

    /// Compares what is told of the digests after `after` with what is held, a step of it: `held` is in order.
    pub(super) fn compare(
        &self,
        held: &[Digest],
        after: Option<Digest>,
        size: &dyn Fn(&Digest) -> Option<u64>,
    ) -> Result<Compared, DbError> {
        let by = HoldingRecord::COLUMNS;
        let mine = by.node.is(&key(self.me.node));
        let filter = match &after {
            Some(after) => mine.and(by.digest.above(after)),
            None => mine,
        };
        let query = Query::everything().filter(filter).order(by.digest.ascending());
        let told = Repository::<HoldingRecord, _>::new(self.engine)
            .find(&query.limit(u64::try_from(STEP).unwrap_or(u64::MAX)))?;
        let here = held.partition_point(|digest| after.is_some_and(|after| *digest <= after));
        let held = held.get(here..).unwrap_or_default();
        // as far as both of them reach
        let last_told = told.last().filter(|_| told.len() == STEP).map(|row| row.digest);
        let last_held = held.get(STEP - 1).copied();
        let until = [last_told, last_held].into_iter().flatten().min();
        let in_step = |digest: &Digest| until.is_none_or(|until| *digest <= until);
        let told: BTreeMap<Digest, HoldingRecord> =
            told.into_iter().filter(|row| in_step(&row.digest)).map(|row| (row.digest, row)).collect();
        let mut wrong: BTreeMap<Digest, Option<u64>> = BTreeMap::new();
        for digest in held.iter().take_while(|digest| in_step(digest)) {
            let size = size(digest);
            let right = told.get(digest).map(|row| (row.size, row.registration, &row.site));
            if right != size.map(|size| (size, self.registration, &self.me.site)) {
                wrong.insert(*digest, size);
            }
        }
        let gone = told.keys().filter(|digest| held.binary_search(digest).is_err());
        wrong.extend(gone.map(|digest| (*digest, None)));
        self.tell(&wrong)?;
        Ok(Compared { next: until, mended: wrong.len() })
    }

    /// Sweeps up a step of what a node left behind that was silent for a day; whether there was anything.
    pub(super) fn sweep(&self, now: Timestamp) -> Result<bool, DbError> {
        let by = NodeRecord::COLUMNS;
        let dead = Timestamp(now.0.saturating_sub(u64::try_from(REMEMBERED.as_millis()).unwrap_or(0)));
        let oldest = Query::everything().filter(by.seen_at.below(&dead)).order(by.seen_at.ascending());
        let nodes = Repository::<NodeRecord, _>::new(self.engine);
        let Some(gone) = nodes.find(&oldest.limit(1))?.pop() else { return Ok(false) };
        let by = HoldingRecord::COLUMNS;
        let left = || by.node.is(&gone.node).and(by.registration.is(&gone.registration));
        let holdings = Repository::<HoldingRecord, _>::new(self.engine);
        let ordered = Query::everything().filter(left()).order(by.digest.ascending());
        let steps = u64::try_from(STEP).unwrap_or(u64::MAX) * 10;
        let last = holdings.find(&ordered.offset(steps).limit(1))?.pop();
        let part = match &last {
            Some(row) => left().and(by.digest.at_most(&row.digest)),
            None => left(),
        };
        holdings.delete_where(&part)?;
        if last.is_none() {
            // a node that came back meanwhile has another row by now
            let action = Action::Delete { key: gone.node.parts(), seen: Some(gone.changes) };
            self.engine.run(&Operation { table: NodeRecord::table(), action })?;
        }
        Ok(true)
    }

    fn write(&self, rows: &[(Digest, Option<u64>)]) -> Result<(), DbError> {
        let node = key(self.me.node);
        let here: Vec<HoldingRecord> =
            rows.iter().filter_map(|(digest, size)| Some(self.holding(*digest, (*size)?))).collect();
        let put = here.iter().map(|row| Action::Upsert(row.encode()));
        let batch: Vec<_> = put.map(|action| Operation { table: HoldingRecord::table(), action }).collect();
        if !batch.is_empty() {
            self.engine.apply(&batch)?;
        }
        let gone: Vec<Digest> = rows.iter().filter(|(_, size)| size.is_none()).map(|row| row.0).collect();
        if !gone.is_empty() {
            let by = HoldingRecord::COLUMNS;
            let filter = by.node.is(&node).and(by.digest.any_of(&gone));
            Repository::<HoldingRecord, _>::new(self.engine).delete_where(&filter)?;
        }
        Ok(())
    }

    fn holding(&self, digest: Digest, size: u64) -> HoldingRecord {
        let (site, registration) = (self.me.site.clone(), self.registration);
        HoldingRecord { node: key(self.me.node), digest, site, size, registration }
    }

    fn row(&self, now: Timestamp) -> NodeRecord {
        let (me, boot) = (self.me, self.me.boot);
        NodeRecord {
            node: key(me.node),
            site: me.site.clone(),
            // the database takes every character but this one
            name: me.name.replace('\0', ""),
            program: me.version.clone(),
            boot_counter: boot.counter,
            boot_random: boot.random,
            addresses: (me.addresses)().iter().map(ToString::to_string).collect(),
            registration: self.registration,
            seen_at: now,
            changes: 0,
        }
    }
}

/// Nodes of a site that hold a blob and are there, the first of them drawn by `lot`; never this node itself.
pub(super) fn holders(
    engine: &dyn Engine,
    (node, site): (NodeId, &str),
    digest: &Digest,
    lot: [u8; 16],
    now: Timestamp,
) -> Result<Vec<Known>, DbError> {
    let by = HoldingRecord::COLUMNS;
    let holdings = Repository::<HoldingRecord, _>::new(engine);
    let held = || by.digest.is(digest).and(by.site.is(&site.to_owned()));
    let ordered = |filter| Query::everything().filter(filter).order(by.node.ascending());
    let mut found = holdings.find(&ordered(held().and(by.node.at_least(&lot))).limit(LOOKED_AT))?;
    let left = LOOKED_AT.saturating_sub(u64::try_from(found.len()).unwrap_or(u64::MAX));
    if left > 0 {
        found.extend(holdings.find(&ordered(held().and(by.node.below(&lot))).limit(left))?);
    }
    let nodes: Vec<[u8; 16]> = found.iter().map(|row| row.node).filter(|other| *other != key(node)).collect();
    if nodes.is_empty() {
        return Ok(Vec::new());
    }
    let by = NodeRecord::COLUMNS;
    let dead = Timestamp(now.0.saturating_sub(u64::try_from(LIVE.as_millis()).unwrap_or(0)));
    let there = by.node.any_of(&nodes).and(by.site.is(&site.to_owned())).and(by.seen_at.above(&dead));
    let rows = Repository::<NodeRecord, _>::new(engine).find(&Query::everything().filter(there))?;
    let place = |row: &NodeRecord| nodes.iter().position(|node| *node == row.node);
    let mut known: Vec<_> = rows.iter().map(|row| (place(row), Known::of(row))).collect();
    known.sort_by_key(|(place, _)| *place);
    Ok(known.into_iter().map(|(_, known)| known).filter(Known::has_address).take(NAMED).collect())
}

impl Known {
    /// What stands in the row, and nothing that is no address of one machine.
    fn of(row: &NodeRecord) -> Self {
        let addresses = row.addresses.iter().filter_map(|text| text.parse::<SocketAddr>().ok());
        let one = |address: &SocketAddr| {
            let ip = address.ip().to_canonical();
            let broadcast = matches!(ip, std::net::IpAddr::V4(v4) if v4.is_broadcast());
            !(ip.is_unspecified() || ip.is_multicast() || broadcast || address.port() == 0)
        };
        Self {
            node: NodeId::from_bytes(row.node),
            boot: BootId { counter: row.boot_counter, random: row.boot_random },
            addresses: addresses.filter(one).take(ADDRESSES).collect(),
        }
    }
}

pub(super) fn key(node: NodeId) -> [u8; 16] {
    *node.as_bytes()
}
