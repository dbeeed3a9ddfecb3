//! How long a start takes, how much memory it needs and what a client feels, with little, much and very much held.
//!
//! What is held is real where it is asked for: a thousand files that came through the node. The rest are rows with
//! their answers, and files of the right length without content.

use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use larder::clock::{SystemClock, Timestamp};
use larder::digest::Digest;
use larder::http::StoredHead;
use larder::index::{BlobRecord, Index, ResourceRecord};
use larder::policy::{Answer, ResourceKey, UrlKey, Variance};
use larder::store::blob_path;
use larder::telemetry::Health;

use super::Settings;
use super::growth::{Latency, ask};
use super::node::{Description, is_ready};
use super::programs::{CLIENT, Program, SERVER, address, folder, free_port, memory_of, nginx, place};

const HELD: [(&str, u64); 4] = [("0", 0), ("1 000", 1_000), ("100 000", 100_000), ("1 800 000", 1_800_000)];
/// What is asked for, held and not.
const ASKED: usize = 1000;

pub(crate) fn run(settings: &Settings) -> String {
    let mut table = String::from(
        "| blobs | ms to ready (min–max) | memory when ready | 10 s later | at the end | ms to stop | \
         first hit in the first second, µs | hit read from the index, p50 / p99 µs | hit again, p50 / p99 µs | miss, p50 / p99 µs | \
         without Larder, p50 / p99 µs |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (name, count) in HELD.into_iter().filter(|(name, _)| name.contains(&settings.only)) {
        table += &row(settings, name, count);
    }
    table
}

/// A node, what it holds, and where that comes from.
struct Stage {
    node: Description,
    origin: u16,
    _origin: Program,
    _folder: tempfile::TempDir,
    is_empty: bool,
}

impl Stage {
    fn set(settings: &Settings, count: u64) -> Self {
        let folder = folder();
        let content = place(folder.path(), "content");
        for name in [names("held"), names("new")].concat() {
            std::fs::write(content.join(name.trim_start_matches('/')), name.repeat(100)).unwrap();
        }
        let origin = free_port();
        let rules = format!(
            "server {{ listen 127.0.0.1:{origin}; root {}; add_header Cache-Control \"public, max-age=864000\"; }}",
            content.display()
        );
        let program = nginx(folder.path(), "origin", CLIENT, origin, &rules);
        let node = Description::write(folder.path(), "larder", "");
        if count > 0 {
            let first = Running::start(&node, settings);
            ask(node.proxy(), &through(origin, "held"), origin);
            first.stop();
            fill(&folder.path().join("larder"), count.saturating_sub(ASKED as u64));
        }
        Self { node, origin, _origin: program, _folder: folder, is_empty: count == 0 }
    }

    /// What a client feels that asks for what is held, twice; nothing where nothing is.
    fn hits(&self) -> [Latency; 2] {
        let none = Latency { p50: 0.0, p99: 0.0 };
        let held = through(self.origin, "held");
        [(); 2].map(|()| if self.is_empty { none } else { ask(self.node.proxy(), &held, self.origin) })
    }

    fn first_hit(&self, round: usize) -> f64 {
        let held = through(self.origin, "held");
        let one = held.get(round..=round).unwrap();
        if self.is_empty { 0.0 } else { ask(self.node.proxy(), one, self.origin).p50 }
    }
}

fn names(kind: &str) -> Vec<String> {
    (0..ASKED).map(|number| format!("/{kind}{number}")).collect()
}

fn through(origin: u16, kind: &str) -> Vec<String> {
    names(kind).iter().map(|name| format!("http://127.0.0.1:{origin}{name}")).collect()
}

