//! What each database holds, in memory, and how its writer takes the changes.

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::PathBuf;

use super::ban::BANS;
use super::blob::Blobs;
use super::cut::CUTS;
use super::digest::Digests;
use super::expectation::Expectations;
use super::hot::{Hot, Seeded};
use super::migrations::{INDEX, STATE};
use super::resource::Resources;
use super::{BanRecord, CutRecord, SettingRecord, open};
use crate::clock::Timestamp;
use crate::digest::{Digest, StatedKey};
use crate::orm::{Changes, Database, DbError};
use crate::policy::{ResourceKey, UrlKey};

/// What `index.db` holds.
#[derive(Debug)]
pub(super) struct IndexShelf {
    pub(super) blobs: Blobs,
    pub(super) resources: Resources,
    pub(super) expectations: Expectations,
    pub(super) digests: Digests,
    path: PathBuf,
}

/// What `state.db` holds.
#[derive(Debug)]
pub(super) struct StateShelf {
    pub(super) bans: Hot<BanRecord>,
    pub(super) cuts: Hot<CutRecord>,
    pub(super) settings: Hot<SettingRecord>,
    path: PathBuf,
}

/// The keys of changed rows of `index.db`.
pub(super) struct IndexBatch {
    blobs: HashSet<Digest, Seeded>,
    resources: HashSet<ResourceKey, Seeded>,
    expectations: HashSet<UrlKey, Seeded>,
    digests: HashSet<StatedKey, Seeded>,
}

/// The keys of changed rows of `state.db`.
pub(super) struct StateBatch {
    bans: HashSet<IpAddr, Seeded>,
    cuts: HashSet<(IpAddr, UrlKey), Seeded>,
    settings: HashSet<String, Seeded>,
}

impl IndexShelf {
    pub(super) fn load(database: &Database) -> Result<Self, DbError> {
        let (blobs, resources) = (Blobs::load(database)?, Resources::load(database)?);
        let (expectations, digests) = (Expectations::load(database)?, Digests::load(database)?);
        Ok(Self { blobs, resources, expectations, digests, path: database.path().to_owned() })
    }
}

impl StateShelf {
    pub(super) fn load(database: &Database, now: Timestamp) -> Result<Self, DbError> {
        let (bans, cuts) = (Hot::<BanRecord>::load(database)?, Hot::<CutRecord>::load(database)?);
        bans.bound(BANS, |ban| ban.until);
        cuts.retain(|cut| cut.until > now);
        cuts.bound(CUTS, |cut| cut.until);
        Ok(Self { bans, cuts, settings: Hot::load(database)?, path: database.path().to_owned() })
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
        let (blobs, resources) = (self.blobs.rows.changed().take(), self.resources.changed().take());
        let expectations = self.expectations.rows.changed().take();
        let digests = self.digests.rows.changed().take();
        let changed =
            !(blobs.is_empty() && resources.is_empty() && expectations.is_empty() && digests.is_empty());
        changed.then_some(IndexBatch { blobs, resources, expectations, digests })
    }

    fn write(&self, batch: &IndexBatch, database: &Database) -> Result<(), DbError> {
        self.blobs.rows.write(&batch.blobs, database)?;
        self.resources.write(&batch.resources, database)?;
        self.expectations.rows.write(&batch.expectations, database)?;
        self.digests.rows.write(&batch.digests, database)
    }

    fn put_back(&self, batch: IndexBatch) {
        self.blobs.rows.changed().note_all(batch.blobs);
        self.resources.changed().note_all(batch.resources);
        self.expectations.rows.changed().note_all(batch.expectations);
        self.digests.rows.changed().note_all(batch.digests);
    }

    fn reopen(&self, cause: Option<&DbError>) -> Result<Database, DbError> {
        let database = open::anew(&self.path, &INDEX, cause)?;
        self.blobs.rows.all_changed();
        self.resources.all_changed();
        self.expectations.rows.all_changed();
        self.digests.rows.all_changed();
        Ok(database)
    }
}

impl Changes for StateShelf {
    type Batch = StateBatch;

    fn take(&self) -> Option<StateBatch> {
        let bans = self.bans.changed().take();
        let cuts = self.cuts.changed().take();
        let settings = self.settings.changed().take();
        let changed = !bans.is_empty() || !cuts.is_empty() || !settings.is_empty();
        changed.then_some(StateBatch { bans, cuts, settings })
    }

    fn write(&self, batch: &StateBatch, database: &Database) -> Result<(), DbError> {
        self.bans.write(&batch.bans, database)?;
        self.cuts.write(&batch.cuts, database)?;
        self.settings.write(&batch.settings, database)
    }

    fn put_back(&self, batch: StateBatch) {
        self.bans.changed().note_all(batch.bans);
        self.cuts.changed().note_all(batch.cuts);
        self.settings.changed().note_all(batch.settings);
    }

    /// All of it is in memory, so nothing is lost by writing it to a new file.
    fn reopen(&self, cause: Option<&DbError>) -> Result<Database, DbError> {
        let database = open::anew(&self.path, &STATE, cause)?;
        self.bans.all_changed();
        self.cuts.all_changed();
        self.settings.all_changed();
        Ok(database)
    }
}
