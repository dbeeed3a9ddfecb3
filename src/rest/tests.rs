//! A small dairy as an API, on SQLite and in memory: every answer is the same on both.
#![expect(dead_code, reason = "nobody asks for these columns by their names in Rust")]

mod repeat;

use std::collections::BTreeMap;
use std::sync::Arc;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::*;
use crate::clock::SystemClock;
use crate::orm::{Cell, Record as _};
use crate::orm::{
    Changes, Condition, Database, DbError, Feed, Memory, Operator, Place, Schema, Shared, Writer,
};
use crate::telemetry::Health;

crate::record! {
    /// A cheese on the shelf.
    #[derive(Debug, Clone, PartialEq)]
    pub(super) struct Cheese in "cheeses", columns CheeseColumns {
        key {
            /// Its number.
            id: i64,
        }
        /// What is on it.
        name: String [unique],
        /// Grams left.
        grams: u64 [index, default = "100", check = "grams <> 13"],
        /// Who brought it.
        bringer: Option<String>,
        /// Whether it is good.
        good: bool [default = "1"],
        /// Words on it.
        labels: BTreeMap<String, String> [json, default = "'{}'", member_index = "team"],
        /// Counts its changes.
        version: u64 [version],
    }
}

crate::record! {
    /// A bite of a cheese.
    #[derive(Debug, Clone, PartialEq)]
    pub(super) struct Bite in "bites" [without_rowid], columns BiteColumns {
        key {
            /// Of what.
            cheese: i64 [relates = "cheeses(id)"],
            /// Who.
            eater: String,
        }
        /// How deep.
        depth: f64 [default = "0.5"],
        /// Counts its changes.
        version: u64 [version],
    }
}

static DAIRY: Schema = Schema { application_id: 11, tables: &[Cheese::TABLE, Bite::TABLE], steps: &[] };

struct Nothing;

impl Changes for Nothing {
    type Batch = ();

    fn take(&self) -> Option<()> {
        None
    }

    fn write(&self, _: &(), _: &Database) -> Result<(), DbError> {
        Ok(())
    }

    fn put_back(&self, _: ()) {}

    fn reopen(&self, _: Option<&DbError>) -> Result<Database, DbError> {
        Err(DbError::Missing)
    }
}

fn api(rows: Rows) -> Api {
    let cheeses =
        Resource::of::<Cheese>(Arc::clone(&rows)).writable().found_by("called", "By its name.", |text| {
            Condition::Compare(Place::column("name"), Operator::Equal, Cell::Text(text.to_owned().into()))
        });
    Api::new(Feed::new()).with(cheeses).with(Resource::of::<Bite>(rows).writable())
}

/// Calls `story` with each kind of engine.
fn on_each(story: impl Fn(&Api)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dairy.db");
    let writer =
        Writer::start(Database::open(&path, &DAIRY).unwrap(), Arc::new(Nothing), Health::new(), "test");
    let shared = Shared::new(&path, &DAIRY, Arc::new(writer.unwrap()), SystemClock::shared());
    story(&api(Arc::new(shared)));
    story(&api(Arc::new(Memory::new())));
}

