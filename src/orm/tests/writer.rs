//! The writer with a set of changes that fails on command.

use std::collections::BTreeSet;
use std::io::{Error, ErrorKind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use super::*;
use crate::telemetry::Health;

/// Numbers to write down as cheeses.
#[derive(Debug, Default)]
struct Order {
    changed: Mutex<BTreeSet<i64>>,
    /// So many writes fail before one succeeds.
    failures: AtomicU32,
    writes: AtomicU32,
    /// Where the rows are found after a failure for good.
    reopened: AtomicU32,
    damaged: bool,
}

impl Changes for Order {
    type Batch = BTreeSet<i64>;

    fn take(&self) -> Option<BTreeSet<i64>> {
        let taken = std::mem::take(&mut *self.changed.lock().unwrap());
        (!taken.is_empty()).then_some(taken)
    }

    fn write(&self, batch: &BTreeSet<i64>, database: &Database) -> Result<(), DbError> {
        assert!(!batch.contains(&-1), "told to panic");
        for id in batch {
            Repository::new(database).upsert(&cheese(*id, &id.to_string(), 1))?;
        }
        let left = |n: u32| n.checked_sub(1);
        if self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok() {
            let kind = Error::from(ErrorKind::StorageFull);
            return Err(if self.damaged { DbError::Schema("told so".into()) } else { kind.into() });
        }
        self.writes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn put_back(&self, batch: BTreeSet<i64>) {
        self.changed.lock().unwrap().extend(batch);
    }

    fn reopen(&self, cause: Option<&DbError>) -> Result<Database, DbError> {
        assert_eq!(cause.is_some(), self.reopened.fetch_add(1, Ordering::SeqCst) == 0);
        if cause.is_some() { Err(Error::from(ErrorKind::StorageFull).into()) } else { Ok(dairy()) }
    }
}

impl Order {
    fn failing(failures: u32, damaged: bool) -> Arc<Self> {
        Arc::new(Self { failures: failures.into(), damaged, ..Self::default() })
    }

    fn add(&self, writer: &Writer, id: i64) {
        self.changed.lock().unwrap().insert(id);
        writer.mark();
    }
}

fn start(order: &Arc<Order>) -> (Writer, Health, tempfile::TempDir) {
    let (folder, health) = (tempfile::tempdir().unwrap(), Health::new());
    let database = Database::open(&folder.path().join("x.db"), &DAIRY).unwrap();
    (Writer::start(database, Arc::clone(order), health.clone(), "x").unwrap(), health, folder)
}

fn rows(folder: &tempfile::TempDir) -> u64 {
    let database = Database::open(&folder.path().join("x.db"), &DAIRY).unwrap();
    Repository::<Cheese>::new(&database).count(&Filter::everything()).unwrap()
}

#[test]
fn many_marks_are_one_transaction() {
    let order = Order::failing(0, false);
    let (writer, health, folder) = start(&order);
    for id in 0..1000 {
        order.add(&writer, id);
    }
    assert!(writer.flush() && writer.flush());
    // the thread may have been asleep when the first mark came, and gathers for a fifth of a second
    assert!(order.writes.load(Ordering::SeqCst) < 20);
    assert_eq!(rows(&folder), 1000);
    assert!(writer.close() && writer.close());
    assert!(health.troubles().is_empty());
}

#[test]
fn a_full_disk_is_a_trouble_until_it_is_none() {
    let order = Order::failing(2, false);
    let (writer, health, folder) = start(&order);
    order.add(&writer, 1);
    while order.failures.load(Ordering::SeqCst) > 0 {
        std::thread::yield_now();
    }
    assert_eq!(rows(&folder), 0, "a failed batch leaves nothing");
    assert_eq!(health.troubles().first().map(|trouble| trouble.code), Some("x"));
    order.add(&writer, 2);
    assert!(writer.flush());
    assert!(health.troubles().is_empty());
    assert_eq!(rows(&folder), 2);
}

#[test]
fn closing_does_not_wait_for_space() {
    let order = Order::failing(u32::MAX, false);
    let (writer, health, _folder) = start(&order);
    order.add(&writer, 1);
    assert!(!writer.close());
    assert!(!health.troubles().is_empty());
    assert_eq!(order.changed.lock().unwrap().len(), 1, "the change is kept");
}

#[test]
fn a_damaged_database_is_replaced_when_its_owner_can() {
    let order = Order::failing(1, true);
    let (writer, health, _folder) = start(&order);
    order.add(&writer, 1);
    assert!(writer.flush());
    assert_eq!(order.reopened.load(Ordering::SeqCst), 2);
    assert!(health.troubles().is_empty() && writer.close());
}

#[test]
fn a_panic_lets_nobody_wait() {
    let order = Order::failing(0, false);
    let (writer, _health, _folder) = start(&order);
    order.add(&writer, -1);
    assert!(!writer.flush());
    assert!(!writer.close());
}
