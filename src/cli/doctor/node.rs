//! What the running daemon says of itself.

use super::Report;
use crate::cli::Failure;
use crate::cli::admin_client::AdminClient;
use crate::cli::answers::{Mormot, Status};
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
    super::clocks::clocks(report, status.peers());
    if let Some(mormot) = &status.mormot {
        originals(report, loaded, mormot);
    }
    tunnels(report, &status.traffic);
    Ok(true)
}

fn neighbours(report: &mut Report, loaded: &Loaded, status: &Status) {
    if !loaded.config.peers.enabled {
        return;
    }
    let Some(peers) = &status.peers else {
        let what = "the daemon tells only administrators";
        report.warn("neighbours", what, "run it as root, as the service's user or in the group larder");
        return;
    };
    let strange = status.frames_of_other_secrets;
    let frames = format!("{strange} frame{} under another", if strange == 1 { "" } else { "s" });
    match peers.len() {
        // most likely the secret: whoever is there speaks, and cannot be understood
        0 if strange > 0 => report.warn(
            "neighbours",
            format!("none heard, but {frames} site name or secret came from this network"),
            "compare `larder secret fingerprint` on both machines: it must be the same; the daemon's log says from where \
             they come",
        ),
        0 if report.lacks("interfaces") => {
            report.warn("neighbours", "none heard", "see interfaces above");
        }
        0 => report.warn(
            "neighbours",
            "none heard",
            "does another node run? Same site and secret (`larder secret fingerprint`), same port, no firewall on it (UDP \
             and TCP)?",
        ),
        1 => report.ok("neighbours", "1 heard"),
        more => report.ok("neighbours", format!("{more} heard")),
    }
    if strange > 0 && !peers.is_empty() {
        report.warn(
            "neighbours",
            format!("{frames} site name or secret came from this network"),
            "another site beside this one is no harm; else compare `larder secret fingerprint` on both machines",
        );
    }
}

/// mORMot peers, where they are and where they should not be.
fn originals(report: &mut Report, loaded: &Loaded, mormot: &Mormot) {
    let (own, theirs) = (loaded.config.peers.port, loaded.config.mormot.port);
    if mormot.frames_on_peer_port > 0 {
        report.warn(
            "mORMot peers",
            format!(
                "{} datagrams of 244 bytes, as mORMot peers send them, came to peers.port {own}",
                mormot.frames_on_peer_port
            ),
            "give those programs another port, 8099 by custom: they ban whoever sends them Larder's own frames",
        );
    }
    let Some(network) = &mormot.network else { return };
    match &network.address {
        Some(address) if network.listening => {
            report.ok("mORMot peers", format!("{} heard, served at {address}", network.peers));
        }
        Some(address) => report.warn(
            "mORMot peers",
            format!("{} heard, but {address} cannot be listened on", network.peers),
            "`ss -ltnp` says who has the port",
        ),
        None => report.warn(
            "mORMot peers",
            "there is no interface to ask them on",
            "name one in mormot.interface",
        ),
    }
    if network.frames.checksum > 0 || network.frames.length > 0 {
        report.warn(
            "mORMot peers",
            format!(
                "{} datagrams under another secret and {} of another length came to mormot.port {theirs}",
                network.frames.checksum, network.frames.length
            ),
            "same secret on all of them? Does a Larder node have that port as its peers.port?",
        );
    }
}

fn tunnels(report: &mut Report, traffic: &Traffic) {
    let tunnelled = traffic.bytes_tunnelled;
    if tunnelled == 0 {
        report.ok("tunnels", "nothing went through them");
        return;
    }
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
