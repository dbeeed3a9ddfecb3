//! How fast rows come and go, beside the same statements without our layer in the same run.
//!
//! `cargo bench --bench index [rows]` prints a table in rows a second: an integer key, two texts, an amount, a date
//! and two times. Direct is a transaction for each row; Batch is direct rows in one list; Trans is rows one by one
//! in a transaction; Batch Trans a list in one transaction; By one reads by key; All virtual reads all rows as
//! JSON through the REST side in this process; All direct reads all rows as records.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "a benchmark prints, reads the real clock and ends by panicking"
)]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use http::{HeaderMap, Method};
use larder::digest::Digest;
use larder::index::BlobRecord;
use larder::orm::{Action, Care, Database, Engine, Feed, Memory, Operation, Record as _, Repository, Schema};
use larder::rest::{Api, Ask, Resource, Rows};
use rusqlite::{Connection, params};

larder::record! {
    /// A person of the original's benchmark.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Person in "people", columns PersonColumns {
        key {
            /// Its number.
            id: i64,
        }
        /// First name.
        first: String,
        /// Last name.
        last: String,
        /// An amount in ten-thousandths.
        amount: i64,
        /// A date in days.
        date: i64,
        /// When it was made.
        created: larder::clock::Timestamp,
        /// When it was changed.
        changed: larder::clock::Timestamp,
    }
}

static PEOPLE: Schema = Schema { application_id: 21, tables: &[Person::TABLE], steps: &[] };

const RAW_TABLE: &str = "CREATE TABLE people (id INTEGER NOT NULL PRIMARY KEY, first TEXT NOT NULL, last TEXT NOT NULL, \
    amount INTEGER NOT NULL, date INTEGER NOT NULL, created INTEGER NOT NULL, changed INTEGER NOT NULL) STRICT";
const RAW_INSERT: &str =
    "INSERT INTO people (id, first, last, amount, date, created, changed) VALUES (?, ?, ?, ?, ?, ?, ?)";
const RAW_SELECT: &str = "SELECT id, first, last, amount, date, created, changed FROM people";

/// How a file is written.
#[derive(Clone, Copy)]
struct Mode {
    name: &'static str,
    care: Care,
    pragmas: &'static str,
    file: bool,
}

const MODES: [Mode; 4] = [
    Mode {
        name: "file full",
        care: Care::Full,
        pragmas: "PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL;",
        file: true,
    },
    Mode {
        name: "file off",
        care: Care::Off,
        pragmas: "PRAGMA journal_mode=DELETE; PRAGMA synchronous=OFF;",
        file: true,
    },
    Mode {
        name: "file off exclusive",
        care: Care::OffExclusive,
        pragmas: "PRAGMA journal_mode=DELETE; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;",
        file: true,
    },
    Mode { name: "memory", care: Care::Off, pragmas: "PRAGMA synchronous=OFF;", file: false },
];

fn person(id: i64) -> Person {
    let now = larder::clock::Timestamp(1_796_040_000_000);
    let (first, last) = (format!("first name {id}"), format!("last name {id}"));
    Person { id, first, last, amount: id * 100, date: 20_000 + id % 1000, created: now, changed: now }
}

/// Rows a second.
fn rate(rows: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    f64::from(u32::try_from(rows).unwrap()) / start.elapsed().as_secs_f64()
}

/// The better of three.
fn best(mut measure: impl FnMut() -> f64) -> f64 {
    (0..3).map(|_| measure()).fold(0.0, f64::max)
}

fn line(name: &str, rates: &[f64]) {
    let cells: Vec<String> = rates.iter().map(|rate| format!("{rate:>11.0}")).collect();
    println!("{name:<32}{}", cells.join(""));
}

fn add(person: &Person) -> Operation<'_> {
    Operation { table: Person::table(), action: Action::Add(person.encode()) }
}

