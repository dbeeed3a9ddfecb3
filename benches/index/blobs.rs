//! Our own record: 32 bytes of digest are its key, so that rows come in no order. A batch in one transaction, reads by
//! digest, reads of all; ours beside rusqlite alone.

use std::hint::black_box;
use std::path::Path;

use larder::clock::Timestamp;
use larder::digest::Digest;
use larder::index::BlobRecord;
use larder::orm::{Care, Database, Record as _, Repository, Schema};
use rusqlite::{Connection, params};

use super::{Turn, clean, rate};

static BLOBS: Schema = Schema { application_id: 22, tables: &[BlobRecord::TABLE], steps: &[] };
const NONE: f64 = f64::NAN;

fn records(count: usize) -> Vec<BlobRecord> {
    let now = Timestamp(1_796_040_000_000);
    let record = |n: usize| BlobRecord {
        inode: 7,
        ctime_ns: 1_796_000_000_000_000_000,
        first_hand: true,
        ..BlobRecord::new(Digest::of(&n.to_be_bytes()), 100_000, now)
    };
    (0..count).map(record).collect()
}

fn fresh(path: &Path) -> Database {
    clean(path);
    Database::open(path, &BLOBS).unwrap().with_care(Care::OffExclusive).unwrap()
}

pub(crate) fn ours(count: usize, path: &Path) -> Turn {
    let (records, database) = (records(count), fresh(path));
    let rows = Repository::<BlobRecord>::new(&database);
    let batch = rate(count, || rows.add_all(&records).unwrap());
    let by_one = rate(count, || {
        for row in &records {
            black_box(rows.get(&row.digest).unwrap());
        }
    });
    let all = rate(count, || {
        black_box(rows.all().unwrap());
    });
    [NONE, NONE, NONE, batch, by_one, NONE, all]
}

/// The same statements on the same table, prepared once.
pub(crate) fn theirs(count: usize, path: &Path) -> Turn {
    let records = records(count);
    drop(fresh(path));
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;").unwrap();
    let columns = "digest, size, inode, ctime_ns, stored_at, last_used, hits, first_hand, guarded";
    let insert = format!("INSERT INTO blobs ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
    let mut insert = connection.prepare(&insert).unwrap();
    let mut put = |b: &BlobRecord| {
        let ctime = (b.ctime_ns ^ i128::MIN).to_be_bytes();
        let (digest, time) = (b.digest.as_bytes(), b.last_used.0 as i64);
        let values =
            params![digest, b.size as i64, b.inode as i64, ctime, time, time, 0, b.first_hand, b.guarded];
        insert.execute(values).unwrap();
    };
    let batch = rate(records.len(), || {
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        records.iter().for_each(&mut put);
        connection.execute_batch("COMMIT").unwrap();
    });
    let read = |row: &rusqlite::Row<'_>| {
        let number = |at: usize| row.get::<_, i64>(at).unwrap() as u64;
        BlobRecord {
            inode: number(2),
            ctime_ns: i128::from_be_bytes(row.get(3).unwrap()) ^ i128::MIN,
            last_used: Timestamp(number(5)),
            hits: number(6),
            first_hand: row.get(7).unwrap(),
            guarded: row.get(8).unwrap(),
            ..BlobRecord::new(Digest::from_bytes(row.get(0).unwrap()), number(1), Timestamp(number(4)))
        }
    };
    let mut get = connection.prepare(&format!("SELECT {columns} FROM blobs WHERE digest = ?")).unwrap();
    let by_one = rate(records.len(), || {
        for b in &records {
            black_box(get.query_row([b.digest.as_bytes()], |row| Ok(read(row))).unwrap());
        }
    });
    let mut all = connection.prepare(&format!("SELECT {columns} FROM blobs")).unwrap();
    let all = rate(records.len(), || {
        let rows = all.query_map([], |row| Ok(read(row))).unwrap();
        black_box(rows.collect::<Result<Vec<_>, _>>().unwrap());
    });
    [NONE, NONE, NONE, batch, by_one, NONE, all]
}
