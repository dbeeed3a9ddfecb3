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
