//! Digests that somebody with authority stated for a URL before its bytes were seen.
//!
//! A URL has one: a weak digest never takes the place of a strong one, an older statement never that of a newer
//! one. Whether a statement may speak for a URL at all is decided before it is put here.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::hot::{Hot, Seeded};
use super::readers::Readers;
use crate::clock::Timestamp;
use crate::digest::Stated;
use crate::orm::{Database, DbError, Repository};
use crate::policy::UrlKey;

/// More than this are not kept; those stated longest ago go first.
const EXPECTATIONS: usize = 150_000;
/// How long a statement counts. An index that is still in use is read again, and states it again, long before.
const LASTS: Duration = Duration::from_secs(30 * 86_400);
/// A statement from the future was made before the clock was set right.
const AHEAD: Duration = Duration::from_secs(86_400);
/// The same statement made again is written down again only after so long.
const AGAIN: Duration = Duration::from_secs(3600);

crate::record! {
    /// A digest that was stated for a URL.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ExpectationRecord in "expectations" [without_rowid], columns ExpectationColumns {
        key {
            /// The name of the URL.
            url_key: UrlKey,
        }
        /// The digest its bytes should have; a weak one is compared, never trusted.
        digest: Stated,
        /// Length in bytes, where it was stated too.
        size: Option<u64>,
        /// The URL of the document or head that stated it, query values as `…`; its scheme tells whether it came in clear.
        stated_by: Arc<str>,
        /// When the origin of the statement last made it.
        stated_at: Timestamp,
    }
}

impl ExpectationRecord {
    /// Whether it still counts.
    pub fn counts(&self, now: Timestamp) -> bool {
        now.since(self.stated_at) < LASTS && self.stated_at.since(now) < AHEAD
    }

    /// Whether it may stand in the place of `other`.
    fn outdoes(&self, other: &Self) -> bool {
        let strong = self.digest.algorithm().is_strong() || !other.digest.algorithm().is_strong();
        (strong && self.stated_at >= other.stated_at) || !other.counts(self.stated_at)
    }

    /// Whether it says nothing that `other` did not say a moment ago.
    fn repeats(&self, other: &Self) -> bool {
        let same = self.digest == other.digest && self.size == other.size;
        same && self.stated_by == other.stated_by && self.stated_at.since(other.stated_at) < AGAIN
    }
}

/// All expectations.
#[derive(Debug)]
pub(super) struct Expectations {
    pub(super) rows: Hot<ExpectationRecord>,
    readers: Arc<Readers>,
    /// One index states many digests: its name is kept once.
    names: Mutex<HashSet<Arc<str>, Seeded>>,
    limit: usize,
}

impl Expectations {
    /// None is in memory yet: [`Expectations::fill`] reads them.
    pub(super) fn new(readers: Arc<Readers>) -> Self {
        Self { rows: Hot::to_be_filled(), readers, names: Mutex::default(), limit: EXPECTATIONS }
    }

    /// Reads all rows, until `stop` says so.
    pub(super) fn fill(&self, database: &Database, stop: &AtomicBool) -> Result<(), DbError> {
        self.rows.fill(database, stop, |record| intern(&self.names, record))
    }

    /// Nothing more is read.
    pub(super) fn is_filled_now(&self) {
        self.rows.is_filled_now();
        self.bound();
    }

    pub(super) fn get(&self, url: &UrlKey, now: Timestamp) -> Option<Arc<ExpectationRecord>> {
        self.known(url).filter(|record| record.counts(now))
    }

    fn known(&self, url: &UrlKey) -> Option<Arc<ExpectationRecord>> {
        let unread = || {
            let may_be = self.rows.may_be_unread(url);
            let read = |database: &Database| Repository::<ExpectationRecord>::new(database).get(url);
            may_be.then(|| self.readers.read(read))??.map(Arc::new)
        };
        self.rows.get(url).or_else(unread)
    }

    /// Whether anything changed.
    pub(super) fn put_all(&self, records: impl IntoIterator<Item = ExpectationRecord>) -> bool {
        let mut changed = false;
        for mut record in records {
            let known = self.known(&record.url_key);
            if known.is_none_or(|known| record.outdoes(&known) && !record.repeats(&known)) {
                intern(&self.names, &mut record);
                self.rows.put(record);
                changed = true;
            }
        }
        self.bound();
        changed
    }

    pub(super) fn remove(&self, url: &UrlKey, stated: &Stated) -> bool {
        let is_this = self.known(url).is_some_and(|record| record.digest == *stated);
        if is_this {
            self.rows.remove(url);
        }
        is_this
    }

    fn bound(&self) {
        if self.rows.bound(self.limit, |record| record.stated_at) {
            // a name that only this list holds is nobody's
            let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            names.retain(|name| Arc::strong_count(name) > 1);
        }
    }
}