/// The seven columns of an engine that is made anew for each writing one.
fn ours<E: Engine>(
    fresh: impl Fn() -> E,
    people: &[Person],
    few: usize,
    api: impl Fn(E) -> Rows,
) -> Vec<f64> {
    let direct = best(|| {
        let engine = fresh();
        let rows = Repository::<Person, E>::new(&engine);
        rate(few, || people.iter().take(few).for_each(|person| rows.add(person).unwrap()))
    });
    let batch = best(|| {
        let engine = fresh();
        rate(few, || {
            let batch: Vec<_> = people.iter().take(few).map(add).collect();
            black_box(engine.apply(&batch).unwrap());
        })
    });
    let whole = |chunk: usize| {
        best(|| {
            let engine = fresh();
            rate(people.len(), || {
                for some in people.chunks(chunk) {
                    let batch: Vec<_> = some.iter().map(add).collect();
                    black_box(engine.apply(&batch).unwrap());
                }
            })
        })
    };
    let batch_trans = whole(people.len());
    let engine = fresh();
    engine.apply(&people.iter().map(add).collect::<Vec<_>>()).unwrap();
    let rows = Repository::<Person, E>::new(&engine);
    let by_one = best(|| {
        rate(people.len(), || {
            people.iter().for_each(|p| {
                black_box(rows.get(&p.id).unwrap());
            })
        })
    });
    let all_direct = best(|| {
        rate(people.len(), || {
            black_box(rows.all().unwrap());
        })
    });
    let api = Api::new(Feed::new()).with(Resource::of::<Person>(api(engine)));
    let (method, headers, size) = (Method::GET, HeaderMap::new(), people.len().min(10_000));
    let query = format!("limit={size}");
    let ask = Ask { method: &method, path: "/people", query: &query, headers: &headers, body: b"" };
    let all_virtual = best(|| {
        rate(size, || {
            black_box(api.answer("people", &ask));
        })
    });
    vec![direct, batch, f64::NAN, batch_trans, by_one, all_virtual, all_direct]
}

/// Rows one by one in a transaction of SQLite.
fn trans(database: &Database, people: &[Person]) -> f64 {
    rate(people.len(), || {
        database
            .transaction(|database| {
                let rows = Repository::<Person>::new(database);
                people.iter().try_for_each(|person| rows.add(person))
            })
            .unwrap();
    })
}

fn raw_add(statement: &mut rusqlite::Statement<'_>, p: &Person) {
    statement
        .execute(params![
            p.id,
            p.first,
            p.last,
            p.amount,
            p.date,
            p.created.0.cast_signed(),
            p.changed.0.cast_signed()
        ])
        .unwrap();
}

fn raw_row(row: &rusqlite::Row<'_>) -> Person {
    let time = |at| larder::clock::Timestamp(row.get::<_, i64>(at).unwrap().cast_unsigned());
    Person {
        id: row.get(0).unwrap(),
        first: row.get(1).unwrap(),
        last: row.get(2).unwrap(),
        amount: row.get(3).unwrap(),
        date: row.get(4).unwrap(),
        created: time(5),
        changed: time(6),
    }
}

/// The same with rusqlite alone and prepared statements.
fn raw(fresh: impl Fn() -> Connection, people: &[Person], few: usize) -> Vec<f64> {
    let direct = best(|| {
        let connection = fresh();
        let mut statement = connection.prepare(RAW_INSERT).unwrap();
        rate(few, || people.iter().take(few).for_each(|person| raw_add(&mut statement, person)))
    });
    let batch = best(|| {
        let connection = fresh();
        let mut statement = connection.prepare(RAW_INSERT).unwrap();
        rate(few, || {
            connection.execute_batch("BEGIN IMMEDIATE").unwrap();
            people.iter().take(few).for_each(|person| raw_add(&mut statement, person));
            connection.execute_batch("COMMIT").unwrap();
        })
    });
    let filled = fresh();
    let trans = best(|| {
        let connection = fresh();
        let mut statement = connection.prepare(RAW_INSERT).unwrap();
        rate(people.len(), || {
            connection.execute_batch("BEGIN IMMEDIATE").unwrap();
            people.iter().for_each(|person| raw_add(&mut statement, person));
            connection.execute_batch("COMMIT").unwrap();
        })
    });
    {
        let mut statement = filled.prepare(RAW_INSERT).unwrap();
        filled.execute_batch("BEGIN").unwrap();
        people.iter().for_each(|person| raw_add(&mut statement, person));
        filled.execute_batch("COMMIT").unwrap();
    }
    let mut get = filled.prepare(&format!("{RAW_SELECT} WHERE id = ?")).unwrap();
    let by_one = best(|| {
        rate(people.len(), || {
            people.iter().for_each(|p| {
                black_box(get.query_row([p.id], |row| Ok(raw_row(row))).unwrap());
            })
        })
    });
    let mut all = filled.prepare(RAW_SELECT).unwrap();
    let all_direct = best(|| {
        rate(people.len(), || {
            black_box(
                all.query_map([], |row| Ok(raw_row(row))).unwrap().collect::<Result<Vec<_>, _>>().unwrap(),
            );
        })
    });
    vec![direct, batch, trans, trans, by_one, f64::NAN, all_direct]
}

