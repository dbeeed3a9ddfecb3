//! What is held: listing it, and the commands that act on one blob or on all.
//!
//! A URL stands for the blobs it led to. Everything is done by the daemon, which alone touches the cache.

use http::Method;
use serde_json::{Value, json};

use super::admin_client::AdminClient;
use super::args::{GcArgs, LsArgs, ThingArgs, VerifyArgs};
use super::records::{self, escaped};
use super::{ConfigFile, Exit, Failure, Output};
use crate::admin::{GcRequest, GcView, VerifyView};
use crate::digest::Digest;
use crate::index::{BlobRecord, ResourceRecord};
use crate::orm::{Record as _, TableSpec};
use crate::unit::ByteSize;

/// Rows asked for at once.
const PAGE: usize = 10_000;
/// Digits of a digest on a terminal.
const SHOWN: usize = 12;
/// With fewer digits a digest is not looked for.
const LEAST: usize = 8;
/// What a blob is shown with besides its own columns.
const WITH: &str = "pins(digest),labels(labels),resources(shown_url)";

/// Lists blobs.
pub(super) fn ls(node: &ConfigFile, args: &LsArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let blobs = all_blobs(&client, args)?;
    let mut out = Output::new();
    if args.json {
        out.json(&blobs)?;
        return Ok(Exit::Done);
    }
    let usual = ["digest", "size", "hits", "last_used", "pinned", "urls"];
    let chosen: Vec<&str> = args.columns.iter().map(String::as_str).collect();
    let names = if chosen.is_empty() { usual.as_slice() } else { chosen.as_slice() };
    let blobs = if out.columns().is_some() { blobs.into_iter().map(briefly).collect() } else { blobs };
    out.table(&records::table(BlobRecord::table(), names, &blobs))?;
    Ok(Exit::Done)
}

/// Shows one blob, or what a URL led to.
pub(super) fn info(node: &ConfigFile, args: &ThingArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let mut out = Output::new();
    if let Some(digest) = as_digest(&client, &args.thing)? {
        let blob: Value = client.get(&format!("/api/v1/blobs/{digest}?select=*,{WITH}"))?;
        return members(&mut out, BlobRecord::table(), &[plainly(blob)], args.json);
    }
    let explained: Value = client.get(&format!("/api/v1/explanation?url={}", escaped(&args.thing)))?;
    let mut found: Vec<Value> = match resources(&client, &args.thing) {
        Ok(found) => found,
        // nothing is kept of it: why not is what is asked
        Err(_) if ["why", "rule", "expected"].iter().any(|name| explained.get(name).is_some()) => {
            vec![Value::default()]
        }
        Err(failure) => return Err(failure),
    };
    found.iter_mut().for_each(|resource| explain(resource, &explained));
    members(&mut out, ResourceRecord::table(), &found, args.json)
}

/// For eyes the beginning of a digest is enough, and for commands too.
fn briefly(mut blob: Value) -> Value {
    if let Some(Value::String(digest)) = blob.get_mut("digest") {
        *digest = digest.trim_start_matches("sha256:").chars().take(SHOWN).collect();
    }
    if let Some(pinned) = blob.get_mut("pinned") {
        *pinned = if *pinned == Value::Bool(true) { "yes".into() } else { "".into() };
    }
    blob
}

/// A blob with what leads to it as plain members: whether it is pinned, its labels, its URLs.
fn plainly(mut blob: Value) -> Value {
    let Some(members) = blob.as_object_mut() else { return blob };
    let pinned = members.remove("pins").is_some_and(|pin| !pin.is_null());
    let labels = members.remove("labels").and_then(|mut row| row.get_mut("labels").map(Value::take));
    let urls: Vec<Value> = match members.remove("resources") {
        Some(Value::Array(rows)) => {
            rows.into_iter().filter_map(|mut row| row.get_mut("shown_url").map(Value::take)).collect()
        }
        _ => Vec::new(),
    };
    members.insert("pinned".to_owned(), pinned.into());
    members.insert("labels".to_owned(), labels.unwrap_or_else(|| json!({})));
    members.insert("urls".to_owned(), urls.into());
    blob
}

/// Adds how the URL is treated to what it led to.
fn explain(resource: &mut Value, explained: &Value) {
    if resource.is_null() {
        *resource = json!({ "url": explained.get("url") });
    }
    let Some(members) = resource.as_object_mut() else { return };
    let names =
        [("rule_number", "rule_number"), ("rule", "rule"), ("kept", "last_kept"), ("why", "last_why")];
    let stated = ["expected", "expected_size", "stated_by", "stated_over_https", "stated_at"];
    let stated = stated.map(|name| (name, name));
    for (name, shown) in names.into_iter().chain([("at", "last_at")]).chain(stated) {
        if let Some(value) = explained.get(name) {
            members.insert(shown.to_owned(), value.clone());
        }
    }
}

