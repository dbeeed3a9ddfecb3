//! Interception: https that the machine opens with an authority of its own, and everything that it leaves alone.

mod authority;
mod other;

use std::net::SocketAddr;

use crate::support::{
    Ask, Connection, Larder, MIB, Origin, Ranges, Script, Site, Stunnel, at_once, daemon::LarderBuilder,
    tools, wait_until,
};

/// A node that opens connections to `localhost`, where the origin is.
fn describe(name: &str, port: u16) -> LarderBuilder {
    Larder::new(name)
        .set("proxy.connect_ports", vec![i64::from(port)])
        .list("intercept.hosts", &["localhost", "*.example.test"])
}

/// Starts it with a fresh authority.
fn start(node: LarderBuilder) -> Larder {
    let mut node = node.ready_to_start();
    node.cli(&["ca", "new"]).assert_code(0);
    node.start_again();
    node
}

fn intercepting(name: &str, origin: &Origin) -> Larder {
    start(describe(name, origin.address().port()).trusts(origin))
}

/// The certificate that a program has to trust.
fn authority(node: &Larder) -> String {
    node.cli(&["ca", "show", "--pem"]).assert_code(0).stdout
}

fn named(address: SocketAddr) -> String {
    format!("localhost:{}", address.port())
}

/// A way into the origin through the node for a client that trusts the node.
fn trusting(node: &Larder, origin: &Origin, protocols: &[&str]) -> Stunnel {
    Stunnel::open(node.proxy(), &named(origin.address()), "localhost", &authority(node), protocols)
}

fn ask(way: &Stunnel, origin: &Origin, path: &str) -> Ask {
    Ask::new(way.address(), "GET", path).field("Host", &named(origin.address()))
}

#[test]
fn opened_https_is_kept_and_shared_like_anything_else() {
    let (site, origin) = (Site::new(), Origin::start_tls());
    let port = origin.address().port();
    let nodes = ["a", "b"].map(|name| start(describe(name, port).trusts(&origin).peers(&site)));
    let [a, b] = &nodes;
    a.meets(b);
    let script = Script::new(3 * MIB);
    origin.serve("/f.bin", script.clone());
    let way = trusting(a, &origin, &["http/1.1"]);
    let cold = ask(&way, &origin, "/f.bin").send();
    cold.assert_whole(&script);
    assert!(cold.cache_status().contains("fwd=uri-miss"), "{}", cold.cache_status());
    a.wait_for_blob(&script.digest());
    let again = ask(&way, &origin, "/f.bin").send();
    assert!(again.assert_whole(&script).is_hit(), "{}", again.cache_status());
    ask(&way, &origin, "/f.bin").range("100-199").send().assert_slice(&script, 100, 200);
    // Another door of the same node finds the same thing.
    let url = format!("https://{}/f.bin", named(origin.address()));
    assert!(a.prefix(&url).send().assert_whole(&script).is_hit());
    let far = trusting(b, &origin, &[]);
    let near = ask(&far, &origin, "/f.bin").field("Larder-Digest", &script.digest()).send();
    assert!(near.assert_whole(&script).is_from_peer(), "{}", near.cache_status());
    assert_eq!(origin.bytes_sent("/f.bin"), 3 * MIB);
    assert_eq!(a.count("/traffic/bytes_tunnelled"), 0);
    assert_eq!(a.count("/traffic/bytes_to_clients"), 9 * MIB + 100);
}

#[test]
fn curl_speaks_both_versions_inside() {
    if !tools::installed("curl") {
        return;
    }
    let origin = Origin::start_tls();
    let a = intercepting("a", &origin);
    let script = Script::new(2 * MIB);
    origin.serve("/f.bin", script.clone());
    let ca = a.home().join("larder.pem");
    std::fs::write(&ca, authority(&a)).unwrap();
    let url = format!("https://{}/f.bin", named(origin.address()));
    for version in ["--http1.1", "--http2"] {
        let mark = "%{http_version} %header{cache-status}";
        let arguments = ["-f", version, "--cacert", ca.to_str().unwrap(), "-o", "out", "-w", mark, &url];
        let ran = tools::curl(a.proxy(), a.home(), &arguments).assert_code(0);
        assert!(std::fs::read(a.home().join("out")).unwrap() == script.body());
        println!("curl {version}: {}", ran.stdout);
        assert!(ran.stdout.starts_with(if version == "--http2" { "2 " } else { "1.1 " }), "{}", ran.stdout);
        a.wait_for_blob(&script.digest());
    }
    assert_eq!(origin.bytes_sent("/f.bin"), 2 * MIB);
}

