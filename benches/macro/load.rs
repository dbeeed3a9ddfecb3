//! Loads: how many answers, how many bytes, at what cost for the server.

use std::path::Path;
use std::process::Command;

use super::Settings;
use super::figures::Sample;
use super::programs::{CLIENT, Program, pinned};

/// Where a load goes.
pub(crate) struct Door<'a> {
    /// Who answers.
    pub(crate) program: &'a Program,
    /// Its port.
    pub(crate) port: u16,
    /// What stands in the request line before the path: empty, or `http://origin` for a proxy.
    pub(crate) before: String,
    /// What proves an administrator; empty where nobody asks.
    pub(crate) token: String,
}

/// Answers a second, as wrk counts them.
pub(crate) fn answers(
    door: &Door<'_>,
    path: &str,
    connections: usize,
    settings: &Settings,
    folder: &Path,
) -> Sample {
    let script = folder.join("wrk.lua");
    let token = match door.token.as_str() {
        "" => String::new(),
        token => format!("wrk.headers[\"Authorization\"] = \"Bearer {token}\"\n"),
    };
    std::fs::write(&script, format!("wrk.path = \"{}{path}\"\n{token}", door.before)).unwrap();
    let seconds = settings.turn.as_secs().max(1);
    let mut wrk = pinned(CLIENT, "wrk");
    wrk.args(["-t1", &format!("-c{connections}"), &format!("-d{seconds}s"), "-s"]).arg(&script);
    wrk.arg(format!("http://127.0.0.1:{}/", door.port));
    let before = door.program.cpu();
    let text = output(wrk);
    let spent = door.program.cpu() - before;
    assert!(!text.contains("Non-2xx"), "{text}");
    let rate = text.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:")).unwrap();
    let rate: f64 = rate.trim().parse().unwrap();
    let count: f64 =
        text.split_once(" requests in").unwrap().0.split_whitespace().last().unwrap().parse().unwrap();
    Sample { rate, cpu: spent / count * 1e6 }
}

/// Megabytes a second, and processor seconds of the server for each gigabyte.
pub(crate) fn bytes(door: &Door<'_>, path: &str, connections: usize, settings: &Settings) -> Sample {
    let own = std::env::current_exe().unwrap().display().to_string();
    let mut client = pinned(CLIENT, &own);
    let (target, seconds) = (format!("{}{path}", door.before), settings.turn.as_secs_f64());
    client.args(["drain", &format!("127.0.0.1:{}", door.port), &target]);
    client.args([connections.to_string(), seconds.to_string()]);
    let before = door.program.cpu();
    let text = output(client);
    let spent = door.program.cpu() - before;
    let figures: Vec<f64> = text.split_whitespace().map(|figure| figure.parse().unwrap()).collect();
    let [bytes, _, took] = figures.try_into().unwrap();
    Sample { rate: bytes / took / 1e6, cpu: spent / bytes * 1e9 }
}

/// What a program prints, if it ends well.
pub(crate) fn output(mut command: Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}
