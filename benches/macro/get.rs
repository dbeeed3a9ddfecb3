//! One large file to disk, judged by its SHA-256, beside the programs people use for it.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::Settings;
use super::figures::{Contender, Sample, head, rows, take_turns};
use super::load::output;
use super::node::Description;
use super::programs::{folder, free_port, nginx, place, write_file};

const SIZE: u64 = 1 << 30;
const BOTH: &str = "0,1";

/// What the shell runs in one turn.
type Line<'a> = Box<dyn Fn(usize) -> String + 'a>;

pub(crate) fn run(settings: &Settings) -> String {
    let folder = folder();
    let content = place(folder.path(), "content");
    write_file(&content.join("large"), SIZE);
    let mut openssl = Command::new("openssl");
    openssl.args(["dgst", "-sha256", "-r"]).arg(content.join("large"));
    let digest = output(openssl).split_whitespace().next().unwrap().to_owned();
    let port = free_port();
    let rules = format!("server {{ listen 127.0.0.1:{port}; root {}; }}", content.display());
    let _origin = nginx(folder.path(), "origin", BOTH, port, &rules);
    let alone = Description::write(folder.path(), "alone", "");
    let served = Description::write(folder.path(), "served", "");
    let (alone, through) = (alone.file(), served.file());
    let _node = served.start(settings, BOTH);
    let case = Case { settings, folder: folder.path(), digest: &digest, port };
    let contenders: [(&str, Line<'_>); 6] = [
        ("larder get, in-process", Box::new(|number| case.larder(&alone, number))),
        ("larder get, by the daemon", Box::new(|number| case.larder(&through, number))),
        ("curl, then openssl dgst", Box::new(|number| case.curl_and_openssl(number))),
        ("aria2c --checksum", Box::new(|number| case.aria2c(number))),
        ("curl (not verified)", Box::new(|number| format!("curl -sS --fail -o kept {}", case.url(number)))),
        ("wget (not verified)", Box::new(|number| format!("wget -q -O kept {}", case.url(number)))),
    ];
    let contenders = contenders.into_iter().map(|(name, line)| {
        let mut number = 0;
        let case = &case;
        let turn = move || {
            number += 1;
            case.run(&line(number))
        };
        Contender { name, turn: Box::new(turn) }
    });
    let table = rows("1 GiB", &take_turns(settings, contenders.collect()));
    let own = case.peak(&case.larder(&alone, 999));
    format!("{}{table}\nPeak memory of `larder get` in-process: {own:.1} MiB.\n", head("MB/s", "CPU: s a GB"))
}

struct Case<'a> {
    settings: &'a Settings,
    folder: &'a Path,
    digest: &'a str,
    port: u16,
}

impl Case<'_> {
    fn url(&self, number: usize) -> String {
        format!("http://127.0.0.1:{}/large?{number}", self.port)
    }

    fn larder(&self, config: &Path, number: usize) -> String {
        let (program, url) = (&self.settings.larder, self.url(number));
        format!("{program} --config {} get --digest sha256:{} {url} -o kept", config.display(), self.digest)
    }

    fn curl_and_openssl(&self, number: usize) -> String {
        let url = self.url(number);
        format!("curl -sS --fail -o kept {url} && openssl dgst -sha256 -r kept | grep -q {}", self.digest)
    }

    fn aria2c(&self, number: usize) -> String {
        let url = self.url(number);
        format!("aria2c -q --file-allocation=none --checksum=sha-256={} -d . -o kept {url}", self.digest)
    }

    /// Processor time is that of all that ran for it, as the shell adds it up.
    fn run(&self, line: &str) -> Sample {
        let script = format!("rm -rf kept*; cd .; {line}");
        let (start, before) = (Instant::now(), children());
        output(self.shell(&script));
        let took = start.elapsed().as_secs_f64();
        let spent = children() - before;
        output(Command::new("sync"));
        Sample { rate: SIZE as f64 / took / 1e6, cpu: spent / SIZE as f64 * 1e9 }
    }

    fn peak(&self, line: &str) -> f64 {
        let peak = self.folder.join("peak");
        output(self.shell(&format!("rm -rf kept*; {line} & p=$!; m=0; \
            while r=$(grep VmHWM /proc/$p/status 2>/dev/null); do m=$r; sleep 0.02; done; wait $p; echo $m > {}", peak.display())));
        let text = std::fs::read_to_string(peak).unwrap();
        text.split_whitespace().nth(1).map_or(f64::NAN, |kib| kib.parse::<f64>().unwrap() / 1024.0)
    }

    fn shell(&self, script: &str) -> Command {
        let mut shell = Command::new("bash");
        shell.args(["-c", script]).current_dir(self.folder).stdin(std::process::Stdio::null());
        for name in ["http_proxy", "https_proxy", "all_proxy"] {
            shell.env_remove(name).env_remove(name.to_uppercase());
        }
        shell
    }
}

/// Processor time of all programs that this one started and that have ended.
fn children() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = text.rsplit_once(") ").unwrap();
    let mut fields = fields.split(' ').skip(13).map(|field| field.parse::<f64>().unwrap());
    (fields.next().unwrap() + fields.next().unwrap()) / 100.0
}
