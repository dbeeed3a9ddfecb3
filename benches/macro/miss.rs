//! What is not held: received, hashed, stored and given out at once, beside other caches and no cache at all.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::Settings;
use super::figures::{Contender, Sample, head, rows, take_turns};
use super::hit::caching;
use super::load::output;
use super::node::{Description, Node};
use super::programs::{Program, folder, free_port, nginx, place, squid, write_file};

/// Both cores: origin, cache and client share them.
const BOTH: &str = "0,1";
/// The large thing.
const LARGE: u64 = 2 << 30;
/// How many small things there are in one turn.
const SMALL: usize = 2000;

struct Field {
    larder: Node,
    cache: (Program, u16),
    squid: (Program, u16),
    origin: (Program, u16),
    digest: String,
}

pub(crate) fn run(settings: &Settings) -> String {
    let folder = folder();
    let field = Field::start(settings, folder.path());
    let mut table = String::new();
    if "large".contains(&settings.only) {
        table += &field.large(settings, folder.path());
    }
    for (load, connections) in [("one", 1), ("fifty", 50)] {
        if load.contains(&settings.only) {
            table += &field.small(settings, connections);
        }
    }
    let peak = format!(
        "Peak memory: Larder {:.1} MiB, nginx {:.1} MiB, squid {:.1} MiB.",
        field.larder.program.peak(),
        field.cache.0.peak(),
        field.squid.0.peak()
    );
    format!("{}{table}\n{peak}\n", head("MB/s or files/s", "server CPU: s a GB, or µs a file"))
}

impl Field {
    fn start(settings: &Settings, folder: &Path) -> Self {
        let content = place(folder, "content");
        write_file(&content.join("large"), LARGE);
        let text = output({
            let mut command = Command::new("openssl");
            command.args(["dgst", "-sha256", "-r"]).arg(content.join("large"));
            command
        });
        let digest = text.split_whitespace().next().unwrap().to_owned();
        let origin = free_port();
        let root = content.display();
        // every query is a thing of its own, and below /s/ every name leads to bytes of its own
        let quarter = "x".repeat(1000);
        let rules = format!(
            "server {{ listen 127.0.0.1:{origin}; root {root}; add_header Cache-Control \"public, max-age=86400\";\n\
             set $x \"{quarter}\"; location /s/ {{ return 200 \"$request_uri $x$x$x$x\"; }} }}"
        );
        let origin = (nginx(folder, "origin", BOTH, origin, &rules), origin);
        let cache = free_port();
        let cache = (nginx(folder, "cache", BOTH, cache, &caching(folder, cache, origin.1)), cache);
        let port = free_port();
        let squid = (squid(folder, BOTH, port), port);
        let larder = Description::write(folder, "larder", "").start(settings, BOTH);
        Self { larder, cache, squid, origin, digest }
    }

    fn large(&self, settings: &Settings, folder: &Path) -> String {
        let contenders = [
            ("Larder", Some((&self.larder.program, self.larder.proxy, true)), false),
            ("Larder, digest stated", Some((&self.larder.program, self.larder.proxy, true)), true),
            ("nginx proxy_cache", Some((&self.cache.0, self.cache.1, false)), false),
            ("squid", Some((&self.squid.0, self.squid.1, true)), false),
            ("curl -o", None, false),
        ];
        let mut turn = 0;
        let mut turns = std::iter::repeat_with(move || {
            turn += 1;
            turn
        });
        let numbers: Vec<usize> = turns.by_ref().take(contenders.len()).collect();
        let contenders = contenders.into_iter().zip(numbers).map(|((name, door, stated), first)| {
            let mut number = first;
            let turn = move || {
                number += 100;
                let mut curl = Command::new("curl");
                curl.args(["-sS", "--fail"]);
                let mut port = self.origin.1;
                match door {
                    Some((_, own, true)) => curl.arg("-x").arg(format!("127.0.0.1:{own}")),
                    Some((_, own, false)) => {
                        port = own;
                        &mut curl
                    }
                    None => &mut curl,
                };
                if door.is_some_and(|(_, own, _)| own == self.larder.proxy) {
                    // the same bytes under another name would be no miss
                    let mut gc = Command::new(&settings.larder);
                    gc.arg("--config").arg(folder.join("larder/larder.toml")).args(["gc", "--to", "0"]);
                    output(gc);
                }
                if stated {
                    curl.arg("-H").arg(format!("Larder-Digest: sha256:{}", self.digest));
                }
                // a client that keeps it, or one whose cache does
                let to = if door.is_some() { "/dev/null".into() } else { folder.join("kept") };
                curl.arg("-o").arg(to).arg(format!("http://127.0.0.1:{port}/large?{number}"));
                let before = door.map_or(0.0, |(program, ..)| program.cpu());
                let start = Instant::now();
                output(curl);
                let took = start.elapsed().as_secs_f64();
                let spent = door.map_or(f64::NAN, |(program, ..)| program.cpu()) - before;
                // the disk has its own time
                output(Command::new("sync"));
                Sample { rate: LARGE as f64 / took / 1e6, cpu: spent / LARGE as f64 * 1e9 }
            };
            Contender { name, turn: Box::new(turn) }
        });
        rows("2 GiB", &take_turns(settings, contenders.collect()))
    }

    fn small(&self, settings: &Settings, connections: usize) -> String {
        let through = format!("http://127.0.0.1:{}", self.origin.1);
        let contenders = [
            ("Larder", &self.larder.program, self.larder.proxy, through.as_str()),
            ("nginx proxy_cache", &self.cache.0, self.cache.1, ""),
            ("squid", &self.squid.0, self.squid.1, through.as_str()),
            ("direct", &self.origin.0, self.origin.1, ""),
        ];
        let contenders = contenders.into_iter().map(|(name, program, port, before)| {
            let mut number = 0;
            let turn = move || {
                number += 1;
                let own = std::env::current_exe().unwrap();
                let mut client = Command::new(own);
                let target = format!("{before}/s/{connections}/{number}/");
                client.args(["fetch", &format!("127.0.0.1:{port}"), &target]);
                client.args([SMALL.to_string(), connections.to_string()]);
                let before = program.cpu();
                let text = output(client);
                let spent = program.cpu() - before;
                let took: f64 = text.split_whitespace().next().unwrap().parse().unwrap();
                std::thread::sleep(settings.turn / 2);
                Sample { rate: SMALL as f64 / took, cpu: spent / SMALL as f64 * 1e6 }
            };
            Contender { name, turn: Box::new(turn) }
        });
        let load = format!("{SMALL} × 4 KiB, {connections} connections");
        rows(&load, &take_turns(settings, contenders.collect()))
    }
}
