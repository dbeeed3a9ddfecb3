//! What is held: listing it, and the commands that act on one blob or on all.
//!
//! A URL stands for the blobs it led to. Everything is done by the daemon, which alone touches the cache.

use http::Method;
use serde_json::{Value, json};

use super::admin_client::AdminClient;
use super::args::{GcArgs, LsArgs, ThingArgs, VerifyArgs};
use super::table::Table;
use super::{ConfigFile, Exit, Failure, Output};
use crate::admin::{BlobView, GcRequest, GcView, Page, ResourceView, VerifyView};
use crate::digest::Digest;
use crate::unit::ByteSize;

/// Lists blobs.
pub(super) fn ls(node: &ConfigFile, args: &LsArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let blobs = all_blobs(&client, &args.filter)?;
    let mut out = Output::new();
    if args.json {
        out.json(&blobs)?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["DIGEST", ">SIZE", ">HITS", "LAST USED", "PIN", "URL"]);
    for blob in &blobs {
        table.row([
            blob.digest.hex(),
            ByteSize(blob.size).to_string(),
            blob.hits.to_string(),
            blob.last_used.clone(),
            if blob.pinned { "pin" } else { "" }.to_owned(),
            blob.urls.first().cloned().unwrap_or_default(),
        ]);
    }
    out.text(&table.text())?;
    Ok(Exit::Done)
}

/// Shows one blob, or what a URL led to.
pub(super) fn info(node: &ConfigFile, args: &ThingArgs) -> Result<Exit, Failure> {
    let client = AdminClient::of(node)?;
    let mut out = Output::new();
    if let Some(digest) = as_digest(&args.thing)? {
        let blob: Value = client.get(&format!("/api/v1/blobs/{digest}"))?;
        return members(&mut out, &[blob], args.json);
    }
    let explained: Value = client.get(&format!("/api/v1/explanation?url={}", escaped(&args.thing)))?;
    let mut found: Vec<Value> = match resources(&client, &args.thing) {
        Ok(found) => found,
        // nothing is kept of it: why not is what is asked
        Err(_) if explained.get("why").is_some() || explained.get("rule").is_some() => vec![Value::default()],
        Err(failure) => return Err(failure),
    };
    found.iter_mut().for_each(|resource| explain(resource, &explained));
    members(&mut out, &found, args.json)
}

/// Adds how the URL is treated to what it led to.
fn explain(resource: &mut Value, explained: &Value) {
    if resource.is_null() {
        *resource = json!({ "url": explained.get("url") });
    }
    let Some(members) = resource.as_object_mut() else { return };
    let names =
        [("rule_number", "rule_number"), ("rule", "rule"), ("kept", "last_kept"), ("why", "last_why")];
    for (name, shown) in names.into_iter().chain([("at", "last_at")]) {
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
        None => all_blobs(&client, "")?.into_iter().map(|blob| blob.digest).collect(),
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

fn all_blobs(client: &AdminClient, filter: &str) -> Result<Vec<BlobView>, Failure> {
    let (mut blobs, mut after) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/v1/blobs?limit=10000&filter={}{after}", escaped(filter));
        let page: Page<BlobView> = client.get(&path)?;
        blobs.extend(page.items);
        match page.next {
            Some(next) => after = format!("&after={next}"),
            None => return Ok(blobs),
        }
    }
}

fn resources<T: serde::de::DeserializeOwned>(client: &AdminClient, url: &str) -> Result<Vec<T>, Failure> {
    let page: Page<T> = client.get(&format!("/api/v1/resources?url={}", escaped(url)))?;
    if page.items.is_empty() {
        return Err(Failure::new(Exit::NotFound, format!("nothing is known about {url}"))
            .hint("give the whole URL as it was asked for; `larder ls` lists what is held"));
    }
    Ok(page.items)
}

fn digests_of(client: &AdminClient, thing: &str) -> Result<Vec<Digest>, Failure> {
    if let Some(digest) = as_digest(thing)? {
        return Ok(vec![digest]);
    }
    let found: Vec<ResourceView> = resources(client, thing)?;
    let mut digests: Vec<Digest> = Vec::new();
    for digest in found.into_iter().filter_map(|resource| resource.digest) {
        if !digests.contains(&digest) {
            digests.push(digest);
        }
    }
    if digests.is_empty() {
        return Err(Failure::new(Exit::NotFound, format!("{thing} led to no blob")));
    }
    Ok(digests)
}

/// A digest, or none if it is a URL.
fn as_digest(thing: &str) -> Result<Option<Digest>, Failure> {
    if thing.contains("://") {
        return Ok(None);
    }
    let hex = thing.strip_prefix("sha256:").unwrap_or(thing);
    Digest::from_hex(hex).map(Some).map_err(|_ignored| {
        Failure::new(Exit::NotFound, format!("`{thing}` is neither a SHA-256 digest nor a URL"))
            .hint("write sha256: and 64 hexadecimal digits, or http://…")
    })
}

/// Query text: everything but plain letters and digits escaped.
fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

fn members(out: &mut Output, things: &[Value], json: bool) -> Result<Exit, Failure> {
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
        let mut table = Table::new(&["MEMBER", "VALUE"]);
        for (name, value) in thing.as_object().into_iter().flatten() {
            let shown = as_text(value);
            table.row([name.clone(), shown]);
        }
        out.text(&table.text())?;
    }
    Ok(Exit::Done)
}

fn as_text(value: &Value) -> String {
    match (value.as_str(), value.as_array()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(items)) => items.iter().map(as_text).collect::<Vec<_>>().join(" "),
        (None, None) => value.to_string(),
    }
}
