//! The index as its users see it: what is put is there, also after the end of the process.

mod behind;
mod damage;
mod model;
#[cfg(feature = "sqlcipher")]
mod sealed;
mod trouble;

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderMap, HeaderValue};

use super::*;
use crate::clock::ManualClock;
use crate::http::StoredHead;
use crate::policy::{Answer, Variance};

/// When the tests happen.
const NOON: Timestamp = Timestamp::from_seconds(1_796_040_000);

fn open(folder: &Path) -> (Index, Opened) {
    open_with(folder, &Health::new()).unwrap()
}

fn open_with(folder: &Path, health: &Health) -> Result<(Index, Opened), IndexError> {
    let clock: SharedClock = ManualClock::new(NOON);
    Index::open(folder, clock, health.clone())
}

fn digest(number: u64) -> Digest {
    Digest::of(&number.to_be_bytes())
}

fn url(number: u64) -> UrlKey {
    UrlKey::from_bytes(*digest(number + 1_000_000).as_bytes())
}

fn blob(number: u64, size: u64) -> BlobRecord {
    BlobRecord {
        inode: u64::MAX - number,
        ctime_ns: 1_796_040_000_123_456_789,
        first_hand: true,
        ..BlobRecord::new(digest(number), size, NOON)
    }
}

/// The variant of a URL for one language, with a validator.
fn answer(of: u64, language: u64, tag: u64, age: u64, to: Option<u64>) -> ResourceRecord {
    let one = |name, value: &str| HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())]);
    let (vary, asked) = (http::header::VARY, http::header::ACCEPT_LANGUAGE);
    let variance =
        Variance::of(&one(vary, "accept-language"), &one(asked, &format!("x-{language}"))).unwrap();
    let head = StoredHead {
        status: 200,
        fields: vec![("etag".into(), format!("\"{tag}\"")), ("x".into(), "\u{e9}".into())],
    };
    let time = Timestamp(NOON.0 - age);
    ResourceRecord {
        resource_key: ResourceKey::of(&url(of), &variance, Some(&tag.to_string())),
        url_key: url(of),
        shown_url: format!("https://h/{of}?q=…"),
        variance,
        answer: Answer { head, request_time: time, response_time: time, ..Answer::default() },
        digest: to.map(digest),
        size: 7,
        first_hand: false,
        shareable: true,
    }
}

fn ban(address: IpAddr, until: Timestamp) -> BanRecord {
    BanRecord { address, reason: "forged token".into(), since: NOON, until, count: 2 }
}

fn ip(number: u32) -> IpAddr {
    IpAddr::V4(number.into())
}

#[test]
fn blobs_are_counted_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let (index, opened) = open(folder.path());
    assert!(opened.fresh);
    index.put_blob(blob(1, 100));
    index.put_blob(blob(2, 50));
    index.put_blob(blob(2, 60));
    index.used(&digest(1), NOON.plus(Duration::from_secs(9)));
    index.used(&digest(1), NOON);
    index.used(&digest(3), NOON);
    assert_eq!(index.totals(), Totals { blobs: 2, bytes: 160, again_bytes: 100 });
    index.remove_blob(&digest(2));
    let used = BlobRecord { hits: 2, last_used: NOON.plus(Duration::from_secs(9)), ..blob(1, 100) };
    assert_eq!(index.blob(&digest(1)).as_deref(), Some(&used));
    assert!(index.close());
    let (index, opened) = open(folder.path());
    assert!(!opened.fresh);
    assert_eq!(index.blobs(), [Arc::new(used)]);
    assert_eq!(index.totals(), Totals { blobs: 1, bytes: 100, again_bytes: 100 });
}

