//! What is not for everybody: cookies, credentials, private and unstorable answers, the machine's own ports.

use super::alone;
use crate::support::chaos::files_with;
use crate::support::{Ask, Larder, MIB, Origin, Script, Site, at_once};

const SENTINEL: &str = "5e11e7-5e27-4e1-do-not-tell";

#[test]
fn h29_a_cookie_reaches_only_the_client_that_caused_it() {
    let (origin, a) = alone();
    let script = Script::new(200_000).cookie();
    let url = origin.serve("/f.bin", script.clone());
    let mut answers = at_once(10, |_| a.get(&url));
    answers.push(a.get(&url));
    let mut cookies: Vec<_> = answers.iter().filter_map(|answer| answer.field("Set-Cookie")).collect();
    for answer in &answers {
        answer.assert_whole(&script);
    }
    let all = cookies.len();
    cookies.sort_unstable();
    cookies.dedup();
    assert_eq!(cookies.len(), all, "a cookie went to two clients");
    assert!(a.blobs().is_empty(), "an answer with Set-Cookie is not stored");
}

#[test]
fn h30_an_authorized_answer_is_not_for_others() {
    let site = Site::new();
    let origin = Origin::start();
    let (a, b) = (Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start());
    a.meets(&b);
    let script = Script::new(50_000).authorization("Bearer good");
    let url = origin.serve("/f.bin", script.clone());
    a.ask(&url).field("Authorization", "Bearer good").send().assert_whole(&script);
    assert_eq!(a.get(&url).status, 401);
    assert_eq!(b.get(&url).status, 401);
    assert_eq!(a.ask(&url).field("Authorization", "Bearer bad").send().status, 401);
    assert_eq!(origin.gets("/f.bin").len(), 4);
    let open = Script::new(50_000).seed(2).authorization("Bearer good").cache_control("public, max-age=60");
    let url = origin.serve("/open.bin", open.clone());
    a.ask(&url).field("Authorization", "Bearer good").send().assert_whole(&open);
    a.wait_for_blob(&open.digest());
    a.get(&url).assert_whole(&open);
}

#[test]
fn h31_credentials_are_written_nowhere() {
    let (origin, a) = alone();
    let url = origin.serve("/f.bin", Script::new(5000)) + "?token=" + SENTINEL;
    a.get(&url);
    let asked =
        a.ask(&origin.url("/g.bin?size=10")).field("Authorization", SENTINEL).field("Cookie", SENTINEL);
    asked.send();
    a.ask("http://127.0.0.1:1/").field("Authorization", SENTINEL).send();
    a.ask(&format!("http://127.0.0.1:1/x?secret={SENTINEL}")).send();
    let held = a.ask(&origin.serve("/held.bin", Script::new(MIB).hold_at(1000))).open();
    let status = a.status().to_string();
    origin.release("/held.bin");
    held.rest();
    assert!(!status.contains(SENTINEL), "{status}");
    let metrics = a.admin_ask_without_token("GET", "/metrics").send().text();
    assert!(!metrics.contains(SENTINEL));
    assert!(!a.log().contains(SENTINEL), "in the log");
    let command_line = std::fs::read(format!("/proc/{}/cmdline", a.pid())).unwrap();
    assert!(crate::support::find(&command_line, SENTINEL.as_bytes()).is_none());
    let mut a = a;
    a.stop();
    assert_eq!(files_with(a.home(), SENTINEL.as_bytes()), Vec::<std::path::PathBuf>::new());
}

#[test]
fn h31_get_drops_credentials_when_it_follows_to_another_host() {
    let (first, second) = (Origin::start(), Origin::start_at(([127, 0, 0, 2], 0).into()));
    let script = Script::new(1000);
    let target = second.serve("/f.bin", script);
    first.serve("/here", Script::redirect(&target));
    let home = tempfile::tempdir().unwrap();
    let url = format!("http://user:{SENTINEL}@{}/here", first.address());
    let ran = crate::support::daemon::larder(home.path(), &["get", &url, "-o", "out", "--no-peers"]);
    assert!(!ran.said().contains(SENTINEL), "{}", ran.said());
    for seen in second.all_requests() {
        assert!(seen.field("Authorization").is_none() && seen.field("Cookie").is_none(), "{}", seen.text());
    }
}

#[test]
fn h32_what_must_not_be_stored_leaves_nothing_on_disk() {
    let site = Site::new();
    let origin = Origin::start();
    let (a, b) = (Larder::new("a").peers(&site).start(), Larder::new("b").peers(&site).start());
    a.meets(&b);
    for (seed, control, asked) in
        [(11, "no-store", None), (12, "private, max-age=60", None), (13, "max-age=60", Some("no-store"))]
    {
        let script = Script::new(MIB).seed(seed).cache_control(control).hold_at(MIB / 2);
        let path = format!("/{seed}.bin");
        let url = origin.serve(&path, script.clone());
        let ask = asked.into_iter().fold(a.ask(&url), |ask, value| ask.field("Cache-Control", value));
        let mut reading = ask.open();
        reading.read_to(MIB / 2);
        let marker = crate::support::body::slice(seed, 1024..1056);
        assert_eq!(
            files_with(a.home(), &marker),
            Vec::<std::path::PathBuf>::new(),
            "{control} while it runs"
        );
        origin.release(&path);
        reading.rest().assert_whole(&script);
        assert_eq!(files_with(a.home(), &marker), Vec::<std::path::PathBuf>::new(), "{control} afterwards");
        b.get(&url).assert_whole(&script);
        assert_eq!(origin.gets(&path).len(), 2, "{control}: the neighbour must not have it");
    }
}

#[test]
fn h35_the_admin_port_checks_the_host_name() {
    let (_origin, a) = alone();
    for host in ["evil.test", "evil.test:8097", "localhost.evil.test"] {
        let answer = Ask::new(a.admin(), "GET", "/status").field("Host", host).send();
        assert_eq!(answer.status, 403, "{host}");
    }
    let foreign = a.admin_ask_without_token("GET", "/status").field("Origin", "http://evil.test").send();
    let opened = foreign.field("Access-Control-Allow-Origin");
    assert!(foreign.status == 403 || opened.is_none(), "no other site may read us");
    assert_eq!(a.door("/http/127.0.0.1:1/").send().status, 502, "a proper Host passes");
    let rebound = Ask::new(a.proxy(), "GET", "/http/127.0.0.1:1/").field("Host", "evil.test").send();
    assert_eq!(rebound.status, 403, "the prefix door checks it too");
}
