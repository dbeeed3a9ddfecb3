//! Files that are sealed with a key, in builds that can do that.

use super::*;
use crate::orm::FileKey;

fn sealed(folder: &Path, key: Option<u8>) -> Result<(Index, Opened), IndexError> {
    let key = key.map(|byte| FileKey::new(&[byte; 32]));
    Index::open_sealed(folder, key.as_ref(), ManualClock::new(NOON), Health::new())
}

fn is_plain(folder: &Path, file: &str) -> bool {
    std::fs::read(folder.join(file)).unwrap().starts_with(b"SQLite format 3")
}

#[test]
fn an_index_is_sealed_when_it_gets_a_key_and_no_other_key_touches_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (index, _) = sealed(path, None).unwrap();
    index.put_blob(blob(1, 1000));
    index.put_setting("greeting", "hello");
    index.backup_state().unwrap();
    assert!(index.close());
    drop(index);
    assert!(["index.db", "state.db", "state.db.backup"].iter().all(|file| is_plain(path, file)));
    for round in 0..2 {
        let (index, opened) = sealed(path, Some(7)).unwrap();
        assert!(!opened.fresh, "round {round}");
        assert_eq!(index.blob(&digest(1)).as_deref(), Some(&blob(1, 1000)));
        assert_eq!(index.setting("greeting").as_deref(), Some("hello"));
        assert_eq!(index.blobs_after(None, 9), [digest(1)]);
        assert!(!is_plain(path, "state.db.backup"), "nor does a copy stay in clear until the next one");
        index.backup_state().unwrap();
        assert!(index.close());
        drop(index);
        assert!(["index.db", "state.db", "state.db.backup"].iter().all(|file| !is_plain(path, file)));
    }
    let before = ["index.db", "state.db"].map(|file| std::fs::read(path.join(file)).unwrap());
    for (key, says) in [(Some(1), "another key"), (None, "name its key")] {
        let refused = sealed(path, key).unwrap_err().to_string();
        assert!(refused.contains(says) && refused.contains("key_file"), "{refused}");
        assert_eq!(before, ["index.db", "state.db"].map(|file| std::fs::read(path.join(file)).unwrap()));
        assert!(!path.join("index.db.damaged").exists());
    }
}