#[test]
fn a_variant_has_one_answer() {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = open(folder.path());
    index.put_resource(answer(1, 1, 1, 50, Some(9)));
    index.put_resource(answer(1, 2, 1, 40, Some(9)));
    index.put_resource(answer(2, 1, 1, 30, Some(9)));
    index.put_resource(answer(1, 1, 2, 20, None));
    assert_eq!(index.variants(&url(1)).len(), 2);
    assert_eq!(index.resource(&answer(1, 1, 1, 0, None).resource_key), None);
    assert_eq!(index.resources_of(&digest(9)).len(), 2);
    // a freshened answer keeps its name
    let fresh = answer(1, 1, 2, 5, Some(8));
    index.put_resource(fresh.clone());
    assert_eq!(index.resource(&fresh.resource_key).as_deref(), Some(&fresh));
    index.remove_url(&url(2));
    index.remove_resource(&answer(1, 2, 1, 0, None).resource_key);
    assert!(index.resources_of(&digest(9)).is_empty());
    assert!(index.close());
    assert_eq!(open(folder.path()).0.variants(&url(1)), [Arc::new(fresh)]);
}

#[test]
fn a_url_has_at_most_sixteen_variants() {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = open(folder.path());
    for language in 0..20 {
        // the fifth one is the oldest of all
        index.put_resource(answer(1, language, 1, if language == 5 { 1000 } else { 100 - language }, None));
    }
    let kept = index.variants(&url(1));
    let has = |language| kept.iter().any(|v| v.variance == answer(1, language, 1, 0, None).variance);
    assert_eq!(kept.len(), 16);
    assert!(!has(5) && !has(0) && !has(1) && !has(2) && has(3) && has(19));
    assert!(index.close());
    assert_eq!(open(folder.path()).0.variants(&url(1)).len(), 16);
}

#[test]
fn answers_are_bounded_and_those_with_a_blob_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = open(folder.path());
    let resources = &index.0.shelf.resources;
    resources.set_limit(32);
    for number in 0..40 {
        index.put_resource(answer(number, 1, 1, 1000 - number, (number < 20).then_some(number)));
    }
    assert!(index.flush());
    let kept = resources.all();
    assert!(kept.len() <= 32 && kept.len() >= 30, "{}", kept.len());
    assert_eq!(kept.iter().filter(|r| r.digest.is_some()).count(), 20);
    assert!(!resources.variants(&url(39)).is_empty());
}

#[test]
fn cuts_are_remembered_until_their_time() {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = open(folder.path());
    let (soon, late) = (NOON.plus(Duration::from_secs(60)), NOON.plus(Duration::from_secs(600)));
    index.put_cut(ip(1), &url(1), 500, soon);
    index.put_cut(ip(1), &url(1), 300, soon);
    index.put_cut(ip(2), &url(1), 700, Timestamp(NOON.0 - 1));
    index.put_cut("::ffff:0.0.0.3".parse().unwrap(), &url(1), 900, late);
    assert_eq!(index.cut(ip(1), &url(1), NOON), Some(500));
    assert_eq!(index.cut(ip(1), &url(1), soon), None);
    assert_eq!(index.cut(ip(1), &url(2), NOON), None);
    assert_eq!(index.cut(ip(2), &url(1), NOON), None);
    assert_eq!(index.cut(ip(3), &url(1), NOON), Some(900));
    assert!(index.close());
    let (index, _) = open(folder.path());
    assert_eq!(index.cut(ip(1), &url(1), NOON), Some(500));
    assert_eq!(index.0.state.cuts.len(), 2, "what had ended is gone");
}

#[test]
fn digests_in_other_algorithms_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = open(folder.path());
    let strong = Stated::parse(&format!("blake3:{}", "0c".repeat(32))).unwrap();
    let weak = Stated::parse(&format!("md5:{}", "0d".repeat(16))).unwrap();
    for stated in [strong, weak] {
        index.put_digest(stated, digest(1), NOON);
    }
    assert!(index.close());
    let (index, _) = open(folder.path());
    assert_eq!(index.blob_of(&strong.key()), Some(digest(1)));
    assert_eq!(index.blob_of(&weak.key()), None);
    assert_eq!(index.digest_of(&digest(1), weak.algorithm()), Some(weak));
}

