//! What survives a stop, a crash and a reload.

use rustix::process::Signal;

use crate::support::chaos::files_under;
use crate::support::{Ending, Larder, MIB, Origin, Ranges, Script, sha256, wait_until};

/// A download that has come half way when this returns: the origin holds the rest back.
fn half_way(origin: &Origin, a: &Larder, script: &Script) -> crate::support::client::Reading {
    let url = origin.serve("/f.bin", script.clone());
    let mut reading = a.ask(&url).open();
    reading.read_to(script.size / 2);
    wait_until("half of it on disk", || {
        let status = a.status();
        status["transfers"][0]["received"].as_u64().is_some_and(|count| count >= script.size / 2)
    });
    reading
}

#[test]
fn o04_a_stop_keeps_the_partial_and_the_next_run_resumes() {
    for signal in [Signal::TERM, Signal::INT] {
        let origin = Origin::start();
        let mut a = Larder::new("a").set("drain_timeout", "200ms").start();
        let script = Script::new(4 * MIB).hold_at(2 * MIB);
        let reading = half_way(&origin, &a, &script);
        a.signal(signal);
        let status = a.wait_exit();
        assert!(status.success(), "{status}");
        assert_eq!(reading.rest().ending, Ending::Truncated);
        let url = origin.serve("/f.bin", Script::new(4 * MIB));
        a.start_again();
        a.get(&url).assert_whole(&script);
        let seen = origin.gets("/f.bin");
        let range = seen.last().unwrap().field("Range").map(str::to_owned);
        assert!(
            range.as_deref().is_some_and(|range| range.starts_with("bytes=") && range != "bytes=0-"),
            "{range:?}"
        );
        assert_eq!(seen.last().unwrap().field("If-Range"), script.etag_value().as_deref());
        a.wait_for_blob(&script.digest());
    }
}

/// Whether staging has a record of a partial, which is made now and then and not with every byte.
fn has_note(node: &Larder) -> bool {
    let notes = files_under(&node.cache_dir().join("staging"));
    let notes = notes.iter().filter(|path| path.extension().is_some_and(|end| end == "json"));
    notes.filter_map(|path| std::fs::read(path).ok()).any(|text| {
        let note: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        note["offset"].as_u64().is_some_and(|offset| offset > 0)
    })
}

#[test]
fn o04_after_kill_9_a_partial_resumes_too() {
    let origin = Origin::start();
    let mut a = Larder::new("a").start();
    let script = Script::new(4 * MIB).hold_at(2 * MIB);
    drop(half_way(&origin, &a, &script));
    wait_until("a note of what was received", || has_note(&a));
    a.kill();
    let url = origin.serve("/f.bin", Script::new(4 * MIB));
    a.start_again();
    a.get(&url).assert_whole(&script);
    let last = origin.gets("/f.bin").pop().unwrap();
    println!("after kill -9 the origin was asked for {:?}", last.field("Range"));
    assert!(last.field("Range").is_some_and(|range| range != "bytes=0-"), "{}", last.text());
}

#[test]
fn h05_a_partial_of_an_old_version_is_not_resumed_into_a_new_one() {
    let origin = Origin::start();
    let mut a = Larder::new("a").set("drain_timeout", "100ms").start();
    let old = Script::new(4 * MIB).seed(1).hold_at(2 * MIB);
    drop(half_way(&origin, &a, &old));
    a.stop();
    let new = Script::new(4 * MIB).seed(2);
    let url = origin.serve("/f.bin", new.clone());
    a.start_again();
    a.get(&url).assert_whole(&new);
    a.wait_for_blob(&new.digest());
    assert_eq!(a.blobs().len(), 1);
}

#[test]
fn h05_a_weak_validator_does_not_resume() {
    let origin = Origin::start();
    let mut a = Larder::new("a").set("drain_timeout", "100ms").start();
    let old = Script::new(2 * MIB).seed(1).etag("W/\"same\"").hold_at(MIB);
    drop(half_way(&origin, &a, &old));
    a.stop();
    let new = Script::new(2 * MIB).seed(2).etag("W/\"same\"");
    let url = origin.serve("/f.bin", new.clone());
    a.start_again();
    a.get(&url).assert_whole(&new);
}

#[test]
fn what_was_learned_is_still_known_after_a_restart() {
    let origin = Origin::start();
    let mut a = Larder::new("a").start();
    let script = Script::new(100_000);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    let node = a.status()["node"].clone();
    a.restart();
    assert!(a.get(&url).assert_whole(&script).is_hit());
    assert_eq!(a.status()["node"], node, "the node keeps its identity");
    assert_eq!(origin.gets("/f.bin").len(), 1);
}

