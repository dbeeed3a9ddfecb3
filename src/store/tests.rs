//! The store on a temporary folder.

use std::os::unix::fs::{FileExt as _, PermissionsExt as _};

use bytes::Bytes;

use super::*;
use crate::digest::Algorithm;

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    (folder, store)
}

fn staging_is_empty(store: &Store) -> bool {
    fs::read_dir(store.folder().join("staging")).unwrap().next().is_none()
}

fn commit(store: &Store, bytes: &[u8]) -> Committed {
    let mut ingest = store.begin().unwrap();
    ingest.append(bytes).unwrap();
    ingest.commit(|_| {}).unwrap()
}

#[tokio::test]
async fn a_committed_blob_is_named_by_its_digest_and_read_only() {
    let (_folder, store) = store();
    let committed = commit(&store, b"abc");
    assert_eq!(committed.digest, Digest::of(b"abc"));
    let (blob, stamp) = store.blob(&committed.digest).unwrap().unwrap();
    assert_eq!(stamp, committed.stamp);
    assert_eq!(blob.read(1, 9).await.unwrap(), Bytes::from_static(b"bc"));
    assert!(blob.file().metadata().unwrap().permissions().readonly());
    assert!(staging_is_empty(&store) && store.staged() == 0);
    assert!(store.remove(&committed.digest).unwrap() && !store.remove(&committed.digest).unwrap());
    assert_eq!(blob.read(0, 9).await.unwrap(), Bytes::from_static(b"abc"), "an open blob outlives its name");
    assert!(store.blob(&committed.digest).unwrap().is_none());
}

#[test]
fn what_happens_to_a_file_before_it_is_stamped_is_not_stamped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("blob");
    fs::write(&path, [7; 1000]).unwrap();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let proved = file.metadata().unwrap();
    fs::rename(&path, folder.path().join("renamed")).unwrap();
    assert_eq!(Stamp::of_same(&file, &proved).unwrap(), Stamp::of(&file).unwrap(), "a name is no content");
    file.set_len(0).unwrap();
    file.set_len(1000).unwrap();
    let touched = file.metadata().unwrap().modified().unwrap() + std::time::Duration::from_millis(20);
    file.set_modified(touched).unwrap();
    assert_eq!(Stamp::of_same(&file, &proved).unwrap(), Stamp { size: 1000, ..Stamp::default() });
}

#[test]
fn a_change_after_a_file_has_its_name_shows_though_its_time_is_set_back() {
    let (_folder, store) = store();
    let mut ingest = store.begin().unwrap();
    ingest.append(b"abc").unwrap();
    let path = blob_path(store.folder(), &Digest::of(b"abc"));
    let committed = ingest.commit(|_| {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        let before = file.metadata().unwrap().modified().unwrap();
        file.write_all_at(b"x", 1).unwrap();
        file.set_modified(before).unwrap();
    });
    let (_blob, stamp) = store.blob(&Digest::of(b"abc")).unwrap().unwrap();
    assert_ne!(stamp, committed.unwrap().stamp);
}

#[test]
fn what_is_not_committed_leaves_nothing() {
    let (_folder, store) = store();
    let mut ingest = store.begin().unwrap();
    ingest.append(b"abc").unwrap();
    assert_eq!(store.staged(), 3);
    drop(ingest);
    assert!(staging_is_empty(&store) && store.staged() == 0);
}

#[test]
fn s22_two_daemons_do_not_share_a_folder() {
    let (folder, _store) = store();
    let error = Store::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains(&std::process::id().to_string()), "{error}");
}

#[test]
fn s28_another_format_is_refused() {
    let (folder, store) = store();
    drop(store);
    fs::write(folder.path().join("format"), "larder store 9\n").unwrap();
    let error = Store::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("larder store 9") && error.contains("larder store 1"), "{error}");
}

#[test]
fn a_partial_is_resumed_only_where_its_prefix_is_right() {
    let (folder, store) = store();
    let keep = |bytes: &[u8]| {
        let mut ingest = store.begin().unwrap();
        ingest.append(bytes).unwrap();
        ingest.keep("key", "note").unwrap()
    };
    let (good, bad, alien) = (keep(b"good bytes"), keep(b"bad bytes"), folder.path().join("staging/x.part"));
    fs::write(&alien, "alien").unwrap();
    fs::write(folder.path().join("staging").join(format!("{}.part", bad.id)), "BAD bytes").unwrap();
    let mut found = store.recover().unwrap();
    found.sort_by_key(|record| record.offset);
    assert_eq!(found, [bad.clone(), good.clone()]);
    assert!(!alien.exists());
    assert!(store.resume(&bad, None).unwrap().is_none());
    let mut ingest = store.resume(&good, Some(Algorithm::Md5)).unwrap().unwrap();
    ingest.append(b"!").unwrap();
    assert_eq!(ingest.commit(|_| {}).unwrap().digest, Digest::of(b"good bytes!"));
    assert!(staging_is_empty(&store));
}

