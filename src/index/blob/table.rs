//! The blobs in memory, small: 56 bytes for each, and about 6 to find it by.
//!
//! What every request asks for is here (size, the mark of the file that was proved, last use); the rest of a row is
//! read from the file when somebody wants it. Rows lie in one array; a table of their numbers finds them by digest.

use std::hash::BuildHasher as _;

use hashbrown::HashTable;

use super::{BlobRecord, HeldBlob, Totals};
use crate::clock::Timestamp;
use crate::digest::Digest;
use crate::index::hot::Seeded;

/// Flags beside the time of last use.
const AGAIN: u64 = 1;
const FIRST_HAND: u64 = 1 << 1;
const GUARDED: u64 = 1 << 2;
const UNSEEN: u64 = 1 << 3;
const FLAGS: u32 = 4;
/// The size of a row that is free: no file has it.
const FREE: u64 = u64::MAX;

/// All blobs by digest.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Row>,
    free: Vec<u32>,
    places: HashTable<u32>,
    hasher: Seeded,
    totals: Totals,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    digest: Digest,
    size: u64,
    /// Stands for inode and ctime of the file that was proved; 0 for none.
    mark: u64,
    /// Milliseconds, and the flags.
    used: u64,
}

impl Table {
    pub(super) fn get(&self, digest: &Digest) -> Option<HeldBlob> {
        Some(self.row(self.place(digest)?)?.held())
    }

    pub(super) const fn totals(&self) -> Totals {
        self.totals
    }

    /// Puts a blob in the place of what was known of it; false if there is no room for more (four thousand million).
    pub(super) fn put(&mut self, blob: &HeldBlob) -> bool {
        let row = Row::of(blob);
        if let Some(place) = self.place(&blob.digest) {
            let Some(old) = self.rows.get_mut(place as usize) else { return false };
            let before = std::mem::replace(old, row);
            self.totals.subtract(&before.held());
            self.totals.add(blob);
            return true;
        }
        let Some(place) = self.new_place(row) else { return false };
        let (rows, hasher) = (&self.rows, &self.hasher);
        let hash_of = |place: &u32| rows.get(*place as usize).map_or(0, |row| hasher.hash_one(row.digest));
        self.places.insert_unique(hasher.hash_one(blob.digest), place, hash_of);
        self.totals.add(blob);
        true
    }

    pub(super) fn remove(&mut self, digest: &Digest) -> Option<HeldBlob> {
        let (rows, hash) = (&self.rows, self.hasher.hash_one(digest));
        let is_it = |place: &u32| rows.get(*place as usize).is_some_and(|row| row.digest == *digest);
        let (place, _) = self.places.find_entry(hash, is_it).ok()?.remove();
        let row = self.rows.get_mut(place as usize)?;
        let gone = row.held();
        row.size = FREE;
        self.free.push(place);
        self.totals.subtract(&gone);
        Some(gone)
    }

    /// One hit more; false if there is no such blob.
    pub(super) fn used(&mut self, digest: &Digest, now: Timestamp) -> bool {
        let Some(place) = self.place(digest) else { return false };
        let Some(row) = self.rows.get_mut(place as usize) else { return false };
        if row.used & AGAIN == 0 {
            self.totals.again_bytes = self.totals.again_bytes.saturating_add(row.size);
        }
        let (time, flags) = (row.used >> FLAGS, row.used & ((1 << FLAGS) - 1));
        row.used = time.max(now.0) << FLAGS | flags | AGAIN;
        true
    }

    /// All blobs at these places of the array, and whether there are more behind them.
    pub(super) fn some(&self, places: std::ops::Range<usize>, mut take: impl FnMut(HeldBlob)) -> bool {
        let end = places.end.min(self.rows.len());
        for row in self.rows.get(places.start.min(end)..end).unwrap_or_default() {
            if row.size != FREE {
                take(row.held());
            }
        }
        end < self.rows.len()
    }

    /// From here on all that are there now count as not seen.
    pub(super) fn call_roll(&mut self) {
        self.rows.iter_mut().for_each(|row| row.used |= UNSEEN);
    }

