//! Questions to the administration, beside an nginx that answers with a fixed text.

use std::process::{Command, Stdio};

use super::Settings;
use super::figures::{Contender, head, rows, take_turns};
use super::load::{Door, answers, output};
use super::node::Description;
use super::programs::{SERVER, folder, free_port, nginx, place, write_file};

pub(crate) fn run(settings: &Settings) -> String {
    let folder = folder();
    let content = place(folder.path(), "content");
    write_file(&content.join("1k"), 1024);
    let origin = free_port();
    let rules = format!("server {{ listen 127.0.0.1:{origin}; root {}; }}", content.display());
    let _origin = nginx(folder.path(), "origin", SERVER, origin, &rules);
    let fixed = free_port();
    let rules =
        format!("server {{ listen 127.0.0.1:{fixed}; location / {{ return 200 '{{\"ok\":true}}'; }} }}");
    let fixed_program = nginx(folder.path(), "fixed", SERVER, fixed, &rules);
    let described = Description::write(folder.path(), "larder", "");
    let token = folder.path().join("larder/state/admin.token");
    let node = described.start(settings, SERVER);
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--fail", "-o", "/dev/null", "-x", &format!("127.0.0.1:{}", node.proxy)]);
    curl.arg(format!("http://127.0.0.1:{origin}/1k"));
    output(curl);
    let mut openssl = Command::new("openssl");
    openssl.args(["dgst", "-sha256", "-r"]).arg(content.join("1k")).stdin(Stdio::null());
    let digest = output(openssl).split_whitespace().next().unwrap().to_owned();
    let token = std::fs::read_to_string(token).unwrap().trim().to_owned();
    let door =
        |program, port, token: &str| Door { program, port, before: String::new(), token: token.to_owned() };
    let (ours, theirs) = (door(&node.program, node.admin, &token), door(&fixed_program, fixed, ""));
    let mut table = String::new();
    for (load, path) in
        [("/status", "/status".to_owned()), ("one row", format!("/api/v1/blobs/sha256:{digest}"))]
    {
        for connections in [10, 64, 150] {
            let path = &path;
            let turn = |door| answers(door, path, connections, settings, folder.path());
            let contenders = [("Larder", &ours), ("nginx return 200", &theirs)]
                .map(|(name, door)| Contender { name, turn: Box::new(move || turn(door)) });
            table += &rows(
                &format!("{load}, {connections} connections"),
                &take_turns(settings, contenders.into()),
            );
        }
    }
    let peak = node.program.peak();
    format!("{}{table}\nPeak memory: Larder {peak:.1} MiB.\n", head("answers/s", "server CPU: µs an answer"))
}