#[test]
fn bytes_after_the_last_checkpoint_are_cut() {
    let (_folder, store) = store();
    let mut ingest = store.begin().unwrap();
    ingest.append(b"checked").unwrap();
    ingest.checkpoint("key", "").unwrap();
    ingest.append(b"unsure").unwrap();
    std::mem::forget(ingest); // as kill -9 would
    let record = store.recover().unwrap().pop().unwrap();
    assert_eq!(store.resume(&record, None).unwrap().unwrap().length(), 7);
}

#[test]
fn s21_folders_removed_under_us_come_back() {
    let (folder, store) = store();
    for name in ["blobs", "staging", "pins"] {
        fs::remove_dir_all(folder.path().join(name)).unwrap();
    }
    let committed = commit(&store, b"abc");
    assert!(store.blob(&committed.digest).unwrap().is_some());
}

#[test]
fn pins_and_scan_see_what_is_there() {
    let (_folder, store) = store();
    let committed = commit(&store, b"abc");
    store.pin(&committed.digest).unwrap();
    assert_eq!(store.pins().unwrap(), [committed.digest]);
    assert!(store.unpin(&committed.digest).unwrap() && !store.unpin(&committed.digest).unwrap());
    let mut seen = Vec::new();
    store
        .scan(|digest, stamp| {
            seen.push((digest, stamp));
            true
        })
        .unwrap();
    assert_eq!(seen, [(committed.digest, committed.stamp)]);
}

async fn all(mut follower: Follower) -> Result<Vec<u8>, Failure> {
    let mut got = Vec::new();
    while let Some((_, bytes)) = follower.next().await? {
        got.extend_from_slice(&bytes);
    }
    Ok(got)
}

#[tokio::test]
async fn c06_readers_at_any_offset_wait_for_the_rest() {
    let (_folder, store) = store();
    let mut writer = Writer::new(store.begin().unwrap(), Some(9), Hold::Nothing);
    let growing = writer.growing();
    let readers: Vec<_> =
        [(0, None), (4, None), (2, Some(5))].map(|(a, b)| tokio::spawn(all(growing.follow(a, b)))).into();
    for piece in ["abc", "def", "ghi"] {
        writer.write(Bytes::from(piece)).await.unwrap();
        tokio::task::yield_now().await;
    }
    let digest = writer.found().await.unwrap().unwrap().digest;
    let late = tokio::spawn(all(growing.follow(7, None)));
    assert_eq!(writer.complete(digest).unwrap().commit(|_| {}).unwrap().digest, Digest::of(b"abcdefghi"));
    let mut got = Vec::new();
    for reader in readers.into_iter().chain([late]) {
        got.push(String::from_utf8(reader.await.unwrap().unwrap()).unwrap());
    }
    assert_eq!(got, ["abcdefghi", "efghi", "cde", "hi"]);
    assert_eq!(growing.readers(), 0);
}

#[tokio::test]
async fn held_bytes_wait_for_the_proof_and_never_end_cleanly_without_it() {
    let (_folder, store) = store();
    let mut writer = Writer::new(store.begin().unwrap(), Some(6), Hold::Tail(2));
    let mut follower = writer.growing().follow(0, None);
    writer.write(Bytes::from("abcdef")).await.unwrap();
    writer.settle().await.unwrap();
    assert_eq!(follower.next().await.unwrap().unwrap(), (0, Bytes::from("abcd")));
    drop(writer.fail(Failure::Digest).await);
    assert_eq!(follower.next().await, Err(Failure::Digest));
    assert!(staging_is_empty(&store));
}

#[tokio::test]
async fn a_writer_that_is_dropped_fails_its_readers() {
    let (_folder, store) = store();
    let mut writer = Writer::new(store.begin().unwrap(), None, Hold::Nothing);
    writer.write(Bytes::from("abc")).await.unwrap();
    let reader = tokio::spawn(all(writer.growing().follow(0, None)));
    writer.settle().await.unwrap();
    drop(writer);
    assert_eq!(reader.await.unwrap(), Err(Failure::Abandoned));
}

