//! `larder peers`: the neighbours heard lately.

use serde_json::Value;

use super::admin_client::AdminClient;
use super::args::JsonArgs;
use super::{ConfigFile, Exit, Failure, Output, records};
use crate::index::PeerRecord;
use crate::orm::Record as _;

pub(super) fn run(node: &ConfigFile, args: &JsonArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let mut out = Output::new();
    let peers: Vec<Value> = client.get("/api/v1/peers?order=name")?;
    if args.json {
        out.json(&peers)?;
    } else if peers.is_empty() {
        out.line("no neighbours heard; `larder doctor` says why that may be")?;
    } else {
        let names = ["name", "address", "last_seen_seconds", "version", "node", "skipped"];
        out.text(&records::table(PeerRecord::table(), &names, &peers).text())?;
    }
    Ok(Exit::Done)
}
