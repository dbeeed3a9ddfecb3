//! What is known about the bytes: blobs, the answers that named them, and what must outlive both.
//!
//! What every request asks for lives in memory (about 62 bytes for a blob, a few bits for a URL); one thread per
//! database writes what changed, at most 200 ms later, so no caller waits for a write or sees its troubles (they stand
//! in [`Health`](crate::telemetry::Health) as `index` and `state`). Answers that nobody asked for lately, and whole
//! rows of blobs, are read from the file, some ten microseconds each. Two files in the state folder:
//!
//! - `index.db`: [`BlobRecord`], [`ResourceRecord`], [`ExpectationRecord`], [`DigestRecord`] and the history of
//!   [`TransferRecord`]s. It is a description: files are the truth, a lost answer costs a revalidation, and a
//!   lost expectation costs a question to the origin. A damaged or unreadable file is moved to
//!   `index.db.damaged` and made anew, which [`Opened::fresh`] tells the caller, who then looks at the store.
//! - `state.db`: [`BanRecord`], [`BlockRecord`], [`CutRecord`], settings, [`LabelRecord`], the hourly sums of [`UsageRecord`] and
//!   the audit of [`EventRecord`]s. It cannot be rebuilt, so a damaged one refuses to open
//!   with a sentence, and [`Index::backup_state`] keeps a copy.
//!
//! The rows can be read as the [`Shared`](crate::orm::Shared) files they are, by questions that nobody on the
//! path of a download waits for; [`LabelRecord`] lives there alone. [`PeerRecord`] and [`PinRecord`] are
//! definitions without a table: how others' knowledge is shown.
//!
//! With a key ([`FileKey`]) both files are encrypted at rest; plain ones are sealed with it when they are opened.
//!
//! Promises: what was marked before [`Index::flush`] is on disk after it, whole batches or nothing. A URL has
//! at most 16 variants; answers, expectations, bans and cuts are bounded, the oldest go first. Opening a small index
//! reads it; a large one (above 8 MiB) is read while the node serves already ([`behind`]), and what is not in memory
//! yet is looked up in the file: only sums and lists of all blobs are short until then. Never deletes or opens a blob:
//! the caller puts a blob when its file is durable and removes it after the file is gone.

mod ban;
mod behind;
mod blob;
mod block;
mod cut;
mod digest;
mod event;
mod expectation;
mod hot;
mod label;
mod migrations;
mod open;
mod order;
mod overlay;
mod peer;
mod pin;
mod readers;
mod resource;
mod setting;
mod shelf;
mod transfer;
mod usage;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::{SharedClock, Timestamp};
use crate::digest::{Algorithm, Digest, Stated, StatedKey};
use crate::orm::{Feed, FileKey, Query, Repository, Shared, Writer};
use crate::policy::{ResourceKey, UrlKey};
use crate::telemetry::Health;

pub use ban::{BanColumns, BanRecord};
use behind::Behind;
pub use blob::{BlobColumns, BlobRecord, HeldBlob, Totals};
pub use block::{BLOCKS, BlockColumns, BlockRecord};
pub use cut::{CutColumns, CutRecord};
pub use digest::{DigestColumns, DigestRecord};
pub use event::{EventColumns, EventRecord};
pub use expectation::{ExpectationColumns, ExpectationRecord};
pub use label::{LabelColumns, LabelRecord};
pub use open::IndexError;
pub use order::{ORDERS, Order, Ordered, Orders, TooManyOrders};
pub use peer::{PeerColumns, PeerRecord};
pub use pin::{PinColumns, PinRecord};
pub use resource::{ResourceColumns, ResourceRecord};
pub use setting::{SettingColumns, SettingRecord};
use shelf::{IndexShelf, StateShelf};
pub use transfer::{TransferColumns, TransferRecord};
pub use usage::{UsageColumns, UsageRecord};

/// The index; a cheap clone.
#[derive(Debug, Clone)]
pub struct Index(Arc<Inner>);

/// How the index was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// `index.db` was made by this opening, so the store knows more than the index.
    pub fresh: bool,
}

#[derive(Debug)]
struct Inner {
    shelf: Arc<IndexShelf>,
    writer: Arc<Writer>,
    rows: Arc<Shared>,
    state: Arc<StateShelf>,
    state_writer: Arc<Writer>,
    state_rows: Arc<Shared>,
    feed: Feed,
    behind: Behind,
    /// The number of the last event.
    last_event: AtomicU64,
}

