//! What operators see: health, status, numbers that add up, and who may see what.

use crate::support::daemon::unix_get;
use crate::support::{Ending, Larder, MIB, Origin, Script, Site, wait_until};

#[test]
fn health_and_readiness_answer_everybody() {
    let a = Larder::new("a").start();
    let health = a.admin_ask_without_token("GET", "/healthz").send();
    assert_eq!((health.status, health.text().trim()), (200, "ok"));
    assert_eq!(a.admin_ask_without_token("GET", "/readyz").send().status, 200);
    let metrics = a.admin_ask_without_token("GET", "/metrics").send();
    assert_eq!(metrics.status, 200);
    assert!(metrics.text().lines().any(|line| line.starts_with("larder_")), "{}", metrics.text());
    assert_eq!(a.admin_ask_without_token("GET", "/nothing-here").send().status, 404);
}

#[test]
fn status_has_every_member_of_the_contract() {
    let site = Site::new();
    let a = Larder::new("a").peers(&site).start();
    let b = Larder::new("b").peers(&site).start();
    a.meets(&b);
    let status = a.status();
    for pointer in [
        "/version",
        "/node",
        "/name",
        "/site",
        "/started_at",
        "/uptime_seconds",
        "/health/status",
        "/health/reasons",
        "/cache/blobs",
        "/cache/bytes",
        "/cache/max_bytes",
        "/cache/pinned",
        "/peers/0/node",
        "/peers/0/name",
        "/peers/0/address",
        "/peers/0/last_seen_seconds",
        "/peers/0/version",
        "/traffic/requests",
        "/traffic/bytes_to_clients",
        "/traffic/bytes_from_cache",
        "/traffic/bytes_from_peers",
        "/traffic/bytes_from_origin",
        "/traffic/bytes_to_peers",
        "/traffic/bytes_discarded",
        "/transfers",
        "/bans",
    ] {
        assert!(status.pointer(pointer).is_some(), "{pointer} is missing in {status}");
    }
    assert_eq!((status["name"].as_str(), status["site"].as_str()), (Some("a"), Some(site.name())));
    assert_eq!(status["health"]["status"], "ok");
    assert_eq!(status["peers"][0]["address"].as_str(), Some(b.peer().to_string().as_str()));
    assert!(!status.to_string().contains(site.secret()));
}

#[test]
fn who_has_no_token_sees_no_names_and_changes_nothing() {
    let a = Larder::new("a").start();
    let open = a.admin_ask_without_token("GET", "/status").send();
    assert_eq!(open.status, 200);
    let open: serde_json::Value = serde_json::from_slice(&open.body).unwrap();
    for hidden in ["peers", "transfers", "bans"] {
        assert!(open.get(hidden).is_none(), "{hidden} shows without a token");
    }
    assert!(open.get("traffic").is_some());
    let wrong = a.admin_ask_without_token("GET", "/status").field("Authorization", "Bearer wrong").send();
    assert!(wrong.status == 401 || !wrong.text().contains("\"peers\""), "{}", wrong.status);
    let socket = a.state_dir().join("admin.sock");
    let by_socket = unix_get(&socket, "/status").unwrap();
    assert!(by_socket.contains("\"peers\""), "the Unix socket needs no token: {by_socket}");
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(socket.metadata().unwrap().permissions().mode() & 0o777, 0o660);
}

#[test]
fn a_transfer_shows_while_it_runs() {
    let origin = Origin::start();
    let a = Larder::new("a").start();
    let url = origin.serve("/f.bin", Script::new(2 * MIB).hold_at(MIB));
    let mut reading = a.ask(&url).open();
    reading.read_to(MIB / 2);
    wait_until("the transfer to show", || {
        let status = a.status();
        let transfer = &status["transfers"][0];
        transfer["received"] == MIB && transfer["size"] == 2 * MIB && transfer["readers"] == 1
    });
    let status = a.status();
    assert_eq!(status["transfers"][0]["source"], "origin");
    assert!(status["transfers"][0]["url"].as_str().unwrap().ends_with("/f.bin"));
    let listed = a.cli(&["transfers"]).assert_code(0).stdout;
    assert!(listed.contains("/f.bin"), "{listed}");
    origin.release("/f.bin");
    reading.rest();
    wait_until("the transfer to go", || a.transfers() == 0);
}

