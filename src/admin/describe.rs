//! The API described: for programs as OpenAPI, for people as a page of this binary. Neither names anything that
//! is kept here, so both are open.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::page;
use super::server::Shared;
use crate::rest::ActionDoc;

pub(super) async fn openapi(State(shared): State<Arc<Shared>>) -> Response {
    Json(shared.api.openapi(shared.sources.about.version)).into_response()
}

pub(super) async fn docs(State(shared): State<Arc<Shared>>) -> Response {
    page::response(&shared.docs)
}

/// What can be done besides reading and changing rows.
pub(super) fn actions() -> Vec<ActionDoc> {
    with_blobs()
        .into_iter()
        .chain(with_the_node())
        .chain(log())
        .chain([blocks(), fetches()])
        .chain(looks())
        .chain(session())
        .collect()
}

/// What can be done with what is kept.
fn with_blobs() -> Vec<ActionDoc> {
    vec![
        action(
            "POST",
            "/blobs/{key}/verify",
            "Read a blob again and compare it with its digest",
            None,
            (
                200,
                Some(object(json!({"digest": text(), "sound": {"type": "boolean"}}), &["digest", "sound"])),
            ),
        ),
        action(
            "PUT",
            "/blobs/{key}/content",
            "Store a blob: its bytes as application/octet-stream",
            Some(json!({"type": "string", "format": "binary"})),
            (201, Some(object(json!({"digest": text(), "size": whole()}), &["digest", "size"]))),
        ),
        action(
            "POST",
            "/imports",
            "Note answers, as `resources` lists them, for blobs that are held",
            Some(object(json!({"resources": {"type": "array", "items": answer()}}), &["resources"])),
            (
                200,
                Some(object(
                    json!({"answers": whole(), "passed_over": whole()}),
                    &["answers", "passed_over"],
                )),
            ),
        ),
        action("PUT", "/blobs/{key}/pin", "Keep a blob from eviction", None, (204, None)),
        action("DELETE", "/blobs/{key}/pin", "Let a blob be evicted again", None, (204, None)),
    ]
}

/// What nobody shall have.
fn blocks() -> ActionDoc {
    let thing = json!({"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"});
    let reason = json!({"type": ["string", "null"], "minLength": 1, "maxLength": 200});
    action(
        "POST",
        "/blocks",
        "Let nobody have a blob, or what a URL leads to",
        Some(object(
            json!({"thing": thing, "reason": reason, "site": {"type": "boolean", "default": false}}),
            &["thing"],
        )),
        (
            201,
            Some(object(
                json!({"thing": text(), "shown": text(), "reason": text(), "removed": {"type": "boolean"}}),
                &["thing", "shown", "reason", "removed"],
            )),
        ),
    )
}

/// URLs that are surely some; where many are meant, a star may end them.
const URL: &str =
    r"^https?://[a-z0-9]{1,30}(\.[a-z0-9]{1,30}){0,4}(:[1-9][0-9]{0,3})?/[A-Za-z0-9/._~-]{0,200}\*?$";

