//! What a client may send: targets kept byte for byte, no loops, no slow strangling; what it may not, see
//! `hostile`.

use std::time::Duration;

use super::alone;
use crate::support::{Ask, Connection, Larder, Origin, Script, at_once};

#[test]
fn h27_the_request_target_is_forwarded_byte_for_byte() {
    let (origin, a) = alone();
    for target in [
        "/a%2Fb",
        "/a%2fb",
        "/a%2bb",
        "/a%2Bb",
        "/a+b",
        "/p=1:2@3",
        "//x",
        "/./x",
        "/x/../y",
        "/%7Euser",
        "/~user",
        "/q?a=%20&b=+&c",
        "/q?",
        "/a;b=c",
        "/@scope%2fname",
    ] {
        origin.serve(target.split('?').next().unwrap(), Script::echo());
        let seen = a.get(&origin.url(target)).text();
        assert!(seen.starts_with(&format!("GET {target} HTTP/1.1\n")), "{target}: {seen}");
    }
    let (upper, lower) = (Script::new(10).seed(1), Script::new(10).seed(2));
    let (one, two) = (origin.serve("/e%2Ff", upper.clone()), origin.serve("/e%2ff", lower.clone()));
    for _ in ["cold", "held"] {
        a.get(&one).assert_whole(&upper);
        a.get(&two).assert_whole(&lower);
    }
    let url =
        [b"GET ".as_slice(), origin.url("/caf").as_bytes(), b"\xe9 HTTP/1.1\r\nHost: x\r\n\r\n"].concat();
    let mut connection = Connection::to(a.proxy()).unwrap();
    connection.write(&url).unwrap();
    assert_eq!(connection.answer("GET").status, 400, "bytes that are not UTF-8 are refused");
}

#[test]
fn h36_the_target_wins_over_the_host_field() {
    let (origin, a) = alone();
    let url = origin.serve("/echo", Script::echo());
    let host = origin.address().to_string();
    let seen = Ask::new(a.proxy(), "GET", &url).field("Host", "elsewhere.test").send().text();
    assert!(seen.contains(&format!("{host}\n")) && !seen.contains("elsewhere"), "{seen}");
    let before = origin.all_requests().len();
    assert_eq!(Ask::new(a.proxy(), "GET", &url).send().status, 400, "no Host in 1.1");
    let twice = Ask::new(a.proxy(), "GET", &url).field("Host", &host).field("Host", "b.test").send();
    assert_eq!(twice.status, 400);
    assert_eq!(origin.all_requests().len(), before);
}

#[test]
fn h43_clients_that_strangle_do_not_slow_the_others() {
    let (origin, a) = alone();
    let script = Script::new(4 << 20);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    let silent: Vec<_> = (0..100).map(|_| Connection::to(a.proxy()).unwrap()).collect();
    let mut dripping: Vec<_> = (0..100).map(|_| Connection::to(a.proxy()).unwrap()).collect();
    let unread: Vec<_> = (0..100).map(|_| a.ask(&url).open()).collect();
    let small = origin.serve("/small", Script::new(1000));
    for byte in b"GET http://x/ HTT" {
        dripping.iter_mut().for_each(|connection| drop(connection.write(&[*byte])));
        let answer = a.get(&small);
        assert!(answer.is_success());
        assert!(answer.took < Duration::from_secs(1), "a normal client waited {:?}", answer.took);
    }
    assert!(a.rss() < 400 << 20, "{} MiB", a.rss() >> 20);
    drop((silent, dripping, unread));
}

#[test]
fn h46_a_loop_is_seen_at_the_first_return() {
    let (origin, a) = alone();
    let before = a.open_files();
    let port = a.proxy().port();
    for own in [format!("http://{}/", a.proxy()), format!("http://[::ffff:{}]:{port}/x", a.ip())] {
        let answer = a.get(&own);
        assert!([400, 403, 508].contains(&answer.status), "{own}: {}", answer.status);
    }
    let url = origin.serve("/f", Script::new(10));
    let via = a.get(&url).field("Via").unwrap().to_owned();
    assert_eq!(a.ask(&origin.url("/g?size=1")).field("Via", &via).send().status, 508);
    assert!(origin.requests("/g").is_empty());
    // Two proxies that point at each other.
    let second = Larder::new("b").set("origin.proxy", format!("http://{}", a.proxy()));
    let b = second.start();
    let c = Larder::new("c").set("origin.proxy", format!("http://{}", b.proxy())).start();
    c.get(&url).assert_whole(&Script::new(10));
    let answers = at_once(10, |_| a.get(&format!("http://{}/", a.proxy())).status);
    assert!(answers.iter().all(|status| [400, 403, 508].contains(status)), "{answers:?}");
    crate::support::wait_until("open files back to what they were", || a.open_files() <= before + 10);
}