#[test]
fn a_digest_cut_is_remembered_over_a_restart() {
    let origin = Origin::start();
    let mut a = Larder::new("a").start();
    let url = origin.serve("/f.bin", Script::new(2 * MIB).ranges(Ranges::Honoured));
    let wrong = format!("sha256:{}", sha256(b"something else"));
    let cut = a.ask(&url).field("Larder-Digest", &wrong).send();
    assert_eq!(cut.ending, Ending::Truncated);
    assert!(!cut.body.is_empty());
    a.restart();
    assert_eq!(a.ask(&url).range(&format!("{}-", cut.body.len())).send().status, 409);
}

#[test]
fn o05_a_reload_keeps_the_old_settings_when_the_new_ones_are_wrong() {
    let origin = Origin::start();
    let a = Larder::new("a").start();
    let script = Script::new(2 * MIB).hold_at(MIB);
    let reading = half_way(&origin, &a, &script);
    let good = std::fs::read_to_string(a.config_file()).unwrap();
    for broken in ["this is no TOML [", &format!("{good}\n[nonsense]\nkey = 1\n")] {
        std::fs::write(a.config_file(), broken).unwrap();
        let lines = a.log().lines().count();
        a.signal(Signal::HUP);
        wait_until("a word about the error", || {
            a.log().lines().skip(lines).any(|line| line.contains("ERROR") || line.contains("WARN"))
        });
        assert_eq!(a.admin_ask_without_token("GET", "/readyz").send().status, 200);
    }
    std::fs::write(a.config_file(), &good).unwrap();
    let lines = a.log().lines().count();
    a.signal(Signal::HUP);
    wait_until("a word about the reload", || a.log().lines().skip(lines).any(|line| line.contains("reload")));
    origin.release("/f.bin");
    reading.rest().assert_whole(&script);
}

#[test]
fn o10_the_status_is_that_of_the_running_node_also_on_other_ports() {
    let mut a = Larder::new("a").start();
    let (admin, proxy, pid) = (a.admin(), a.proxy(), a.pid());
    assert!(crate::support::daemon::accepts(admin));
    let text = std::fs::read_to_string(a.config_file()).unwrap();
    // Port 0 takes a free one and the log says which.
    let text = text.replace(&format!("{admin}"), &format!("{}:0", admin.ip()));
    std::fs::write(a.config_file(), text).unwrap();
    a.stop();
    let lines = a.log().lines().count();
    a.spawn();
    let mut found = None;
    wait_until("the line that names the port", || {
        let log = a.log();
        let mut said = log.lines().skip(lines).filter(|line| line.contains("listening: admin"));
        let port =
            said.next().and_then(|line| line.split(&format!("{}:", admin.ip())).nth(1).map(str::to_owned));
        let digits = |port: String| port.chars().take_while(char::is_ascii_digit).collect::<String>();
        found = port.and_then(|port| digits(port).parse::<u16>().ok());
        found.is_some()
    });
    let now = std::net::SocketAddr::new(admin.ip(), found.unwrap());
    wait_until("the node", || crate::support::daemon::accepts(proxy));
    let status = crate::support::Ask::new(now, "GET", "/status").field("Host", &now.to_string()).send();
    let status: serde_json::Value = serde_json::from_slice(&status.body).unwrap();
    assert!(status["uptime_seconds"].as_f64().unwrap() < 60.0);
    assert_ne!(a.pid(), pid);
    assert!(!crate::support::daemon::accepts(admin), "nobody is left at the old port");
    // The command line finds it by the socket, whatever the port.
    a.cli(&["status", "--json"]).assert_code(0);
}

#[test]
fn o16_what_an_older_version_left_is_read_and_what_a_newer_one_left_is_not_misread() {
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/index-v1");
    let origin = Origin::start();
    let mut a = Larder::new("a").ready_to_start();
    std::fs::create_dir_all(a.state_dir()).unwrap();
    for file in ["index.db", "state.db"] {
        std::fs::copy(fixtures.join(file), a.state_dir().join(file)).unwrap();
    }
    a.start_again();
    let script = Script::new(100_000);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    a.stop();
    for (file, newer) in [("cache/format", "larder store 2"), ("state/state.db", "user_version")] {
        let path = a.home().join(file);
        let kept = std::fs::read(&path).unwrap();
        if newer == "user_version" {
            let database = rusqlite::Connection::open(&path).unwrap();
            database.execute_batch("PRAGMA user_version = 9999").unwrap();
        } else {
            std::fs::write(&path, newer).unwrap();
        }
        let changed = std::fs::read(&path).unwrap();
        let lines = a.log().lines().count();
        a.spawn();
        assert!(!a.wait_exit().success(), "{file}");
        let said: Vec<String> = a.log().lines().skip(lines).map(str::to_owned).collect();
        assert!(said.iter().any(|line| line.contains(path.to_str().unwrap())), "{said:?}");
        assert_eq!(std::fs::read(&path).unwrap(), changed, "{file} is left as it is");
        std::fs::write(&path, kept).unwrap();
    }
    a.start_again();
    assert!(a.get(&url).assert_whole(&script).is_hit(), "nothing was lost meanwhile");
}
