//! What each database holds, in memory, and how its writer takes the changes.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::ban::BANS;
use super::blob::{BlobBatch, Blobs};
use super::cut::CUTS;
use super::digest::Digests;
use super::expectation::Expectations;
use super::hot::{Hot, Seeded};
use super::migrations::{INDEX, STATE};
use super::readers::Readers;
use super::resource::{ResourceBatch, Resources};
use super::{
    BanRecord, BlockRecord, CutRecord, EventRecord, SettingRecord, TransferRecord, UsageRecord, event, open,
    transfer, usage,
};
use crate::clock::Timestamp;
use crate::digest::StatedKey;
use crate::orm::{Changes, Database, DbError, Feed, Location};
use crate::policy::UrlKey;

/// What `index.db` holds.
#[derive(Debug)]
pub(super) struct IndexShelf {
    pub(super) blobs: Blobs,
    pub(super) resources: Resources,
    pub(super) expectations: Expectations,
    pub(super) digests: Digests,
    pub(super) transfers: Hot<TransferRecord>,
    readers: Arc<Readers>,
    feed: Feed,
}

/// What `state.db` holds.
#[derive(Debug)]
pub(super) struct StateShelf {
    pub(super) bans: Hot<BanRecord>,
    pub(super) blocks: Hot<BlockRecord>,
    pub(super) cuts: Hot<CutRecord>,
    pub(super) settings: Hot<SettingRecord>,
    pub(super) usage: Hot<UsageRecord>,
    pub(super) events: Hot<EventRecord>,
    at: Location,
    feed: Feed,
}

/// Changed rows of `index.db`, or their keys.
pub(super) struct IndexBatch {
    blobs: BlobBatch,
    resources: ResourceBatch,
    expectations: HashSet<UrlKey, Seeded>,
    digests: HashSet<StatedKey, Seeded>,
    transfers: HashSet<String, Seeded>,
}

/// The keys of changed rows of `state.db`.
pub(super) struct StateBatch {
    bans: HashSet<IpAddr, Seeded>,
    blocks: HashSet<String, Seeded>,
    cuts: HashSet<(IpAddr, UrlKey), Seeded>,
    settings: HashSet<String, Seeded>,
    usage: HashSet<Timestamp, Seeded>,
    events: HashSet<u64, Seeded>,
}

impl IndexShelf {
    /// Nothing but the transfers is in memory yet: [`IndexShelf::fill`] reads the rest.
    pub(super) fn to_be_filled(database: &Database, now: Timestamp, feed: Feed) -> Result<Self, DbError> {
        let readers = Arc::new(Readers::new(database.at()));
        let shelf = Self {
            blobs: Blobs::new(Arc::clone(&readers)),
            resources: Resources::new(Arc::clone(&readers)),
            expectations: Expectations::new(Arc::clone(&readers)),
            digests: Digests::new(Arc::clone(&readers)),
            transfers: Hot::load(database)?,
            readers,
            feed,
        };
        shelf.forget_transfers(now);
        Ok(shelf)
    }

    /// Reads what is to be in memory, until `stop` says so.
    pub(super) fn fill(&self, database: &Database, stop: &AtomicBool) -> Result<(), DbError> {
        self.blobs.fill(database, stop)?;
        self.resources.fill(database, stop)?;
        self.digests.fill(database, stop)?;
        self.expectations.fill(database, stop)
    }

    /// Nothing more is read.
    pub(super) fn is_filled_now(&self) {
        self.blobs.is_filled_now();
        self.resources.is_filled_now();
        self.digests.is_filled_now();
        self.expectations.is_filled_now();
    }

    /// The file, and its key.
    pub(super) fn at(&self) -> &Location {
        self.readers.at()
    }

    /// Reading went wrong: a file that is damaged is replaced by the writer.
    pub(super) fn note_trouble(&self, error: &DbError) {
        self.readers.note(error);
    }

