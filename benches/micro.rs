//! What small things cost that are done for every request or every frame: `cargo bench --bench micro`.
#![expect(clippy::unwrap_used, reason = "a benchmark ends by panicking")]

use std::hint::black_box;
use std::sync::Arc;

use divan::{Bencher, counter::BytesCount};
use http::{HeaderMap, HeaderValue, Method};
use larder::clock::{SystemClock, Timestamp};
use larder::digest::{Digest, Hasher};
use larder::http::{StoredHead, Target};
use larder::index::{BlobRecord, Index};
use larder::policy::{self, Answer, Rule, UrlKey};
use larder::range::RangeRequest;
use larder::seal::{BootId, Sealer, Secret, SiteKeys};
use larder::telemetry::Health;

fn main() {
    divan::main();
}

const URL: &str =
    "/http/deb.example.org/debian/pool/main/l/linux/linux-image-6.1.0-18-amd64_6.1.76-1_amd64.deb";
const NOON: Timestamp = Timestamp::from_seconds(1_796_040_000);

fn sealer() -> Sealer {
    let secret = Secret::parse(b"a secret of this benchmark alone, 32 bytes or more").unwrap();
    let keys = SiteKeys::derive("bench", &[secret]).unwrap();
    Sealer::new(keys, BootId::ephemeral().unwrap()).unwrap()
}

#[divan::bench]
fn seal_a_frame_of_200_bytes(bencher: Bencher<'_, '_>) {
    let (sealer, body) = (sealer(), [7; 200]);
    bencher.bench(|| sealer.seal(black_box(&body)).unwrap());
}

#[divan::bench]
fn open_a_frame_of_200_bytes(bencher: Bencher<'_, '_>) {
    let sealer = sealer();
    let frame = sealer.seal(&[7; 200]).unwrap();
    bencher.bench(|| sealer.open(black_box(&frame)).unwrap());
}

#[divan::bench]
fn refuse_a_frame_of_noise(bencher: Bencher<'_, '_>) {
    let (sealer, frame) = (sealer(), [7; 256]);
    bencher.bench(|| sealer.open(black_box(&frame)).is_err());
}

#[divan::bench]
fn hash_1_mib(bencher: Bencher<'_, '_>) {
    let bytes = vec![7; 1 << 20];
    bencher.counter(BytesCount::of_slice(&bytes)).bench(|| {
        let mut hasher = Hasher::new();
        hasher.update(black_box(&bytes));
        hasher.finish()
    });
}

#[divan::bench]
fn write_a_digest_in_hex(bencher: Bencher<'_, '_>) {
    let digest = Digest::of(b"a");
    bencher.bench(|| black_box(&digest).hex());
}

#[divan::bench]
fn read_a_digest_in_hex(bencher: Bencher<'_, '_>) {
    let text = Digest::of(b"a").hex();
    bencher.bench(|| Digest::from_hex(black_box(&text)).unwrap());
}

#[divan::bench]
fn parse_a_range() -> Option<RangeRequest> {
    RangeRequest::parse(black_box("bytes=1048576-2097151"))
}

#[divan::bench]
fn parse_a_prefixed_url() -> Target {
    Target::from_prefix(black_box(URL)).unwrap()
}

#[divan::bench]
fn make_a_url_key(bencher: Bencher<'_, '_>) {
    let target = Target::from_prefix(URL).unwrap();
    bencher.bench(|| UrlKey::of(black_box(&target), &[]));
}

#[divan::bench]
fn recognise_a_package(bencher: Bencher<'_, '_>) {
    let target = Target::from_prefix(URL).unwrap();
    bencher.bench(|| larder::ecosystem::classify(black_box(&target)));
}

#[divan::bench]
fn plan_a_hit(bencher: Bencher<'_, '_>) {
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let head = StoredHead {
        status: 200,
        fields: vec![
            field("date", "Mon, 30 Nov 2026 11:59:00 GMT"),
            field("etag", "\"a\""),
            field("cache-control", "public, max-age=86400"),
        ],
    };
    let answer = Answer { head, request_time: NOON, response_time: NOON, ..Answer::default() };
    let mut request = HeaderMap::new();
    request.insert("user-agent", HeaderValue::from_static("bench"));
    let (rule, week) = (Rule::default(), std::time::Duration::from_secs(7 * 86_400));
    bencher.bench(|| policy::plan(&Method::GET, black_box(&request), Some(&answer), &rule, NOON, week));
}

fn record(number: u64) -> BlobRecord {
    BlobRecord {
        inode: 1,
        ctime_ns: 1,
        first_hand: true,
        ..BlobRecord::new(Digest::of(&number.to_be_bytes()), 1, NOON)
    }
}

#[divan::bench(args = [1_000, 100_000])]
fn look_up_a_blob(bencher: Bencher<'_, '_>, held: u64) {
    let folder = tempfile::tempdir().unwrap();
    let (index, _) = Index::open(folder.path(), SystemClock::shared(), Health::new()).unwrap();
    (0..held).for_each(|number| index.put_blob(record(number)));
    let digests: Arc<[Digest]> = (0..held).map(|number| Digest::of(&number.to_be_bytes())).collect();
    let mut at = 0;
    bencher.bench_local(|| {
        at = (at + 7919) % digests.len();
        index.held(digests.get(at).unwrap())
    });
    index.close();
}

#[divan::bench]
fn write_a_record_as_json(bencher: Bencher<'_, '_>) {
    let answer = Answer { request_time: NOON, response_time: NOON, ..Answer::default() };
    bencher.bench(|| serde_json::to_vec(black_box(&answer)).unwrap());
}
