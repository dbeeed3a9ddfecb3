//! The records of the house over REST and on the command line: one definition, every face.

use crate::support::{Answer, Larder, MIB, Origin, Script, wait_until};

fn get(a: &Larder, path: &str) -> Answer {
    a.admin_ask("GET", path).send()
}

fn json(answer: &Answer) -> serde_json::Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.text()))
}

#[test]
fn a_download_is_found_by_every_way_that_leads_to_it() {
    let origin = Origin::start();
    let a = Larder::new("a").start();
    let script = Script::new(MIB);
    let url = origin.serve("/pool/tool_1.deb", script.clone());
    a.get(&url).assert_whole(&script);
    let digest = script.digest();
    let row = format!("/api/v1/blobs/{digest}?select=transfers(state)");
    wait_until("it to be written down", || json(&get(&a, &row))["transfers"][0]["state"] == "complete");
    let blob = json(&get(&a, &format!("/api/v1/blobs/{digest}?select=*,resources(shown_url),pins(digest)")));
    assert_eq!((blob["size"].as_u64(), &blob["pins"]), (Some(MIB), &serde_json::Value::Null));
    assert_eq!(blob["resources"][0]["shown_url"].as_str(), Some(url.as_str()));
    for query in [
        "size=gte.1000&first_hand=is.true".to_owned(),
        "resources.shown_url=like.*tool_1.deb".to_owned(),
        format!("digest=eq.{digest}"),
        "transfers.state=eq.complete".to_owned(),
    ] {
        let found = json(&get(&a, &format!("/api/v1/blobs?select=digest&{query}")));
        assert_eq!(found, serde_json::json!([{"digest": digest}]), "{query}");
    }
    let known = json(&get(&a, &format!("/api/v1/resources?url=eq.{url}&select=shown_url,blobs(size)")));
    assert_eq!(known, serde_json::json!([{"shown_url": url, "blobs": {"size": MIB}}]));
    let history = json(&get(&a, "/api/v1/transfers"));
    assert_eq!((&history[0]["state"], &history[0]["received"]), (&"complete".into(), &MIB.into()));

    let labels = format!("/api/v1/labels/{digest}");
    let put = |body: &str| {
        a.admin_ask("PUT", &labels).field("Content-Type", "application/json").body(body.as_bytes()).send()
    };
    assert_eq!(put(r#"{"labels": {"team": "ops"}}"#).status, 201);
    assert_eq!(put(r#"{"labels": {"team": 5}}"#).status, 400);
    let labelled = json(&get(&a, "/api/v1/blobs?labels.team=eq.ops&select=digest,labels(labels,version)"));
    assert_eq!(labelled[0]["labels"], serde_json::json!({"labels": {"team": "ops"}, "version": 1}));

    let listed = a.cli(&["ls", "tool_1"]).assert_code(0).stdout;
    assert!(listed.contains("/pool/tool_1.deb") && listed.contains("LAST USED"), "{listed}");
    assert!(!a.cli(&["ls", "no-such"]).assert_code(0).stdout.contains("/pool/"));
    assert!(a.cli(&["ls", &digest[7..17]]).assert_code(0).stdout.contains("/pool/"), "by its beginning");
    let chosen =
        a.cli(&["ls", "--where", "labels.team=eq.ops", "--columns", "size,hits"]).assert_code(0).stdout;
    assert!(chosen.starts_with(" ") || chosen.starts_with("SIZE"), "{chosen}");
    let wrong = a.cli(&["ls", "--where", "colour=eq.red"]);
    assert!(wrong.code != 0 && wrong.said().contains("no field of that name"), "{}", wrong.said());
    let info = a.cli(&["info", &digest]).assert_code(0).stdout;
    assert!(info.contains("How often it was read.") && info.contains("ops"), "{info}");
    assert!(a.cli(&["transfers", "--all"]).assert_code(0).stdout.contains("complete"));
    let events = a.cli(&["events"]).assert_code(0).stdout;
    assert!(events.contains("PUT") && events.contains("/api/v1/labels/"), "{events}");
    let help = a.cli(&["ls", "--help"]).assert_code(0).stdout;
    assert!(help.contains("Length in bytes."), "{help}");

    assert_eq!(a.admin_ask("DELETE", &format!("/api/v1/blobs/{digest}")).send().status, 204);
    assert_eq!(get(&a, &format!("/api/v1/blobs/{digest}")).status, 404);
    a.get(&url).assert_whole(&script);
    wait_until("the labels to lead to the blob again", || {
        json(&get(&a, "/api/v1/blobs?labels.team=eq.ops&select=digest"))
            .as_array()
            .is_some_and(|all| all.len() == 1)
    });
}

#[test]
fn labels_and_history_outlive_a_restart() {
    let origin = Origin::start();
    let mut a = Larder::new("a").start();
    let script = Script::new(1000);
    a.get(&origin.serve("/f.bin", script.clone())).assert_whole(&script);
    let row = format!(r#"{{"digest": "{}", "labels": {{"a": "b"}}}}"#, script.digest());
    let posted = a
        .admin_ask("POST", "/api/v1/labels")
        .field("Content-Type", "application/json")
        .body(row.as_bytes())
        .send();
    assert_eq!(posted.status, 201, "{}", posted.text());
    a.restart();
    assert_eq!(json(&get(&a, "/api/v1/labels"))[0]["labels"]["a"], "b");
    assert_eq!(json(&get(&a, "/api/v1/transfers"))[0]["state"], "complete");
    assert_eq!(json(&get(&a, "/api/v1/events"))[0]["status"], 201);
    assert!(json(&get(&a, "/api/v1/usage"))[0]["requests"].as_u64().is_some_and(|requests| requests >= 1));
}

#[test]
fn a_lock_from_outside_is_no_error_of_a_download() {
    let origin = Origin::start();
    let a = Larder::new("a").start();
    let script = Script::new(1000);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    let known = |answer: &Answer| json(answer).as_array().map(Vec::len);
    wait_until("the row to be written", || known(&get(&a, "/api/v1/blobs")) == Some(1));
    let outside = rusqlite::Connection::open(a.state_dir().join("index.db")).unwrap();
    outside.execute_batch("BEGIN EXCLUSIVE").unwrap();
    for _ in 0..20 {
        a.get(&url).assert_whole(&script);
    }
    let listed = get(&a, "/api/v1/blobs");
    assert_eq!((listed.status, known(&listed)), (200, Some(1)));
    outside.execute_batch("COMMIT").unwrap();
    wait_until("the hits to be written", || {
        json(&get(&a, "/api/v1/blobs"))[0]["hits"].as_u64().is_some_and(|hits| hits >= 20)
    });
}

/// What people try who hope that a value becomes a statement.
const INJECTIONS: [&str; 26] = [
    "' OR '1'='1",
    "' OR 1=1 --",
    "\" OR \"\"=\"",
    "1; DROP TABLE labels",
    "1'; DROP TABLE labels; --",
    "x') UNION SELECT value FROM settings --",
    "x' UNION ALL SELECT name, sql FROM sqlite_schema --",
    "1 OR 1=1",
    "1)) OR ((1=1",
    "(SELECT count(*) FROM settings)",
    "'||(SELECT value FROM settings)||'",
    "\\'; DELETE FROM labels; --",
    "%27%20OR%201=1",
    "1/**/OR/**/1=1",
    "'; ATTACH DATABASE '/tmp/x' AS x; --",
    "'; PRAGMA writable_schema=1; --",
    "load_extension('x')",
    "randomblob(1000000000)",
    "CASE WHEN 1=1 THEN 1 ELSE 0 END",
    "1 LIMIT 1 OFFSET 1",
    "$.team' OR '1'='1",
    "team\" OR 1=1",
    "\u{2019} OR 1=1",
    "\0' OR 1=1",
    "?1",
    "*",
];

/// In SQL itself a value stays a value, and a statement that does more than read does nothing; how many were tried.
fn asked_in_sql(a: &Larder) -> usize {
    let mut asked = 0;
    for value in INJECTIONS {
        let inquire = |body: serde_json::Value| {
            let ask = a.admin_ask("POST", "/api/v1/sql").field("Content-Type", "application/json");
            ask.body(body.to_string().as_bytes()).send()
        };
        let bound = inquire(serde_json::json!({"sql": "SELECT ?1 AS given", "parameters": [value]}));
        assert_eq!((bound.status, &json(&bound)["rows"][0][0]), (200, &value.into()), "{}", bound.text());
        for sql in [
            value.to_owned(),
            format!("SELECT digest FROM blobs WHERE digest = '{value}'"),
            format!("SELECT 1; DELETE FROM labels; {value}"),
        ] {
            let answer = inquire(serde_json::json!({"sql": sql}));
            assert!([200, 400].contains(&answer.status), "{sql}: {} {}", answer.status, answer.text());
            asked += 1;
        }
    }
    asked
}

/// Questions with a value in every place that takes one.
fn queries(columns: &serde_json::Map<String, serde_json::Value>, number: usize, value: &str) -> Vec<String> {
    // each column meets each form with some of the values
    let filters = columns.keys().enumerate().flat_map(|(at, column)| {
        let by = |operator: &str| format!("{column}={operator}{value}");
        let member = format!("{column}.{value}=eq.x");
        let group = format!("or=({column}.eq.{value})");
        let forms = [by("eq."), by("in.("), by("not.gt."), by("like."), by(""), member, group];
        [0, 3].map(|more| forms[(at + number + more) % forms.len()].clone())
    });
    let others = [
        "select=",
        "select=digest:",
        "order=",
        "limit=",
        "offset=",
        "cursor=",
        "or=(",
        "and=(",
        "not.or=(",
        "not.and=(",
        "url=eq.",
        "record=",
    ]
    .map(|name| format!("{name}{value}"));
    filters.chain(others).chain([format!("{value}=eq.1")]).collect()
}

#[test]
fn no_value_becomes_a_statement() {
    let (a, origin) = (Larder::new("a").start(), Origin::start());
    let script = Script::new(1000);
    a.get(&origin.serve("/f.bin", script.clone())).assert_whole(&script);
    let digest = a.wait_for_blob(&script.digest());
    let labels = format!("/api/v1/labels/{}", script.digest());
    let body = br#"{"labels": {"team": "ops"}}"#;
    let put = a.admin_ask("PUT", &labels).field("Content-Type", "application/json").body(body).send();
    assert_eq!(put.status, 201);
    let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let description = json(&get(&a, "/api/openapi.json"));
    let shown = ["blobs", "labels", "settings", "usage", "resources", "digests", "expectations", "cuts"];
    let count = |table: &str| {
        let all =
            a.admin_ask("GET", &format!("/api/v1/{table}?limit=1")).field("Prefer", "count=exact").send();
        (all.status, all.field("content-range").map(str::to_owned))
    };
    let before: Vec<_> = shown.iter().map(|table| count(table)).collect();
    let (mut asked, mut refused) = (0, 0);
    for (table, schema) in description["components"]["schemas"].as_object().unwrap() {
        let known = description["paths"].get(format!("/api/v1/{table}")).is_some();
        let Some(columns) = schema["properties"].as_object().filter(|_| known) else { continue };
        let mut connection = crate::support::Connection::to(a.admin()).unwrap();
        let token = std::fs::read_to_string(a.state_dir().join("admin.token")).unwrap();
        let mut ask = |path: String| {
            let head = format!("Host: {}\r\nAuthorization: Bearer {}\r\n\r\n", a.admin(), token.trim());
            connection.write(format!("GET {path} HTTP/1.1\r\n{head}").as_bytes()).unwrap();
            connection.answer("GET")
        };
        for (number, value) in INJECTIONS.map(encoded).into_iter().enumerate() {
            for query in queries(columns, number, &value) {
                let answer = ask(format!("/api/v1/{table}?{query}"));
                assert!([200, 400].contains(&answer.status), "{query}: {} {}", answer.status, answer.text());
                let text = answer.text();
                assert!(!text.contains("CREATE TABLE") && !text.contains("syntax error"), "{query}: {text}");
                (asked, refused) = (asked + 1, refused + usize::from(answer.status == 400));
            }
            let key = ask(format!("/api/v1/{table}/{value}"));
            assert!([400, 404].contains(&key.status), "{table}/{value}: {} {}", key.status, key.text());
        }
    }
    asked += asked_in_sql(&a);
    let after: Vec<_> = shown.iter().map(|table| count(table)).collect();
    println!("{asked} questions, {refused} refused, 0 effects");
    assert!(asked > 4000);
    assert_eq!(before, after);
    assert_eq!(json(&get(&a, &labels))["labels"]["team"], "ops");
    assert!(digest.exists());
}

#[test]
fn a_row_asked_for_again_is_the_row_of_now_and_only_for_administrators() {
    let origin = Origin::start();
    let a = Larder::new("a").start();
    let script = Script::new(1000);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    let path = format!("/api/v1/blobs/{}", script.digest());
    let hits = || json(&get(&a, &path))["hits"].as_u64();
    wait_until("the blob to be known", || hits().is_some());
    let first = hits().unwrap();
    for more in 1..4 {
        a.get(&url).assert_whole(&script);
        wait_until("the hit to be counted", || hits() >= Some(first + more));
        // once asked it is at hand, and stays what it is
        assert_eq!((hits(), hits()), (Some(first + more), Some(first + more)));
    }
    assert_eq!(a.admin_ask_without_token("GET", &path).send().status, 401);
    assert_eq!(a.admin_ask("GET", &path).field("Sec-Fetch-Site", "cross-site").send().status, 200);
    assert_eq!(get(&a, &path).field("x-content-type-options"), Some("nosniff"));
    assert_eq!(a.admin_ask("DELETE", &path).send().status, 204);
    assert_eq!(get(&a, &path).status, 404);
}
