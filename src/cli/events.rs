//! `larder events`: what administrators did.

use serde_json::Value;

use super::admin_client::AdminClient;
use super::args::EventsArgs;
use super::{ConfigFile, Exit, Failure, Output, records};
use crate::index::EventRecord;
use crate::orm::Record as _;

pub(super) fn run(node: &ConfigFile, args: &EventsArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let mut out = Output::new();
    let mut events: Vec<Value> = client.get(&format!("/api/v1/events?order=id.desc&limit={}", args.last))?;
    events.reverse();
    if args.json {
        out.json(&events)?;
    } else if events.is_empty() {
        out.line("no administrator changed anything yet")?;
    } else {
        let names = ["at", "who", "door", "method", "path", "status"];
        out.table(&records::table(EventRecord::table(), &names, &events))?;
    }
    Ok(Exit::Done)
}