fn main() {
    let rows: i64 = std::env::args().filter_map(|text| text.parse().ok()).next().unwrap_or(10_000);
    let people: Vec<Person> = (1..=rows).map(person).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.db");
    println!("{rows} rows (Direct and Batch of a full sync: 200); rows a second, best of three\n");
    line_heads();
    for mode in MODES {
        let few = if mode.name == "file full" { 200 } else { people.len() };
        let clean = |path: &Path| {
            ["", "-wal", "-shm", "-journal"].iter().for_each(|end| {
                drop(std::fs::remove_file(format!("{}{end}", path.display())));
            })
        };
        let open = || {
            clean(&path);
            let database =
                if mode.file { Database::open(&path, &PEOPLE) } else { Database::memory(&PEOPLE) }.unwrap();
            database.with_care(mode.care).unwrap()
        };
        let bare = || {
            clean(&path);
            let connection =
                if mode.file { Connection::open(&path) } else { Connection::open_in_memory() }.unwrap();
            connection.execute_batch(mode.pragmas).unwrap();
            connection.execute_batch(RAW_TABLE).unwrap();
            connection
        };
        let mut rates = ours(open, &people, few, |engine| Arc::new(Single(std::sync::Mutex::new(engine))));
        rates[2] = best(|| trans(&open(), &people));
        line(mode.name, &rates);
        let raw = raw(bare, &people, few);
        line("  rusqlite alone", &raw);
        let share: Vec<f64> = rates.iter().zip(&raw).map(|(ours, raw)| ours / raw * 100.0).collect();
        line("  ours in % of that", &share);
    }
    let mut rates = ours(Memory::new, &people, people.len(), |engine| Arc::new(engine));
    rates[2] = rates[0];
    line("in-memory engine", &rates);
    blobs(people.len(), &path);
}

/// Our own record: 32 bytes of digest are its key, so that rows come in no order. A batch in one transaction, reads by
/// digest, reads of all; ours beside rusqlite alone.
fn blobs(count: usize, path: &Path) {
    static BLOBS: Schema = Schema { application_id: 22, tables: &[BlobRecord::TABLE], steps: &[] };
    let now = larder::clock::Timestamp(1_796_040_000_000);
    let record = |n: usize| BlobRecord {
        digest: Digest::of(&n.to_be_bytes()),
        size: 100_000,
        inode: 7,
        ctime_ns: 1_796_000_000_000_000_000,
        stored_at: now,
        last_used: now,
        hits: 0,
        first_hand: true,
        guarded: false,
    };
    let records: Vec<BlobRecord> = (0..count).map(record).collect();
    let fresh = || {
        ["", "-wal", "-shm", "-journal"].iter().for_each(|end| {
            drop(std::fs::remove_file(format!("{}{end}", path.display())));
        });
        Database::open(path, &BLOBS).unwrap().with_care(Care::OffExclusive).unwrap()
    };
    let add = |row| Operation { table: BlobRecord::table(), action: Action::Add(BlobRecord::encode(row)) };
    let batch = best(|| {
        let database = fresh();
        rate(count, || {
            black_box(database.apply(&records.iter().map(add).collect::<Vec<_>>()).unwrap());
        })
    });
    let database = fresh();
    database.apply(&records.iter().map(add).collect::<Vec<_>>()).unwrap();
    let rows = Repository::<BlobRecord>::new(&database);
    let by_one = best(|| {
        rate(count, || {
            records.iter().for_each(|row| {
                black_box(rows.get(&row.digest).unwrap());
            });
        })
    });
    let all = best(|| rate(count, || drop(black_box(rows.all().unwrap()))));
    drop(database);
    let ours = [f64::NAN, f64::NAN, f64::NAN, batch, by_one, f64::NAN, all];
    let raw = raw_blobs(&records, path);
    line("our blobs, file off exclusive", &ours);
    line("  rusqlite alone", &raw);
    let share: Vec<f64> = ours.iter().zip(&raw).map(|(ours, raw)| ours / raw * 100.0).collect();
    line("  ours in % of that", &share);
}