#[tokio::test]
async fn s01_when_the_disk_gives_out_the_rest_passes_through_memory() {
    let (_folder, store) = store();
    let mut writer = Writer::new(store.begin().unwrap(), None, Hold::Nothing);
    let reader = tokio::spawn(all(writer.growing().follow(0, None)));
    let piece = Bytes::from(vec![7u8; 1 << 20]);
    writer.write(piece.clone()).await.unwrap();
    writer.stop_storing().await.unwrap();
    assert!(!writer.is_storing() && staging_is_empty(&store));
    for _ in 0..12 {
        writer.write(piece.clone()).await.unwrap();
    }
    let digest = writer.found().await.unwrap().unwrap().digest;
    assert_eq!(digest, Digest::of(&vec![7u8; 13 << 20]));
    assert!(writer.complete(digest).is_none());
    assert_eq!(reader.await.unwrap().unwrap().len(), 13 << 20);
}

#[tokio::test]
async fn s01_what_passes_through_memory_can_be_proved_piece_by_piece() {
    let (_folder, store) = store();
    let mut writer = Writer::new(store.begin().unwrap(), None, Hold::After(0));
    let growing = writer.growing();
    let reader = tokio::spawn(all(growing.follow(0, None)));
    let piece = Bytes::from(vec![7u8; 1 << 20]);
    writer.write(piece.clone()).await.unwrap();
    writer.stop_storing().await.unwrap();
    let more = async {
        for _ in 0..12 {
            writer.write(piece.clone()).await.unwrap();
        }
    };
    // the proof comes later, and nobody waits for the reader meanwhile
    tokio::time::timeout(std::time::Duration::from_secs(20), more).await.unwrap();
    assert_eq!(growing.pieces(0), vec![growing.pieces(0)[0]; 13]);
    writer.hold(Hold::After(13 << 20));
    let digest = writer.found().await.unwrap().unwrap().digest;
    assert!(writer.complete(digest).is_none());
    assert_eq!(reader.await.unwrap().unwrap().len(), 13 << 20);
}

#[tokio::test]
async fn what_cannot_be_stored_ends_when_nobody_reads_it() {
    let (_folder, store) = store();
    let mut writer = Writer::new(store.begin().unwrap(), None, Hold::Nothing);
    writer.stop_storing().await.unwrap();
    assert!(matches!(writer.write(Bytes::from("x")).await, Err(WriteError::Deserted)));
}

#[test]
fn of_two_holds_the_stricter_holds() {
    use Hold::{After, Everything, Nothing, Tail};
    for (one, other, want) in [
        (Nothing, Nothing, Nothing),
        (Nothing, Tail(1), Tail(1)),
        (Tail(3), Tail(2), Tail(3)),
        (After(3), After(2), After(2)),
        (Tail(9), After(5), After(5)),
        (Nothing, After(5), After(5)),
        (Everything, After(0), Everything),
    ] {
        assert_eq!((one.stricter(other), other.stricter(one)), (want, want), "{one:?} {other:?}");
    }
}

#[tokio::test]
async fn what_is_not_stored_any_more_is_neither_kept_nor_taken_back() {
    let (_folder, store) = store();
    let mut writer = Writer::new(store.begin().unwrap(), None, Hold::Nothing);
    let mut follower = writer.growing().follow(0, None);
    writer.write(Bytes::from_static(b"on the disk")).await.unwrap();
    writer.stop_storing().await.unwrap();
    writer.stop_storing().await.unwrap();
    assert!(!writer.is_storing() && writer.part_with_file().await.unwrap().is_none());
    assert!(matches!(writer.rewind(0).await, Err(WriteError::Deserted)));
    assert!(matches!(writer.checkpoint("key".into(), "note".into()).await, Ok(WriteNote::Stored)));
    writer.write(Bytes::from_static(b", in memory")).await.unwrap();
    let mut all = Vec::new();
    while let Some((_, bytes)) = follower.next().await.unwrap() {
        all.extend_from_slice(&bytes);
        if all.len() == 22 {
            break;
        }
    }
    assert_eq!(all, b"on the disk, in memory");
    assert!(writer.complete(Digest::of(&all)).is_none(), "there is no file");
    assert_eq!(follower.next().await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn who_holds_up_everybody_in_memory_is_left_behind_and_told_so() {
    let (_folder, store) = store();
    let mut writer = Writer::new(store.begin().unwrap(), None, Hold::Nothing);
    writer.stop_storing().await.unwrap();
    let growing = writer.growing();
    let (mut still, mut reads) = (growing.follow(0, None), growing.follow(0, None));
    let piece = Bytes::from(vec![7; 1 << 20]);
    let reading = tokio::spawn(async move {
        let mut count = 0;
        while let Ok(Some((_, bytes))) = reads.next().await {
            count += bytes.len();
        }
        count
    });
    for _ in 0..8 {
        writer.write(piece.clone()).await.unwrap();
    }
    writer.complete(Digest::of(b""));
    assert_eq!(reading.await.unwrap(), 8 << 20);
    assert!(matches!(still.next().await, Err(Failure::Unreadable(_))));
    assert!(format!("{growing:?}").contains("received"));
}
