//! The table of blobs by itself.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn held(number: u64, size: u64, used: u64) -> HeldBlob {
    HeldBlob {
        digest: Digest::of(&number.to_be_bytes()),
        size,
        mark: number,
        last_used: Timestamp(used),
        again: number.is_multiple_of(3),
        first_hand: number.is_multiple_of(2),
        guarded: number.is_multiple_of(5),
    }
}

proptest! {
    #[test]
    fn a_table_is_what_was_put_into_it(steps in prop::collection::vec((0_u64..12, 0_u64..100, 0_u8..4), 0..200)) {
        let (mut table, mut model) = (Table::default(), HashMap::new());
        for (number, size, step) in steps {
            let blob = held(number, size, size);
            match step {
                0 => prop_assert_eq!(table.remove(&blob.digest), model.remove(&blob.digest)),
                1 => {
                    let known = model.get_mut(&blob.digest);
                    let now = Timestamp(size * 3);
                    prop_assert_eq!(table.used(&blob.digest, now), known.is_some());
                    known.into_iter().for_each(|known: &mut HeldBlob| {
                        (known.again, known.last_used) = (true, known.last_used.max(now));
                    });
                }
                _ => {
                    prop_assert!(table.put(&blob));
                    model.insert(blob.digest, blob);
                }
            }
            let sum = |all: bool| model.values().filter(|b| all || b.again).map(|b| b.size).sum::<u64>();
            let totals = Totals { blobs: model.len() as u64, bytes: sum(true), again_bytes: sum(false) };
            prop_assert_eq!(table.totals(), totals);
        }
        let mut found = HashMap::new();
        prop_assert!(!table.some(0..1000, |blob| found.extend([(blob.digest, blob)])));
        prop_assert_eq!(found, model);
    }
}

#[test]
fn a_blob_takes_less_than_seventy_bytes() {
    let mut table = Table::default();
    let count = 300_000_u32;
    (0..count).for_each(|number| assert!(table.put(&held(number.into(), 7, 7))));
    let each = table.memory() as f64 / f64::from(count);
    println!("{each:.1} bytes a blob");
    assert!(each < 70.0, "{each}");
}

#[test]
fn a_file_is_known_again_by_its_mark() {
    let record = |inode, ctime_ns| BlobRecord {
        inode,
        ctime_ns,
        first_hand: true,
        ..BlobRecord::new(Digest::of(b"a"), 5, Timestamp(0))
    };
    let proved = HeldBlob::of(&record(7, 1_796_040_000_123_456_789));
    assert!(proved.is_file(7, 1_796_040_000_123_456_789, 5));
    assert!(!proved.is_file(8, 1_796_040_000_123_456_789, 5));
    assert!(!proved.is_file(7, 1_796_040_000_123_456_790, 5));
    assert!(!proved.is_file(7, 1_796_040_000_123_456_789, 6));
    assert!(!HeldBlob::of(&record(0, 1)).is_file(0, 1, 5), "one that was never proved");
    let marks: HashSet<u64> =
        (1..100_000).map(|n| HeldBlob::of(&record(1 + n % 317, n.into())).mark).collect();
    assert_eq!(marks.len(), 99_999);
}

#[test]
fn who_is_not_seen_after_the_roll_call_is_told_once() {
    let mut table = Table::default();
    (0..10).for_each(|number| assert!(table.put(&held(number, 1, 1))));
    assert!(table.unseen(100).is_empty());
    table.call_roll();
    (0..7).for_each(|number| assert!(table.seen(&held(number, 1, 1).digest)));
    table.put(&held(8, 2, 2));
    table.put(&held(20, 2, 2));
    assert!(!table.seen(&held(30, 1, 1).digest));
    let mut unseen = [table.unseen(1), table.unseen(100)].concat();
    unseen.sort_unstable();
    let mut wanted = [held(7, 1, 1).digest, held(9, 1, 1).digest];
    wanted.sort_unstable();
    assert_eq!(unseen, wanted);
}
