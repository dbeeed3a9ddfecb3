//! How fast rows come and go, beside the same statements without our layer in the same run.
//!
//! `cargo bench --bench index [rows] [cpu] [engine…]` prints a table in rows a second: an integer key, two texts, an amount,
//! a date and two times. Direct is a transaction for each row; Batch is a list of rows; Trans is rows one by one in a
//! transaction; Batch Trans all rows as one list; By one reads by key; All virtual reads all rows as JSON through the
//! REST side; All direct reads all rows as records. Over HTTP each of these is a request, or many, on one connection
//! of the loopback; its transactions are lists, for HTTP knows no other. Ours and theirs take turns; a figure is the
//! median of its turns, and so is a share.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark prints and ends by panicking"
)]

mod blobs;
mod over_http;
mod ours;
mod person;
mod raw;
mod single;

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use larder::orm::{Care, Database, Memory, Schema};
use rusqlite::Connection;
use rustix::time::ClockId;

use person::{PEOPLE, Person, RAW_TABLE};

/// How often each measures.
const TURNS: usize = 5;
/// Rows of a list where each list waits for the disk.
const FEW: usize = 200;

/// How a database is kept.
#[derive(Clone, Copy)]
struct Mode {
    name: &'static str,
    care: Care,
    pragmas: &'static str,
    kept: Kept,
}

#[derive(Clone, Copy, PartialEq)]
enum Kept {
    File,
    #[cfg(feature = "sqlcipher")]
    Encrypted,
    Memory,
}

const OFF_EXCLUSIVE: &str =
    "PRAGMA journal_mode=DELETE; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;";

const MODES: &[Mode] = &[
    Mode {
        name: "file full",
        care: Care::Full,
        pragmas: "PRAGMA journal_mode=DELETE; PRAGMA synchronous=FULL;",
        kept: Kept::File,
    },
    Mode {
        name: "file off",
        care: Care::Off,
        pragmas: "PRAGMA journal_mode=DELETE; PRAGMA synchronous=OFF;",
        kept: Kept::File,
    },
    Mode { name: "file off exclusive", care: Care::OffExclusive, pragmas: OFF_EXCLUSIVE, kept: Kept::File },
    #[cfg(feature = "sqlcipher")]
    Mode {
        name: "the same encrypted",
        care: Care::OffExclusive,
        pragmas: OFF_EXCLUSIVE,
        kept: Kept::Encrypted,
    },
    Mode { name: "memory", care: Care::Off, pragmas: "PRAGMA synchronous=OFF;", kept: Kept::Memory },
];

/// Rows a second: of the clock, or with the word `cpu` of the processor's time, the kernel's included, which does not
/// know what else the machine does.
fn rate(rows: usize, work: impl FnOnce()) -> f64 {
    let now = || {
        let clock = if *BY_CPU { ClockId::ProcessCPUTime } else { ClockId::Monotonic };
        let now = rustix::time::clock_gettime(clock);
        Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
    };
    let start = now();
    work();
    f64::from(u32::try_from(rows).unwrap()) / (now() - start).as_secs_f64()
}

static BY_CPU: LazyLock<bool> = LazyLock::new(|| std::env::args().any(|word| word == "cpu"));

/// The middle one; none where there was nothing to measure.
fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The columns of one engine, measured once.
type Turn = [f64; 7];

fn line(name: &str, rates: Turn) {
    let cells =
        rates.map(|rate| if rate.is_nan() { format!("{:>11}", "–") } else { format!("{rate:>11.0}") });
    println!("{name:<32}{}", cells.concat());
}

fn column(turns: &[Turn], at: usize) -> f64 {
    median(turns.iter().map(|turn| turn[at]).filter(|rate| !rate.is_nan()).collect())
}

/// Lines of who took turns: ours, and theirs with our share of it.
fn lines(name: &str, ours: &[Turn], theirs: &[Turn]) {
    line(name, std::array::from_fn(|at| column(ours, at)));
    if !theirs.is_empty() {
        line("  rusqlite alone", std::array::from_fn(|at| column(theirs, at)));
        let shares: Vec<Turn> = ours
            .iter()
            .zip(theirs)
            .map(|(ours, theirs)| std::array::from_fn(|at| ours[at] / theirs[at] * 100.0))
            .collect();
        line("  ours in % of that", std::array::from_fn(|at| column(&shares, at)));
    }
}

