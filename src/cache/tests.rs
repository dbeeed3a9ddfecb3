//! Store and index together on temporary folders.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use super::*;
use crate::clock::{Clock as _, ManualClock, Timestamp};
use crate::unit::ByteSize;

struct Lab {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    health: Health,
}

impl Lab {
    fn new() -> Self {
        let clock = ManualClock::new(Timestamp::from_seconds(1_800_000_000));
        Self { folder: tempfile::tempdir().unwrap(), clock, health: Health::new() }
    }

    fn open(&self, max: u64) -> Cache {
        let clock: SharedClock = self.clock.clone();
        let index = Index::open(&self.folder.path().join("state"), clock.clone(), self.health.clone());
        let config = Config {
            dir: self.folder.path().join("cache"),
            max_size: ByteSize(max),
            min_free: MinFree::Size(ByteSize(0)),
            ..Config::default()
        };
        Cache::open(config, index.unwrap().0, self.clock.clone(), self.health.clone()).unwrap()
    }

    fn blob_path(&self, digest: &Digest) -> std::path::PathBuf {
        let hex = digest.hex();
        self.folder.path().join("cache/blobs/sha256").join(hex.get(..2).unwrap()).join(&hex)
    }
}

fn add(cache: &Cache, bytes: &[u8]) -> Digest {
    let (mut ingest, _room) = cache.begin(Some(bytes.len() as u64)).unwrap();
    ingest.append(bytes).unwrap();
    cache.commit(ingest, Provenance::default()).unwrap().digest
}

#[tokio::test]
async fn what_is_committed_is_held_and_proven() {
    let lab = Lab::new();
    let cache = lab.open(1000);
    let digest = add(&cache, b"abc");
    assert_eq!(cache.holds(&digest), Some(3));
    assert!(matches!(cache.open_blob(&digest).await, Some(Opened::Proven(_))));
    assert_eq!(cache.summary().bytes, 3);
}

#[tokio::test]
async fn s08_a_changed_file_is_hashed_again_and_removed_when_wrong() {
    let lab = Lab::new();
    let cache = lab.open(1000);
    let (good, bad) = (add(&cache, b"good"), add(&cache, b"bad!"));
    for digest in [&good, &bad] {
        let path = lab.blob_path(digest);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    fs::write(lab.blob_path(&bad), b"BAD!").unwrap();
    assert!(matches!(cache.open_blob(&good).await, Some(Opened::Proving(..))));
    assert!(cache.open_proven(&good).await.is_some());
    assert!(matches!(cache.open_blob(&good).await, Some(Opened::Proven(_))), "the record was renewed");
    assert!(cache.open_proven(&bad).await.is_none());
    assert_eq!(cache.holds(&bad), None);
    assert!(!lab.blob_path(&bad).exists());
}

#[tokio::test]
async fn s07_a_truncated_or_missing_file_is_a_miss() {
    let lab = Lab::new();
    let cache = lab.open(1000);
    let (short, gone) = (add(&cache, b"short"), add(&cache, b"gone"));
    let path = lab.blob_path(&short);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&path, b"sho").unwrap();
    fs::remove_file(lab.blob_path(&gone)).unwrap();
    assert!(cache.open_proven(&short).await.is_none());
    assert!(cache.open_proven(&gone).await.is_none());
    assert_eq!(cache.summary().blobs, 0);
}

#[tokio::test]
async fn verify_finds_rot_that_no_stamp_shows() {
    let lab = Lab::new();
    let cache = lab.open(1000);
    let digest = add(&cache, b"abc");
    assert_eq!(cache.verify(&digest).await, Verdict::Right);
    let path = lab.blob_path(&digest);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(&path, b"abd").unwrap();
    // as if the rot had come from below the filesystem: the record shows what the file shows now
    let stamp = Stamp::of(&fs::File::open(&path).unwrap()).unwrap();
    let mut record = (*cache.index().blob(&digest).unwrap()).clone();
    (record.inode, record.ctime_ns) = (stamp.inode, stamp.ctime_ns);
    cache.index().put_blob(record);
    assert_eq!(cache.verify(&digest).await, Verdict::Rotten);
    assert_eq!(cache.verify(&digest).await, Verdict::Missing);
}

