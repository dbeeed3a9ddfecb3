//! What becomes of files that are not what they should be: a table of damages to either file.

use std::fs;
use std::path::PathBuf;

use super::*;

/// A way to spoil a good file.
type Damage = (&'static str, fn(&Path));

const DAMAGES: [Damage; 8] = [
    ("garbage", |file| fs::write(file, b"this has never been a database, nor will it be one").unwrap()),
    ("truncated", |file| {
        let length = fs::metadata(file).unwrap().len();
        fs::OpenOptions::new().write(true).open(file).unwrap().set_len(length / 2).unwrap();
    }),
    ("cut within a page", |file| {
        fs::OpenOptions::new().write(true).open(file).unwrap().set_len(1000).unwrap();
    }),
    ("pages of zeros", |file| {
        let mut bytes = fs::read(file).unwrap();
        bytes[4096..].fill(0);
        fs::write(file, bytes).unwrap();
    }),
    ("head of zeros", |file| {
        let mut bytes = fs::read(file).unwrap();
        bytes[..100].fill(0);
        fs::write(file, bytes).unwrap();
    }),
    ("another program's", |file| {
        fs::remove_file(file).unwrap();
        sql(file, "CREATE TABLE bookmarks (id INTEGER); PRAGMA user_version = 3");
    }),
    ("a column more", |file| {
        sql(file, "ALTER TABLE blobs ADD COLUMN x TEXT; ALTER TABLE bans ADD COLUMN x TEXT")
    }),
    ("a table less", |file| sql(file, "DROP TABLE blobs; DROP TABLE bans")),
];

/// Runs statements on a file; those that name tables of the other file fail alone.
fn sql(file: &Path, statements: &str) {
    let connection = rusqlite::Connection::open(file).unwrap();
    for statement in statements.split(';') {
        drop(connection.execute_batch(statement));
    }
    connection.close().unwrap();
}

/// A folder with a good index, closed.
fn filled() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = open(folder.path());
    for number in 0..200 {
        index.put_blob(blob(number, number));
        index.put_ban(ban(ip(u32::try_from(number).unwrap()), NOON));
    }
    index.put_resource(answer(1, 1, 1, 1, Some(1)));
    assert!(index.close());
    folder
}

fn beside(folder: &Path, name: &str) -> PathBuf {
    folder.join(name)
}

#[test]
fn a_damaged_index_is_set_aside_and_made_anew() {
    for (name, damage) in DAMAGES {
        let folder = filled();
        damage(&beside(folder.path(), "index.db"));
        let (index, opened) = open(folder.path());
        assert!(opened.fresh, "{name}");
        assert_eq!(index.totals(), Totals::default(), "{name}");
        assert_eq!(index.bans().len(), 200, "{name}: the other file is whole");
        assert!(beside(folder.path(), "index.db.damaged").exists(), "{name}");
        index.put_blob(blob(1, 1));
        assert!(index.close(), "{name}");
        let (index, opened) = open(folder.path());
        assert!(!opened.fresh && index.blob(&digest(1)).is_some(), "{name}");
    }
}

#[test]
fn a_damaged_state_is_refused_and_left_alone() {
    for (name, damage) in DAMAGES {
        let folder = filled();
        let file = beside(folder.path(), "state.db");
        damage(&file);
        let before = fs::read(&file).unwrap();
        let refusal = open_with(folder.path(), &Health::new()).unwrap_err();
        assert!(matches!(refusal, IndexError::Damaged { .. }), "{name}: {refusal}");
        let sentence = refusal.to_string();
        assert!(
            sentence.contains("state.db is damaged") && sentence.contains("move it away"),
            "{name}: {sentence}"
        );
        assert!(fs::read(&file).unwrap() == before, "{name}: changed");
    }
}

#[test]
fn an_empty_file_is_a_new_one_unless_a_backup_says_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["index.db", "state.db"] {
        fs::write(beside(folder.path(), file), b"").unwrap();
    }
    let (index, opened) = open(folder.path());
    assert!(opened.fresh && !beside(folder.path(), "index.db.damaged").exists());
    index.backup_state().unwrap();
    assert!(index.close());
    fs::write(beside(folder.path(), "state.db"), b"").unwrap();
    let refusal = open_with(folder.path(), &Health::new()).unwrap_err().to_string();
    assert!(refusal.contains("it is empty, though it has a backup"), "{refusal}");
}

#[test]
fn an_unreadable_index_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    // a folder of that name is unreadable for root too; it moves as a file does
    fs::create_dir(beside(folder.path(), "index.db")).unwrap();
    fs::write(beside(folder.path(), "index.db.damaged"), b"of the last time").unwrap();
    let (index, opened) = open(folder.path());
    assert!(opened.fresh);
    assert!(beside(folder.path(), "index.db.damaged.1").is_dir());
    index.put_blob(blob(1, 1));
    assert!(index.close());
}

#[test]
fn a_newer_file_is_refused_with_a_sentence() {
    for file in ["index.db", "state.db"] {
        let folder = filled();
        sql(&beside(folder.path(), file), "PRAGMA user_version = 7");
        let refusal = open_with(folder.path(), &Health::new()).unwrap_err();
        assert!(matches!(refusal, IndexError::Newer { .. }), "{refusal}");
        let sentence = refusal.to_string();
        assert!(sentence.contains(file) && sentence.contains("newer Larder"), "{sentence}");
        assert!(sentence.contains("version 7"), "{sentence}");
        assert!(!beside(folder.path(), "index.db.damaged").exists());
    }
}

#[test]
fn a_stray_log_of_another_file_is_no_part_of_a_new_one() {
    let folder = filled();
    fs::write(beside(folder.path(), "index.db"), b"garbage, and long enough to be no empty file").unwrap();
    fs::write(beside(folder.path(), "index.db-wal"), b"garbage too").unwrap();
    let (index, opened) = open(folder.path());
    assert!(opened.fresh);
    index.put_blob(blob(1, 1));
    assert!(index.close());
    assert!(open(folder.path()).0.blob(&digest(1)).is_some());
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"").unwrap();
    let refusal = open_with(&file.join("state"), &Health::new()).unwrap_err().to_string();
    assert!(refusal.starts_with("cannot use the state folder"), "{refusal}");
}