#[test]
fn who_does_not_trust_is_told_how_and_then_let_alone() {
    let origin = Origin::start_tls();
    let a = intercepting("a", &origin);
    let script = Script::new(MIB);
    origin.serve("/f.bin", script.clone());
    let strict = |node: &Larder| {
        let way = named(origin.address());
        Stunnel::open(node.proxy(), &way, "localhost", origin.certificate(), &["http/1.1"])
    };
    let way = strict(&a);
    assert!(ask(&way, &origin, "/f.bin").try_send().is_err());
    assert!(way.failures()[0].contains("UnknownIssuer"), "{:?}", way.failures());
    let told = |node: &Larder| node.log().matches("larder ca install").count();
    wait_until("a line in the log", || told(&a) == 1);
    let line = a.log().lines().find(|line| line.contains("larder ca install")).unwrap().to_owned();
    println!("{line}");
    assert!(line.contains("WARN") && !line.contains("127.0.0.1"), "{line}");
    ask(&way, &origin, "/f.bin").send().assert_whole(&script);
    assert!(a.count("/traffic/bytes_tunnelled") > MIB);
    assert!(a.blobs().is_empty(), "what is inside a tunnel is nobody's business");
    // One program's mind is not another's.
    let friend = trusting(&a, &origin, &[]);
    ask(&friend, &origin, "/f.bin").send().assert_whole(&script);
    wait_until("it to be kept", || a.blobs().len() == 1);
    // The daemon forgets when it reads its configuration again: the program may have been told meanwhile.
    a.admin_ask("POST", "/api/v1/reload").body(b"").send();
    assert!(ask(&way, &origin, "/f.bin").try_send().is_err());
    wait_until("another line in the log", || told(&a) == 2);
    let port = origin.address().port();
    let b = start(describe("b", port).trusts(&origin).set("intercept.on_refusal", "refuse"));
    let way = strict(&b);
    for _ in 0..3 {
        assert!(ask(&way, &origin, "/f.bin").try_send().is_err());
    }
    wait_until("a line in the log", || told(&b) == 1);
}

#[test]
fn wget_looks_at_the_certificate_after_the_handshake_and_is_let_alone_too() {
    if !tools::installed("wget") {
        return;
    }
    let origin = Origin::start_tls();
    let a = intercepting("a", &origin);
    let script = Script::new(MIB);
    origin.serve("/f.bin", script.clone());
    let ca = a.home().join("origin.pem");
    std::fs::write(&ca, origin.certificate()).unwrap();
    let run = || {
        let url = format!("https://{}/f.bin", named(origin.address()));
        let proxy = format!("https_proxy=http://{}", a.proxy());
        let trust = format!("--ca-certificate={}", ca.display());
        let wget =
            ["wget", "-q", "-t1", "-T20", "-O", "out", "-e", &proxy, "-e", "use_proxy=on", &trust, &url];
        let mut command = crate::support::daemon::bare_command(wget[0], a.home());
        command.args(&wget[1..]).current_dir(a.home());
        crate::support::daemon::run(command)
    };
    run().assert_code(5);
    wait_until("a line in the log", || a.log().contains("larder ca install"));
    run().assert_code(0);
    assert!(std::fs::read(a.home().join("out")).unwrap() == script.body());
}

#[test]
fn a_request_for_another_host_is_misdirected() {
    let origin = Origin::start_tls();
    let a = intercepting("a", &origin);
    let script = Script::new(1000);
    origin.serve("/f.bin", script.clone());
    let way = trusting(&a, &origin, &["http/1.1"]);
    for host in ["other.test", "localhost", "localhost:1"] {
        let refused = Ask::new(way.address(), "GET", "/f.bin").field("Host", host).send();
        assert_eq!(refused.status, 421, "{host}: {}", refused.text());
    }
    let absolute = format!("https://{}/f.bin", named(origin.address()));
    ask(&way, &origin, &absolute).send().assert_whole(&script);
    assert_eq!(ask(&way, &origin, "https://other.test/f.bin").send().status, 421);
    let host = named(origin.address());
    let within = Ask::new(way.address(), "CONNECT", &host).field("Host", &host).send();
    assert_eq!(within.status, 400, "a proxy is not what was connected to: {}", within.text());
    assert_eq!(origin.all_requests().len(), 1);
}