#[tokio::test]
async fn s03_room_is_made_by_evicting_and_never_beyond_the_limit() {
    let lab = Lab::new();
    let cache = lab.open(100);
    let old = add(&cache, &[1; 40]);
    lab.clock.advance(Duration::from_secs(1));
    let new = add(&cache, &[2; 40]);
    cache.pin(&new).unwrap();
    let (_ingest, room) = cache.begin(Some(50)).unwrap();
    assert_eq!((cache.holds(&old), cache.holds(&new)), (None, Some(40)));
    assert!(matches!(cache.begin(Some(20)), Err(NoRoom::Full)), "the promise counts");
    drop(room);
    assert!(cache.begin(Some(20)).is_ok());
}

#[tokio::test]
async fn who_only_announces_much_evicts_little() {
    const MIB: u64 = 1024 * 1024;
    let lab = Lab::new();
    let cache = lab.open(200 * MIB);
    let kept: Vec<Digest> = (1..=4).map(|n| add(&cache, &[n; 40 * 1024].repeat(1024))).collect();
    let held = |cache: &Cache| kept.iter().filter(|digest| cache.holds(digest).is_some()).count();
    let (_ingest, mut room) = cache.begin_arriving(Some(180 * MIB)).unwrap();
    assert_eq!((room.bytes(), held(&cache)), (64 * MIB, 3));
    // what is announced counts for the next one, and what could never find room evicts nothing
    assert!(matches!(cache.begin_arriving(Some(70 * MIB)), Err(NoRoom::Full)));
    assert_eq!(held(&cache), 3);
    cache.extend(&mut room, 180 * MIB).unwrap();
    assert_eq!((room.bytes(), held(&cache)), (180 * MIB, 0));
    drop(room);
    assert!(cache.begin_arriving(Some(150 * MIB)).is_ok());
}

#[tokio::test]
async fn s04_a_thing_larger_than_the_cache_evicts_nothing() {
    let lab = Lab::new();
    let cache = lab.open(100);
    let kept = add(&cache, &[1; 90]);
    assert!(matches!(cache.begin(Some(101)), Err(NoRoom::TooLarge)));
    assert_eq!(cache.holds(&kept), Some(90));
}

#[tokio::test]
async fn s17_space_of_a_file_that_is_still_read_is_not_free() {
    let lab = Lab::new();
    let cache = lab.open(100);
    let digest = add(&cache, &[1; 80]);
    let reader = cache.open_proven(&digest).await.unwrap();
    assert!(matches!(cache.begin(Some(90)), Err(NoRoom::Full)));
    assert_eq!(reader.read(0, 100).await.unwrap().len(), 80, "the reader finishes");
    drop(reader);
    assert!(cache.begin(Some(90)).is_ok());
}

#[tokio::test]
async fn a_lost_index_is_rebuilt_from_the_files_and_each_is_proved_before_it_is_trusted() {
    let lab = Lab::new();
    let cache = lab.open(1000);
    let digest = add(&cache, b"abc");
    cache.index().close();
    cache.close();
    drop(cache);
    fs::remove_file(lab.folder.path().join("state/index.db")).unwrap();
    let cache = lab.open(1000);
    assert_eq!(cache.holds(&digest), None);
    cache.reconcile(|| false).unwrap();
    assert!(matches!(cache.open_blob(&digest).await, Some(Opened::Proving(..))));
    assert!(cache.open_proven(&digest).await.is_some());
    fs::remove_file(lab.blob_path(&digest)).unwrap();
    cache.reconcile(|| false).unwrap();
    assert_eq!(cache.holds(&digest), None);
}

#[tokio::test]
async fn partials_are_found_again_and_count_as_used_space() {
    let lab = Lab::new();
    let cache = lab.open(100);
    let (mut ingest, room) = cache.begin(Some(60)).unwrap();
    ingest.append(&[7; 30]).unwrap();
    cache.keep(ingest, "url:x", "note");
    drop(room);
    cache.close();
    drop(cache);
    let cache = lab.open(100);
    assert_eq!(cache.partial("url:x").unwrap().note, "note");
    assert!(cache.begin(Some(80)).is_ok(), "a partial gives way");
    assert!(cache.partial("url:x").is_none());
}

