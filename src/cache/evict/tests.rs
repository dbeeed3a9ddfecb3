//! The order by itself: tables, and how much it keeps of two kinds of load compared with the plain rule.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};

use proptest::prelude::*;

use super::*;
use crate::index::BlobRecord;
use std::sync::Arc;

/// Blobs as the index would have them.
#[derive(Default)]
struct Shelf {
    blobs: HashMap<Digest, Arc<BlobRecord>>,
    pinned: HashSet<Digest>,
    copies: HashMap<Digest, Copies>,
    changes: u64,
    looks: Cell<u64>,
}

impl Rows for Shelf {
    fn row(&self, digest: &Digest) -> Option<HeldBlob> {
        self.looks.set(self.looks.get() + 1);
        self.blobs.get(digest).map(|blob| HeldBlob::from(&**blob))
    }

    fn each(&self, take: &mut dyn FnMut(HeldBlob)) {
        self.looks.set(self.looks.get() + self.blobs.len() as u64);
        self.blobs.values().for_each(|blob| take(HeldBlob::from(&**blob)));
    }

    fn totals(&self) -> Totals {
        let bytes = |hit: bool| self.blobs.values().filter(|b| !hit || b.hits > 0).map(|b| b.size).sum();
        Totals { blobs: self.blobs.len() as u64, bytes: bytes(false), again_bytes: bytes(true) }
    }

    fn is_pinned(&self, digest: &Digest) -> bool {
        self.pinned.contains(digest)
    }

    fn copies(&self, digest: &Digest) -> Copies {
        self.copies.get(digest).copied().unwrap_or(Copies::Last)
    }

    fn changes(&self) -> u64 {
        self.changes
    }
}

impl Shelf {
    fn of(blobs: impl IntoIterator<Item = BlobRecord>) -> Self {
        let blobs = blobs.into_iter().map(|blob| (blob.digest, Arc::new(blob))).collect();
        Self { blobs, ..Self::default() }
    }

    fn use_it(&mut self, digest: Digest, now: u64) {
        let blob = Arc::make_mut(self.blobs.get_mut(&digest).unwrap());
        (blob.hits, blob.last_used) = (blob.hits + 1, Timestamp(now));
    }

    /// Takes `need` bytes out, and says which blobs they were by the first byte of their names.
    fn choose(&mut self, order: &Order, need: u64, now: u64) -> Vec<u8> {
        let (mut freed, mut gone) = (0, Vec::new());
        while freed < need {
            let Some(blob) = order.next(self, Timestamp(now)) else { break };
            freed += blob.size;
            self.blobs.remove(&blob.digest);
            gone.push(blob.digest.as_bytes()[0]);
        }
        gone
    }
}

fn digest(name: u64) -> Digest {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&name.to_le_bytes());
    Digest::from_bytes(bytes)
}

fn blob(name: u64, size: u64, used: u64, hits: u64) -> BlobRecord {
    BlobRecord {
        inode: 1,
        ctime_ns: 1,
        last_used: Timestamp(used),
        hits,
        first_hand: true,
        ..BlobRecord::new(digest(name), size, Timestamp(0))
    }
}

#[test]
fn what_was_used_once_and_long_ago_goes_first() {
    let blobs = || Shelf::of([blob(1, 10, 5, 0), blob(2, 10, 3, 0), blob(3, 10, 1, 7), blob(4, 10, 9, 0)]);
    let choose = |need| blobs().choose(&Order::default(), need, 100);
    assert!(choose(0).is_empty());
    assert_eq!(choose(1), [2]);
    assert_eq!(choose(20), [2, 1]);
    assert_eq!(choose(1000), [2, 1, 4, 3]);
}

#[test]
fn where_nearly_all_was_used_again_all_are_equals() {
    let mut shelf = Shelf::of([blob(1, 90, 1, 3), blob(2, 10, 5, 0)]);
    assert_eq!(shelf.choose(&Order::default(), 1, 100), [1]);
}