/// What can be done with the node.
fn with_the_node() -> Vec<ActionDoc> {
    let duration = json!({"type": ["string", "null"], "pattern": "^[1-9][0-9]{0,3}[smhd]$"});
    let size = json!({"type": ["string", "null"], "pattern": "^[1-9][0-9]{0,6}(KiB|MiB|GiB)$"});
    let address = json!({"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]});
    let url = json!({"type": "string", "pattern": URL});
    vec![
        action(
            "POST",
            "/bans",
            "Refuse an address at the peer port",
            Some(object(json!({"address": address, "duration": duration}), &["address"])),
            (201, Some(object(json!({"address": text(), "reason": text(), "until": text()}), &["address"]))),
        ),
        action(
            "POST",
            "/gc",
            "Make room: down to this size, or to the configured limits",
            Some(object(json!({"to": size}), &[])),
            (200, Some(object(json!({"removed": whole(), "bytes": whole()}), &["removed", "bytes"]))),
        ),
        action(
            "POST",
            "/purges",
            "Forget what a URL led to, or all that begin with what stands before a *",
            Some(object(json!({"url": url, "dry_run": {"type": "boolean"}}), &["url"])),
            (
                200,
                Some(object(
                    json!({"answers": whole(), "blobs": whole(), "bytes": whole(), "pinned": whole(), "dry_run": {"type": "boolean"}}),
                    &["answers", "blobs", "bytes", "pinned", "dry_run"],
                )),
            ),
        ),
        action(
            "POST",
            "/reload",
            "Read the configuration again",
            None,
            (
                200,
                Some(object(
                    json!({"applied": list(), "need_restart": list()}),
                    &["applied", "need_restart"],
                )),
            ),
        ),
    ]
}

/// The log.
fn log() -> Vec<ActionDoc> {
    let level = || object(json!({"level": text(), "configured": text()}), &["level", "configured"]);
    let one = ["error", "warn", "info", "debug", "trace", "off"].join("|");
    let wanted = json!({"type": ["string", "null"], "pattern": format!("^({one})$"), "description":
        "A level, or the filter syntax of tracing such as info,larder::peer=debug; null: as configured"});
    let change = "Change what the log writes, until the configuration is read again";
    vec![
        action("GET", "/log", "What the log writes", None, (200, Some(level()))),
        action(
            "PUT",
            "/log",
            change,
            Some(object(json!({"level": wanted}), &["level"])),
            (200, Some(level())),
        ),
    ]
}

/// What can be looked at besides records.
fn looks() -> Vec<ActionDoc> {
    let setting = object(json!({"key": text(), "value": {}, "from": text()}), &["key", "value", "from"]);
    let settings = json!({"type": "array", "items": setting});
    let why = "Which rule holds for a URL, what is expected of it, and why its last answer was kept or not";
    let explained = json!({"type": "object", "required": ["url"], "properties": {"url": text()}});
    let explanation = action("GET", "/explanation", why, None, (200, Some(explained)));
    vec![
        action(
            "GET",
            "/configuration",
            "The settings in force, each with where it came from",
            None,
            (200, Some(settings)),
        ),
        ActionDoc { query: &[("url", "The whole URL, as a program asks for it.", URL)], ..explanation },
    ]
}

/// Logging in and out.
fn session() -> Vec<ActionDoc> {
    let who = || object(json!({"name": text(), "role": text()}), &["name", "role"]);
    let by_token = object(json!({"token": text()}), &["token"]);
    let by_name = object(json!({"name": text(), "password": text()}), &["name", "password"]);
    let login = json!({"oneOf": [by_token, by_name]});
    let open = |action| ActionDoc { is_open: true, ..action };
    let log_in = "Log in with the token, or with name and password, for a cookie";
    vec![
        open(action("POST", "/session", log_in, Some(login), (200, Some(who())))),
        action("GET", "/session", "Who one is", None, (200, Some(who()))),
        open(action("DELETE", "/session", "Log out", None, (204, None))),
    ]
}

/// An answer as `resources` lists it.
fn answer() -> Value {
    let key = json!({"type": "string", "pattern": "^[0-9a-f]{64}$"});
    let digest = json!({"type": ["string", "null"], "pattern": "^sha256:[0-9a-f]{64}$"});
    let pair = |second: Value| json!({"type": "array", "prefixItems": [text(), second], "items": false, "minItems": 2});
    let list = |of: Value| json!({"type": "array", "items": of});
    let size = json!({"type": "integer", "minimum": 0, "maximum": u64::MAX});
    let status = json!({"type": "integer", "minimum": 100, "maximum": 599});
    // what is kept of an answer may come from a node that keeps more of it
    let kept = |members: Value, required: &[&str]| json!({"type": "object", "properties": members, "required": required});
    let head = kept(json!({"status": status, "fields": list(pair(text()))}), &["status", "fields"]);
    let times =
        json!({"head": head, "request_time": size, "response_time": size, "queried": {"type": "boolean"}});
    let answer = kept(times, &["head", "request_time", "response_time"]);
    let fields = json!({
        "url_key": key, "resource_key": key, "shown_url": text(), "variance": list(pair(key)),
        "answer": answer, "digest": digest, "size": size, "shareable": {"type": "boolean"},
    });
    let needed = ["url_key", "resource_key", "shown_url", "variance", "answer", "size", "shareable"];
    // what it says of its provenance is passed over
    json!({"type": "object", "properties": fields, "required": needed})
}

/// Fetching for later.
fn fetches() -> ActionDoc {
    let outcomes = ["held", "peer", "origin", "passed", "failed", "late"];
    let outcome = json!({"type": "string", "enum": outcomes});
    let item = json!({"url": text(), "outcome": outcome, "bytes": whole(), "why": text()});
    let item = object(item, &["url", "outcome", "bytes"]);
    let urls = json!({"type": "array", "items": text(), "minItems": 1, "maxItems": 1000});
    let deadline = json!({"type": ["string", "null"], "pattern": "^[1-9][0-9]{0,3}[smhd]$"});
    let takes = object(json!({"urls": urls, "deadline": deadline}), &["urls"]);
    let gives = object(json!({"items": {"type": "array", "items": item}}), &["items"]);
    let doc = "Fetch things for later: `[DIGEST@]URL` each, within ten minutes at most";
    action("POST", "/fetches", doc, Some(takes), (200, Some(gives)))
}

fn action(
    method: &'static str,
    path: &'static str,
    doc: &'static str,
    takes: Option<Value>,
    gives: (u16, Option<Value>),
) -> ActionDoc {
    ActionDoc { method, path, doc, query: &[], is_open: false, takes, gives }
}

fn text() -> Value {
    json!({"type": "string"})
}

fn whole() -> Value {
    json!({"type": "integer"})
}

fn list() -> Value {
    json!({"type": "array", "items": text()})
}

fn object(members: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": members, "required": required, "additionalProperties": false})
}