    /// Marks a blob as seen; false if it is not known.
    pub(super) fn seen(&mut self, digest: &Digest) -> bool {
        let place = self.place(digest);
        let row = place.and_then(|place| self.rows.get_mut(place as usize));
        row.map(|row| row.used &= !UNSEEN).is_some()
    }

    /// Up to so many that were not seen since [`Table::call_roll`], each told once.
    pub(super) fn unseen(&mut self, most: usize) -> Vec<Digest> {
        let unseen = self.rows.iter_mut().filter(|row| row.size != FREE && row.used & UNSEEN != 0);
        let told = unseen.take(most).map(|row| {
            row.used &= !UNSEEN;
            row.digest
        });
        told.collect()
    }

    /// Bytes of memory that the table takes, all in.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.rows.len() * size_of::<Row>() + self.free.capacity() * 4 + self.places.allocation_size()
    }

    fn new_place(&mut self, row: Row) -> Option<u32> {
        if let Some(place) = self.free.pop() {
            *self.rows.get_mut(place as usize)? = row;
            return Some(place);
        }
        let place = u32::try_from(self.rows.len()).ok()?;
        self.rows.push(row);
        Some(place)
    }

    fn place(&self, digest: &Digest) -> Option<u32> {
        let is_it = |place: &u32| self.row(*place).is_some_and(|row| row.digest == *digest);
        self.places.find(self.hasher.hash_one(digest), is_it).copied()
    }

    fn row(&self, place: u32) -> Option<&Row> {
        self.rows.get(place as usize)
    }
}

impl Row {
    fn of(blob: &HeldBlob) -> Self {
        let flags = [(blob.again, AGAIN), (blob.first_hand, FIRST_HAND), (blob.guarded, GUARDED)];
        let flags = flags.into_iter().filter(|(set, _)| *set).fold(0, |flags, (_, flag)| flags | flag);
        let size = blob.size.min(FREE - 1);
        Self { digest: blob.digest, size, mark: blob.mark, used: blob.last_used.0 << FLAGS | flags }
    }

    const fn held(&self) -> HeldBlob {
        HeldBlob {
            digest: self.digest,
            size: self.size,
            mark: self.mark,
            last_used: Timestamp(self.used >> FLAGS),
            again: self.used & AGAIN != 0,
            first_hand: self.used & FIRST_HAND != 0,
            guarded: self.used & GUARDED != 0,
        }
    }
}

impl Totals {
    fn add(&mut self, blob: &HeldBlob) {
        self.blobs += 1;
        self.bytes = self.bytes.saturating_add(blob.size);
        self.again_bytes = self.again_bytes.saturating_add(if blob.again { blob.size } else { 0 });
    }

    fn subtract(&mut self, blob: &HeldBlob) {
        self.blobs = self.blobs.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(blob.size);
        self.again_bytes = self.again_bytes.saturating_sub(if blob.again { blob.size } else { 0 });
    }
}

impl HeldBlob {
    /// What memory keeps of a row.
    pub(super) fn of(record: &BlobRecord) -> Self {
        Self {
            digest: record.digest,
            size: record.size,
            mark: mark(record.inode, record.ctime_ns),
            last_used: record.last_used,
            again: record.hits > 0,
            first_hand: record.first_hand,
            guarded: record.guarded,
        }
    }

    /// Whether this is the file that was proved, untouched since.
    pub fn is_file(&self, inode: u64, ctime_ns: i128, size: u64) -> bool {
        self.mark != 0 && self.size == size && self.mark == mark(inode, ctime_ns)
    }
}

/// 64 bits for two numbers: of two files that ever have this name, one in 2⁶⁴ is taken for the other.
fn mark(inode: u64, ctime_ns: i128) -> u64 {
    if inode == 0 {
        return 0;
    }
    let bytes = ctime_ns.to_le_bytes();
    let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let fold = |state: u64, word: u64| {
        let (low, high) = (state ^ word).carrying_mul(0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03);
        (low ^ high).rotate_left(23)
    };
    std::iter::once(inode).chain(words).fold(0x2545_f491_4f6c_dd1d, fold).max(1)
}