#[test]
fn what_others_hold_goes_before_the_last_copy_of_the_site() {
    let shelf = || {
        let blobs =
            [blob(1, 10, 1, 0), blob(2, 10, 2, 0), blob(3, 10, 9, 0), blob(4, 10, 3, 2), blob(5, 10, 4, 2)];
        let mut shelf = Shelf::of(blobs);
        shelf.copies =
            [(2, Copies::Kept), (3, Copies::Spare), (5, Copies::Spare)].map(|(n, c)| (digest(n), c)).into();
        shelf
    };
    assert_eq!(shelf().choose(&Order::default(), 1000, 100), [3, 2, 1, 5, 4]);
    // what is heard later counts at once for whatever is at the head, and for all when a part of them has gone
    let (mut shelf, order) = (shelf(), Order::default());
    assert_eq!(shelf.choose(&order, 1, 100), [3]);
    shelf.copies.clear();
    shelf.changes += 1;
    assert_eq!(shelf.choose(&order, 1, 100), [1]);
    shelf.copies.insert(digest(4), Copies::Spare);
    shelf.changes += 1;
    assert_eq!(shelf.choose(&order, 1000, 100), [2, 4, 5]);
}

#[test]
fn where_nearly_all_was_used_again_the_last_copy_still_goes_last() {
    let mut shelf = Shelf::of([blob(1, 45, 1, 3), blob(2, 45, 2, 3), blob(3, 10, 5, 0)]);
    shelf.copies.insert(digest(2), Copies::Spare);
    assert_eq!(shelf.choose(&Order::default(), 1, 100), [2]);
}

#[test]
fn age_counts_whoever_else_holds_it() {
    let mut shelf = Shelf::of([blob(1, 10, 1000, 0), blob(2, 10, 90_000, 0)]);
    shelf.copies.insert(digest(2), Copies::Spare);
    let aged = Order::default().next_aged(&shelf, Duration::from_secs(60), Timestamp(90_000));
    assert_eq!(aged.map(|blob| blob.digest), Some(digest(1)));
}

#[test]
fn pins_stay_until_they_are_lifted_and_the_future_is_old() {
    let mut shelf = Shelf::of([blob(1, 10, 5, 0), blob(2, 10, 500, 0), blob(3, 10, 7, 0)]);
    let order = Order::default();
    shelf.pinned.insert(digest(1));
    assert_eq!(shelf.choose(&order, 1, 100), [2]);
    assert_eq!(shelf.choose(&order, 100, 100), [3]);
    shelf.pinned.clear();
    assert!(shelf.choose(&order, 100, 100).is_empty(), "it comes back by being added");
    order.add(HeldBlob::from(&blob(1, 10, 5, 0)), &shelf, Timestamp(100));
    assert_eq!(shelf.choose(&order, 100, 100), [1]);
}

#[test]
fn what_is_used_after_it_was_queued_stays_longer() {
    let mut shelf = Shelf::of((1..=4).map(|n| blob(n, 10, n, 0)));
    let order = Order::default();
    assert_eq!(shelf.choose(&order, 1, 10), [1]);
    shelf.use_it(digest(2), 20);
    order.add(HeldBlob::from(&blob(5, 10, 30, 0)), &shelf, Timestamp(30));
    shelf.blobs.insert(digest(5), Arc::new(blob(5, 10, 30, 0)));
    assert_eq!(shelf.choose(&order, 100, 40), [3, 4, 5, 2]);
}

#[test]
fn s18_age_counts_from_the_last_use_and_a_jump_purges_nothing_from_the_future() {
    let aged = |now: u64| {
        let shelf = Shelf::of([blob(1, 10, 1000, 0), blob(2, 10, 90_000, 0), blob(3, 10, 1000, 2)]);
        let (order, mut names) = (Order::default(), Vec::new());
        while let Some(blob) = order.next_aged(&shelf, Duration::from_secs(60), Timestamp(now)) {
            names.push(blob.digest.as_bytes()[0]);
        }
        names
    };
    assert_eq!(aged(62_000), [1, 3]);
    assert_eq!(aged(500), [] as [u8; 0]);
    assert_eq!(aged(60_999), [] as [u8; 0]);
}