#[test]
fn the_ledger_adds_up() {
    let site = Site::new();
    let origin = Origin::start();
    let (a, b) = (Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start());
    a.meets(&b);
    let script = Script::new(MIB);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    for node in [&b, &a, &b] {
        node.ask(&url).field("Larder-Digest", &script.digest()).send().assert_whole(&script);
        node.ask(&url).range("5-99").send().assert_slice(&script, 5, 100);
    }
    let held = origin.serve("/held.bin", Script::new(2 * MIB).seed(2).hold_at(MIB));
    let mut leaver = b.ask(&held).open();
    leaver.read_to(1000);
    leaver.abort();
    origin.release("/held.bin");
    let cut = Script::new(MIB).seed(3).ranges(crate::support::Ranges::Ignored).cut_always(MIB / 2);
    assert_eq!(b.get(&origin.serve("/cut.bin", cut)).ending, Ending::Truncated);
    for node in [&a, &b] {
        wait_until("no transfer left", || node.transfers() == 0);
        wait_until("the ledger to add up", || {
            let status = node.status();
            let of = |name: &str| status["traffic"][format!("bytes_{name}")].as_u64().unwrap();
            let came = of("from_cache") + of("from_peers") + of("from_origin");
            let adds_up = of("to_clients") + of("discarded") == came;
            if !adds_up {
                println!("{}", status["traffic"]);
            }
            adds_up
        });
    }
    assert_eq!(a.count("/traffic/bytes_from_origin"), MIB);
}

#[test]
fn purging_forgets_urls_and_only_what_nothing_else_names() {
    let origin = Origin::start();
    let a = Larder::new("a").start();
    let (shared, own) = (Script::new(5000), Script::new(6000).seed(2));
    let urls = [("/x/one", &shared), ("/y/two", &shared), ("/x/own", &own)]
        .map(|(path, script)| origin.serve(path, script.clone()));
    for (url, script) in urls.iter().zip([&shared, &shared, &own]) {
        a.get(url).assert_whole(script);
    }
    a.wait_for_blob(&shared.digest());
    a.wait_for_blob(&own.digest());
    let beginning = format!("{}*", urls[0].trim_end_matches("one"));
    let would = a.cli(&["purge", &beginning, "--dry-run"]).assert_code(0).stdout;
    assert!(would.contains("2 answers would be forgotten, 1 blobs"), "{would}");
    assert_eq!(a.count("/cache/blobs"), 2);
    a.cli(&["purge", &beginning]).assert_code(0);
    assert_eq!(a.count("/cache/blobs"), 1, "the other URL names the shared one");
    assert!(a.get(&urls[1]).is_hit());
    a.get(&urls[2]).assert_whole(&own);
    assert_eq!(origin.requests("/x/own").len(), 2);
    a.wait_for_blob(&own.digest());
    a.cli(&["pin", &own.digest()]).assert_code(0);
    let kept = a.cli(&["purge", &urls[2], "--json"]).assert_code(0).stdout;
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    assert_eq!((&kept["answers"], &kept["blobs"], &kept["pinned"]), (&1.into(), &0.into(), &1.into()));
    a.cli(&["purge", "http://nobody.example/"]).assert_code(3);
    a.cli(&["purge", "h*"]).assert_code(1);
    let events = a.cli(&["events"]).assert_code(0).stdout;
    assert!(events.contains("/api/v1/purges") && events.contains("WHO"), "{events}");
}

#[test]
fn settings_in_force_say_where_they_came_from() {
    let a = Larder::new("a").start();
    let answer = a.admin_ask("GET", "/api/v1/configuration").send();
    let settings: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    let of = |key: &str| settings.as_array().unwrap().iter().find(|row| row["key"] == key).unwrap().clone();
    assert!(of("state_dir")["from"].as_str().unwrap().contains("larder.toml:"), "{}", of("state_dir"));
    assert_eq!(
        (of("bans.strikes")["value"].clone(), of("bans.strikes")["from"].clone()),
        (3.into(), "default".into())
    );
    assert_eq!(a.admin_ask_without_token("GET", "/api/v1/configuration").send().status, 401);
}

#[test]
fn an_admin_port_off_loopback_wants_tls() {
    let a = Larder::new("a").list("admin.listen", &["192.0.2.1:8097"]).ready_to_start();
    let checked = a.cli(&["config", "check"]);
    assert_eq!(checked.code, 78, "{}", checked.said());
    assert!(checked.said().contains("tls_cert"), "{}", checked.said());
}

#[test]
fn a_certificate_that_is_none_is_a_fault_of_the_configuration() {
    let a = Larder::new("a").ready_to_start();
    let file = a.home().join("no.pem");
    std::fs::write(&file, "no certificate\n").unwrap();
    for (table, keys, named) in [
        ("admin", &["tls_cert", "tls_key"][..], "admin.tls_cert"),
        ("origin", &["ca_file"][..], "origin.ca_file"),
    ] {
        let a = keys.iter().fold(Larder::new("b"), |node, key| {
            node.set(&format!("{table}.{key}"), file.display().to_string())
        });
        let said = a.ready_to_start().cli(&["run"]).assert_code(78).said();
        assert!(said.contains(named) && said.contains("no.pem"), "{said}");
    }
}

