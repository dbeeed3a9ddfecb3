//! `larder transfers`: what is being downloaded now.

use serde_json::Value;

use super::admin_client::AdminClient;
use super::answers::Transfer;
use super::args::JsonArgs;
use super::table::Table;
use super::{ConfigFile, Exit, Failure, Output};
use crate::admin::Page;
use crate::unit::ByteSize;

pub(super) fn run(node: &ConfigFile, args: &JsonArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let mut out = Output::new();
    if args.json {
        out.json(&client.get::<Page<Value>>("/api/v1/transfers")?.items)?;
        return Ok(Exit::Done);
    }
    let transfers = client.get::<Page<Transfer>>("/api/v1/transfers")?.items;
    if transfers.is_empty() {
        out.line("no transfers running")?;
        return Ok(Exit::Done);
    }
    out.text(&table(&transfers).text())?;
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
