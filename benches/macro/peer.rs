//! From a neighbour to a client: proved, stored and given out, beside one stream that is received and hashed.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::Settings;
use super::figures::{Contender, Sample, head, rows, take_turns};
use super::load::output;
use super::node::{Description, Node};
use super::programs::{Program, folder, free_port, nginx, place, write_file};

const BOTH: &str = "0,1";
const LARGE: u64 = 2 << 30;
const MANY: usize = 100;

/// A node that holds the thing and one that asks for it.
struct Pair {
    _holder: Node,
    asker: Node,
}

pub(crate) fn run(settings: &Settings) -> String {
    let folder = folder();
    let content = place(folder.path(), "content");
    write_file(&content.join("large"), LARGE);
    for number in 0..MANY {
        write_file(&content.join(format!("small-{number}")), 20 * 1024);
    }
    let (clear, closed) = (free_port(), free_port());
    let (origin, secure) = (origin(folder.path(), clear), secure(folder.path(), closed));
    let mut table = String::new();
    for (tls, theirs) in [("pinned", &secure), ("off", &origin)] {
        let name = format!("tls {tls}");
        if !name.contains(&settings.only) {
            continue;
        }
        let case = Case { settings, folder: folder.path(), clear, closed };
        table += &case.large(tls, theirs);
        table += &case.many(tls, &origin);
    }
    format!("{}{table}", head("MB/s or files/s", "receiver's CPU: s a GB, or µs a file"))
}

fn origin(folder: &Path, port: u16) -> Program {
    let root = folder.join("content");
    let rules = format!(
        "server {{ listen 127.0.0.1:{port}; root {}; add_header Cache-Control \"public, max-age=86400\"; }}",
        root.display()
    );
    nginx(folder, "origin", BOTH, port, &rules)
}

fn secure(folder: &Path, port: u16) -> Program {
    let (key, certificate) = (folder.join("key.pem"), folder.join("cert.pem"));
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
    openssl
        .args(["-subj", "/CN=127.0.0.1", "-days", "30", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate);
    output(openssl);
    let rules = format!(
        "server {{ listen 127.0.0.1:{port} ssl; root {}; ssl_certificate {}; ssl_certificate_key {}; }}",
        folder.join("content").display(),
        certificate.display(),
        key.display()
    );
    nginx(folder, "secure", BOTH, port, &rules)
}

struct Case<'a> {
    settings: &'a Settings,
    folder: &'a Path,
    clear: u16,
    closed: u16,
}

