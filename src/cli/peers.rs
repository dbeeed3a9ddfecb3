//! `larder peers`: the neighbours heard lately.

use serde_json::Value;

use super::admin_client::AdminClient;
use super::args::JsonArgs;
use super::table::Table;
use super::{ConfigFile, Exit, Failure, Output};

pub(super) fn run(node: &ConfigFile, args: &JsonArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let mut out = Output::new();
    let peers: Vec<Value> = client.get("/api/v1/peers?order=name")?;
    if args.json {
        out.json(&peers)?;
    } else if peers.is_empty() {
        out.line("no neighbours heard; `larder doctor` says why that may be")?;
    } else {
        out.table(&table(&peers))?;
    }
    Ok(Exit::Done)
}

fn table(peers: &[Value]) -> Table {
    let text =
        |peer: &Value, name: &str| peer.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut heads = vec!["NAME", "ADDRESS", ">HEARD", "VERSION", "NODE", "SKIPPED"];
    // as long as every one is asked there is nothing to say about it
    if peers.iter().all(|peer| text(peer, "skipped").is_empty()) {
        heads.truncate(5);
    }
    let mut table = Table::new(&heads);
    for peer in peers {
        let text = |name: &str| text(peer, name);
        let heard = peer.get("last_seen_seconds").and_then(Value::as_f64).unwrap_or_default();
        let heard = format!("{heard:.0} s ago");
        table.row([text("name"), text("address"), heard, text("version"), text("node"), text("skipped")]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_one_was_heard_is_in_words() {
        let peer = serde_json::json!({
            "name": "box2", "address": "10.0.0.7:8096", "last_seen_seconds": 1.6, "version": "0.1.0",
            "node": "n", "skipped": null,
        });
        let text = table(&[peer]).text();
        assert!(text.contains("box2  10.0.0.7:8096  2 s ago  0.1.0    n\n"), "{text}");
    }
}
