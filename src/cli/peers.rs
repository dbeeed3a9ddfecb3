//! `larder peers`: the neighbours heard lately.

use serde_json::Value;

use super::admin_client::AdminClient;
use super::args::JsonArgs;
use super::table::Table;
use super::{ConfigFile, Exit, Failure, Output};
use crate::admin::{Page, PeerView};

pub(super) fn run(node: &ConfigFile, args: &JsonArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let mut out = Output::new();
    if args.json {
        out.json(&client.get::<Page<Value>>("/api/v1/peers")?.items)?;
        return Ok(Exit::Done);
    }
    let peers = client.get::<Page<PeerView>>("/api/v1/peers")?.items;
    if peers.is_empty() {
        out.line("no neighbours heard; `larder doctor` says why that may be")?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["NAME", "ADDRESS", ">HEARD", "VERSION", "NODE", "SKIPPED"]);
    for peer in peers {
        let heard = format!("{:.0} s ago", peer.last_seen_seconds);
        let skipped = peer.skipped.unwrap_or_default();
        table.row([peer.name, peer.address, heard, peer.version, peer.node.to_string(), skipped]);
    }
    out.text(&table.text())?;
    Ok(Exit::Done)
}