fn intern(names: &Mutex<HashSet<Arc<str>, Seeded>>, record: &mut ExpectationRecord) {
    let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
    match names.get(&record.stated_by) {
        Some(name) => record.stated_by = Arc::clone(name),
        None => {
            names.insert(Arc::clone(&record.stated_by));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    const NOON: Timestamp = Timestamp::from_seconds(1_796_040_000);
    const DAY: i64 = 86_400;

    fn at(seconds: i64) -> Timestamp {
        Timestamp(NOON.0.checked_add_signed(seconds * 1000).unwrap())
    }

    fn url(number: u8) -> UrlKey {
        UrlKey::from_bytes([number; 32])
    }

    fn record(of: u8, digest: &str, when: i64) -> ExpectationRecord {
        let value = digest.bytes().last().map_or(0, |last| last);
        let hex = format!("{value:02x}");
        let digest = match digest.split_once(' ').map_or(digest, |(algorithm, _)| algorithm) {
            "md5" => Stated::parse(&format!("md5:{}", hex.repeat(16))),
            "sha512" => Stated::parse(&format!("sha512:{}", hex.repeat(64))),
            _ => Stated::parse(&format!("sha256:{}", hex.repeat(32))),
        };
        let stated_by = "https://h/index".into();
        ExpectationRecord {
            url_key: url(of),
            digest: digest.unwrap(),
            size: Some(7),
            stated_by,
            stated_at: at(when),
        }
    }

    fn empty(limit: usize) -> (tempfile::TempDir, Expectations) {
        let folder = tempfile::tempdir().unwrap();
        let mut expectations = Expectations::new(Arc::new(Readers::new(&folder.path().join("index.db"))));
        expectations.is_filled_now();
        expectations.limit = limit;
        (folder, expectations)
    }

    #[test]
    fn which_of_two_statements_stays() {
        for (first, second, second_stays) in [
            (("sha256 a", 0), ("sha256 b", 1), true),
            (("sha256 a", 1), ("sha256 b", 0), false),
            (("sha256 a", 0), ("md5 b", 1), false),
            (("md5 a", 0), ("md5 b", 1), true),
            (("md5 a", 0), ("sha512 b", 1), true),
            (("sha256 a", 0), ("sha512 b", 1), true),
            // what no longer counts gives way to anything
            (("sha256 a", 0), ("md5 b", 31 * DAY), true),
            (("sha256 a", 40 * DAY), ("sha256 b", 0), true),
        ] {
            let (_folder, expectations) = empty(10);
            let (one, other) = (record(1, first.0, first.1), record(1, second.0, second.1));
            assert!(expectations.put_all([one.clone()]));
            assert_eq!(expectations.put_all([other.clone()]), second_stays, "{first:?} {second:?}");
            let now = one.stated_at.max(other.stated_at);
            let kept = expectations.rows.get(&url(1)).unwrap();
            assert_eq!(*kept, if second_stays { other } else { one }, "{first:?} {second:?} {now:?}");
        }
    }

    #[test]
    fn a_statement_counts_for_a_month() {
        for (now, counts) in
            [(0, true), (29 * DAY, true), (30 * DAY, false), (-3600, true), (-2 * DAY, false)]
        {
            assert_eq!(record(1, "sha256 a", 0).counts(at(now)), counts, "{now}");
        }
    }

    #[test]
    fn the_same_again_is_not_written_again() {
        let (_folder, expectations) = empty(10);
        assert!(expectations.put_all([record(1, "sha256 a", 0)]));
        assert!(!expectations.put_all([record(1, "sha256 a", 60)]));
        assert!(expectations.put_all([record(1, "sha256 a", 3600)]));
        assert_eq!(expectations.get(&url(1), at(0)).unwrap().stated_at, at(3600));
    }

    #[test]
    fn only_what_was_stated_is_dropped() {
        let (_folder, expectations) = empty(10);
        let now = record(1, "sha256 a", 0);
        expectations.put_all([now.clone()]);
        assert!(!expectations.remove(&url(1), &Stated::from(Digest::of(b"another"))));
        assert!(expectations.remove(&url(1), &now.digest));
        assert!(expectations.get(&url(1), NOON).is_none());
    }

    #[test]
    fn they_are_bounded_and_their_names_kept_once() {
        let (_folder, expectations) = empty(32);
        expectations.put_all((0..100).map(|n| record(n, "sha256 a", i64::from(n))));
        assert!(expectations.rows.len() <= 32);
        assert!(expectations.get(&url(99), NOON).is_some() && expectations.get(&url(0), NOON).is_none());
        let names: HashSet<_> = expectations.rows.all().iter().map(|r| r.stated_by.as_ptr()).collect();
        assert_eq!(names.len(), 1);
    }
}