struct Answer {
    status: u16,
    headers: HeaderMap,
    text: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    fn field(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

fn read(response: Response<crate::http::Body>) -> Answer {
    let (parts, body) = response.into_parts();
    let bytes = futures_util::FutureExt::now_or_never(body.collect()).unwrap().unwrap().to_bytes();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    Answer { status: parts.status.as_u16(), headers: parts.headers, text }
}

fn send(api: &Api, method: &str, target: &str, fields: &[(&str, &str)], body: &Value) -> Answer {
    let method: Method = method.parse().unwrap();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    for (name, value) in fields {
        let name: HeaderName = name.parse().unwrap();
        headers.insert(name, value.parse().unwrap());
    }
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let ask = Ask { method: &method, path, query, headers: &headers, body: body.as_bytes() };
    read(api.answer(path, &ask))
}

fn get(api: &Api, target: &str) -> Answer {
    send(api, "GET", target, &[], &Value::Null)
}

fn fill(api: &Api) {
    let cheeses = json!([
        {"id": 1, "name": "brie", "grams": 10, "bringer": "ann", "labels": {"team": "ops"}},
        {"id": 2, "name": "edam", "grams": 30, "good": false},
        {"id": 3, "name": "feta, old", "labels": {"team": "dev", "x-y": "1"}},
        {"id": 4, "name": "=gouda", "grams": 10, "bringer": "bob"},
    ]);
    assert_eq!(send(api, "POST", "/cheeses", &[], &cheeses).status, 201);
    let bites = json!([
        {"cheese": 1, "eater": "mouse"}, {"cheese": 1, "eater": "rat", "depth": 2.0}, {"cheese": 9, "eater": "cat"},
    ]);
    assert_eq!(send(api, "POST", "/bites", &[], &bites).status, 201);
}

fn ids(answer: &Answer) -> Vec<i64> {
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json().as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()).collect()
}

#[test]
fn filters_find_what_they_say() {
    on_each(|api| {
        fill(api);
        for (query, expected) in [
            ("", vec![1, 2, 3, 4]),
            ("grams=gt.10", vec![2, 3]),
            ("grams=gte.10&grams=lt.100", vec![1, 2, 4]),
            ("name=like.*e*", vec![1, 2, 3]),
            ("name=like.*E*", vec![]),
            ("name=ilike.*E*", vec![1, 2, 3]),
            ("name=eq.feta,%20old", vec![3]),
            ("name=in.(brie,%22feta,%20old%22)", vec![1, 3]),
            ("id=in.(1,2,99)", vec![1, 2]),
            ("id=not.in.(1,2)", vec![3, 4]),
            ("bringer=is.null", vec![2, 3]),
            ("bringer=is.not_null", vec![1, 4]),
            ("bringer=neq.ann", vec![2, 3, 4]),
            ("bringer=not.eq.ann", vec![2, 3, 4]),
            ("good=is.true", vec![1, 3, 4]),
            ("good=eq.false", vec![2]),
            ("labels.team=eq.ops", vec![1]),
            ("labels.x-y=eq.1", vec![3]),
            ("labels.team=is.null", vec![2, 4]),
            ("or=(grams.gt.50,bringer.eq.bob)", vec![3, 4]),
            ("or=(and(grams.eq.10,bringer.eq.ann),labels.team.eq.dev)", vec![1, 3]),
            ("and=(grams.eq.10,not.or(bringer.eq.ann))", vec![4]),
            ("not.or=(id.eq.1,id.eq.2)", vec![3, 4]),
            ("called=eq.brie", vec![1]),
            ("bites.eater=eq.rat", vec![1]),
            ("bites.depth=gte.0.5", vec![1]),
            ("or=(bites.eater.eq.mouse,id.eq.3)", vec![1, 3]),
            ("not.or=(bites.eater.like.*)", vec![2, 3, 4]),
            ("order=grams.desc,name&limit=2", vec![3, 2]),
            ("order=grams,id.desc", vec![4, 1, 2, 3]),
            ("order=labels.team.desc&limit=2", vec![1, 3]),
            ("offset=3", vec![4]),
        ] {
            assert_eq!(ids(&get(api, &format!("/cheeses?{query}"))), expected, "{query}");
        }
    });
}

#[test]
fn what_is_wrong_is_named_with_what_is_allowed() {
    on_each(|api| {
        fill(api);
        for (query, field, allowed) in [
            ("gramms=gt.1", "gramms", "grams"),
            ("grams=over.1", "grams", "gte"),
            ("grams=gt.many", "grams", ""),
            ("grams=gt.-1", "grams", ""),
            ("grams=like.1*", "grams", ""),
            ("name.x=eq.1", "name", ""),
            ("labels.a'b=eq.1", "labels", ""),
            ("good=is.maybe", "good", "true"),
            ("order=gramms", "gramms", "grams"),
            ("select=gramms", "gramms", "bites(…)"),
            ("select=bits(eater)", "bits", "bites"),
            ("select=bites(cheeses(bites(cheeses(id))))", "select", ""),
            ("limit=0", "limit", ""),
            ("limit=10001", "limit", ""),
            ("limit=1&limit=2", "limit", ""),
            ("cursor=abc", "cursor", ""),
            ("or=(grams.gt.1", "or", ""),
            ("or=(or(or(or(or(id.eq.1)))))", "or", ""),
            ("name=eq.%ff", "query", ""),
            ("called=gt.x", "called", "eq"),
            ("bites=eq.1", "bites", "bites.…"),
            ("bites.tail=eq.1", "tail", "eater"),
            ("bites.depth=eq.deep", "depth", ""),
        ] {
            let answer = get(api, &format!("/cheeses?{query}"));
            assert_eq!(
                (answer.status, answer.field("content-type")),
                (400, "application/problem+json"),
                "{query}"
            );
            let problem = answer.json();
            assert_eq!(problem["field"], field, "{query}: {problem}");
            let has = problem["allowed"].as_array().is_some_and(|all| all.iter().any(|one| one == allowed));
            assert_eq!(has, !allowed.is_empty(), "{query}: {problem}");
        }
        assert_eq!(get(api, "/cheese").status, 404);
        assert_eq!(get(api, "/cheeses/x").json()["field"], "id");
        assert_eq!(get(api, "/bites/1").json()["field"], "key");
    });
}

#[test]
fn fields_and_neighbours_are_chosen() {
    on_each(|api| {
        fill(api);
        let rows =
            get(api, "/cheeses?select=id,called:name,team:labels.team,bites(eater,depth)&id=lte.2").json();
        assert_eq!(
            rows,
            json!([
                {"id": 1, "called": "brie", "team": "ops",
                    "bites": [{"eater": "mouse", "depth": 0.5}, {"eater": "rat", "depth": 2.0}]},
                {"id": 2, "called": "edam", "team": null, "bites": []},
            ])
        );
        let rows = get(api, "/bites?select=eater,of:cheeses(name,bites(eater))&order=eater").json();
        assert_eq!(
            rows,
            json!([
                {"eater": "cat", "of": null},
                {"eater": "mouse", "of": {"name": "brie", "bites": [{"eater": "mouse"}, {"eater": "rat"}]}},
                {"eater": "rat", "of": {"name": "brie", "bites": [{"eater": "mouse"}, {"eater": "rat"}]}},
            ])
        );
        let one = get(api, "/cheeses/1?select=name,bites()").json();
        assert_eq!(one["bites"][1]["depth"], 2.0);
    });
}

#[test]
fn pages_are_linked_and_counted() {
    on_each(|api| {
        fill(api);
        let more: Vec<Value> =
            (10..47).map(|id| json!({"id": id, "name": format!("n{id}"), "grams": id % 5})).collect();
        assert_eq!(send(api, "POST", "/cheeses", &[], &json!(more)).status, 201);
        let counted =
            send(api, "GET", "/cheeses?grams=lt.5&limit=5", &[("prefer", "count=exact")], &Value::Null);
        assert_eq!(counted.field("content-range"), "0-4/37");
        assert_eq!(counted.field("preference-applied"), "count=exact");
        let mut target = "/cheeses?select=id&order=grams.desc,name&limit=7".to_owned();
        let mut seen = Vec::new();
        loop {
            let page = get(api, &target);
            seen.extend(ids(&page));
            let link = page.field("link").to_owned();
            if link.is_empty() {
                break;
            }
            target = link.trim_start_matches('<').split('>').next().unwrap().to_owned();
            assert!(target.contains("order=grams.desc,name&limit=7&cursor="), "{target}");
        }
        assert_eq!(seen, ids(&get(api, "/cheeses?select=id&order=grams.desc,name")));
        assert_eq!(seen.len(), 41);
        let other_order = target.replace("grams.desc", "grams");
        assert_eq!(get(api, &other_order).json()["field"], "cursor");
    });
}

#[test]
fn rows_come_in_the_form_that_is_accepted() {
    on_each(|api| {
        fill(api);
        let as_form =
            |accept| send(api, "GET", "/cheeses?select=id,name,bringer", &[("accept", accept)], &Value::Null);
        let csv = as_form("text/csv");
        assert_eq!(csv.field("content-type"), "text/csv; charset=utf-8");
        assert_eq!(
            csv.text,
            "id,name,bringer\r\n1,brie,ann\r\n2,edam,\r\n3,\"feta, old\",\r\n4,'=gouda,bob\r\n"
        );
        let lines = as_form("application/x-ndjson");
        let rows: Vec<Value> = lines.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(json!(rows), as_form("*/*").json());
        assert_eq!(
            as_form("text/csv;q=0.1, application/json;q=0.5").field("content-type"),
            "application/json"
        );
        let refused = as_form("image/png");
        assert_eq!((refused.status, &refused.json()["field"]), (406, &json!("Accept")));
    });
}

#[test]
fn who_changes_a_row_says_what_he_has_seen() {
    on_each(|api| {
        fill(api);
        let read = get(api, "/cheeses/1");
        assert_eq!(read.field("etag"), "\"v1\"");
        let fresh = send(api, "GET", "/cheeses/1", &[("if-none-match", "\"v1\"")], &Value::Null);
        assert_eq!((fresh.status, fresh.text.as_str()), (304, ""));
        let patch = json!({"grams": 5, "labels": {"team": null, "by": "me"}});
        let changed = send(api, "PATCH", "/cheeses/1", &[("if-match", "\"v1\"")], &patch);
        assert_eq!((changed.status, changed.field("etag")), (200, "\"v2\""), "{}", changed.text);
        assert_eq!((&changed.json()["grams"], &changed.json()["labels"]), (&json!(5), &json!({"by": "me"})));
        for (method, body) in
            [("PATCH", patch.clone()), ("PUT", json!({"name": "x"})), ("DELETE", Value::Null)]
        {
            let late = send(api, method, "/cheeses/1", &[("if-match", "\"v1\"")], &body);
            assert_eq!(late.status, 412, "{method} {}", late.text);
        }
        assert_eq!(
            send(api, "PUT", "/cheeses/1", &[("if-none-match", "*")], &json!({"name": "x"})).status,
            412
        );
        assert_eq!(send(api, "PUT", "/cheeses/77", &[("if-match", "*")], &json!({"name": "x"})).status, 412);
        assert_eq!(send(api, "DELETE", "/cheeses/1", &[("if-match", "\"v2\"")], &Value::Null).status, 204);
        assert_eq!(get(api, "/cheeses/1").status, 404);
        assert_eq!(send(api, "DELETE", "/cheeses/1", &[], &Value::Null).status, 404);
        assert_eq!(send(api, "PATCH", "/cheeses/1", &[], &patch).status, 404);
    });
}

#[test]
fn rows_are_added_and_replaced_whole() {
    on_each(|api| {
        fill(api);
        let made = send(api, "POST", "/cheeses", &[], &json!({"id": 5, "name": "brick"}));
        assert_eq!((made.status, made.field("location"), made.field("etag")), (201, "/cheeses/5", "\"v1\""));
        assert_eq!(made.json()["grams"], 100);
        let put = send(
            api,
            "PUT",
            "/cheeses/5",
            &[],
            &json!({"id": 5, "name": "brick", "grams": 1, "version": 77}),
        );
        assert_eq!((put.status, put.field("etag")), (200, "\"v2\""), "{}", put.text);
        let bite = send(api, "PUT", "/bites/5,a%2Cb", &[], &json!({}));
        assert_eq!((bite.status, &bite.json()["eater"]), (201, &json!("a,b")));
        let minimal =
            send(api, "PUT", "/cheeses/6", &[("prefer", "return=minimal")], &json!({"name": "six"}));
        assert_eq!((minimal.status, minimal.text.as_str()), (204, ""));
        for (method, path, body, status, field) in [
            ("POST", "/cheeses", json!({"id": 1, "name": "new"}), 409, ""),
            ("POST", "/cheeses", json!({"id": 8, "name": "brie"}), 409, ""),
            ("POST", "/cheeses", json!([{"id": 8, "name": "eight"}, {"id": 1, "name": "one"}]), 409, ""),
            ("POST", "/cheeses", json!({"id": 8}), 400, "name"),
            ("POST", "/cheeses", json!({"id": 8, "name": null}), 400, "name"),
            ("POST", "/cheeses", json!({"id": "8", "name": "x"}), 400, "id"),
            ("POST", "/cheeses", json!({"id": 8, "name": "x", "gramms": 1}), 400, "gramms"),
            ("POST", "/cheeses", json!({"id": 8, "name": "x", "grams": -1}), 400, "grams"),
            ("POST", "/cheeses", json!({"id": 8, "name": "x", "labels": {"a": 1}}), 400, "labels"),
            ("POST", "/cheeses", json!({"id": 8, "name": "x", "labels": []}), 400, "labels"),
            ("POST", "/cheeses", json!([]), 400, "body"),
            ("POST", "/cheeses", json!([5]), 400, "body"),
            ("PUT", "/cheeses/8", json!({"id": 9, "name": "x"}), 400, "id"),
            ("PATCH", "/cheeses/2", json!({"id": 9}), 400, "id"),
            ("PATCH", "/cheeses/2", json!({"labels": {"a": {"b": 1}}}), 400, "labels"),
            ("PATCH", "/cheeses/2", json!([]), 400, "body"),
            ("PUT", "/cheeses/8?select=id", json!({"name": "x"}), 400, "query"),
        ] {
            let answer = send(api, method, path, &[], &body);
            assert_eq!(answer.status, status, "{method} {path} {body}: {}", answer.text);
            assert_eq!(answer.json()["field"].as_str().unwrap_or(""), field, "{method} {path} {body}");
        }
        assert_eq!(get(api, "/cheeses/8").status, 404, "nothing of a list that failed is there");
        let merge = [("prefer", "resolution=merge-duplicates")];
        assert_eq!(
            send(api, "POST", "/cheeses", &merge, &json!([{"id": 2, "name": "edam"}])).json()[0]["version"],
            2
        );
        let text = send(api, "POST", "/cheeses", &[("content-type", "text/plain")], &json!({}));
        assert_eq!(text.status, 415);
    });
}

#[test]
fn a_batch_is_done_or_not() {
    on_each(|api| {
        fill(api);
        let batch = |last: Value| {
            json!([
                {"method": "POST", "resource": "cheeses", "row": {"id": 20, "name": "twenty"}},
                {"method": "PUT", "resource": "bites", "key": "20,cow", "row": {"depth": 1.5}},
                {"method": "DELETE", "resource": "cheeses", "key": "4"},
                last,
            ])
        };
        for (bad, status) in [
            (json!({"method": "DELETE", "resource": "cheeses", "key": "77"}), 404),
            (json!({"method": "DELETE", "resource": "cheeses", "key": "1", "version": 9}), 412),
            (json!({"method": "POST", "resource": "cheeses", "row": {"id": 1, "name": "again"}}), 409),
            (json!({"method": "POST", "resource": "cheeses", "row": {"id": 1}}), 400),
            (json!({"method": "POST", "resource": "nothing", "row": {}}), 400),
            (json!({"method": "GET", "resource": "cheeses", "key": "1"}), 400),
        ] {
            let answer = send(api, "POST", "/batch", &[], &batch(bad.clone()));
            assert_eq!(
                (answer.status, &answer.json()["operation"]),
                (status, &json!(3)),
                "{bad}: {}",
                answer.text
            );
            assert_eq!((get(api, "/cheeses/20").status, get(api, "/cheeses/4").status), (404, 200), "{bad}");
        }
        let put = json!({"method": "PUT", "resource": "cheeses", "key": "2", "row": {"name": "edam"}, "version": 1});
        let done = send(api, "POST", "/batch", &[], &batch(put));
        let statuses: Vec<_> =
            done.json()["results"].as_array().unwrap().iter().map(|r| r["status"].clone()).collect();
        assert_eq!(statuses, [201, 200, 204, 200]);
        assert_eq!((get(api, "/cheeses/20").status, get(api, "/cheeses/4").status), (200, 404));
        assert_eq!(get(api, "/cheeses/2").json()["version"], 2);
    });
}

#[test]
fn methods_are_named() {
    on_each(|api| {
        let options = send(api, "OPTIONS", "/cheeses/1", &[], &Value::Null);
        assert_eq!((options.status, options.field("allow")), (204, "GET, HEAD, OPTIONS, PUT, PATCH, DELETE"));
        let wrong = send(api, "DELETE", "/cheeses", &[], &Value::Null);
        assert_eq!((wrong.status, wrong.field("allow")), (405, "GET, HEAD, OPTIONS, POST"));
    });
    let read = Api::new(Feed::new()).with(Resource::of::<Cheese>(Arc::new(Memory::new())));
    assert_eq!(send(&read, "POST", "/cheeses", &[], &json!({})).field("allow"), "GET, HEAD, OPTIONS");
}

/// Texts that would do harm where one of them became a part of a statement.
const EVIL: [&str; 16] = [
    "' OR '1'='1",
    "\" OR 1=1 --",
    "1; DROP TABLE cheeses; --",
    "1) OR (1=1",
    "x' UNION SELECT sql FROM sqlite_schema --",
    "') ; ATTACH DATABASE '/tmp/x' AS x; --",
    "\\' OR 1=1 #",
    "?1",
    ":id",
    "%00",
    "0x31",
    "1/**/OR/**/1=1",
    "$.\"team\"') OR 1=1 --",
    "\u{201c}; DELETE FROM cheeses",
    "CAST(1 AS TEXT)",
    "load_extension('x')",
];

#[test]
fn o13_nothing_of_a_filter_becomes_a_statement() {
    on_each(|api| {
        fill(api);
        let before = get(api, "/cheeses").text;
        let escaped = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
        let mut asked = 0;
        for evil in EVIL.map(escaped) {
            for operator in ["eq", "neq", "gt", "gte", "lt", "lte", "like", "ilike", "is", "not.eq"] {
                for field in ["name", "bringer", "labels.team", "labels.other"] {
                    let answer = get(api, &format!("/cheeses?{field}={operator}.{evil}&select=id"));
                    assert!(
                        answer.status == 200 || answer.status == 400,
                        "{field} {operator} {evil}: {}",
                        answer.text
                    );
                    asked += 1;
                }
            }
            for query in [
                format!("name=eq.{evil}"),
                format!("name=in.({evil})"),
                format!("name=like.{evil}"),
                format!("or=(name.eq.{evil},name.eq.{evil})"),
                format!("labels.{evil}=eq.1"),
            ] {
                let answer = get(api, &format!("/cheeses?{query}"));
                assert!(answer.status == 400 || answer.json() == json!([]), "{query}: {}", answer.text);
                asked += 1;
            }
            for query in [
                format!("{evil}=eq.1"),
                format!("order={evil}"),
                format!("order=name.{evil}"),
                format!("select={evil}"),
                format!("select={evil}:name,name:{evil}"),
                format!("limit={evil}"),
                format!("offset={evil}"),
                format!("cursor={evil}"),
                format!("grams={evil}"),
                format!("id=eq.{evil}"),
            ] {
                assert_eq!(get(api, &format!("/cheeses?{query}")).status, 400, "{query}");
                asked += 1;
            }
        }
        assert_eq!(get(api, "/cheeses").text, before, "{asked} questions had no effect");
    });
}

#[test]
fn the_description_has_every_field_and_path() {
    let api = api(Arc::new(Memory::new()));
    let described = api.openapi("1");
    for path in ["/api/v1/cheeses", "/api/v1/cheeses/{key}", "/api/v1/bites/{key}", "/api/v1/batch"] {
        assert!(described["paths"].get(path).is_some(), "{path}");
    }
    let cheese = &described["components"]["schemas"]["cheeses"]["properties"];
    assert_eq!(cheese["grams"]["description"], "Grams left.");
    assert_eq!(cheese["bringer"]["type"], json!(["string", "null"]));
    assert_eq!(described["components"]["schemas"]["cheeses.new"]["required"], json!(["id", "name"]));
    let listed = described["paths"]["/api/v1/cheeses"]["get"]["parameters"].as_array().unwrap();
    for column in Cheese::TABLE.columns {
        assert!(listed.iter().any(|parameter| parameter["name"] == column.name), "{}", column.name);
    }
    let text = described.to_string();
    let references =
        text.split("\"$ref\":\"#/components/").skip(1).map(|rest| rest.split('"').next().unwrap());
    for reference in references {
        let (kind, name) = reference.split_once('/').unwrap();
        assert!(described["components"][kind].get(name).is_some(), "{reference}");
    }
}
