//! A large index that is read while it is used already, and one whose file turns out damaged meanwhile.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::index::behind::Behind;
use crate::index::migrations::INDEX;
use crate::index::shelf::IndexShelf;
use crate::orm::{Changes as _, Database, DbError, Feed};

/// A folder with an index of some blobs and an answer to each, closed.
fn filled(count: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = open(folder.path());
    for number in 1..=count {
        index.put_blob(blob(number, number));
        index.put_resource(answer(number, 1, 1, 0, Some(number)));
    }
    index.expect([ExpectationRecord {
        url_key: url(1),
        digest: digest(1).into(),
        size: None,
        stated_by: "https://h/SHA256SUMS".into(),
        stated_at: NOON,
    }]);
    index.put_digest(Stated::parse(&format!("blake3:{}", "0c".repeat(32))).unwrap(), digest(1), NOON);
    assert!(index.close());
    folder
}

fn shelf(folder: &Path) -> (Database, Arc<IndexShelf>) {
    let database = Database::open(&folder.join("index.db"), &INDEX).unwrap();
    let shelf = IndexShelf::to_be_filled(&database, NOON, Feed::new()).unwrap();
    (database, Arc::new(shelf))
}

fn write_all(shelf: &IndexShelf, database: &Database) {
    while let Some(batch) = shelf.take() {
        database.transaction(|database| shelf.write(&batch, database)).unwrap();
        shelf.written(batch);
    }
}

#[test]
fn nothing_seems_gone_before_it_is_read() {
    let folder = filled(5);
    let (_database, shelf) = shelf(folder.path());
    assert_eq!((shelf.blobs.is_filled(), shelf.blobs.totals()), (false, Totals::default()));
    for number in 1..=5 {
        assert_eq!(shelf.blobs.held(&digest(number)).map(|held| held.size), Some(number));
        assert_eq!(shelf.blobs.get(&digest(number)), Some(blob(number, number)));
        assert_eq!(shelf.resources.variants(&url(number)), [Arc::new(answer(number, 1, 1, 0, Some(number)))]);
        assert_eq!(shelf.resources.of_blob(&digest(number)).len(), 1);
    }
    assert!(shelf.blobs.held(&digest(6)).is_none() && shelf.resources.variants(&url(6)).is_empty());
    assert!(shelf.expectations.get(&url(1), NOON).is_some());
    let stated = Stated::parse(&format!("blake3:{}", "0c".repeat(32))).unwrap();
    assert_eq!(shelf.digests.blob(&stated.key()), Some(digest(1)));
}

#[test]
fn what_changes_while_it_is_read_is_newer_than_what_is_read() {
    let folder = filled(5);
    let (database, shelf) = shelf(folder.path());
    // before anything is read: one is put anew, one removed, one used, answers removed and replaced
    let newer = blob(1, 77);
    shelf.blobs.put(newer.clone());
    assert!(shelf.blobs.remove(&digest(2)));
    assert!(shelf.blobs.held(&digest(3)).is_some() && shelf.blobs.used(&digest(3), NOON));
    assert!(shelf.resources.remove_url(&url(1)));
    assert!(shelf.resources.remove(&answer(2, 1, 1, 0, None).resource_key));
    let other = answer(3, 1, 9, 0, Some(8));
    shelf.resources.put(other.clone());
    shelf.expectations.remove(&url(1), &digest(1).into());
    let behind = Behind::start(Arc::clone(&shelf), || ()).unwrap();
    behind.wait(|| false);
    behind.close();
    let check = |shelf: &IndexShelf| {
        assert!(shelf.blobs.is_filled());
        assert_eq!(shelf.blobs.get(&digest(1)).as_ref(), Some(&newer));
        assert!(shelf.blobs.held(&digest(2)).is_none());
        assert_eq!(shelf.blobs.get(&digest(3)), Some(BlobRecord { hits: 1, ..blob(3, 3) }));
        let totals = shelf.blobs.totals();
        assert_eq!((totals.blobs, totals.bytes, totals.again_bytes), (4, 77 + 3 + 4 + 5, 3));
        assert!(shelf.resources.variants(&url(1)).is_empty());
        assert!(shelf.resources.get(&answer(2, 1, 1, 0, None).resource_key).is_none());
        assert_eq!(shelf.resources.variants(&url(3)), [Arc::new(other.clone())]);
        assert_eq!(shelf.resources.of_blob(&digest(8)).len(), 1);
        assert!(shelf.resources.of_blob(&digest(3)).is_empty());
        assert_eq!(shelf.resources.variants(&url(4)).len(), 1);
        assert!(shelf.expectations.get(&url(1), NOON).is_none());
    };
    check(&shelf);
    write_all(&shelf, &database);
    check(&shelf);
    let (_database, again) = self::shelf(folder.path());
    again
        .fill(&Database::open(&folder.path().join("index.db"), &INDEX).unwrap(), &AtomicBool::new(false))
        .unwrap();
    again.is_filled_now();
    check(&again);
}

#[test]
fn a_file_found_damaged_while_it_is_read_is_replaced_by_what_is_known() {
    let folder = filled(300);
    let (database, shelf) = shelf(folder.path());
    assert!(shelf.blobs.held(&digest(7)).is_some());
    shelf.note_trouble(&DbError::Schema("its pages are damaged".to_owned()));
    let batch = shelf.take().expect("the writer is told of the damage");
    let error = database.transaction(|database| shelf.write(&batch, database)).unwrap_err();
    shelf.put_back(batch);
    shelf.is_filled_now();
    drop(database);
    let database = shelf.reopen(Some(&error)).unwrap();
    assert!(folder.path().join("index.db.damaged").exists());
    shelf.blobs.put(blob(301, 301));
    write_all(&shelf, &database);
    let (index, opened) = open(folder.path());
    assert!(!opened.fresh);
    let known: BTreeSet<Digest> = index.blobs().iter().map(|blob| blob.digest).collect();
    assert_eq!(known, BTreeSet::from([digest(7), digest(301)]));
    assert_eq!(index.blob(&digest(7)).unwrap().inode, 0, "who reads it first proves it");
}

#[test]
fn more_answers_than_memory_keeps_are_found_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = open(folder.path());
    let big = |number: u64| {
        let mut record = answer(number, 1, 1, 0, Some(number % 7));
        record.answer.head.fields.push(("x-big".into(), "x".repeat(100_000)));
        record
    };
    // 200 answers of 100 kB in a memory for 8 MiB
    for number in 0..200 {
        index.put_resource(big(number));
    }
    assert!(index.flush());
    for number in (0..200).rev() {
        assert_eq!(index.variants(&url(number)), [Arc::new(big(number))], "{number}");
        assert!(index.resource(&big(number).resource_key).is_some());
    }
    assert_eq!(index.resources_of(&digest(3)).len(), 29);
    index.remove_url(&url(3));
    assert_eq!(index.resources_of(&digest(3)).len(), 28);
    assert!(index.close());
    let (index, _) = open(folder.path());
    assert_eq!((index.resources_of(&digest(3)).len(), index.resources().len()), (28, 199));
    assert_eq!(index.urls_where(|answer| answer.shown_url.starts_with("https://h/19")).len(), 11);
}
