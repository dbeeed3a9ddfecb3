//! `larder bans`: who is refused at the peer port, and changing that.

use http::Method;
use serde_json::{Value, json};

use super::admin_client::AdminClient;
use super::args::{BansAction, BansArgs};
use super::table::Table;
use super::{ConfigFile, Exit, Failure, Output, records};
use crate::admin::{BanRequest, BanView};
use crate::index::BanRecord;
use crate::orm::Record as _;

pub(super) fn run(node: &ConfigFile, args: &BansArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let mut out = Output::new();
    match &args.action {
        None => list(&client, &mut out, args.json)?,
        Some(BansAction::Add { address, duration, json }) => {
            let request = BanRequest { address: *address, duration: *duration };
            let made: BanView = client.call(Method::POST, "/api/v1/bans", Some(&request))?;
            if *json {
                out.json(&made)?;
            } else {
                out.line(format!("{} is refused until {}", made.address, made.until))?;
            }
        }
        Some(BansAction::Rm { address, json }) => {
            client.act(Method::DELETE, &format!("/api/v1/bans/{address}"))?;
            if *json {
                out.json(&json!({"address": address, "banned": false}))?;
            } else {
                out.line(format!("{address} is welcome again"))?;
            }
        }
    }
    Ok(Exit::Done)
}

fn list(client: &AdminClient, out: &mut Output, json: bool) -> Result<(), Failure> {
    let bans: Vec<Value> = client.get("/api/v1/bans?order=until.desc&limit=10000")?;
    if json {
        return out.json(&bans);
    }
    if bans.is_empty() {
        return out.line("nobody is refused");
    }
    out.text(&records::table(BanRecord::table(), &["address", "until", "count", "reason"], &bans).text())
}

pub(super) fn table(bans: &[BanView]) -> Table {
    let mut table = Table::new(&["ADDRESS", "UNTIL", "WHY"]);
    for ban in bans {
        table.row([ban.address.to_string(), ban.until.clone(), ban.reason.clone()]);
    }
    table
}