#[test]
fn s12_a_folder_that_cannot_be_used_is_no_reason_not_to_start() {
    let lab = Lab::new();
    fs::write(lab.folder.path().join("cache"), "a file").unwrap();
    let cache = lab.open(100);
    assert!(!cache.is_writable());
    assert_eq!(lab.health.troubles()[0].code, "cache-folder");
}

#[test]
fn a_pass_looks_at_all_blobs_in_order_and_goes_on_where_it_stopped() {
    let lab = Lab::new();
    let cache = lab.open(1000);
    assert!(!cache.last_pass().is_due(lab.clock.now(), Duration::from_secs(10)));
    let mut names: Vec<_> = (0..5).map(|n| add(&cache, &[n; 10])).collect();
    names.sort_unstable();
    let pass = Pass { at: Some(names[1]), ..Pass::starting(lab.clock.now()) };
    cache.note_pass(&pass);
    cache.index().close();
    cache.close();
    drop(cache);
    let cache = lab.open(1000);
    assert_eq!(cache.last_pass(), pass);
    assert_eq!(cache.left_of(&pass), names[2..]);
    lab.clock.set_wall(Timestamp(1));
    assert_eq!(cache.last_pass().began, Timestamp(1), "a clock that was set back delays nothing");
}

#[test]
fn a_pass_proves_what_is_right_and_takes_away_what_is_not() {
    let lab = Lab::new();
    let cache = lab.open(100_000);
    let (good, bad) = (add(&cache, b"good"), add(&cache, b"bad!"));
    for digest in [&good, &bad] {
        let path = lab.blob_path(digest);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    fs::write(lab.blob_path(&bad), b"BAD!").unwrap();
    let look = |digest| {
        let mut reading = cache.scrub_open(digest).unwrap();
        let mut buffer = [0; 3];
        while reading.step(&mut buffer).unwrap() > 0 {}
        cache.scrub_judge(reading, Ok(()))
    };
    assert_eq!((look(&good), look(&bad)), (Verdict::Right, Verdict::Rotten));
    assert_eq!((cache.holds(&good), cache.holds(&bad), cache.damaged()), (Some(4), None, 1));
    let stamp = Stamp::of(&fs::File::open(lab.blob_path(&good)).unwrap()).unwrap();
    assert_eq!(cache.index().blob(&good).unwrap().ctime_ns, stamp.ctime_ns, "the record was renewed");
    assert_eq!(fs::read(lab.folder.path().join("cache/quarantine").join(bad.hex())).unwrap(), b"BAD!");
    assert_eq!(lab.health.troubles()[0].code, "rot");
    let reading = cache.scrub_open(&good).unwrap();
    assert_eq!(cache.scrub_judge(reading, Err(std::io::ErrorKind::Other.into())), Verdict::Rotten);
    cache.pass_was_clean();
    assert!(lab.health.troubles().is_empty());
}

#[tokio::test]
async fn a_blob_that_cannot_be_read_is_doubted_once() {
    let lab = Lab::new();
    let cache = lab.open(1000);
    let digest = add(&cache, b"abc");
    let blob = cache.open_proven(&digest).await.unwrap();
    for _ in 0..2 {
        blob.read(3, 1).await.unwrap_err();
    }
    assert_eq!(cache.doubted(), [digest]);
    assert!(cache.doubted().is_empty());
}

#[test]
fn damaged_blobs_are_kept_up_to_a_hundredth_of_the_limit() {
    let lab = Lab::new();
    let cache = lab.open(1000);
    for n in 0..4 {
        let digest = add(&cache, &[n; 6]);
        cache.quarantine(&digest);
        assert!(!lab.blob_path(&digest).exists());
        let kept = fs::read_dir(lab.folder.path().join("cache/quarantine")).unwrap().count();
        assert_eq!(kept, 1, "two of six bytes are more than ten");
    }
    let large = add(&cache, &[9; 11]);
    cache.quarantine(&large);
    assert_eq!(fs::read_dir(lab.folder.path().join("cache/quarantine")).unwrap().count(), 1);
}
