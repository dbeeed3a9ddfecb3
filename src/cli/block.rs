//! `larder block` and `larder unblock`: what nobody gets from this node.

use http::Method;
use serde_json::{Value, json};

use super::admin_client::AdminClient;
use super::args::{BlockArgs, ThingArgs};
use super::records::{self, escaped};
use super::{ConfigFile, Exit, Failure, Output};
use crate::admin::{BlockRequest, BlockView};
use crate::index::BlockRecord;
use crate::orm::Record as _;

pub(super) fn block(node: &ConfigFile, args: &BlockArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let mut out = Output::new();
    let Some(thing) = &args.thing else {
        list(&client, &mut out, args.json)?;
        return Ok(Exit::Done);
    };
    let request = BlockRequest { thing: thing.clone(), reason: args.reason.clone() };
    let made: BlockView = client.call(Method::POST, "/api/v1/blocks", Some(&request))?;
    if args.json {
        out.json(&made)?;
    } else {
        let removed = if made.removed { "; what was held of it is gone" } else { "" };
        out.line(format!("{} is blocked{removed}", made.shown))?;
    }
    Ok(Exit::Done)
}

pub(super) fn unblock(node: &ConfigFile, args: &ThingArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let by = if args.thing.starts_with("sha256:") { "thing=eq." } else { "url=eq." };
    let found: Vec<Value> =
        client.get(&format!("/api/v1/blocks?{by}{}&select=thing,shown", escaped(&args.thing)))?;
    let row = found.first().and_then(|row| Some((row.get("thing")?.as_str()?, row.get("shown")?.as_str()?)));
    let Some((thing, shown)) = row else {
        return Err(Failure::new(Exit::NotFound, format!("{} is not blocked", args.thing))
            .hint("`larder block` lists what is"));
    };
    client.act(Method::DELETE, &format!("/api/v1/blocks/{}", escaped(thing)))?;
    let mut out = Output::new();
    if args.json {
        out.json(&json!({"thing": thing, "blocked": false}))?;
    } else {
        out.line(format!("{shown} may be had again"))?;
    }
    Ok(Exit::Done)
}

fn list(client: &AdminClient, out: &mut Output, json: bool) -> Result<(), Failure> {
    let blocks: Vec<Value> = client.get("/api/v1/blocks?order=since.desc&limit=10000")?;
    if json {
        return out.json(&blocks);
    }
    if blocks.is_empty() {
        return out.line("nothing is blocked");
    }
    out.text(&records::table(BlockRecord::table(), &["shown", "since", "reason"], &blocks).text())
}