fn heads() {
    let heads = ["Direct", "Batch", "Trans", "Batch Tr.", "By one", "All virt.", "All direct"];
    println!("{:<32}{}", "", heads.map(|head| format!("{head:>11}")).concat());
}

/// No file, nor what may lie beside one.
fn clean(path: &Path) {
    for end in ["", "-wal", "-shm", "-journal"] {
        drop(std::fs::remove_file(format!("{}{end}", path.display())));
    }
}

fn ours_in(mode: Mode, path: &Path, schema: &'static Schema) -> Database {
    clean(path);
    let database = match mode.kept {
        Kept::File => Database::open(path, schema),
        #[cfg(feature = "sqlcipher")]
        Kept::Encrypted => {
            let key = larder::orm::FileKey::new(&[7; 32]);
            Database::open(larder::orm::Location::from(path).sealed_with(Some(key)), schema)
        }
        Kept::Memory => Database::memory(schema),
    };
    database.unwrap().with_care(mode.care).unwrap()
}

fn theirs_in(mode: Mode, path: &Path) -> Connection {
    clean(path);
    let connection = match mode.kept {
        Kept::File => Connection::open(path),
        #[cfg(feature = "sqlcipher")]
        Kept::Encrypted => Connection::open(path).and_then(|connection| {
            connection.execute_batch(&format!("PRAGMA key = \"x'{}'\"", "07".repeat(32)))?;
            Ok(connection)
        }),
        Kept::Memory => Connection::open_in_memory(),
    };
    let connection = connection.unwrap();
    connection.execute_batch(mode.pragmas).unwrap();
    connection.execute_batch(RAW_TABLE).unwrap();
    connection
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let rows: i64 = words.iter().filter_map(|word| word.parse().ok()).next().unwrap_or(10_000);
    let names: Vec<&String> =
        words.iter().filter(|word| *word != "cpu" && word.parse::<i64>().is_err()).collect();
    let wanted = |name: &str| names.is_empty() || names.iter().any(|word| name.contains(word.as_str()));
    let people: Vec<Person> = (1..=rows).map(Person::number).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bench.db");
    println!(
        "{rows} rows (Direct and Batch of a full sync: {FEW}); rows a second{}, median of {TURNS} turns\n",
        if *BY_CPU { " of processor time" } else { "" }
    );
    heads();
    for mode in MODES.iter().copied().filter(|mode| wanted(mode.name)) {
        let few = if mode.care == Care::Full { FEW } else { people.len() };
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            let fresh = || ours_in(mode, &path, &PEOPLE);
            let mut turn = ours::turn(fresh, &people, few, single::shared);
            turn[2] = ours::trans(&fresh(), &people);
            ours.push(turn);
            theirs.push(raw::turn(|| theirs_in(mode, &path), &people, few));
        }
        lines(mode.name, &ours, &theirs);
    }
    if wanted("in-memory engine") {
        let turn = |_| ours::turn(Memory::new, &people, people.len(), |engine| std::sync::Arc::new(engine));
        lines("in-memory engine", &(0..TURNS).map(turn).collect::<Vec<_>>(), &[]);
    }
    if wanted("over HTTP") {
        let off = Mode { name: "", care: Care::OffExclusive, pragmas: "", kept: Kept::File };
        let turn = |_| over_http::turn(|| single::shared(ours_in(off, &path, &PEOPLE)), &people);
        lines("over HTTP, file off exclusive", &(0..TURNS).map(turn).collect::<Vec<_>>(), &[]);
    }
    if wanted("blobs") {
        let turn = |_| (blobs::ours(people.len(), &path), blobs::theirs(people.len(), &path));
        let (ours, theirs): (Vec<Turn>, Vec<Turn>) = (0..TURNS).map(turn).unzip();
        lines("our blobs, file off exclusive", &ours, &theirs);
    }
}