impl Index {
    /// Opens both databases in the state folder and reads them; makes what is missing. Blocks.
    pub fn open(state_dir: &Path, clock: SharedClock, health: Health) -> Result<(Self, Opened), IndexError> {
        Self::open_sealed(state_dir, None, clock, health)
    }

    /// The same with files that are encrypted at rest, where there is a key; plain ones are sealed with it.
    pub fn open_sealed(
        state_dir: &Path,
        key: Option<&FileKey>,
        clock: SharedClock,
        health: Health,
    ) -> Result<(Self, Opened), IndexError> {
        let folder = open::Folder::new(state_dir, key)?;
        let (feed, now) = (Feed::new(), clock.now());
        // first what is never made anew: with a wrong key neither file is touched
        let (state_database, state) = folder.state(now, &feed)?;
        let (database, shelf) = folder.index(now, &feed)?;
        let opened = Opened { fresh: database.is_fresh() };
        let (shelf, state) = (Arc::new(shelf), Arc::new(state));
        let start = |result: std::io::Result<Writer>| result.map(Arc::new).map_err(IndexError::Thread);
        let writer = start(Writer::start(database, Arc::clone(&shelf), health.clone(), "index"))?;
        let state_writer = start(Writer::start(state_database, Arc::clone(&state), health, "state"))?;
        let (at, state_at) = (shelf.at(), state.at());
        let rows = Shared::new(at, &migrations::INDEX, Arc::clone(&writer), Arc::clone(&clock));
        let state_rows = Shared::new(state_at, &migrations::STATE, Arc::clone(&state_writer), clock);
        let behind = if shelf.blobs.is_filled() {
            Behind::done()
        } else {
            let written = Arc::clone(&writer);
            Behind::start(Arc::clone(&shelf), move || written.mark()).map_err(IndexError::Thread)?
        };
        let last_event = state.events.all().iter().map(|event| event.id).max().unwrap_or(0);
        let inner = Inner {
            shelf,
            writer,
            rows: Arc::new(rows),
            state,
            state_writer,
            state_rows: Arc::new(state_rows),
            feed,
            behind,
            last_event: AtomicU64::new(last_event),
        };
        // what is beyond a bound or out of date was found while reading
        inner.writer.mark();
        inner.state_writer.mark();
        Ok((Self(Arc::new(inner)), opened))
    }

    /// What memory keeps of a blob.
    pub fn held(&self, digest: &Digest) -> Option<HeldBlob> {
        self.0.shelf.blobs.held(digest)
    }

    /// What is known about a blob. May read the file.
    pub fn blob(&self, digest: &Digest) -> Option<Arc<BlobRecord>> {
        self.0.shelf.blobs.get(digest).map(Arc::new)
    }

    /// Notes a blob whose file is durable.
    pub fn put_blob(&self, record: BlobRecord) {
        self.0.shelf.blobs.put(record);
        self.0.writer.mark();
    }

    /// Forgets a blob whose file is gone.
    pub fn remove_blob(&self, digest: &Digest) {
        if self.0.shelf.blobs.remove(digest) {
            self.0.writer.mark();
        }
    }

    /// All blobs, in no order.
    #[cfg(test)]
    pub(crate) fn blobs(&self) -> Vec<Arc<BlobRecord>> {
        self.0.shelf.blobs.all().into_iter().map(Arc::new).collect()
    }

    /// Shows what memory keeps of each blob, in no order.
    pub fn each_blob(&self, take: impl FnMut(HeldBlob)) {
        self.0.shelf.blobs.each(take);
    }

    /// The names of all blobs, in no order, when all are known. Blocks, and takes 32 bytes of memory for each.
    pub fn blob_names(&self) -> Vec<Digest> {
        self.wait_until_read(|| false);
        let mut names = Vec::new();
        self.each_blob(|blob| names.push(blob.digest));
        names
    }

    /// Up to `most` names of blobs after this one, in their order. Reads the file.
    pub fn blobs_after(&self, digest: Option<&Digest>, most: u64) -> Vec<Digest> {
        let columns = BlobRecord::COLUMNS;
        let mut query = Query::everything().order(columns.digest.ascending()).limit(most);
        if let Some(digest) = digest {
            query = query.filter(columns.digest.above(digest));
        }
        let found = self.0.rows.look(|database| Repository::<BlobRecord>::new(database).find(&query));
        let found = found.inspect_err(|error| tracing::warn!(%error, "failed to list the blobs"));
        found.into_iter().flatten().map(|blob| blob.digest).collect()
    }