    pub(super) fn put_transfer(&self, record: TransferRecord) {
        self.transfers.put(record);
        self.transfers.bound(transfer::TRANSFERS, |transfer| transfer.ended_at);
    }

    /// Forgets the transfers that ended too long ago.
    pub(super) fn forget_transfers(&self, now: Timestamp) {
        self.transfers.retain(|transfer| {
            now.since(transfer.ended_at.unwrap_or(transfer.started_at)) < transfer::REMEMBERED
        });
    }
}

impl StateShelf {
    /// The file, and its key.
    pub(super) const fn at(&self) -> &Location {
        &self.at
    }

    pub(super) fn load(database: &Database, now: Timestamp, feed: Feed) -> Result<Self, DbError> {
        let (bans, cuts) = (Hot::<BanRecord>::load(database)?, Hot::<CutRecord>::load(database)?);
        bans.bound(BANS, |ban| ban.until);
        cuts.retain(|cut| cut.until > now);
        cuts.bound(CUTS, |cut| cut.until);
        let (settings, usage, events) = (Hot::load(database)?, Hot::load(database)?, Hot::load(database)?);
        let blocks = Hot::load(database)?;
        let shelf = Self { bans, blocks, cuts, settings, usage, events, at: database.at().clone(), feed };
        shelf.forget_events(now);
        Ok(shelf)
    }

    /// Adds to the sums of this hour.
    pub(super) fn add_usage(&self, mut more: UsageRecord, now: Timestamp) {
        more.hour = UsageRecord::hour_of(now);
        if !self.usage.change(&more.hour, |sums| sums.add(&more)) {
            self.usage.put(more);
            self.fold_usage();
        }
    }

    /// What is beyond the bound goes into the sum of all that was before.
    fn fold_usage(&self) {
        while self.usage.len() > usage::HOURS {
            let before = usage::BEFORE;
            let hours = self.usage.all().into_iter().filter(|sums| sums.hour != before);
            let Some(oldest) = hours.min_by_key(|sums| sums.hour) else { return };
            self.usage.remove(&oldest.hour);
            if !self.usage.change(&before, |sums| sums.add(&oldest)) {
                self.usage.put(UsageRecord { hour: before, ..(*oldest).clone() });
            }
        }
    }

    pub(super) fn put_event(&self, record: EventRecord) {
        self.events.put(record);
        self.events.bound(event::EVENTS, |event| event.id);
    }

    /// Forgets what was done too long ago.
    pub(super) fn forget_events(&self, now: Timestamp) {
        self.events.retain(|event| now.since(event.at) < event::REMEMBERED);
    }

    pub(super) fn put_ban(&self, mut record: BanRecord) {
        record.address = record.address.to_canonical();
        self.bans.put(record);
        self.bans.bound(BANS, |ban| ban.until);
    }

    pub(super) fn cut(&self, client: IpAddr, url: &UrlKey, now: Timestamp) -> Option<u64> {
        self.cuts.get(&(client.to_canonical(), *url)).filter(|cut| cut.until > now).map(|cut| cut.at)
    }

    pub(super) fn put_cut(&self, client: IpAddr, url: &UrlKey, at: u64, until: Timestamp) {
        let cut = CutRecord { client: client.to_canonical(), url_key: *url, at, until };
        let further = |known: &mut CutRecord| {
            known.at = known.at.max(at);
            known.until = known.until.max(until);
        };
        if !self.cuts.change(&(cut.client, cut.url_key), further) {
            self.cuts.put(cut);
            self.cuts.bound(CUTS, |cut| cut.until);
        }
    }

    pub(super) fn lift_cut(&self, client: IpAddr, url: &UrlKey) {
        self.cuts.remove(&(client.to_canonical(), *url));
    }
}

impl Changes for IndexShelf {
    type Batch = IndexBatch;

