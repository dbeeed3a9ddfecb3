//! Sudden ends in the middle of batches: what was committed is there whole, of the rest nothing is.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use super::*;

/// Tells the child process which file to write to.
const CHILD_FILE: &str = "LARDER_TEST_BATCH_FILE";
/// Rows of one batch.
const ROWS: i64 = 50;

/// The other half of the tests below: commits batches until it dies, and says each number when it is committed.
#[test]
#[ignore = "run by another test, in a process of its own"]
fn child_that_commits_batches() {
    use std::io::Write as _;
    let Ok(file) = std::env::var(CHILD_FILE) else { return };
    let database = Database::open(Path::new(&file), &DAIRY).unwrap();
    let last = Repository::<Cheese>::new(&database)
        .find(&Query::everything().order(Cheese::COLUMNS.id.descending()).limit(1));
    let first = last.unwrap().first().map_or(0, |cheese| cheese.id / ROWS + 1);
    let mut told = std::io::stderr();
    for batch in first.. {
        let rows: Vec<Cheese> =
            (0..ROWS).map(|row| cheese(batch * ROWS + row, &format!("{batch} {row}"), 1)).collect();
        let mut list: Vec<_> = rows
            .iter()
            .map(|row| Operation { table: Cheese::table(), action: Action::Add(row.encode()) })
            .collect();
        // each batch takes the middle row of the one before away
        if batch > 0 {
            let key = vec![Cell::Integer((batch - 1) * ROWS + ROWS / 2)];
            list.push(Operation { table: Cheese::table(), action: Action::Delete { key, seen: None } });
        }
        database.apply(&list).unwrap();
        writeln!(told, "committed {batch}").unwrap();
    }
}

/// Kills the child at another moment each time; how many batches were committed in all.
fn kill(times: u32) -> i64 {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("batches.db");
    let mut known = -1;
    for time in 0..times {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "orm::tests::kill::child_that_commits_batches", "--ignored", "--nocapture"])
            .env(CHILD_FILE, &file)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // a number of batches that differs each time, and then somewhere in the next one
        let wanted = 1 + time * 7 % 23;
        let mut told = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut committed =
            told.by_ref().filter_map(|line| line.strip_prefix("committed ")?.parse::<i64>().ok());
        for _ in 0..wanted {
            known = committed.next().unwrap();
        }
        std::thread::sleep(std::time::Duration::from_micros(u64::from(time) * 37 % 1500));
        child.kill().unwrap();
        child.wait().unwrap();
        known = committed.last().unwrap_or(known);
        check(&file, known);
    }
    known
}

/// All up to `known` are whole; at most one more is, or nothing of it.
fn check(file: &Path, known: i64) {
    let database = Database::open(file, &DAIRY).unwrap();
    let verdict: String =
        database.connection().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    let mut rows = std::collections::BTreeMap::<i64, i64>::new();
    Repository::<Cheese>::new(&database)
        .each(|cheese| *rows.entry(cheese.id / ROWS).or_default() += 1)
        .unwrap();
    let last = *rows.keys().last().unwrap();
    // what was committed and not told before the end
    assert!(last >= known && last <= known + 1, "{last} is there, {known} was told");
    for batch in 0..=last {
        let whole = if batch == last { ROWS } else { ROWS - 1 };
        assert_eq!(rows.get(&batch), Some(&whole), "batch {batch} of {last}");
    }
}

#[test]
fn s05_batches_are_whole_or_absent_after_a_kill() {
    println!("{} batches", kill(6) + 1);
}

#[test]
#[ignore = "takes minutes"]
fn s05_batches_are_whole_or_absent_after_two_hundred_kills() {
    println!(
        "200 kills, {} batches of {ROWS} rows and a deletion: all whole, integrity_check ok each time",
        kill(200) + 1
    );
}