fn row(settings: &Settings, name: &str, count: u64) -> String {
    let stage = Stage::set(settings, count);
    let (mut ready, mut stops, mut first_hits) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..settings.rounds {
        let running = Running::start(&stage.node, settings);
        ready.push(running.ready);
        first_hits.push(stage.first_hit(round));
        stops.push(running.stop());
    }
    let running = Running::start(&stage.node, settings);
    ready.push(running.ready);
    first_hits.push(stage.first_hit(0));
    let at_once = running.memory();
    std::thread::sleep(Duration::from_secs(10));
    let later = running.memory();
    let [hit, again] = stage.hits();
    let miss = ask(stage.node.proxy(), &through(stage.origin, "new"), stage.origin);
    let direct = ask(stage.origin, &names("new"), stage.origin);
    // the first sweep over what is too old comes half a minute after the start
    std::thread::sleep(Duration::from_secs(35));
    let end = running.memory();
    stops.push(running.stop());
    let middle = |all: &mut Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(0.0)
    };
    let (median, stop, first) = (middle(&mut ready), middle(&mut stops), middle(&mut first_hits));
    let (least, most) = (ready.first().unwrap(), ready.last().unwrap());
    format!(
        "| {name} | {median:.0} ({least:.0}–{most:.0}) | {at_once:.0} MiB | {later:.0} MiB | {end:.0} MiB | {stop:.0} | \
         {first:.0} | {hit} | {again} | {miss} | {direct} |\n"
    )
}

/// A node that was started, and how long that took.
struct Running {
    child: Child,
    admin: u16,
    ready: f64,
}

impl Running {
    fn start(node: &Description, settings: &Settings) -> Self {
        let begun = Instant::now();
        let child = node.command(settings, SERVER).spawn().unwrap();
        while !is_ready(node.admin()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Self { child, admin: node.admin(), ready: begun.elapsed().as_secs_f64() * 1e3 }
    }

    fn memory(&self) -> f64 {
        memory_of(self.child.id(), "VmRSS:")
    }

    /// Milliseconds from the signal to the end.
    fn stop(mut self) -> f64 {
        let begun = Instant::now();
        std::process::Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        self.child.wait().unwrap();
        assert!(std::net::TcpStream::connect(address(self.admin)).is_err());
        begun.elapsed().as_secs_f64() * 1e3
    }
}

/// So many blobs more, each with the answer that led to it and a file of its length.
fn fill(home: &Path, count: u64) {
    let (index, _) = Index::open(&home.join("state"), SystemClock::shared(), Health::new()).unwrap();
    let now = Timestamp::from_seconds(1_796_000_000);
    for number in 0..count {
        let digest = Digest::of(&number.to_be_bytes());
        let file = blob_path(&home.join("cache"), &digest);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::File::create(&file).unwrap().set_len(100_000 + number % 1000).unwrap();
        index.put_blob(BlobRecord {
            inode: number + 1,
            ctime_ns: 1_796_000_000_000_000_000,
            last_used: Timestamp(now.0 + number),
            hits: number % 7,
            first_hand: true,
            ..BlobRecord::new(digest, 100_000 + number % 1000, now)
        });
        index.put_resource(answer(number, digest, now));
        if number % 20_000 == 19_999 {
            index.flush();
        }
    }
    while !index.flush() {}
    assert!(index.close());
}

fn answer(number: u64, digest: Digest, now: Timestamp) -> ResourceRecord {
    let field = |name: &str, value: String| (name.to_owned(), value);
    let head = StoredHead {
        status: 200,
        fields: vec![
            field("server", "nginx/1.22.1".into()),
            field("date", "Mon, 30 Nov 2026 18:09:43 GMT".into()),
            field("content-type", "application/octet-stream".into()),
            field("last-modified", "Mon, 30 Nov 2026 18:09:40 GMT".into()),
            field("etag", format!("\"{number:x}-{number}\"")),
            field("cache-control", "public, max-age=86400".into()),
            field("content-length", (100_000 + number % 1000).to_string()),
        ],
    };
    let url = UrlKey::from_bytes(*Digest::of(&[b"u", &number.to_be_bytes()[..]].concat()).as_bytes());
    let variance = Variance::default();
    ResourceRecord {
        resource_key: ResourceKey::of(&url, &variance, None),
        url_key: url,
        shown_url: format!("http://packages.example.org/pool/main/p/package-{number}_1.0-1_amd64.deb"),
        variance,
        answer: Answer { head, request_time: now, response_time: now, ..Answer::default() },
        digest: Some(digest),
        size: 100_000 + number % 1000,
        first_hand: true,
        shareable: true,
    }
}