/// Keeps from eviction.
pub(super) fn pin(node: &ConfigFile, args: &ThingArgs) -> Result<Exit, Failure> {
    on_each(node, args, "pinned", |client, digest| {
        client.act(Method::PUT, &format!("/api/v1/blobs/{digest}/pin"))
    })
}

/// Ends that.
pub(super) fn unpin(node: &ConfigFile, args: &ThingArgs) -> Result<Exit, Failure> {
    on_each(node, args, "unpinned", |client, digest| {
        client.act(Method::DELETE, &format!("/api/v1/blobs/{digest}/pin"))
    })
}

/// Removes.
pub(super) fn rm(node: &ConfigFile, args: &ThingArgs) -> Result<Exit, Failure> {
    on_each(node, args, "removed", |client, digest| {
        client.act(Method::DELETE, &format!("/api/v1/blobs/{digest}"))
    })
}

/// Makes room.
pub(super) fn gc(node: &ConfigFile, args: &GcArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let done: GcView = client.call(Method::POST, "/api/v1/gc", Some(&GcRequest { to: args.to }))?;
    let mut out = Output::new();
    if args.json {
        out.json(&done)?;
    } else {
        out.line(format!("{} blobs removed, {} freed", done.removed, ByteSize(done.bytes)))?;
    }
    Ok(Exit::Done)
}

/// Reads blobs again; damaged ones are named, and with `--repair` removed.
pub(super) fn verify(node: &ConfigFile, args: &VerifyArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let digests = match &args.thing {
        Some(thing) => digests_of(&client, thing)?,
        None => digests(&all_blobs(&client, &LsArgs::default())?),
    };
    let (mut sound, mut damaged) = (0_usize, Vec::new());
    for digest in digests {
        match client.call::<VerifyView>(Method::POST, &format!("/api/v1/blobs/{digest}/verify"), None::<&()>)
        {
            Ok(view) if view.sound => sound += 1,
            Ok(_) => damaged.push(digest),
            // Of a long list some may have been evicted meanwhile.
            Err(failure) if args.all && failure.exit == Exit::NotFound => {}
            Err(failure) => return Err(failure),
        }
    }
    if args.repair {
        for digest in &damaged {
            match client.act(Method::DELETE, &format!("/api/v1/blobs/{digest}")) {
                Err(failure) if failure.exit != Exit::NotFound => return Err(failure),
                _gone => {}
            }
        }
    }
    say_verified(sound, &damaged, args)
}

fn say_verified(sound: usize, damaged: &[Digest], args: &VerifyArgs) -> Result<Exit, Failure> {
    let mut out = Output::new();
    if args.json {
        out.json(&json!({"sound": sound, "damaged": damaged, "repaired": args.repair}))?;
    } else {
        for digest in damaged {
            out.line(format!("{digest}: damaged{}", if args.repair { ", removed" } else { "" }))?;
        }
        out.line(format!("{sound} sound, {} damaged", damaged.len()))?;
    }
    Ok(if damaged.is_empty() || args.repair { Exit::Done } else { Exit::Mismatch })
}

fn on_each(
    node: &ConfigFile,
    args: &ThingArgs,
    done: &str,
    act: impl Fn(&AdminClient, Digest) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let digests = digests_of(&client, &args.thing)?;
    for digest in &digests {
        act(&client, *digest)?;
    }
    let mut out = Output::new();
    if args.json {
        out.json(&json!({ done: digests }))?;
    } else {
        for digest in &digests {
            out.line(format!("{digest}: {done}"))?;
        }
    }
    Ok(Exit::Done)
}

/// All blobs that are asked for, page by page: in the order of their digests each page goes on after the last
/// one, in another order after so many.
pub(super) fn all_blobs(client: &AdminClient, args: &LsArgs) -> Result<Vec<Value>, Failure> {
    let mut filters: Vec<String> =
        args.conditions.iter().map(|condition| format!("&{}", parameter(condition))).collect();
    filters.extend(filter(&args.filter));
    let sorted = args.sort.as_ref().map(|column| format!("{column}.desc"));
    let chosen = args.order.as_ref().or(sorted.as_ref());
    let order = chosen.map_or("digest", String::as_str);
    let most = args.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let at_once = PAGE.min(most);
    let query =
        format!("/api/v1/blobs?limit={at_once}&select=*,{WITH}&order={}{}", escaped(order), filters.concat());
    let (mut blobs, mut from) = (Vec::new(), String::new());
    loop {
        let page: Vec<Value> = client.get(&format!("{query}{from}"))?;
        let full = page.len() == at_once;
        blobs.extend(page.into_iter().map(plainly));
        if !full || blobs.len() >= most {
            blobs.truncate(most);
            return Ok(blobs);
        }
        let last =
            blobs.last().and_then(|blob| blob.get("digest")).and_then(Value::as_str).unwrap_or_default();
        from = match chosen {
            None => format!("&digest=gt.{last}"),
            Some(_) => format!("&offset={}", blobs.len()),
        };
    }
}