#[test]
fn h46_two_proxies_that_point_at_each_other_answer_508() {
    let origin = Origin::start();
    let mut a = Larder::new("a").ready_to_start();
    let b = Larder::new("b").set("origin.proxy", format!("http://{}", a.proxy())).start();
    let text = std::fs::read_to_string(a.config_file()).unwrap();
    let text = format!("{text}\n[origin]\nproxy = \"http://{}\"\n", b.proxy());
    std::fs::write(a.config_file(), text).unwrap();
    a.start_again();
    assert_eq!(a.get(&origin.url("/f?size=1")).status, 508);
    assert!(origin.all_requests().is_empty());
}

#[test]
fn h48_pipelined_requests_are_answered_in_order() {
    let (origin, a) = alone();
    let scripts: Vec<_> =
        (0..10).map(|n| Script::new([10, 300_000, 0, 65_536][n % 4]).seed(n as u64 + 1)).collect();
    let urls: Vec<_> = (0..10).map(|n| origin.serve(&format!("/{n}"), scripts[n].clone())).collect();
    urls.iter().step_by(2).for_each(|url| drop(a.get(url)));
    let mut connection = Connection::to(a.proxy()).unwrap();
    let all: Vec<u8> = urls.iter().flat_map(|url| a.ask(url).bytes()).collect();
    connection.write(&all).unwrap();
    for script in &scripts {
        connection.answer("GET").assert_whole(script);
    }
}

#[test]
fn methods_we_do_not_cache_pass_both_ways_untouched() {
    let (origin, a) = alone();
    let url = origin.serve("/post", Script::new(0));
    let body = crate::support::body::slice(5, 0..2_000_000);
    for method in ["POST", "PUT", "PATCH"] {
        let answer = a.ask(&url).method(method).body(&body).send();
        assert_eq!(answer.status, 200);
        assert!(answer.body == body, "{method}");
    }
    let expecting = a.ask(&url).method("POST").field("Expect", "100-continue").body(&body).send();
    assert!(expecting.body == body);
    assert!(a.blobs().is_empty());
    let seen = a.ask(&origin.serve("/echo", Script::echo())).field("Connection", "X-Hop").field("X-Hop", "1");
    let seen = seen
        .field("Proxy-Connection", "keep-alive")
        .field("TE", "trailers")
        .field("X-End", "2")
        .send()
        .text();
    assert!(seen.contains("X-End: 2") || seen.contains("x-end: 2"), "{seen}");
    let lower = seen.to_lowercase();
    assert!(
        !lower.contains("x-hop") && !lower.contains("proxy-connection") && !lower.contains("\nte:"),
        "{seen}"
    );
}

#[test]
fn pages_of_other_sites_reach_no_door() {
    let (origin, a) = alone();
    let page = Script::of("text/html", "<script>steal()</script>");
    let url = origin.serve("/page.html", page);
    let refused = [
        a.prefix(&url).field("Sec-Fetch-Site", "cross-site").send(),
        a.prefix(&url).field("Sec-Fetch-Site", "same-site").send(),
        Ask::new(a.proxy(), "GET", &format!("/http/{}/page.html", origin.address()))
            .field("Host", "evil.example:8098")
            .send(),
    ];
    for answer in refused {
        assert_eq!(answer.status, 403, "{}", answer.text());
        assert!(!answer.text().contains("steal"));
    }
    // Who typed the address gets the page, shut into a box of its own: all sites behind the door are one to a browser.
    let own = a.prefix(&url).field("Sec-Fetch-Site", "none").send();
    assert_eq!(own.status, 200);
    let policy = own.field("Content-Security-Policy").unwrap_or_default().to_owned();
    assert!(policy.split(';').any(|rule| rule.trim() == "sandbox"), "{policy}");
}
