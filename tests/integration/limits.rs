//! How fast bytes may go, to whom first, and at which hours.

use std::time::{Duration, Instant};

use crate::support::{Larder, MIB, Origin, Script, Site, at_once, wait_until};

/// Of a `[[limits]]` list with one entry.
fn limit(at: &str, rates: &[(&str, &str)]) -> toml::Value {
    let mut table: toml::Table = rates.iter().map(|(key, rate)| ((*key).into(), (*rate).into())).collect();
    table.insert("at".into(), at.into());
    vec![toml::Value::from(table)].into()
}

/// What `rate` bytes a second need for `bytes`, less the tenth they may be off and the first burst of an eighth.
fn least(bytes: u64, rate: u64) -> Duration {
    Duration::from_secs_f64(bytes as f64 / rate as f64 / 1.1 - 0.125)
}

#[test]
fn an_upload_rate_holds_for_all_neighbours_together() {
    const RATE: u64 = 2_000_000;
    let (site, origin) = (Site::new(), Origin::start());
    let a = Larder::new("a").peers(&site).set("peers.upload_rate", "2MB/s").start();
    let others = ["b", "c"].map(|name| Larder::new(name).peers(&site).start());
    others.iter().for_each(|other| a.meets(other));
    let scripts = [1, 2].map(|seed| Script { seed, ..Script::new(3_000_000) });
    let urls: Vec<_> = scripts
        .iter()
        .enumerate()
        .map(|(n, script)| origin.serve(&format!("/{n}.bin"), script.clone()))
        .collect();
    for (url, script) in urls.iter().zip(&scripts) {
        a.get(url).assert_whole(script);
        a.wait_for_blob(&script.digest());
    }
    let start = Instant::now();
    at_once(2, |n| {
        let answer = others[n].ask(&urls[n]).field("Larder-Digest", &scripts[n].digest()).send();
        answer.assert_whole(&scripts[n]);
    });
    let took = start.elapsed();
    let sent = a.count("/traffic/bytes_to_peers");
    println!("{sent} bytes in {took:?}: {:.2} MB/s", sent as f64 / took.as_secs_f64() / 1e6);
    assert!(took >= least(sent, RATE), "{sent} bytes in {took:?}");
}

#[test]
fn a_download_rate_holds_for_all_origins_together() {
    const RATE: u64 = 1_000_000;
    let a = Larder::new("a").set("origin.download_rate", "1MB").start();
    let origins = [Origin::start(), Origin::start()];
    let script = Script::new(1_500_000);
    let urls: Vec<_> = origins.iter().map(|origin| origin.serve("/f.bin", script.clone())).collect();
    let start = Instant::now();
    at_once(2, |n| a.get(&urls[n]).assert_whole(&script).is_success());
    let took = start.elapsed();
    println!("{} bytes in {took:?}", 2 * script.size);
    assert!(took >= least(2 * script.size, RATE), "{took:?}");
    let again = Instant::now();
    a.get(&urls[0]).assert_whole(&script);
    assert!(again.elapsed() < took, "what is held is not slowed");
}

#[test]
fn limits_of_the_hour_hold_and_a_reload_changes_them() {
    let origin = Origin::start();
    let slow = limit("00:00-24:00 mon-sun", &[("download_rate", "100KB")]);
    let a = Larder::new("a").set("limits", slow).start();
    wait_until("the limits of this hour", || a.log().contains("these limits hold now"));
    let script = Script::new(8 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    let mut reading = a.ask(&url).open();
    reading.read_to(64 * 1024);
    let text = std::fs::read_to_string(a.config_file()).unwrap();
    assert!(text.contains("100KB"), "{text}");
    std::fs::write(a.config_file(), text.replace("100KB", "0")).unwrap();
    let reloaded = a.admin_ask("POST", "/api/v1/reload").body(b"").send();
    assert!(reloaded.text().contains("limits"), "{}", reloaded.text());
    // at the old rate it would take 80 s
    let answer = reading.rest();
    answer.assert_whole(&script);
    assert!(answer.took < Duration::from_secs(40), "{:?}", answer.took);
}

#[test]
fn hours_nobody_can_read_are_no_start() {
    let a = Larder::new("a").set("limits", limit("8am-6pm", &[("upload_rate", "1MB")])).ready_to_start();
    let ran = a.cli(&["config", "check"]).assert_code(78);
    assert!(ran.said().contains("08:00-18:00 mon-fri"), "{}", ran.said());
}

#[test]
fn p14_readers_beyond_the_places_go_on_elsewhere() {
    const READERS: usize = 7;
    let (site, origin) = (Site::new(), Origin::start());
    let a = Larder::new("a").peers(&site).set("peers.max_uploads", 2).start();
    let readers: Vec<_> = (0..READERS).map(|n| Larder::new(&format!("r{n}")).peers(&site).start()).collect();
    readers.iter().for_each(|reader| a.meets(reader));
    let script = Script::new(2 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    a.wait_for_blob(&script.digest());
    let before = origin.bytes_sent("/f.bin");
    at_once(READERS + 1, |n| match readers.get(n) {
        Some(reader) => reader
            .ask(&url)
            .field("Larder-Digest", &script.digest())
            .send()
            .assert_whole(&script)
            .is_success(),
        // the holder's own client is no guest
        None => a.get(&url).assert_whole(&script).is_success(),
    });
    let from_origin = origin.bytes_sent("/f.bin") - before;
    let from_peers: u64 = readers.iter().map(|reader| reader.count("/traffic/bytes_from_peers")).sum();
    println!(
        "{READERS} readers, 2 places: {from_peers} bytes from neighbours, {from_origin} from the origin"
    );
    assert!(from_peers >= 2 * script.size, "{from_peers}");
    for reader in &readers {
        assert_eq!(reader.bans(), Vec::<String>::new());
        assert_eq!(reader.peers().len(), READERS, "nobody was given up: {:?}", reader.peers());
    }
}
