//! How long a start takes, and how much memory it needs, with nothing, much and very much held.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use larder::clock::{SystemClock, Timestamp};
use larder::digest::Digest;
use larder::http::StoredHead;
use larder::index::{BlobRecord, Index, ResourceRecord};
use larder::policy::{Answer, ResourceKey, UrlKey, Variance};
use larder::telemetry::Health;

use super::Settings;
use super::node::{Description, is_ready};
use super::programs::{SERVER, address, folder, memory_of};

const HELD: [(&str, u64); 3] = [("0", 0), ("100 000", 100_000), ("1 800 000", 1_800_000)];

pub(crate) fn run(settings: &Settings) -> String {
    let mut table = String::from(
        "| blobs | ms to ready (min–max) | memory when ready | memory 5 s later |\n|---|---|---|---|\n",
    );
    for (name, count) in HELD.into_iter().filter(|(name, _)| name.contains(&settings.only)) {
        let folder = folder();
        let node = Description::write(folder.path(), "larder", "");
        if count > 0 {
            fill(&folder.path().join("larder/state"), count);
        }
        let mut all: Vec<(f64, f64, f64)> =
            (0..settings.rounds).map(|_| start(&node, settings, count > 0)).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (least, median, most) =
            (all.first().unwrap(), all.get(all.len() / 2).unwrap(), all.last().unwrap());
        let _to_a_string = writeln!(
            table,
            "| {name} | {:.0} ({:.0}–{:.0}) | {:.0} MiB | {:.0} MiB |",
            median.0, least.0, most.0, median.1, median.2
        );
    }
    table
}

fn start(node: &Description, settings: &Settings, waits: bool) -> (f64, f64, f64) {
    let begun = Instant::now();
    let mut child = node.command(settings, SERVER).spawn().unwrap();
    while !is_ready(node.admin()) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let took = begun.elapsed().as_secs_f64() * 1e3;
    let ready = memory_of(child.id(), "VmRSS:");
    if waits {
        std::thread::sleep(Duration::from_secs(5));
    }
    let later = memory_of(child.id(), "VmRSS:");
    std::process::Command::new("kill").arg(child.id().to_string()).status().unwrap();
    child.wait().unwrap();
    assert!(std::net::TcpStream::connect(address(node.admin())).is_err());
    (took, ready, later)
}

/// An index of so many blobs, each with the answer that led to it, as far as answers are kept.
fn fill(state: &Path, count: u64) {
    std::fs::create_dir_all(state).unwrap();
    let (index, _) = Index::open(state, SystemClock::shared(), Health::new()).unwrap();
    let now = Timestamp::from_seconds(1_796_000_000);
    let field = |name: &str, value: String| (name.to_owned(), value);
    for number in 0..count {
        let digest = Digest::of(&number.to_be_bytes());
        index.put_blob(BlobRecord {
            digest,
            size: 100_000 + number,
            inode: number,
            ctime_ns: 1_796_000_000_000_000_000,
            stored_at: now,
            last_used: now,
            hits: number % 7,
            first_hand: true,
            guarded: false,
        });
        let head = StoredHead {
            status: 200,
            fields: vec![
                field("server", "nginx/1.22.1".into()),
                field("date", "Mon, 30 Nov 2026 18:09:43 GMT".into()),
                field("content-type", "application/octet-stream".into()),
                field("last-modified", "Mon, 30 Nov 2026 18:09:40 GMT".into()),
                field("etag", format!("\"{number:x}-{number}\"")),
                field("cache-control", "public, max-age=86400".into()),
                field("content-length", (100_000 + number).to_string()),
            ],
        };
        let url = UrlKey::from_bytes(*Digest::of(&[b"u", &number.to_be_bytes()[..]].concat()).as_bytes());
        let variance = Variance::default();
        index.put_resource(ResourceRecord {
            resource_key: ResourceKey::of(&url, &variance, None),
            url_key: url,
            shown_url: format!("http://packages.example.org/pool/main/p/package-{number}_1.0-1_amd64.deb"),
            variance,
            answer: Answer { head, request_time: now, response_time: now, ..Answer::default() },
            digest: Some(digest),
            size: 100_000 + number,
            first_hand: true,
            shareable: true,
        });
        if number % 100_000 == 99_999 {
            index.flush();
        }
    }
    while !index.flush() {}
    index.close();
    drop(Arc::new(index));
}
