//! What is held, given out again: one core, content in memory, beside nginx and squid.

use std::path::Path;

use super::Settings;
use super::figures::{Contender, Sample, head, rows, take_turns};
use super::load::{Door, answers, bytes};
use super::node::{Description, Node};
use super::programs::{CLIENT, Program, SERVER, folder, free_port, nginx, place, squid, write_file};

const SIZES: [(&str, &str, u64); 3] =
    [("1 KiB", "/1k", 1 << 10), ("1 MiB", "/1m", 1 << 20), ("100 MiB", "/100m", 100 << 20)];
const CONNECTIONS: [usize; 2] = [10, 150];

struct Field {
    larder: Node,
    cache: (Program, u16),
    still: (Program, u16),
    squid: (Program, u16),
    origin: (Program, u16),
}

pub(crate) fn run(settings: &Settings) -> String {
    let folder = folder();
    let field = Field::start(settings, folder.path());
    let [ours, cache, still, squid] = field.doors();
    let names = ["Larder", "nginx proxy_cache", "nginx static", "squid"];
    let mut table = String::new();
    for (size, path, _) in SIZES {
        for connections in CONNECTIONS {
            let load = format!("{size}, {connections} connections");
            if !load.contains(&settings.only) {
                continue;
            }
            let turn = |door| match size {
                "1 KiB" => answers(door, path, connections, settings, folder.path()),
                _ => bytes(door, path, connections, settings),
            };
            let contenders = names.into_iter().zip([&ours, &cache, &still, &squid]);
            let contenders = contenders
                .map(|(name, door)| Contender { name, turn: Box::new(move || -> Sample { turn(door) }) });
            table += &rows(&load, &take_turns(settings, contenders.collect()));
        }
    }
    let peaks = names.into_iter().zip([&ours, &cache, &still, &squid]);
    let peaks: Vec<String> =
        peaks.map(|(name, door)| format!("{name} {:.1} MiB", door.program.peak())).collect();
    let head = head("answers/s or MB/s", "server CPU: µs an answer, or s a GB");
    format!("{head}{table}\nPeak memory after all of it: {}.\n", peaks.join(", "))
}

impl Field {
    fn start(settings: &Settings, folder: &Path) -> Self {
        let content = place(folder, "content");
        for (_, path, size) in SIZES {
            write_file(&content.join(path.trim_start_matches('/')), size);
        }
        let origin = free_port();
        let root = content.display();
        let rules = format!(
            "server {{ listen 127.0.0.1:{origin}; root {root}; add_header Cache-Control \"public, max-age=86400\"; }}"
        );
        let origin = (nginx(folder, "origin", CLIENT, origin, &rules), origin);
        let still = free_port();
        let rules = format!("server {{ listen 127.0.0.1:{still}; root {root}; }}");
        let still = (nginx(folder, "static", SERVER, still, &rules), still);
        let cache = free_port();
        let cache = (nginx(folder, "cache", SERVER, cache, &caching(folder, cache, origin.1)), cache);
        let squid_port = free_port();
        let squid = (squid(folder, SERVER, squid_port), squid_port);
        let larder = Description::write(folder, "larder", "").start(settings, SERVER);
        Self { larder, cache, still, squid, origin }
    }

    /// Larder, nginx proxy_cache, nginx static, squid.
    fn doors(&self) -> [Door<'_>; 4] {
        let through = format!("http://127.0.0.1:{}", self.origin.1);
        let door = |program, port, before: &str| Door {
            program,
            port,
            before: before.to_owned(),
            token: String::new(),
        };
        [
            door(&self.larder.program, self.larder.proxy, &through),
            door(&self.cache.0, self.cache.1, ""),
            door(&self.still.0, self.still.1, ""),
            door(&self.squid.0, self.squid.1, &through),
        ]
    }
}

/// The directives of an nginx that keeps what passes.
pub(crate) fn caching(folder: &Path, port: u16, origin: u16) -> String {
    let kept = place(folder, "cache/cache/kept");
    format!(
        "proxy_cache_path {} levels=1:2 keys_zone=k:32m max_size=20g use_temp_path=off;\n\
         server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{origin}; proxy_cache k;\n\
         proxy_cache_valid 200 1d; proxy_http_version 1.1; proxy_set_header Connection \"\"; \
         proxy_max_temp_file_size 8192m; }} }}",
        kept.display()
    )
}