impl Case<'_> {
    /// Two nodes that see each other; the first has had `names` from the origin.
    fn pair(&self, tls: &str, number: usize, names: &[String]) -> Pair {
        let place = place(self.folder, &format!("{tls}-{number}-{}", names.len()));
        std::fs::write(place.join("secret"), "a secret of this benchmark alone, 32 bytes or more").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(place.join("secret"), mode).unwrap();
        let port = free_port();
        let start = |name: &str, host: u8| {
            let more = format!(
                "secret_file = \"{}\"\npeers.port = {port}\npeers.listen = [\"127.0.9.{host}:{port}\"]\n\
                 peers.broadcast = [\"127.255.255.255:{port}\"]\npeers.tls = \"{tls}\"\n",
                place.join("secret").display()
            );
            Description::write(&place, name, &more).start(self.settings, BOTH)
        };
        let holder = start("holder", 1);
        for name in names {
            self.through(&holder, name, None);
        }
        let asker = start("asker", 2);
        let peers = || output(self.larder(&place.join("asker/larder.toml"), &["peers"]));
        let patience = Instant::now() + Duration::from_secs(20);
        while !peers().contains("holder") {
            assert!(Instant::now() < patience, "the nodes find each other");
            std::thread::sleep(Duration::from_millis(100));
        }
        Pair { _holder: holder, asker }
    }

    fn larder(&self, config: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(&self.settings.larder);
        command.arg("--config").arg(config).args(words).env_remove("LARDER_SECRET");
        command
    }

    fn through(&self, node: &Node, name: &str, digest: Option<&str>) {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--fail", "-o", "/dev/null", "-x", &format!("127.0.0.1:{}", node.proxy)]);
        if let Some(digest) = digest {
            curl.arg("-H").arg(format!("Larder-Digest: sha256:{digest}"));
        }
        curl.arg(format!("http://127.0.0.1:{}/{name}", self.clear));
        output(curl);
    }

    fn digest(&self, name: &str) -> String {
        let mut openssl = Command::new("openssl");
        openssl.args(["dgst", "-sha256", "-r"]).arg(self.folder.join("content").join(name));
        output(openssl).split_whitespace().next().unwrap().to_owned()
    }

    fn large(&self, tls: &str, theirs: &Program) -> String {
        let digest = self.digest("large");
        let mut number = 0;
        let ours = || {
            number += 1;
            let pair = self.pair(tls, number, &["large".to_owned()]);
            output(Command::new("sync"));
            let (start, before) = (Instant::now(), pair.asker.program.cpu());
            self.through(&pair.asker, "large", Some(&digest));
            let took = start.elapsed().as_secs_f64();
            let spent = pair.asker.program.cpu() - before;
            drop(pair);
            // the room is needed again
            std::fs::remove_dir_all(self.folder.join(format!("{tls}-{number}-1"))).unwrap();
            Sample { rate: LARGE as f64 / took / 1e6, cpu: spent / LARGE as f64 * 1e9 }
        };
        let (scheme, port) = if tls == "off" { ("http", self.clear) } else { ("https", self.closed) };
        let stream = || {
            let kept = self.folder.join("kept");
            let script = format!(
                "curl -sSk --fail {scheme}://127.0.0.1:{port}/large | tee {} | openssl dgst -sha256",
                kept.display()
            );
            output(Command::new("sync"));
            let (start, before) = (Instant::now(), theirs.cpu());
            let mut shell = Command::new("bash");
            shell.args(["-c", &script]);
            assert!(output(shell).contains(&digest));
            let took = start.elapsed().as_secs_f64();
            Sample { rate: LARGE as f64 / took / 1e6, cpu: (theirs.cpu() - before) / LARGE as f64 * 1e9 }
        };
        let contenders = vec![
            Contender { name: "Larder to Larder to curl", turn: Box::new(ours) },
            Contender { name: "nginx to curl | tee | openssl dgst", turn: Box::new(stream) },
        ];
        rows(&format!("2 GiB, tls {tls}"), &take_turns(self.settings, contenders))
    }

    /// One after another, each over a connection of the client's own.
    fn many(&self, tls: &str, origin: &Program) -> String {
        let names: Vec<String> = (0..MANY).map(|number| format!("small-{number}")).collect();
        let mut number = 0;
        let curl = |proxy: Option<u16>| {
            let mut curl = Command::new("curl");
            curl.args(["-sS", "--fail", "-o", "/dev/null"]);
            if let Some(proxy) = proxy {
                curl.arg("-x").arg(format!("127.0.0.1:{proxy}"));
            }
            for name in &names {
                curl.args(["-o", "/dev/null"]).arg(format!("http://127.0.0.1:{}/{name}", self.clear));
            }
            let start = Instant::now();
            output(curl);
            start.elapsed().as_secs_f64()
        };
        let ours = || {
            number += 1;
            let pair = self.pair(tls, number, &names);
            let before = pair.asker.program.cpu();
            let took = curl(Some(pair.asker.proxy));
            Sample { rate: MANY as f64 / took, cpu: (pair.asker.program.cpu() - before) / MANY as f64 * 1e6 }
        };
        let direct = || {
            let before = origin.cpu();
            let took = curl(None);
            Sample { rate: MANY as f64 / took, cpu: (origin.cpu() - before) / MANY as f64 * 1e6 }
        };
        let contenders = vec![
            Contender { name: "Larder to Larder to curl", turn: Box::new(ours) },
            Contender { name: "nginx to curl", turn: Box::new(direct) },
        ];
        rows(&format!("{MANY} × 20 KiB, tls {tls}"), &take_turns(self.settings, contenders))
    }
}
