//! What a crash or a power cut leaves behind.
//!
//! The library works on a folder in a process of its own under `strace`; what it really asked of the kernel is
//! read from there ([`trace`]), so nothing in the program knows of this test and nothing on its way is slowed. Then the
//! power is cut after every single call. What was synced is there; of what was not, every subset may be: a write or a
//! name that comes later may have reached the disk before an earlier one ([`disk`]). Each state is put on a disk and
//! opened again, and must hold what was promised: it opens; every visible blob hashes to its name; what was committed
//! is there, and what was pinned is pinned; no row claims what the disk does not have.
//!
//! `LARDER_TEST_CRASH_STATES` sets how many states are looked at with the index, and ten times as many without.

mod disk;
mod trace;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use larder::cache::{Cache, Config, Provenance};
use larder::clock::SystemClock;
use larder::digest::Digest;
use larder::index::Index;
use larder::store::Store;
use larder::telemetry::Health;
use larder::unit::ByteSize;

use disk::{Cut, Recording, States};

use crate::support::{sha256, tools};

/// Says to the inner process where to work.
const FOLDER: &str = "LARDER_TEST_CRASH_FOLDER";
/// This test, as the harness names it.
const SELF: &str = "crash::a_power_cut_at_any_moment_loses_nothing_that_was_promised";

/// What must hold after a cut, from what had been said until then.
#[derive(Default)]
struct Promised {
    committed: BTreeSet<Digest>,
    pinned: BTreeSet<Digest>,
}

#[test]
fn a_power_cut_at_any_moment_loses_nothing_that_was_promised() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return work(Path::new(&folder));
    }
    if !tools::installed("strace") {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let Some(calls) = traced(home.path()) else { return };
    let recording = Recording::of(&home.path().join("work"), &calls);
    println!("{} calls changed something, {} of them synced it", recording.len(), recording.syncs());
    assert!(recording.syncs() >= 8 && recording.said("committed").count() == 3);
    let place = ram();

    let stored = recording.below("cache");
    let most = std::env::var("LARDER_TEST_CRASH_STATES").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    let mut store = States::new(&stored, 12, 64);
    let looked = store.each(most * 10, |cut| judge(place.path(), &stored, cut, judge_store));
    println!("store: {looked} states of {} calls, 0 violations", stored.len());
    assert!(looked > 500, "{looked}");

    let mut both = States::new(&recording, 4, 16);
    let looked = both.each(most, |cut| judge(place.path(), &recording, cut, judge_both));
    println!("store and index: {looked} states of {} calls, 0 violations", recording.len());
    assert!(looked > 300, "{looked}");
}

/// The calls of a process that works in `home/work`; none where nobody may be traced.
fn traced(home: &Path) -> Option<Vec<trace::Call>> {
    let (folder, log) = (home.join("work"), home.join("calls"));
    std::fs::create_dir(&folder).unwrap();
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-xx", "-s", "1048576", "-e", trace::CALLS, "-o"]).arg(&log);
    strace.arg(std::env::current_exe().unwrap()).args(["--exact", SELF, "--nocapture"]);
    let ran = strace.env(FOLDER, &folder).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    if !said.contains("1 passed") {
        let why = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(why.contains("ptrace"), "{SELF} failed under strace, or has another name: {said}{why}");
        println!("skipped: nobody may be traced here: {why}");
        return None;
    }
    Some(trace::read(&std::fs::read_to_string(log).unwrap()))
}

/// A folder in memory, where there is one.
fn ram() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// The life of a small cache: things come, one stays half, one is pinned, one goes, the half one is finished.
fn work(folder: &Path) {
    let (cache, index) = open(folder).unwrap();
    let say = |what: &str, digest: Digest| {
        std::fs::write("/dev/null", format!("{} {what} {}", disk::SAID, digest.hex())).unwrap();
    };
    let add = |pieces: &[&str]| {
        let (mut ingest, _room) = cache.begin(None).unwrap();
        pieces.iter().for_each(|piece| ingest.append(piece.as_bytes()).unwrap());
        cache.commit(ingest, Provenance::default()).unwrap().digest
    };
    let first = add(&["the first ", "thing"]);
    say("committed", first);
    assert!(cache.pin(&first).unwrap());
    say("pinned", first);
    let (mut half, room) = cache.begin(Some(20)).unwrap();
    half.append(b"half of ").unwrap();
    half.checkpoint("url:half", "a note").unwrap();
    half.append(b"some").unwrap();
    cache.keep(half, "url:half", "a note");
    drop(room);
    let second = add(&["the second"]);
    say("committed", second);
    assert!(index.flush());
    say("removing", second);
    assert!(cache.remove(&second).unwrap());
    let kept = cache.partial("url:half").unwrap();
    let (mut half, _room) = cache.resume(&kept, Some(20), None).unwrap().unwrap();
    half.append(b"thing").unwrap();
    let third = cache.commit(half, Provenance::default()).unwrap().digest;
    say("committed", third);
    assert!(index.flush());
    assert!(index.close());
    cache.close();
}