#[test]
fn what_breaks_off_inside_never_looks_complete() {
    let origin = Origin::start_tls();
    let a = intercepting("a", &origin);
    let cut = Script::new(MIB).chunked().no_etag().ranges(Ranges::Ignored).cut_always(400_000);
    origin.serve("/f.bin", cut);
    let way = trusting(&a, &origin, &["http/1.1"]);
    // HTTP/1.0 knows the end of such a body by the close alone.
    let mut connection = Connection::to(way.address()).unwrap();
    connection.write(&ask(&way, &origin, "/f.bin").http10().bytes()).unwrap();
    let got = connection.drain();
    assert!(got.len() < 1_000_000 && !got.is_empty());
    wait_until("an improper end", || !way.failures().is_empty());
    println!("TLS ended: {:?}", way.failures());
}

#[test]
fn two_carries_many_requests_within_its_bounds() {
    let origin = Origin::start_tls();
    let a = intercepting("a", &origin);
    let scripts: Vec<_> = (0..40).map(|n| Script::new(50_000).seed(n + 1)).collect();
    for (n, script) in scripts.iter().enumerate() {
        origin.serve(&format!("/{n}"), script.clone());
    }
    let cut = Script::new(MIB).chunked().no_etag().ranges(Ranges::Ignored).cut_always(400_000);
    origin.serve("/cut", cut);
    let way = trusting(&a, &origin, &["h2"]);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let authority = named(origin.address());
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(way.address()).await.unwrap();
        let executor = hyper_util::rt::TokioExecutor::new();
        let io = hyper_util::rt::TokioIo::new(stream);
        let (sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
        let connection = tokio::spawn(connection);
        let get = |path: &str, fields: &[(&str, String)]| {
            let mut request = http::Request::get(format!("https://{authority}{path}"));
            for (name, value) in fields {
                request = request.header(*name, value);
            }
            let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
            let mut sender = sender.clone();
            async move {
                let response = sender.send_request(request).await?;
                let status = response.status().as_u16();
                let body = http_body_util::BodyExt::collect(response.into_body()).await?;
                Ok::<_, hyper::Error>((status, body.to_bytes()))
            }
        };
        let all = (0..40).map(|n| get(&format!("/{n}"), &[]));
        let (all, broken) = tokio::join!(futures_util::future::join_all(all), get("/cut", &[]));
        for (answer, script) in all.into_iter().zip(&scripts) {
            let (status, body) = answer.unwrap();
            assert!(status == 200 && body == script.body());
        }
        assert!(broken.is_err(), "half a body is no body");
        let (status, _) = get("/0", &[("x-large", "x".repeat(10_000))]).await.unwrap();
        assert_eq!(status, 200, "the connection goes on");
        let many: Vec<_> = (0..20).map(|_| ("x-large", "x".repeat(10_000))).collect();
        let large = get("/0", &many).await;
        assert!(large.as_ref().map_or(true, |(status, _)| *status == 431), "{large:?}");
        let two = [("cookie", "a=1".to_owned()), ("cookie", "b=2".to_owned())];
        get("/crumbs", &two).await.unwrap();
        drop(sender);
        connection.abort();
    });
    let crumbs = origin.requests("/crumbs").pop().unwrap();
    assert_eq!(crumbs.field("Cookie"), Some("a=1; b=2"), "{}", crumbs.text());
}

#[test]
fn one_new_thing_asked_by_many_inside_is_fetched_once() {
    let origin = Origin::start_tls();
    let a = intercepting("a", &origin);
    let script = Script::new(MIB).hold_at(1000);
    origin.serve("/f.bin", script.clone());
    let way = trusting(&a, &origin, &["http/1.1"]);
    let releasing = std::thread::scope(|scope| {
        let clients = scope.spawn(|| at_once(8, |_| ask(&way, &origin, "/f.bin").send()));
        wait_until("readers of one transfer", || {
            a.status()["transfers"][0]["readers"].as_u64().is_some_and(|readers| readers == 8)
        });
        origin.release("/f.bin");
        clients.join().unwrap()
    });
    for answer in &releasing {
        answer.assert_whole(&script);
    }
    assert_eq!(origin.gets("/f.bin").len(), 1);
}