/// The lines that the log has of downloads, as JSON.
fn download_lines(a: &Larder) -> Vec<serde_json::Value> {
    let log = a.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    lines.filter(|line| line["target"] == "larder::download").collect()
}

#[test]
fn each_download_has_one_line_in_the_log() {
    let origin = Origin::start();
    let a = Larder::new("a").set("log.format", "json").set("log.level", "info").start();
    let url = origin.serve("/f.bin", Script::new(MIB));
    let held = origin.serve("/held.bin", Script::new(MIB).hold_at(MIB / 2));
    a.get(&format!("{url}?token=hidden"));
    a.get(&format!("{url}?token=hidden"));
    a.ask(&url).method("HEAD").send();
    a.ask(&url).method("POST").body(b"x").send();
    let mut reading = a.ask(&held).open();
    reading.read_to(MIB / 4);
    drop(reading);
    wait_until("the third line", || download_lines(&a).len() >= 3);
    let dead = a.get("http://127.0.0.1:1/none");
    assert_eq!(dead.status, 502);
    wait_until("four lines", || download_lines(&a).len() >= 4);
    let lines = download_lines(&a);
    let field = |at: usize, name: &str| lines[at]["fields"][name].clone();
    let told: Vec<_> = (0..lines.len()).map(|at| (field(at, "source"), field(at, "why"))).collect();
    assert_eq!(told[0], ("origin".into(), "uri-miss".into()));
    assert_eq!(told[1], ("cache".into(), "hit".into()));
    assert_eq!(
        (field(0, "bytes"), field(0, "status"), field(0, "stored")),
        (MIB.into(), 200.into(), true.into())
    );
    assert!(field(0, "seconds").is_f64() && field(0, "url").as_str().unwrap().ends_with("/f.bin?token=…"));
    assert_eq!(
        (field(2, "message"), field(2, "why")),
        ("download left by its client".into(), "uri-miss".into())
    );
    assert_eq!(field(3, "message"), "download failed");
    assert!(field(3, "error").as_str().unwrap().contains("cannot connect"), "{}", lines[3]);
    assert_eq!(lines.len(), 4, "a HEAD and a POST are no downloads: {lines:?}");
    assert!(!a.log().contains("hidden"));
}

#[test]
fn the_log_level_changes_while_the_daemon_runs() {
    let origin = Origin::start();
    let a = Larder::new("a").set("log.level", "info").start();
    let url = origin.serve("/f.bin", Script::new(MIB));
    let log = |arguments: &[&str]| a.cli(&[&["log"], arguments].concat());
    let json =
        |ran: crate::support::daemon::Ran| serde_json::from_str::<serde_json::Value>(&ran.stdout).unwrap();
    assert_eq!(log(&[]).assert_code(0).stdout, "info, as configured\n");
    a.get(&url);
    wait_until("its line", || a.log().contains("/f.bin"));
    assert!(!a.log().contains("DEBUG"));
    let set = json(log(&["debug", "--json"]).assert_code(0));
    assert_eq!((set["level"].as_str(), set["configured"].as_str()), (Some("debug"), Some("info")));
    a.ask(&url).field("Cache-Control", "no-cache").send();
    wait_until("a line at DEBUG", || a.log().contains("DEBUG"));
    for wrong in ["debgu", "info,loud", ""] {
        assert!(log(&[wrong]).assert_code(2).said().contains("is not a log level"), "{wrong}");
        let body = format!("{{\"level\":\"{wrong}\"}}");
        let refused = a.admin_ask("PUT", "/api/v1/log").field("Content-Type", "application/json");
        assert_eq!(refused.body(body.as_bytes()).send().status, 400, "{wrong}");
    }
    log(&["info,larder::download=off"]).assert_code(0);
    let lines = a.log().matches("/f.bin").count();
    a.get(&url);
    assert_eq!(json(log(&["--reset", "--json"]).assert_code(0))["level"], "info");
    assert_eq!(a.log().matches("/f.bin").count(), lines, "downloads were silenced");
    let events = a.cli(&["events", "--json"]).assert_code(0).stdout;
    assert!(events.contains("/api/v1/log") && events.contains("\"PUT\""), "{events}");
    log(&["trace"]).assert_code(0);
    a.signal(rustix::process::Signal::HUP);
    wait_until("the reload", || log(&[]).stdout == "info, as configured\n");
}