    fn take(&self) -> Option<IndexBatch> {
        let (blobs, resources) = (self.blobs.take(), self.resources.take());
        let expectations = self.expectations.rows.changed().take();
        let digests = self.digests.rows.changed().take();
        let transfers = self.transfers.changed().take();
        let changed = !(blobs.is_empty()
            && resources.is_empty()
            && expectations.is_empty()
            && digests.is_empty()
            && transfers.is_empty());
        (changed || self.readers.found_damage()).then_some(IndexBatch {
            blobs,
            resources,
            expectations,
            digests,
            transfers,
        })
    }

    fn is_piece(&self, _batch: &IndexBatch) -> bool {
        !(self.blobs.is_all_taken() && self.resources.is_all_taken())
    }

    fn write(&self, batch: &IndexBatch, database: &Database) -> Result<(), DbError> {
        if self.readers.found_damage() {
            return Err(DbError::Schema("its pages are damaged".to_owned()));
        }
        Blobs::write(&batch.blobs, database)?;
        self.resources.write(&batch.resources, database)?;
        self.expectations.rows.write(&batch.expectations, database)?;
        self.digests.rows.write(&batch.digests, database)?;
        self.transfers.write(&batch.transfers, database)
    }

    fn written(&self, _batch: IndexBatch) {
        self.blobs.written();
        self.resources.written();
    }

    fn put_back(&self, batch: IndexBatch) {
        self.blobs.put_back();
        self.resources.put_back();
        self.expectations.rows.changed().note_all(batch.expectations);
        self.digests.rows.changed().note_all(batch.digests);
        self.transfers.changed().note_all(batch.transfers);
    }

    fn reopen(&self, cause: Option<&DbError>) -> Result<Database, DbError> {
        let database = open::anew(self.at(), &INDEX, &self.feed, cause)?;
        self.readers.begin_anew();
        self.blobs.write_anew(&database)?;
        self.resources.all_changed();
        self.expectations.rows.all_changed();
        self.digests.rows.all_changed();
        self.transfers.all_changed();
        Ok(database)
    }
}

impl Changes for StateShelf {
    type Batch = StateBatch;

    fn take(&self) -> Option<StateBatch> {
        let bans = self.bans.changed().take();
        let blocks = self.blocks.changed().take();
        let cuts = self.cuts.changed().take();
        let settings = self.settings.changed().take();
        let usage = self.usage.changed().take();
        let events = self.events.changed().take();
        let changed = !bans.is_empty()
            || !blocks.is_empty()
            || !cuts.is_empty()
            || !settings.is_empty()
            || !usage.is_empty()
            || !events.is_empty();
        changed.then_some(StateBatch { bans, blocks, cuts, settings, usage, events })
    }

    fn write(&self, batch: &StateBatch, database: &Database) -> Result<(), DbError> {
        self.bans.write(&batch.bans, database)?;
        self.blocks.write(&batch.blocks, database)?;
        self.cuts.write(&batch.cuts, database)?;
        self.settings.write(&batch.settings, database)?;
        self.usage.write(&batch.usage, database)?;
        self.events.write(&batch.events, database)
    }

    fn put_back(&self, batch: StateBatch) {
        self.bans.changed().note_all(batch.bans);
        self.blocks.changed().note_all(batch.blocks);
        self.cuts.changed().note_all(batch.cuts);
        self.settings.changed().note_all(batch.settings);
        self.usage.changed().note_all(batch.usage);
        self.events.changed().note_all(batch.events);
    }

    /// All of it but the labels is in memory and written to the new file; labels are in its backup of the day.
    fn reopen(&self, cause: Option<&DbError>) -> Result<Database, DbError> {
        let database = open::anew(&self.at, &STATE, &self.feed, cause)?;
        self.bans.all_changed();
        self.blocks.all_changed();
        self.cuts.all_changed();
        self.settings.all_changed();
        self.usage.all_changed();
        self.events.all_changed();
        Ok(database)
    }
}