#[test]
fn expectations_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = open(folder.path());
    let stated = |of: u64, text: &str| ExpectationRecord {
        url_key: url(of),
        digest: Stated::parse(text).unwrap(),
        size: (of == 1).then_some(77),
        stated_by: "http://h/SHA512SUMS".into(),
        stated_at: NOON,
    };
    let (long, short) = (format!("sha512:{}", "0a".repeat(64)), format!("md5:{}", "0b".repeat(16)));
    let (one, other) = (stated(1, &long), stated(2, &short));
    index.expect([one.clone(), other.clone(), stated(3, &short)]);
    index.drop_expectation(&url(3), &other.digest);
    assert!(index.close());
    let (index, _) = open(folder.path());
    assert_eq!(index.expectation(&url(1), NOON).as_deref(), Some(&one));
    assert_eq!(index.expectation(&url(2), NOON).as_deref(), Some(&other));
    assert_eq!(index.expectation(&url(3), NOON), None);
    assert_eq!(index.expectation(&url(1), NOON.plus(Duration::from_secs(40 * 86_400))), None);
}

#[test]
fn bans_and_settings_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = open(folder.path());
    let long = NOON.plus(Duration::from_secs(600));
    index.put_ban(ban("::ffff:10.0.0.9".parse().unwrap(), long));
    index.put_ban(ban("fe80::1".parse().unwrap(), NOON));
    index.put_ban(ban(ip(5), NOON));
    index.remove_ban("::ffff:0.0.0.5".parse().unwrap());
    index.put_setting("last-backup", "never");
    assert!(index.close());
    let (index, _) = open(folder.path());
    let mut bans = index.bans();
    bans.sort_by_key(|ban| ban.address);
    assert_eq!(
        bans,
        [ban("10.0.0.9".parse().unwrap(), long), ban("fe80::1".parse().unwrap(), NOON)].map(Arc::new)
    );
    assert_eq!(index.setting("last-backup").as_deref(), Some("never"));
    assert_eq!(index.setting("other"), None);
}

#[test]
fn bans_and_cuts_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = open(folder.path());
    for number in 0..10_001 {
        index.put_ban(ban(ip(number), NOON.plus(Duration::from_secs(u64::from(number)))));
    }
    let kept = index.bans();
    assert!(kept.len() <= 10_000 && kept.len() > 9_000);
    assert!(kept.iter().all(|ban| ban.address != ip(0)) && kept.iter().any(|ban| ban.address == ip(10_000)));
    for number in 0..100_001 {
        index.put_cut(ip(number), &url(1), 1, NOON.plus(Duration::from_secs(u64::from(number))));
    }
    assert!(index.0.state.cuts.len() <= 100_000);
    assert_eq!(index.cut(ip(100_000), &url(1), NOON), Some(1));
}

/// What each release wrote; none of it is ever written again.
#[test]
fn files_of_every_release_are_read() {
    let releases = ["tests/fixtures/index-v1", "tests/fixtures/index-v5", "tests/fixtures/index-v5-state-v4"];
    let releases = releases.map(|release| Path::new(env!("CARGO_MANIFEST_DIR")).join(release));
    assert!(releases.contains(&present_fixture()), "write the fixture of the present version");
    releases.iter().for_each(|release| files_are_read(release));
}

