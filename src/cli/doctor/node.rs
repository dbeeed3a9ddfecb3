//! What the running daemon says of itself.

use super::Report;
use crate::cli::Failure;
use crate::cli::admin_client::AdminClient;
use crate::cli::answers::Status;
use crate::cli::status::share;
use crate::config::Loaded;
use crate::fetch::Traffic;
use crate::unit::ByteSize;

/// Tunnelled bytes from which on advice is worth a line.
const MUCH: u64 = 10 * 1024 * 1024;

/// Asks the daemon; whether it answered.
pub(super) fn daemon(report: &mut Report, loaded: &Loaded) -> Result<bool, Failure> {
    let client = AdminClient::to(loaded)?;
    if let Err(why) = client.alive() {
        report.fail(
            "daemon",
            format!("it does not answer: {why}"),
            "start it with `larder run` or `systemctl start larder`",
        );
        return Ok(false);
    }
    let status: Status = match client.get("/status") {
        Ok(status) => status,
        Err(failure) => {
            let what = failure.said.into_iter().map(|(what, _)| what).collect::<Vec<_>>().join("; ");
            report.fail("daemon", what, "is another program at that port?");
            return Ok(true);
        }
    };
    report.ok("daemon", format!("larder {} answers as {}", status.version, status.name));
    if status.version != env!("CARGO_PKG_VERSION") {
        let what = format!("the daemon is {}, this program {}", status.version, env!("CARGO_PKG_VERSION"));
        report.warn("daemon", what, "restart the daemon to run what is installed");
    }
    for reason in &status.health.reasons {
        report.warn("health", reason.clone(), "");
    }
    if status.health.status == "ok" {
        report.ok("health", "ok");
    }
    neighbours(report, loaded, &status);
    tunnels(report, &status.traffic);
    Ok(true)
}

fn neighbours(report: &mut Report, loaded: &Loaded, status: &Status) {
    if !loaded.config.peers.enabled {
        return;
    }
    match status.peers.len() {
        0 => report.warn(
            "neighbours",
            "none heard",
            "same site and secret (`larder secret fingerprint`), same port, no firewall on it (UDP and TCP)?",
        ),
        1 => report.ok("neighbours", "1 heard"),
        more => report.ok("neighbours", format!("{more} heard")),
    }
}

fn tunnels(report: &mut Report, traffic: &Traffic) {
    let tunnelled = traffic.bytes_tunnelled;
    let all = tunnelled.saturating_add(traffic.bytes_to_clients);
    let what =
        format!("{} of all bytes ({}) went through tunnels", share(tunnelled, all), ByteSize(tunnelled));
    if tunnelled >= MUCH && tunnelled > all / 10 {
        report.warn(
            "tunnels",
            what,
            "they cannot be cached: `larder setup pip`, npm, cargo, hf and others bring them through a mirror",
        );
    } else {
        report.ok("tunnels", what);
    }
}