    /// From here on every blob that is known now counts as not seen.
    pub fn call_roll(&self) {
        self.0.shelf.blobs.call_roll();
    }

    /// A blob's file was seen; false if the blob is not known.
    pub fn seen(&self, digest: &Digest) -> bool {
        self.0.shelf.blobs.seen(digest)
    }

    /// Up to `most` of the blobs that were known at the roll call and not seen since; each is told once.
    pub fn unseen(&self, most: usize) -> Vec<Digest> {
        self.0.shelf.blobs.unseen(most)
    }

    /// How many blobs there are, and how large they are together.
    pub fn totals(&self) -> Totals {
        self.0.shelf.blobs.totals()
    }

    /// A blob was read: one hit more, and the time if it is later than the one known.
    pub fn used(&self, digest: &Digest, now: Timestamp) {
        if self.0.shelf.blobs.used(digest, now) {
            self.0.writer.mark();
        }
    }

    /// The answers a URL led to, one for each variant.
    pub fn variants(&self, url: &UrlKey) -> Vec<Arc<ResourceRecord>> {
        self.0.shelf.resources.variants(url)
    }

    /// Whether this very answer is kept, and no other of its URL.
    pub fn is_only_variant(&self, record: &Arc<ResourceRecord>) -> bool {
        self.0.shelf.resources.is_only_variant(record)
    }

    /// The answer of this name.
    pub fn resource(&self, key: &ResourceKey) -> Option<Arc<ResourceRecord>> {
        self.0.shelf.resources.get(key)
    }

    /// Notes an answer, in the place of the one of the same URL and variant.
    pub fn put_resource(&self, record: ResourceRecord) {
        self.0.shelf.resources.put(record);
        self.0.writer.mark();
    }

    /// Forgets one answer.
    pub fn remove_resource(&self, key: &ResourceKey) {
        if self.0.shelf.resources.remove(key) {
            self.0.writer.mark();
        }
    }

    /// Forgets all answers of a URL.
    pub fn remove_url(&self, url: &UrlKey) {
        if self.0.shelf.resources.remove_url(url) {
            self.0.writer.mark();
        }
    }

    /// The answers that led to a blob.
    pub fn resources_of(&self, digest: &Digest) -> Vec<Arc<ResourceRecord>> {
        self.0.shelf.resources.of_blob(digest)
    }

    /// All answers, in no order.
    #[cfg(test)]
    fn resources(&self) -> Vec<Arc<ResourceRecord>> {
        self.0.shelf.resources.all()
    }

    /// The URLs that have an answer like this. Reads all answers.
    pub fn urls_where(&self, fits: impl Fn(&ResourceRecord) -> bool) -> BTreeSet<UrlKey> {
        self.0.shelf.resources.urls_where(fits)
    }

    /// What was stated for a URL, unless it is too old to count.
    pub fn expectation(&self, url: &UrlKey, now: Timestamp) -> Option<Arc<ExpectationRecord>> {
        self.0.shelf.expectations.get(url, now)
    }

    /// Notes what was stated; of two statements for one URL the one that counts more stays.
    pub fn expect(&self, records: impl IntoIterator<Item = ExpectationRecord>) {
        if self.0.shelf.expectations.put_all(records) {
            self.0.writer.mark();
        }
    }

    /// Forgets what was stated for a URL, if it is still this.
    pub fn drop_expectation(&self, url: &UrlKey, stated: &Stated) {
        if self.0.shelf.expectations.remove(url, stated) {
            self.0.writer.mark();
        }
    }

    /// The blob that has this digest, where the algorithm is strong enough to name it by.
    pub fn blob_of(&self, stated: &StatedKey) -> Option<Digest> {
        self.0.shelf.digests.blob(stated)
    }

    /// What a blob's digest in another algorithm is, if it was reckoned.
    pub fn digest_of(&self, blob: &Digest, algorithm: Algorithm) -> Option<Stated> {
        self.0.shelf.digests.of(blob, algorithm)
    }

    /// Notes what was reckoned of a blob's own bytes.
    pub fn put_digest(&self, stated: Stated, blob: Digest, now: Timestamp) {
        if self.0.shelf.digests.put(stated, blob, now) {
            self.0.writer.mark();
        }
    }

    /// All bans, also those that have ended and are remembered for their count.
    pub fn bans(&self) -> Vec<Arc<BanRecord>> {
        self.0.state.bans.all()
    }