/// The same statements on the same table, prepared once.
fn raw_blobs(records: &[BlobRecord], path: &Path) -> [f64; 7] {
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
    let batch = best(|| {
        connection.execute_batch("DELETE FROM blobs").unwrap();
        rate(records.len(), || {
            connection.execute_batch("BEGIN IMMEDIATE").unwrap();
            records.iter().for_each(&mut put);
            connection.execute_batch("COMMIT").unwrap();
        })
    });
    let read = |row: &rusqlite::Row<'_>| {
        let number = |at: usize| row.get::<_, i64>(at).unwrap() as u64;
        BlobRecord {
            digest: Digest::from_bytes(row.get(0).unwrap()),
            size: number(1),
            inode: number(2),
            ctime_ns: i128::from_be_bytes(row.get(3).unwrap()) ^ i128::MIN,
            stored_at: larder::clock::Timestamp(number(4)),
            last_used: larder::clock::Timestamp(number(5)),
            hits: number(6),
            first_hand: row.get(7).unwrap(),
            guarded: row.get(8).unwrap(),
        }
    };
    let mut get = connection.prepare(&format!("SELECT {columns} FROM blobs WHERE digest = ?")).unwrap();
    let by_one = best(|| {
        rate(records.len(), || {
            for b in records {
                black_box(get.query_row([b.digest.as_bytes()], |row| Ok(read(row))).unwrap());
            }
        })
    });
    let mut all = connection.prepare(&format!("SELECT {columns} FROM blobs")).unwrap();
    let all = best(|| {
        rate(records.len(), || {
            let rows = all.query_map([], |row| Ok(read(row))).unwrap();
            black_box(rows.collect::<Result<Vec<_>, _>>().unwrap());
        })
    });
    [f64::NAN, f64::NAN, f64::NAN, batch, by_one, f64::NAN, all]
}

fn line_heads() {
    let heads = ["Direct", "Batch", "Trans", "Batch Tr.", "By one", "All virt.", "All direct"];
    println!("{:<32}{}", "", heads.map(|head| format!("{head:>11}")).concat());
}

/// One connection for all threads, as an engine that can be shared.
struct Single(std::sync::Mutex<Database>);

impl Engine for Single {
    fn get(
        &self,
        table: &'static larder::orm::TableSpec,
        key: &[larder::orm::Cell<'_>],
        take: &mut dyn FnMut(&dyn larder::orm::CellSource),
    ) -> Result<bool, larder::orm::DbError> {
        self.0.lock().unwrap().get(table, key, take)
    }

    fn read(
        &self,
        table: &'static larder::orm::TableSpec,
        select: &larder::orm::Select,
        take: &mut dyn FnMut(&dyn larder::orm::CellSource) -> std::ops::ControlFlow<()>,
    ) -> Result<(), larder::orm::DbError> {
        self.0.lock().unwrap().read(table, select, take)
    }

    fn count(
        &self,
        table: &'static larder::orm::TableSpec,
        condition: &larder::orm::Condition,
    ) -> Result<u64, larder::orm::DbError> {
        self.0.lock().unwrap().count(table, condition)
    }

    fn run(&self, operation: &Operation<'_>) -> Result<larder::orm::Outcome, larder::orm::DbError> {
        self.0.lock().unwrap().run(operation)
    }

    fn apply(&self, batch: &[Operation<'_>]) -> Result<Vec<larder::orm::Outcome>, larder::orm::DbError> {
        self.0.lock().unwrap().apply(batch)
    }

    fn delete_where(
        &self,
        table: &'static larder::orm::TableSpec,
        condition: &larder::orm::Condition,
    ) -> Result<u64, larder::orm::DbError> {
        self.0.lock().unwrap().delete_where(table, condition)
    }
}
