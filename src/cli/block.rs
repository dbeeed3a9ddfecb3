//! `larder block` and `larder unblock`: what nobody gets from this node.

use http::Method;
use serde_json::{Value, json};

use super::admin_client::AdminClient;
use super::args::{BlockArgs, UnblockArgs};
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
    let request = BlockRequest { thing: thing.clone(), reason: args.reason.clone(), site: args.site };
    let made: BlockView = client.call(Method::POST, "/api/v1/blocks", Some(&request))?;
    if args.json {
        out.json(&made)?;
    } else {
        let removed = if made.removed { "; what was held of it is gone" } else { "" };
        let here = if args.site { " on every node of the site" } else { "" };
        out.line(format!("{} is blocked{here}{removed}", made.shown))?;
    }
    Ok(Exit::Done)
}

pub(super) fn unblock(node: &ConfigFile, args: &UnblockArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let Some((thing, shown, is_by_site)) = blocked(&client, &args.thing)? else {
        return Err(Failure::new(Exit::NotFound, format!("{} is not blocked", args.thing))
            .hint("`larder block` lists what is"));
    };
    if is_by_site && !args.site {
        return Err(Failure::new(Exit::Failed, format!("{shown} is blocked on every node of the site"))
            .hint("`larder unblock --site` lifts it on all of them"));
    }
    let path = format!("/api/v1/blocks/{}", escaped(&thing));
    client.act(Method::DELETE, &path)?;
    // what was blocked for this node may be blocked for the site as well
    let rest = blocked(&client, &args.thing)?;
    if rest.is_some() && args.site {
        client.act(Method::DELETE, &path)?;
    }
    let is_blocked = rest.is_some() && !args.site;
    let mut out = Output::new();
    if args.json {
        out.json(&json!({"thing": thing, "blocked": is_blocked}))?;
    } else if is_blocked {
        out.line(format!("{shown} is still blocked for the whole site; `larder unblock --site` lifts that"))?;
    } else {
        out.line(format!("{shown} may be had again"))?;
    }
    Ok(Exit::Done)
}

/// A blocked thing: its name, what is shown of it, and whether it is blocked for the whole site.
fn blocked(client: &AdminClient, thing: &str) -> Result<Option<(String, String, bool)>, Failure> {
    let by = if thing.starts_with("sha256:") { "thing=eq." } else { "url=eq." };
    let path = format!("/api/v1/blocks?{by}{}&select=thing,shown,because_of", escaped(thing));
    let found: Vec<Value> = client.get(&path)?;
    let row = found.first().and_then(|row| {
        let text = |name| Some(row.get(name)?.as_str()?.to_owned());
        Some((text("thing")?, text("shown")?, BlockRecord::is_by_site(&text("because_of")?)))
    });
    Ok(row)
}

fn list(client: &AdminClient, out: &mut Output, json: bool) -> Result<(), Failure> {
    let blocks: Vec<Value> = client.get("/api/v1/blocks?order=since.desc&limit=10000")?;
    if json {
        return out.json(&blocks);
    }
    if blocks.is_empty() {
        return out.line("nothing is blocked");
    }
    out.text(
        &records::table(BlockRecord::table(), &["shown", "since", "reason", "because_of"], &blocks).text(),
    )
}