    /// Notes a ban, in the place of the one of the same address.
    pub fn put_ban(&self, record: BanRecord) {
        self.0.state.put_ban(record);
        self.0.state_writer.mark();
    }

    /// Forgets a ban.
    pub fn remove_ban(&self, address: IpAddr) {
        if self.0.state.bans.remove(&address.to_canonical()).is_some() {
            self.0.state_writer.mark();
        }
    }

    /// The byte at which this client's download of this URL was cut for a wrong digest, if that is still
    /// remembered.
    pub fn cut(&self, client: IpAddr, url: &UrlKey, now: Timestamp) -> Option<u64> {
        self.0.state.cut(client, url, now)
    }

    /// Remembers until then that a client was cut at this byte. Of two cuts the further one counts: what the
    /// client kept may be of either.
    pub fn put_cut(&self, client: IpAddr, url: &UrlKey, at: u64, until: Timestamp) {
        self.0.state.put_cut(client, url, at, until);
        self.0.state_writer.mark();
    }

    /// A client has the whole and right thing: what was remembered of its cuts is over.
    pub fn lift_cut(&self, client: IpAddr, url: &UrlKey) {
        self.0.state.lift_cut(client, url);
        self.0.state_writer.mark();
    }

    /// A setting that the daemon made for itself.
    pub fn setting(&self, name: &str) -> Option<String> {
        self.0.state.settings.get(&name.to_owned()).map(|setting| setting.value.clone())
    }

    /// Remembers a setting.
    pub fn put_setting(&self, name: &str, value: &str) {
        self.0.state.settings.put(SettingRecord { name: name.to_owned(), value: value.to_owned() });
        self.0.state_writer.mark();
    }

    /// Notes how a transfer ended.
    pub fn put_transfer(&self, record: TransferRecord) {
        self.0.shelf.put_transfer(record);
        self.0.writer.mark();
    }

    /// The transfers that have ended, in no order.
    pub fn transfers(&self) -> Vec<Arc<TransferRecord>> {
        self.0.shelf.transfers.all()
    }

    /// Adds to the sums of the present hour.
    pub fn add_usage(&self, more: UsageRecord, now: Timestamp) {
        self.0.state.add_usage(more, now);
        self.0.state_writer.mark();
    }

    /// The hourly sums, in no order.
    pub fn usage(&self) -> Vec<Arc<UsageRecord>> {
        self.0.state.usage.all()
    }

    /// Notes what an administrator did; the number of the event is given here.
    pub fn put_event(&self, mut record: EventRecord) {
        record.id = self.0.last_event.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        self.0.state.put_event(record);
        self.0.state_writer.mark();
    }

    /// Forgets what is remembered for a time only, where that is over.
    pub fn forget_old(&self, now: Timestamp) {
        self.0.shelf.forget_transfers(now);
        self.0.state.forget_events(now);
        self.0.writer.mark();
        self.0.state_writer.mark();
    }

    /// The rows of `index.db`. Questions to them block.
    pub fn rows(&self) -> Arc<Shared> {
        Arc::clone(&self.0.rows)
    }

    /// The rows of `state.db`. Questions to them block.
    pub fn state_rows(&self) -> Arc<Shared> {
        Arc::clone(&self.0.state_rows)
    }

    /// What is committed in either of them.
    pub fn feed(&self) -> &Feed {
        &self.0.feed
    }

    /// Waits until all that was known at the last stop is in memory, or `stop` says that nobody needs it. Blocks.
    pub fn wait_until_read(&self, stop: impl Fn() -> bool) {
        self.0.behind.wait(stop);
    }

    /// Whether all that was known at the last stop is in memory.
    pub fn is_read(&self) -> bool {
        self.0.shelf.blobs.is_filled()
    }

    /// Waits until everything done so far is on disk; false if that could not be done in good time (the
    /// changes are kept and tried again). Blocks.
    pub fn flush(&self) -> bool {
        let index = self.0.writer.flush();
        self.0.state_writer.flush() && index
    }

    /// Copies `state.db` to `state.db.backup` while it is in use; once a day is enough. Blocks.
    pub fn backup_state(&self) -> Result<PathBuf, IndexError> {
        self.0.state_writer.flush();
        open::backup(self.0.state_rows.at())
    }

    /// Writes what is left and ends the threads; false if something could not be written. What is marked
    /// after this stays in memory. Blocks.
    pub fn close(&self) -> bool {
        self.0.behind.close();
        let index = self.0.writer.close();
        self.0.state_writer.close() && index
    }
}
