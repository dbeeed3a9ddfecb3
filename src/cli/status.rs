//! `larder status`: the node on one screen.

use std::fmt::Write as _;

use serde_json::Value;

use super::admin_client::AdminClient;
use super::answers::Status;
use super::args::JsonArgs;
use super::table::Table;
use super::{ConfigFile, Exit, Failure, Output, bans, transfers};
use crate::fetch::Traffic;
use crate::unit::ByteSize;

/// Rows of a list shown; the commands for each list show all.
const ROWS: usize = 8;

pub(super) fn run(node: &ConfigFile, args: &JsonArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let mut out = Output::new();
    if args.json {
        out.json(&client.get::<Value>("/status")?)?;
    } else {
        let status: Status = client.get("/status")?;
        out.text(&screen(&status, out.colour(), out.columns()))?;
    }
    Ok(Exit::Done)
}

fn screen(status: &Status, colour: bool, columns: Option<usize>) -> String {
    let mut text = String::new();
    let health = match (status.health.status.as_str(), colour) {
        ("ok", true) => "\x1b[32mok\x1b[0m".to_owned(),
        (bad, true) => format!("\x1b[31m{bad}\x1b[0m"),
        (word, false) => word.to_owned(),
    };
    let cache = &status.cache;
    let head = [
        format!("{} (larder {}, site {})", status.name, status.version, status.site),
        format!("  node     {}", status.node),
        format!("  up       {}", duration(status.uptime_seconds)),
        format!("  health   {health}"),
    ];
    let troubles = status.health.reasons.iter().map(|reason| format!("           {reason}"));
    let held = format!(
        "  cache    {} blob{}, {} of {} ({}), {} pinned",
        cache.blobs,
        if cache.blobs == 1 { "" } else { "s" },
        ByteSize(cache.bytes),
        ByteSize(cache.max_bytes),
        share(cache.bytes, cache.max_bytes),
        cache.pinned
    );
    let saved = &status.saved;
    let saved = format!(
        "  saved    {} today, {} this week, {} ever",
        ByteSize(saved.today),
        ByteSize(saved.week),
        ByteSize(saved.ever)
    );
    for line in head.into_iter().chain(troubles).chain([held, saved, String::new()]) {
        put(&mut text, &line);
    }
    put(&mut text, traffic(&status.traffic).trim_end());
    put(&mut text, "");
    lists(&mut text, status, columns);
    text
}

fn traffic(traffic: &Traffic) -> String {
    let received = traffic.bytes_from_cache + traffic.bytes_from_peers + traffic.bytes_from_origin;
    let mut table = Table::new(&["TRAFFIC", ">BYTES", ">SHARE"]);
    for (name, bytes) in [
        ("from own cache", traffic.bytes_from_cache),
        ("from neighbours", traffic.bytes_from_peers),
        ("from origins", traffic.bytes_from_origin),
    ] {
        table.row([name.to_owned(), ByteSize(bytes).to_string(), share(bytes, received)]);
    }
    let requests = format!("{} requests", traffic.requests);
    table.row(["to programs".to_owned(), ByteSize(traffic.bytes_to_clients).to_string(), requests]);
    table.row(["to neighbours".to_owned(), ByteSize(traffic.bytes_to_peers).to_string()]);
    let tunnelled = traffic.bytes_tunnelled;
    let of_all = share(tunnelled, tunnelled + traffic.bytes_to_clients);
    table.row(["tunnelled (cannot be cached)".to_owned(), ByteSize(tunnelled).to_string(), of_all]);
    if traffic.bytes_discarded > 0 {
        table.row(["discarded".to_owned(), ByteSize(traffic.bytes_discarded).to_string()]);
    }
    table.text()
}

fn lists(text: &mut String, status: &Status, columns: Option<usize>) {
    if status.peers.is_none() {
        put(
            text,
            "neighbours, transfers, bans: for administrators (root, the service's user, the group larder)",
        );
        return;
    }
    let mut list = |name: &str, count, table: &Table| list(text, name, count, &table.text_within(columns));
    let mut peers = Table::new(&["NEIGHBOUR", "ADDRESS", ">HEARD", "VERSION"]);
    for peer in status.peers().iter().take(ROWS) {
        let heard = format!("{:.0} s ago", peer.last_seen_seconds);
        peers.row([peer.name.clone(), peer.address.clone(), heard, peer.version.clone()]);
    }
    list("neighbours", status.peers().len(), &peers);
    let running = status.transfers.get(..ROWS).unwrap_or(&status.transfers);
    list("transfers", status.transfers.len(), &transfers::table(running));
    let refused = status.bans.get(..ROWS).unwrap_or(&status.bans);
    list("bans", status.bans.len(), &bans::table(refused));
}

fn list(text: &mut String, name: &str, count: usize, table: &str) {
    if count == 0 {
        put(text, &format!("{name}: none"));
        return;
    }
    put(text, table.trim_end());
    if count > ROWS {
        put(text, &format!("… and {} more: larder {}", count - ROWS, name.replace("neighbours", "peers")));
    }
}

fn put(text: &mut String, line: &str) {
    // A String takes everything.
    writeln!(text, "{line}").unwrap_or_default();
}

/// A share in whole percent.
pub(super) fn share(part: u64, all: u64) -> String {
    match (u128::from(part) * 100).checked_div(u128::from(all)) {
        Some(percent) => format!("{percent} %"),
        None => "–".to_owned(),
    }
}

pub(super) fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min"),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_one_screen_and_says_what_was_tunnelled() {
        let status: Status = serde_json::from_value(serde_json::json!({
            "version": "0.1.0", "node": "n", "name": "box1", "site": "lab", "uptime_seconds": 3700,
            "health": {"status": "degraded", "reasons": ["no space"]},
            "cache": {"blobs": 3, "bytes": 1024, "max_bytes": 4096, "pinned": 1},
            "traffic": {"requests": 4, "bytes_to_clients": 300, "bytes_from_cache": 100, "bytes_from_peers": 200,
                "bytes_from_origin": 0, "bytes_to_peers": 0, "bytes_discarded": 0, "bytes_tunnelled": 100},
            "peers": (0..20).map(|n| serde_json::json!({"node": "00000000-0000-8000-8000-000000000000",
                "name": format!("box{n}"), "address": "10.0.0.7:8096", "last_seen_seconds": 1.4,
                "version": "0.1.0"})).collect::<Vec<_>>(),
            "transfers": [{"id": "1", "url": "http://e/x", "source": "peer", "received": 1, "size": null, "readers": 2}],
            "bans": []
        }))
        .unwrap();
        let text = screen(&status, false, None);
        assert!(text.lines().count() <= 40, "{text}");
        for part in ["1 h 1 min", "(25 %)", "66 %", "no space", "and 12 more: larder peers", "bans: none"] {
            assert!(text.contains(part), "{part} not in\n{text}");
        }
        let tunnelled = text.lines().find(|line| line.starts_with("tunnelled")).unwrap();
        assert!(tunnelled.ends_with("25 %"), "{tunnelled}");
    }
}