proptest! {
    /// Whatever happened before, the order is that of sorting what is there now.
    #[test]
    fn the_choice_is_that_of_sorting(
        steps in prop::collection::vec((0_u64..20, 0_u8..5), 0..60),
        need in 1_u64..400,
        least in prop::sample::select(vec![1, 2, 5, LEAST]),
    ) {
        let (mut shelf, order) = (Shelf::default(), Order { least, ..Order::default() });
        for (now, (name, step)) in steps.into_iter().enumerate() {
            let now = now as u64 + 1;
            match step {
                0 => drop(shelf.choose(&order, 5, now)),
                1 if shelf.blobs.contains_key(&digest(name)) => shelf.use_it(digest(name), now),
                2 => drop(shelf.blobs.remove(&digest(name))),
                3 => {
                    let copies = match now % 3 {
                        0 => Copies::Spare,
                        1 => Copies::Kept,
                        _ => Copies::Last,
                    };
                    shelf.copies.insert(digest(name), copies);
                    shelf.changes += 1;
                }
                _ => {
                    let new = blob(name, 10 + name, now, 0);
                    shelf.blobs.insert(new.digest, Arc::new(new.clone()));
                    order.add(HeldBlob::from(&new), &shelf, Timestamp(now));
                }
            }
        }
        let mut left: Vec<_> = shelf.blobs.values().cloned().collect();
        let mut wanted = Vec::new();
        let mut freed = 0;
        while freed < need && !left.is_empty() {
            let (bytes, again): (u64, u64) = (
                left.iter().map(|b| b.size).sum(),
                left.iter().filter(|b| b.hits > 0).map(|b| b.size).sum(),
            );
            let protect = u128::from(again) * 100 <= u128::from(bytes) * PROTECTED;
            left.sort_by_key(|b| {
                Reverse((protect && b.hits > 0, shelf.copies(&b.digest), b.last_used, b.digest))
            });
            let blob = left.pop().unwrap();
            freed += blob.size;
            wanted.push(blob.digest.as_bytes()[0]);
        }
        prop_assert_eq!(shelf.choose(&order, need, 1000), wanted);
    }
}

/// A cache of `room` things of one size under a load; the share of hits.
fn hits_of_ours(load: &[u64], room: usize) -> f64 {
    let (mut shelf, order) = (Shelf::default(), Order::default());
    let mut hits = 0;
    for (now, name) in load.iter().enumerate() {
        let now = now as u64 + 1;
        if shelf.blobs.contains_key(&digest(*name)) {
            shelf.use_it(digest(*name), now);
            hits += 1;
            continue;
        }
        if shelf.blobs.len() >= room {
            let gone = order.next(&shelf, Timestamp(now)).unwrap();
            shelf.blobs.remove(&gone.digest);
        }
        let new = blob(*name, 1, now, 0);
        shelf.blobs.insert(new.digest, Arc::new(new.clone()));
        order.add(HeldBlob::from(&new), &shelf, Timestamp(now));
    }
    println!("{} rows were looked at for {} misses", shelf.looks.get(), load.len() - hits);
    assert!(shelf.looks.get() <= 2 * load.len() as u64, "a step looks at few rows");
    hits as f64 / load.len() as f64
}

fn hits_of_lru(load: &[u64], room: usize) -> f64 {
    let (mut used, mut order) = (HashMap::new(), BTreeMap::new());
    let mut hits = 0;
    for (now, name) in load.iter().enumerate() {
        if let Some(before) = used.insert(*name, now) {
            order.remove(&before);
            hits += 1;
        } else if used.len() > room {
            let (_, oldest) = order.pop_first().unwrap();
            used.remove(&oldest);
        }
        order.insert(now, *name);
    }
    f64::from(hits) / load.len() as f64
}

/// A load of `length` requests for `things`, the n-th as often as 1/n: what proxies see.
fn zipf(length: usize, things: u64, seed: u64) -> Vec<u64> {
    let sums: Vec<f64> = (1..=things)
        .scan(0.0, |sum, n| {
            *sum += 1.0 / n as f64;
            Some(*sum)
        })
        .collect();
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let most = sums[sums.len() - 1];
    (0..length).map(|_| sums.partition_point(|sum| *sum < random() * most) as u64).collect()
}

/// The same with a mirror run in the middle: each of many other things once.
fn with_scan(load: &[u64], scan: u64) -> Vec<u64> {
    let (before, after) = load.split_at(load.len() / 2);
    let run = (0..scan).map(|n| 1_000_000 + n);
    before.iter().copied().chain(run).chain(after.iter().copied()).collect()
}

#[test]
fn more_is_kept_than_by_the_plain_rule_and_a_scan_washes_out_nothing() {
    let (load, room) = (zipf(20_000, 2000, 7), 200);
    let scanned = with_scan(&load, 4000);
    let (ours, lru) = (hits_of_ours(&load, room), hits_of_lru(&load, room));
    let (ours_scanned, lru_scanned) = (hits_of_ours(&scanned, room), hits_of_lru(&scanned, room));
    println!("hits of a Zipf load: {:.1} % here, {:.1} % by least recent use", ours * 100.0, lru * 100.0);
    println!(
        "with a scan: {:.1} % here, {:.1} % by least recent use",
        ours_scanned * 100.0,
        lru_scanned * 100.0
    );
    assert!(ours >= lru, "{ours} < {lru}");
    assert!(ours_scanned > lru_scanned, "{ours_scanned} <= {lru_scanned}");
}