fn present_fixture() -> PathBuf {
    let (index, state) = (migrations::INDEX.version(), migrations::STATE.version());
    let folder = format!("tests/fixtures/index-v{index}-state-v{state}");
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

fn files_are_read(release: &Path) {
    let folder = tempfile::tempdir().unwrap();
    for file in ["index.db", "state.db"] {
        std::fs::copy(release.join(file), folder.path().join(file)).unwrap();
    }
    let (index, opened) = open(folder.path());
    assert!(!opened.fresh);
    assert_eq!((index.totals().blobs, index.totals().bytes), (2, 1000 + (1 << 40)));
    assert_eq!(index.blob(&digest(1)).as_deref(), Some(&BlobRecord { hits: 1, ..blob(1, 1000) }));
    assert_eq!(index.variants(&url(1)), [Arc::new(answer(1, 1, 1, 50, Some(1)))]);
    assert_eq!(index.variants(&url(2)), [Arc::new(answer(2, 1, 1, 40, None))]);
    assert_eq!(index.bans(), [Arc::new(ban("10.0.0.9".parse().unwrap(), NOON))]);
    assert_eq!(index.cut(ip(1), &url(1), NOON), Some(300));
    assert_eq!(index.setting("greeting").as_deref(), Some("hello"));
    // older releases knew none
    let blocks = if release == present_fixture() { vec![Arc::new(block())] } else { Vec::new() };
    assert_eq!(index.blocks(), blocks);
    assert!(index.close());
}

fn block() -> BlockRecord {
    BlockRecord {
        thing: BlockRecord::blob(&digest(3)),
        shown: "sha256:…".to_owned(),
        reason: "a bad one".to_owned(),
        since: NOON,
        because_of: "https://example.org/list".to_owned(),
    }
}

/// Writes the fixture of the present version: `cargo test --lib write_fixture -- --ignored`, once a version.
#[test]
#[ignore = "writes into the source tree"]
fn write_fixture() {
    let folder = present_fixture();
    if folder.exists() {
        println!("a released fixture is never written again");
        return;
    }
    let (index, _) = open(&folder);
    index.put_blob(blob(1, 1000));
    index.put_blob(BlobRecord {
        guarded: true,
        first_hand: false,
        ctime_ns: 0,
        inode: 0,
        ..blob(2, 1 << 40)
    });
    index.used(&digest(1), NOON);
    index.put_resource(answer(1, 1, 1, 50, Some(1)));
    index.put_resource(answer(2, 1, 1, 40, None));
    index.put_ban(ban("10.0.0.9".parse().unwrap(), NOON));
    index.put_cut(ip(1), &url(1), 300, NOON.plus(Duration::from_secs(7 * 86_400)));
    index.put_setting("greeting", "hello");
    assert!(index.put_block(block()));
    index.add_usage(UsageRecord::default(), NOON);
    assert!(index.close());
}

#[test]
fn the_backup_can_take_the_place_of_the_original() {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = open(folder.path());
    index.put_ban(ban(ip(1), NOON));
    let backup = index.backup_state().unwrap();
    index.put_ban(ban(ip(2), NOON));
    assert_eq!(index.backup_state().unwrap(), backup);
    assert!(index.close());
    let state = folder.path().join("state.db");
    std::fs::write(&state, b"no more").unwrap();
    let refusal = open_with(folder.path(), &Health::new()).unwrap_err().to_string();
    assert!(refusal.contains("state.db is damaged") && refusal.contains("state.db.backup"), "{refusal}");
    std::fs::rename(backup, state).unwrap();
    assert_eq!(open(folder.path()).0.bans().len(), 2);
}

#[test]
#[ignore = "prints how long things take"]
fn measure() {
    let clock = crate::clock::SystemClock::shared();
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = open(folder.path());
    let mut last = clock.instant();
    let mut lap = |what: &str| {
        let now = clock.instant();
        println!("{what}: {:?}", now.duration_since(last));
        last = clock.instant();
    };
    for number in 0..200_000 {
        index.put_blob(blob(number, number));
    }
    lap("put 200k blobs");
    assert!(index.flush());
    lap("flush");
    for number in 0..50_000 {
        index.put_resource(answer(number, 1, 1, 1, Some(number)));
    }
    lap("put 50k answers");
    assert!(index.flush());
    lap("flush");
    for number in 0..200_000 {
        index.used(&digest(number), NOON);
    }
    lap("200k used");
    assert!(index.close());
    lap("close");
    let (index, _) = open(folder.path());
    lap("open");
    assert_eq!(index.totals().blobs, 200_000);
    drop(index);
    let small = tempfile::tempdir().unwrap();
    lap("-");
    let index = open(small.path()).0;
    lap("open anew");
    assert!(index.close());
    lap("close");
    drop(open(small.path()));
    lap("open small");
}
