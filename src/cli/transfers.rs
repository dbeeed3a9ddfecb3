//! `larder transfers`: what is being downloaded now, and what was.

use serde_json::Value;

use super::admin_client::AdminClient;
use super::answers::Transfer;
use super::args::TransfersArgs;
use super::table::Table;
use super::{ConfigFile, Exit, Failure, Output, records};
use crate::index::TransferRecord;
use crate::orm::Record as _;
use crate::unit::ByteSize;

pub(super) fn run(node: &ConfigFile, args: &TransfersArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let mut out = Output::new();
    let filter = if args.all { "" } else { "&state=eq.running" };
    let path = format!("/api/v1/transfers?order=started_at.desc&limit=10000{filter}");
    let mut transfers: Vec<Value> = client.get(&path)?;
    transfers.reverse();
    if args.json {
        out.json(&transfers)?;
    } else if transfers.is_empty() {
        out.line(if args.all {
            "no transfers yet"
        } else {
            "no transfers running; --all shows those that ended"
        })?;
    } else {
        let running: &[&str] = &["source", "received", "size", "readers", "url"];
        let all: &[&str] = &["started_at", "state", "source", "received", "size", "url"];
        let names = if args.all { all } else { running };
        out.table(&records::table(TransferRecord::table(), names, &transfers))?;
    }
    Ok(Exit::Done)
}

pub(super) fn table(transfers: &[Transfer]) -> Table {
    let mut table = Table::new(&["FROM", ">RECEIVED", ">SIZE", ">READERS", "URL"]);
    for transfer in transfers {
        table.row([
            transfer.source.clone(),
            ByteSize(transfer.received).to_string(),
            transfer.size.map_or("?".to_owned(), |size| ByteSize(size).to_string()),
            transfer.readers.to_string(),
            transfer.url.clone(),
        ]);
    }
    table
}