fn open(folder: &Path) -> Result<(Cache, Index), String> {
    let (clock, health) = (SystemClock::shared(), Health::new());
    let (index, _) = Index::open(&folder.join("state"), Arc::clone(&clock), health.clone())
        .map_err(|error| format!("the index does not open: {error}"))?;
    let config = Config { dir: folder.join("cache"), max_size: ByteSize(1 << 20), ..Config::default() };
    let cache = Cache::open(config, index.clone(), clock, health.clone()).map_err(|e| e.to_string())?;
    if let Some(trouble) = health.troubles().first() {
        return Err(format!("opened with a trouble: {}", trouble.reason));
    }
    Ok((cache, index))
}

/// Puts a state on the disk and has it judged.
fn judge(place: &Path, recording: &Recording, cut: &Cut, by: fn(&Path, &Promised) -> Result<(), String>) {
    let folder = place.join("cut");
    recording.put(cut, &folder);
    let promised = promised(recording, cut);
    if let Err(violation) = by(&folder, &promised) {
        panic!("{violation}\nafter {}", recording.explain(cut));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

fn promised(recording: &Recording, cut: &Cut) -> Promised {
    let mut promised = Promised::default();
    for (what, digest) in recording.said_before(cut) {
        let digest = Digest::from_hex(digest).unwrap();
        match what {
            "committed" => drop(promised.committed.insert(digest)),
            "pinned" => drop(promised.pinned.insert(digest)),
            _ => drop(promised.committed.remove(&digest)),
        }
    }
    promised
}

/// The store alone, whatever became of the index.
fn judge_store(folder: &Path, promised: &Promised) -> Result<(), String> {
    let store = Store::open(&folder.join("cache")).map_err(|error| error.to_string())?;
    let partials = store.recover().map_err(|error| error.to_string())?;
    let mut seen = BTreeSet::new();
    let scanned = store.scan(|digest, _| {
        seen.insert(digest);
        true
    });
    scanned.map_err(|error| error.to_string())?;
    for digest in &seen {
        let bytes = std::fs::read(blob_path(folder, digest)).map_err(|error| error.to_string())?;
        if sha256(&bytes) != digest.hex() {
            return Err(format!("{digest} is visible and holds {} other bytes", bytes.len()));
        }
    }
    if let Some(lost) = promised.committed.difference(&seen).next() {
        return Err(format!("{lost} was committed and is not there"));
    }
    let pins: BTreeSet<Digest> = store.pins().map_err(|error| error.to_string())?.into_iter().collect();
    if let Some(lost) = promised.pinned.difference(&pins).next() {
        return Err(format!("{lost} was pinned and is not"));
    }
    for record in partials {
        if let Some(mut half) = store.resume(&record, None).map_err(|error| error.to_string())? {
            half.append(b"!").map_err(|error| error.to_string())?;
            let whole = half.commit(|_| {}).map_err(|error| error.to_string())?.digest;
            let bytes = std::fs::read(blob_path(folder, &whole)).map_err(|error| error.to_string())?;
            if !b"half of some!".starts_with(bytes.get(..bytes.len() - 1).unwrap())
                || sha256(&bytes) != whole.hex()
            {
                return Err(format!("a partial was resumed into {bytes:?}"));
            }
        }
    }
    let left = std::fs::read_dir(folder.join("cache/staging")).map_err(|error| error.to_string())?.count();
    if left == 0 { Ok(()) } else { Err(format!("{left} files are left in staging")) }
}

/// Store and index as a daemon opens them.
fn judge_both(folder: &Path, promised: &Promised) -> Result<(), String> {
    let (cache, index) = open(folder)?;
    cache.reconcile(|| false).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut rows = Vec::new();
    index.each_blob(|blob| rows.push(blob));
    for row in &rows {
        let Some(blob) = runtime.block_on(cache.open_proven(&row.digest)) else {
            return Err(format!("the index tells of {} and the disk has no such bytes", row.digest));
        };
        let bytes = std::fs::read(blob_path(folder, &row.digest)).map_err(|error| error.to_string())?;
        if sha256(&bytes) != row.digest.hex() || bytes.len() as u64 != blob.size() || row.size != blob.size()
        {
            return Err(format!("{} has {} bytes, its row says {}", row.digest, bytes.len(), row.size));
        }
    }
    let known: BTreeSet<Digest> = rows.iter().map(|row| row.digest).collect();
    if let Some(lost) = promised.committed.difference(&known).next() {
        return Err(format!("{lost} was committed and nobody knows it"));
    }
    if let Some(lost) = promised.pinned.iter().find(|digest| !cache.is_pinned(digest)) {
        return Err(format!("{lost} was pinned and is not"));
    }
    index.close();
    cache.close();
    Ok(())
}

fn blob_path(folder: &Path, digest: &Digest) -> PathBuf {
    let hex = digest.hex();
    folder.join("cache/blobs/sha256").join(&hex[..2]).join(hex)
}
