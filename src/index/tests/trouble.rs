//! Locks, lost files and sudden ends while the index is in use.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Tells the child process which folder to write to.
const CHILD_FOLDER: &str = "LARDER_TEST_INDEX_FOLDER";

fn integrity(file: &Path) -> String {
    let connection = rusqlite::Connection::open(file).unwrap();
    connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
}

/// Hang guard: far longer than anything here takes.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..600 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("never happened: {what}");
}

#[test]
fn c11_an_outside_lock_reaches_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let health = Health::new();
    let (index, _) = open_with(folder.path(), &health).unwrap();
    assert!(index.flush());
    let outsider = rusqlite::Connection::open(folder.path().join("index.db")).unwrap();
    outsider.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..4 {
            let (index, stop) = (&index, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    index.used(&digest(reader), NOON);
                    assert!(index.blobs().len() <= 100);
                    assert!(index.variants(&url(reader)).len() <= 1);
                }
            });
        }
        for number in 0..100 {
            index.put_blob(blob(number, 1));
            index.put_resource(answer(number, 1, 1, 1, Some(number)));
            assert!(index.blob(&digest(number)).is_some(), "what is put is there at once");
        }
        until("trouble is raised", || health.troubles().iter().any(|trouble| trouble.code == "index"));
        assert_eq!(index.totals().blobs, 100);
        stop.store(true, Ordering::Relaxed);
    });
    outsider.execute_batch("ROLLBACK").unwrap();
    assert!(index.flush(), "what was kept is written");
    assert!(health.troubles().is_empty());
    assert!(index.close());
    let (index, _) = open(folder.path());
    assert_eq!((index.totals().blobs, index.resources().len()), (100, 100));
}

#[test]
fn a_file_that_was_taken_away_is_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = open(folder.path());
    index.put_blob(blob(1, 1));
    index.put_ban(ban(ip(1), NOON));
    assert!(index.flush());
    for file in std::fs::read_dir(folder.path()).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    index.put_blob(blob(2, 2));
    index.put_ban(ban(ip(2), NOON));
    assert!(index.flush());
    assert!(index.close());
    let (index, opened) = open(folder.path());
    assert_eq!((opened.fresh, index.totals().blobs, index.bans().len()), (false, 2, 2));
}

#[test]
fn a_file_damaged_while_in_use_is_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let health = Health::new();
    let (index, _) = open_with(folder.path(), &health).unwrap();
    for number in 0..500 {
        index.put_blob(blob(number, 1));
    }
    assert!(index.flush());
    let file = folder.path().join("index.db");
    // all into the one file first, so that its pages are read again from there
    let outsider = rusqlite::Connection::open(&file).unwrap();
    outsider.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_row| Ok(())).unwrap();
    outsider.execute_batch("CREATE TABLE x (y); INSERT INTO x VALUES (1)").unwrap();
    outsider.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_row| Ok(())).unwrap();
    let length = std::fs::metadata(&file).unwrap().len();
    let bytes = vec![0x55; usize::try_from(length).unwrap() - 4096];
    std::os::unix::fs::FileExt::write_all_at(
        &std::fs::OpenOptions::new().write(true).open(&file).unwrap(),
        &bytes,
        4096,
    )
    .unwrap();
    for number in 0..600 {
        index.put_blob(blob(number, 2));
    }
    assert!(index.flush());
    assert!(folder.path().join("index.db.damaged").exists());
    assert!(health.troubles().is_empty());
    drop(outsider);
    assert!(index.close());
    assert_eq!(integrity(&file), "ok");
    assert_eq!(open(folder.path()).0.totals(), Totals { blobs: 600, bytes: 1200, again_bytes: 0 });
}

#[test]
fn dropping_the_last_handle_writes_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = open(folder.path());
    index.put_blob(blob(1, 1));
    drop(index);
    until("the blob is there", || open(folder.path()).0.blob(&digest(1)).is_some());
}

#[test]
fn marks_after_closing_stay_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = open(folder.path());
    assert!(index.close());
    index.put_blob(blob(1, 1));
    assert!(index.blob(&digest(1)).is_some());
    assert!(!index.flush(), "nobody writes any more, and nobody waits");
    assert!(!index.close());
}

/// Puts so many blobs and answers while nothing can be written, and closes.
fn stop_with(rows: u64) -> (tempfile::TempDir, Duration, bool) {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = open(folder.path());
    assert!(index.flush());
    let outsider = rusqlite::Connection::open(folder.path().join("index.db")).unwrap();
    outsider.execute_batch("BEGIN EXCLUSIVE").unwrap();
    for number in 0..rows {
        index.put_blob(blob(number, 1));
        index.used(&digest(number), NOON);
    }
    outsider.execute_batch("ROLLBACK").unwrap();
    let clock = crate::clock::SystemClock::shared();
    let begun = clock.instant();
    let all = index.close();
    (folder, clock.instant().duration_since(begun), all)
}

#[test]
fn what_waits_at_the_stop_is_written_piece_by_piece() {
    let (folder, _, all) = stop_with(50_000);
    assert!(all);
    let (index, _) = open(folder.path());
    assert_eq!(index.totals(), Totals { blobs: 50_000, bytes: 50_000, again_bytes: 50_000 });
}

#[test]
#[ignore = "takes a minute"]
fn a_stop_with_a_million_rows_is_bounded() {
    let (folder, took, all) = stop_with(1_000_000);
    let blobs = open(folder.path()).0;
    blobs.wait_until_read(|| false);
    println!("stopped in {took:?}, all written: {all}, {} rows are there", blobs.totals().blobs);
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert!(blobs.totals().blobs.is_multiple_of(20_000), "whole pieces only");
}

/// The other half of the test below: writes, says what is flushed, goes on writing until it dies.
#[test]
#[ignore = "run by another test, in a process of its own"]
fn child_that_dies() {
    let Ok(folder) = std::env::var(CHILD_FOLDER) else { return };
    let (index, _) = open(Path::new(&folder));
    for number in 0..300 {
        index.put_blob(blob(number, 1));
        index.put_resource(answer(number, 1, 1, 1, Some(number)));
        index.put_ban(ban(ip(u32::try_from(number).unwrap()), NOON));
    }
    assert!(index.flush());
    std::fs::write(Path::new(&folder).join("flushed"), b"").unwrap();
    for number in 300.. {
        index.put_blob(blob(number % 5_000, 1));
        index.used(&digest(number % 7), NOON);
    }
}

#[test]
fn s05_what_was_flushed_outlives_a_kill() {
    for _ in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "index::tests::trouble::child_that_dies", "--ignored"])
            .env(CHILD_FOLDER, folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        until("the child has flushed", || folder.path().join("flushed").exists());
        std::thread::sleep(Duration::from_millis(250));
        child.kill().unwrap();
        child.wait().unwrap();
        let (index, opened) = open(folder.path());
        assert!(!opened.fresh);
        for number in 0..300 {
            assert!(index.blob(&digest(number)).is_some(), "blob {number}");
            assert_eq!(index.variants(&url(number)).len(), 1, "answer {number}");
        }
        assert_eq!(index.bans().len(), 300);
        assert!(index.close());
        for file in ["index.db", "state.db"] {
            assert_eq!(integrity(&folder.path().join(file)), "ok");
        }
    }
}