/// `column=operator.value` as it stands in a query.
fn parameter(condition: &str) -> String {
    let (name, value) = condition.split_once('=').unwrap_or((condition, ""));
    format!("{}={}", escaped(name), escaped(value))
}

/// The filter of a part of a URL or the beginning of a digest.
fn filter(text: &str) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    let quoted = text.replace('\\', "\\\\").replace('*', "\\*").replace('%', "\\%").replace('_', "\\_");
    let quoted = quoted.replace('"', "_");
    let url = format!("resources.shown_url.ilike.\"*{quoted}*\"");
    let hex = text.strip_prefix("sha256:").unwrap_or(text).to_ascii_lowercase();
    let is_hex = hex.len() <= 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    let group = if is_hex {
        format!("({url},and(digest.gte.{hex:0<64},digest.lte.{hex:f<64}))")
    } else {
        format!("({url})")
    };
    Some(format!("&or={}", escaped(&group)))
}

fn resources(client: &AdminClient, url: &str) -> Result<Vec<Value>, Failure> {
    let found: Vec<Value> = client.get(&format!("/api/v1/resources?url=eq.{}", escaped(url)))?;
    if found.is_empty() {
        return Err(Failure::new(Exit::NotFound, format!("nothing is known about {url}"))
            .hint("give the whole URL as it was asked for; `larder ls` lists what is held"));
    }
    Ok(found)
}

/// The digests of rows, each once.
fn digests(rows: &[Value]) -> Vec<Digest> {
    let mut digests: Vec<Digest> = Vec::new();
    for text in rows.iter().filter_map(|row| row.get("digest")).filter_map(Value::as_str) {
        match text.parse() {
            Ok(digest) if !digests.contains(&digest) => digests.push(digest),
            _ => {}
        }
    }
    digests
}

fn digests_of(client: &AdminClient, thing: &str) -> Result<Vec<Digest>, Failure> {
    if let Some(digest) = as_digest(client, thing)? {
        return Ok(vec![digest]);
    }
    let digests = digests(&resources(client, thing)?);
    if digests.is_empty() {
        return Err(Failure::new(Exit::NotFound, format!("{thing} led to no blob")));
    }
    Ok(digests)
}

/// A digest, whole or the beginning of one that is held; or none if it is a URL.
fn as_digest(client: &AdminClient, thing: &str) -> Result<Option<Digest>, Failure> {
    if thing.contains("://") {
        return Ok(None);
    }
    let hex = thing.strip_prefix("sha256:").unwrap_or(thing).to_ascii_lowercase();
    let is_part = (LEAST..64).contains(&hex.len()) && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_part {
        return whole_digest(client, &hex).map(Some);
    }
    Digest::from_hex(&hex).map(Some).map_err(|_ignored| {
        Failure::new(Exit::NotFound, format!("`{thing}` is neither a SHA-256 digest nor a URL"))
            .hint("write sha256: and 64 hexadecimal digits, or http://…")
    })
}

/// The one digest that begins so.
fn whole_digest(client: &AdminClient, hex: &str) -> Result<Digest, Failure> {
    let range = escaped(&format!("(digest.gte.{hex:0<64},digest.lte.{hex:f<64})"));
    let found: Vec<Value> = client.get(&format!("/api/v1/blobs?limit=2&select=digest&and={range}"))?;
    match digests(&found).as_slice() {
        [one] => Ok(*one),
        [] => Err(Failure::new(Exit::NotFound, format!("no digest of what is held begins with {hex}"))
            .hint("`larder ls` lists what is held")),
        _ => Err(Failure::new(Exit::NotFound, format!("more than one digest begins with {hex}"))
            .hint("give more digits")),
    }
}

fn members(out: &mut Output, spec: &TableSpec, things: &[Value], json: bool) -> Result<Exit, Failure> {
    if json {
        match things {
            [one] => out.json(one)?,
            many => out.json(&many)?,
        }
        return Ok(Exit::Done);
    }
    for (at, thing) in things.iter().enumerate() {
        if at > 0 {
            out.line("")?;
        }
        out.text(&records::members(spec, thing).text())?;
    }
    Ok(Exit::Done)
}
