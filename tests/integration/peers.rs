//! Neighbours: once from the origin, then from the one who has it, whatever becomes of him.

mod limits;

use std::time::Duration;

use crate::support::{Ask, Larder, MIB, Origin, Script, Site, sha256, tools, wait_until};

/// Two nodes that know each other, and an origin.
fn two() -> (Origin, Larder, Larder) {
    let site = Site::new();
    let (a, b) = (Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start());
    a.meets(&b);
    (Origin::start(), a, b)
}

/// Puts what `path` gives into the store of `node`.
fn fill(node: &Larder, url: &str, script: &Script) {
    node.get(url).assert_whole(script);
    node.wait_for_blob(&script.digest());
}

#[test]
fn a_neighbour_gives_what_it_holds_and_the_origin_sends_nothing() {
    let (origin, a, b) = two();
    let script = Script::new(3 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    fill(&a, &url, &script);
    let answer = b.ask(&url).field("Larder-Digest", &script.digest()).send();
    answer.assert_whole(&script);
    let from = format!("detail=\"peer {}", a.ip());
    assert!(answer.cache_status().contains(&from), "{}", answer.cache_status());
    assert_eq!(origin.gets("/f.bin").len(), 1);
    assert!(b.get(&url).assert_whole(&script).is_success());
    assert_eq!(b.count("/traffic/bytes_from_peers"), 3 * MIB);
    assert_eq!(a.count("/traffic/bytes_to_peers"), 3 * MIB);
}

#[test]
fn a_witness_gives_what_no_digest_names() {
    let (origin, a, b) = two();
    let script = Script::new(4 * MIB).rate(2 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    fill(&a, &url, &script);
    let before = origin.bytes_sent("/f.bin");
    let answer = b.get(&url);
    answer.assert_whole(&script);
    assert!(answer.is_from_peer(), "{}", answer.cache_status());
    let more = origin.bytes_sent("/f.bin") - before;
    println!("the origin sent {more} bytes more");
    assert!(more <= MIB, "{more}");
}

#[test]
fn a_site_that_trusts_digests_alone_asks_the_origin() {
    let site = Site::new();
    let origin = Origin::start();
    let a = Larder::new("a").peers(&site).start();
    let b = Larder::new("b").peers(&site).set("peers.trust", "digest").start();
    a.meets(&b);
    let script = Script::new(200_000);
    let url = origin.serve("/f.bin", script.clone());
    fill(&a, &url, &script);
    let answer = b.get(&url);
    answer.assert_whole(&script);
    assert!(!answer.is_from_peer(), "{}", answer.cache_status());
}

#[test]
fn an_https_origin_reaches_the_second_node_from_the_first() {
    let site = Site::new();
    let origin = Origin::start_tls();
    let a = Larder::new("a").peers(&site).trusts(&origin).start();
    let b = Larder::new("b").peers(&site).trusts(&origin).start();
    a.meets(&b);
    let script = Script::new(2 * MIB).rate(4 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    a.prefix(&url).send().assert_whole(&script);
    a.wait_for_blob(&script.digest());
    let answer = b.prefix(&url).send();
    answer.assert_whole(&script);
    assert!(answer.is_from_peer(), "{}", answer.cache_status());
}

#[test]
fn p04_a_neighbour_killed_in_the_middle_costs_only_its_rest() {
    let site = Site::new();
    let origin = Origin::start();
    let mut a = Larder::new("a").peers(&site).set("peers.upload_rate", "1MiB").start();
    let b = Larder::new("b").peers(&site).set("peers.release", "stream").start();
    a.meets(&b);
    let script = Script::new(4 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    fill(&a, &url, &script);
    let before = origin.bytes_sent("/f.bin");
    let mut reading = b.ask(&url).field("Larder-Digest", &script.digest()).open();
    reading.read_to(2 * MIB);
    a.kill();
    let answer = reading.rest();
    answer.assert_whole(&script);
    let rest = origin.bytes_sent("/f.bin") - before;
    println!("killed at half: the origin sent {rest} of {} bytes, in {:?}", script.size, answer.took);
    assert!(rest > 0 && rest <= 3 * MIB, "{rest}");
    let seen = origin.gets("/f.bin");
    let range = seen.last().unwrap().field("Range").unwrap();
    assert!(range.starts_with("bytes="), "{range}");
    assert_eq!(b.bans(), Vec::<String>::new());
}

#[test]
fn p04_a_neighbour_killed_before_the_proof_is_not_seen_by_the_client() {
    let site = Site::new();
    let origin = Origin::start();
    let mut a = Larder::new("a").peers(&site).set("peers.upload_rate", "500KiB").start();
    let b = Larder::new("b").peers(&site).start();
    a.meets(&b);
    let script = Script::new(4 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    fill(&a, &url, &script);
    let answer = std::thread::scope(|scope| {
        let client = scope.spawn(|| b.ask(&url).field("Larder-Digest", &script.digest()).send());
        wait_until("b to read from a", || {
            let status = b.status();
            status["transfers"].as_array().unwrap().iter().any(|transfer| {
                transfer["source"] == "peer"
                    && transfer["received"].as_u64().is_some_and(|count| count > 100_000)
            })
        });
        a.kill();
        client.join().unwrap()
    });
    answer.assert_whole(&script);
}

#[test]
fn p05_a_slow_neighbour_is_left_for_the_origin() {
    let site = Site::new();
    let origin = Origin::start();
    let a = Larder::new("a").peers(&site).set("peers.upload_rate", "50KB").start();
    let b = Larder::new("b").peers(&site).start();
    a.meets(&b);
    // The origin's rate is learned from a download before.
    let warm = Script::new(4 * MIB).seed(2);
    b.get(&origin.serve("/warm.bin", warm.clone())).assert_whole(&warm);
    let script = Script::new(4 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    fill(&a, &url, &script);
    let answer = b.ask(&url).field("Larder-Digest", &script.digest()).send();
    answer.assert_whole(&script);
    println!("with a neighbour of 50 kB/s: {:?} (alone it would take 80 s)", answer.took);
    assert!(answer.took < Duration::from_secs(25), "{:?}", answer.took);
}

#[test]
fn p08_a_neighbour_that_no_longer_has_it_is_no_offender() {
    let (origin, a, b) = two();
    let script = Script::new(300_000);
    let url = origin.serve("/f.bin", script.clone());
    fill(&a, &url, &script);
    std::fs::remove_file(a.blob_path(&script.digest())).unwrap();
    let answer = b.ask(&url).field("Larder-Digest", &script.digest()).send();
    answer.assert_whole(&script);
    assert!(!answer.is_from_peer());
    assert!(a.bans().is_empty() && b.bans().is_empty());
}

#[test]
fn p12_everyday_refusals_are_no_offences() {
    let (origin, a, b) = two();
    let scripts: Vec<_> = (1..=30).map(|n| Script::new(5000).seed(n)).collect();
    let urls: Vec<_> =
        scripts.iter().map(|script| origin.serve(&format!("/{}.bin", script.seed), script.clone())).collect();
    for (url, script) in urls.iter().zip(&scripts) {
        a.get(url).assert_whole(script);
        a.wait_for_blob(&script.digest());
        std::fs::remove_file(a.blob_path(&script.digest())).unwrap();
    }
    for (url, script) in urls.iter().zip(&scripts) {
        b.ask(url).field("Larder-Digest", &script.digest()).send().assert_whole(script);
    }
    for n in 0..20 {
        let unknown = format!("sha256:{}", sha256(&[n]));
        let path = format!("/@{unknown}/http/{}/none?status=404", origin.address());
        assert_eq!(b.door(&path).send().status, 404);
    }
    let known = Script::new(400_000).seed(99);
    let url = origin.serve("/known.bin", known.clone());
    fill(&a, &url, &known);
    let answer = b.ask(&url).field("Larder-Digest", &known.digest()).send();
    answer.assert_whole(&known);
    assert!(answer.is_from_peer(), "{}", answer.cache_status());
    assert!(a.bans().is_empty() && b.bans().is_empty());
}

#[test]
fn p16_the_peer_port_tells_strangers_nothing() {
    let site = Site::new();
    let origin = Origin::start();
    let a = Larder::new("a").peers(&site).set("peers.tls", "off").start();
    let script = Script::new(10_000);
    fill(&a, &origin.serve("/f.bin", script.clone()), &script);
    let have_not = format!("sha256:{}", sha256(b"nobody has this"));
    let ask =
        |method: &str, path: &str| Ask::new(a.peer(), method, path).field("Host", &a.peer().to_string());
    let have = ask("GET", &format!("/blob/{}", script.digest())).send();
    let have_not = ask("GET", &format!("/blob/{have_not}")).send();
    assert_eq!((have.status, have_not.status), (403, 403));
    assert_eq!(have.body, have_not.body, "the same answer for what is held and what is not");
    let names = |answer: &crate::support::Answer| {
        answer
            .fields
            .iter()
            .filter(|(name, _)| name != "date")
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&have), names(&have_not));
    for (method, path) in [
        ("GET", "/blob/../../etc/passwd"),
        ("GET", "/blob/sha256:%2e%2e%2f"),
        ("GET", "/resource/0000"),
        ("POST", "/blob/sha256:00"),
        ("PUT", "/resource/0000"),
        ("DELETE", "/"),
        ("GET", "/"),
        ("GET", "/status"),
    ] {
        let answer = ask(method, path).field("Authorization", "Bearer AAAA").send();
        assert!([400, 403, 404, 405].contains(&answer.status), "{method} {path}: {}", answer.status);
        assert!(answer.body.len() < 1000 && !answer.text().contains("root:"), "{}", answer.text());
    }
}

#[test]
fn nothing_binds_the_peer_port_without_a_secret() {
    let a = Larder::new("a").list("peers.listen", &[]).start();
    assert!(!crate::support::daemon::accepts(a.peer()));
    let site = Site::new();
    let weak = Larder::new("w").peers(&site).ready_to_start();
    std::fs::write(weak.home().join("secret"), "short\n").unwrap();
    let said = weak.cli(&["config", "check"]);
    assert_ne!(said.code, 0, "a secret under 16 bytes is refused: {}", said.said());
}

#[test]
fn plain_peers_work_and_wait_for_the_proof() {
    let site = Site::new();
    let origin = Origin::start();
    let plain = |name| Larder::new(name).peers(&site).set("peers.tls", "off").start();
    let (a, b) = (plain("a"), plain("b"));
    a.meets(&b);
    let script = Script::new(MIB);
    let url = origin.serve("/f.bin", script.clone());
    fill(&a, &url, &script);
    let answer = b.ask(&url).field("Larder-Digest", &script.digest()).send();
    answer.assert_whole(&script);
    assert!(answer.is_from_peer(), "{}", answer.cache_status());
}

#[test]
fn what_a_rule_keeps_from_neighbours_stays_at_home() {
    let site = Site::new();
    let origin = Origin::start();
    let mut rule = toml::Table::new();
    rule.insert("match".into(), "http://*/own/*".into());
    rule.insert("share".into(), false.into());
    let rule = toml::Value::Array(vec![rule.into()]);
    let a = Larder::new("a").peers(&site).set("rule", rule).start();
    let b = Larder::new("b").peers(&site).start();
    a.meets(&b);
    let script = Script::new(100_000);
    let url = origin.serve("/own/f.bin", script.clone());
    fill(&a, &url, &script);
    let answer = b.get(&url);
    answer.assert_whole(&script);
    assert!(!answer.is_from_peer(), "{}", answer.cache_status());
}

#[test]
fn wget_curl_and_aria2c_through_a_second_node_get_the_right_file() {
    let (origin, a, b) = two();
    let script = Script::new(2 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    fill(&a, &url, &script);
    let folder = tempfile::tempdir().unwrap();
    for (program, arguments) in [
        ("wget", vec!["-q", "-O", "wget.bin", &url]),
        ("aria2c", vec!["-q", "--no-conf", "-x4", "-s4", "-k1M", "-o", "aria2c.bin", &url]),
    ] {
        if tools::installed(program) {
            tools::with_proxy(b.proxy(), folder.path(), program, &arguments).assert_code(0);
            assert!(std::fs::read(folder.path().join(format!("{program}.bin"))).unwrap() == script.body());
        }
    }
    if tools::installed("curl") {
        tools::curl(b.proxy(), folder.path(), &["-f", "-o", "curl.bin", &url]).assert_code(0);
        assert!(std::fs::read(folder.path().join("curl.bin")).unwrap() == script.body());
    }
}
