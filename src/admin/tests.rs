//! The routes as callers see them, without sockets; the listeners once with.

mod access;

use std::sync::Mutex;

use axum::body::Body;
use axum::extract::Request;
use http::StatusCode;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower_service::Service as _;

use super::*;
use crate::clock::{ManualClock, Timestamp};
use crate::digest::Digest;
use crate::fetch::{Measures, Traffic};
use crate::index::{
    BanRecord, BlobRecord, EventRecord, LabelRecord, PeerRecord, PinRecord, ResourceRecord, TransferRecord,
};
use crate::orm::{Cell, Change, Computed, Condition, Feed, Record as _};
use crate::rest::{Api, Resource, Rows, Token};
use crate::shutdown::Shutdown;
use crate::telemetry::Health;
use crate::tls::NodeId;
use std::sync::Arc;

struct Bench {
    server: Server,
    token: String,
    readiness: watch::Sender<Readiness>,
    health: Health,
    done: Arc<Mutex<Vec<String>>>,
    deeds: Arc<Mutex<Vec<String>>>,
}

/// Five blobs and a ban, as they could be anywhere.
fn api(done: &Arc<Mutex<Vec<String>>>) -> Api {
    let blob =
        |byte: u8| BlobRecord { first_hand: true, ..BlobRecord::new(Digest::of(&[byte]), 1, Timestamp(0)) };
    let peer = || PeerRecord {
        node: NodeId::from_bytes([8; 16]).to_string(),
        name: "box2".to_owned(),
        address: "10.0.0.7:8096".to_owned(),
        last_seen_seconds: 1.5,
        version: "0.1.0".to_owned(),
        bytes_received: 7,
        bytes_given: 9,
        skipped: None,
    };
    let done = Arc::clone(done);
    let lift = move |key: &[Cell<'static>]| {
        done.lock().unwrap().push(format!("unban {key:?}"));
        Ok(true)
    };
    let rows = |engine: Computed| -> Rows { Arc::new(engine) };
    Api::new(Feed::new())
        .with(Resource::of::<BlobRecord>(rows(Computed::new(move || (0..5).map(blob).collect()))))
        .with(Resource::of::<ResourceRecord>(rows(Computed::new(Vec::<ResourceRecord>::new))).found_by(
            "url",
            "By its URL.",
            |_url| Condition::Any(Vec::new()),
        ))
        .with(Resource::of::<TransferRecord>(rows(Computed::new(Vec::<TransferRecord>::new))))
        .with(Resource::of::<PinRecord>(rows(Computed::new(Vec::<PinRecord>::new))))
        .with(Resource::of::<LabelRecord>(rows(Computed::new(Vec::<LabelRecord>::new))))
        .with(Resource::of::<EventRecord>(rows(Computed::new(Vec::<EventRecord>::new))))
        .with(Resource::of::<PeerRecord>(rows(Computed::new(move || vec![peer()]))))
        .with(Resource::of::<BanRecord>(rows(Computed::new(Vec::<BanRecord>::new))).deleted_by(lift))
}

/// A URL of which nothing is known.
fn unexplained(url: &str) -> Option<ExplanationView> {
    serde_json::from_value(serde_json::json!({ "url": url })).ok()
}

fn sources(
    clock: &Arc<ManualClock>,
    health: &Health,
    readiness: watch::Receiver<Readiness>,
    deeds: &Arc<Mutex<Vec<String>>>,
) -> Sources {
    use crate::clock::Clock as _;
    let noted = Arc::clone(deeds);
    Sources {
        about: About {
            node: NodeId::from_bytes([7; 16]),
            name: "box1".to_owned(),
            site: "lab".to_owned(),
            version: "0.1.0",
            started_at: clock.now(),
            started: clock.instant(),
        },
        clock: clock.clone(),
        health: health.clone(),
        readiness,
        traffic: Box::new(|| Traffic { requests: 3, bytes_from_peers: 5, ..Traffic::default() }),
        measures: Measures::default(),
        foreign_frames: Box::new(|| 0),
        catalogue: Box::new(|| None),
        transfers: Box::new(Vec::new),
        mormot: Box::new(|| None),
        cache: Box::new(|| CacheView { blobs: 3, bytes: 9, max_bytes: 100, pinned: 0, damaged: 0 }),
        saved: Box::new(|| SavedView { today: 1, week: 2, ever: 3 }),
        log: Box::new(|| LogView { level: "info".to_owned(), configured: "info".to_owned() }),
        settings: Box::new(Arc::default),
        peers: Box::new(|| {
            vec![PeerView {
                node: NodeId::from_bytes([8; 16]),
                name: "box2".to_owned(),
                address: "10.0.0.7:8096".to_owned(),
                last_seen_seconds: 1.5,
                version: "0.1.0".to_owned(),
                bytes_received: 7,
                bytes_given: 9,
                skipped: None,
                clock_ahead_seconds: None,
            }]
        }),
        bans: Box::new(Vec::new),
        explain: Box::new(unexplained),
        deed: Box::new(move |deed| noted.lock().unwrap().push(format!("{deed:?}"))),
    }
}

fn control(done: &Arc<Mutex<Vec<String>>>) -> Control {
    let note = |what: &'static str| {
        let done = Arc::clone(done);
        move |about: String| done.lock().unwrap().push(format!("{what} {about}"))
    };
    let (ban, pin, gc) = (note("ban"), note("pin"), note("gc"));
    let missing =
        |digest: Digest| std::future::ready(Err(ActionError::NotFound(format!("{digest} is not held"))));
    Control {
        block: Control::action(|request: BlockRequest| {
            let refused = ActionError::Unreadable(format!("`{}` is no thing", request.thing));
            std::future::ready(Err(refused))
        }),
        ban: Control::action(move |request: BanRequest| {
            ban(format!("{} {:?}", request.address, request.duration.map(|d| d.to_string())));
            let view =
                BanView { address: request.address, reason: "asked".to_owned(), until: "later".to_owned() };
            std::future::ready(Ok(view))
        }),
        reload: Control::action(|()| std::future::ready(Ok(ReloadView::default()))),
        log: Control::action(|request: LogRequest| {
            let level = request.level.unwrap_or_else(|| "info".to_owned());
            std::future::ready(Ok(LogView { level, configured: "info".to_owned() }))
        }),
        verify: Control::action(|digest| std::future::ready(Ok(VerifyView { digest, sound: true }))),
        pin: Control::action(move |digest: Digest| {
            pin(digest.to_string());
            std::future::ready(Ok(()))
        }),
        unpin: Control::action(missing),
        fetches: Control::action(|_| std::future::ready(Ok(FetchesView::default()))),
        purge: Control::action(|_| std::future::ready(Ok(PurgeView::default()))),
        store: Control::action(|given: GivenBlob| {
            std::future::ready(Ok(StoredView { digest: given.digest, size: given.size.unwrap_or(0) }))
        }),
        import: Control::action(|_| std::future::ready(Ok(ImportedView::default()))),
        gc: Control::action(move |request: GcRequest| {
            gc(format!("{:?}", request.to));
            std::future::ready(Ok(GcView::default()))
        }),
    }
}

fn bench() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    bench_with(Token::load_or_create(&folder.path().join("admin.token")).unwrap(), &Config::default())
}

fn bench_of(config: &Config) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    bench_with(Token::load_or_create(&folder.path().join("admin.token")).unwrap(), config)
}

/// A server of a made-up node, for the other end.
pub(crate) fn server(token: Token) -> Server {
    bench_with(token, &Config::default()).server
}

fn bench_with(token: Token, config: &Config) -> Bench {
    let (clock, health, done) = (ManualClock::new(Timestamp(0)), Health::new(), Arc::default());
    let (readiness, watched) = watch::channel(Readiness::Ready);
    let deeds = Arc::default();
    let sources = sources(&clock, &health, watched, &deeds);
    clock.advance(std::time::Duration::from_secs(12));
    let server = Server::new(config, token.clone(), (sources, control(&done), api(&done)), Shutdown::new());
    Bench { server, token: token.to_field().to_string(), readiness, health, done, deeds }
}

impl Bench {
    async fn ask(&self, door: Door, request: Request) -> http::Response<Vec<u8>> {
        let response = self.server.router(door).call(request).await.unwrap();
        let (parts, body) = response.into_parts();
        http::Response::from_parts(parts, body.collect().await.unwrap().to_bytes().to_vec())
    }

    async fn get(&self, path: &str, fields: &[(&str, &str)]) -> http::Response<Vec<u8>> {
        self.send("GET", path, fields, "").await
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: &'static str,
    ) -> http::Response<Vec<u8>> {
        let mut request = http::Request::builder().method(method).uri(path);
        if !fields.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", "127.0.0.1:8097");
        }
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        self.ask(Door::Port, request.body(Body::from(body)).unwrap()).await
    }
}

fn json_of(response: &http::Response<Vec<u8>>) -> Value {
    serde_json::from_slice(response.body()).unwrap()
}

#[tokio::test]
async fn without_a_token_nothing_names_anybody() {
    let bench = bench();
    bench.health.raise("disk-full", "no space in /var/cache/larder");
    let status = json_of(&bench.get("/status", &[]).await);
    assert_eq!(status["uptime_seconds"], 12);
    assert_eq!(status["traffic"]["bytes_from_peers"], 5);
    assert_eq!(status["health"], json!({"status": "degraded", "reasons": ["disk-full"]}));
    for member in ["peers", "transfers", "bans"] {
        assert!(status.get(member).is_none(), "{member}");
    }
    for path in ["/api/v1/peers", "/api/v1/blobs", "/api/v1/nothing"] {
        let refused = bench.get(path, &[]).await;
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(refused.headers()["content-type"], "application/problem+json");
        assert!(refused.headers().contains_key("www-authenticate"));
    }
}

#[tokio::test]
async fn the_token_opens_all() {
    let bench = bench();
    bench.health.raise("disk-full", "no space in /var/cache/larder");
    let status = json_of(&bench.get("/status", &[("authorization", &bench.token)]).await);
    assert_eq!(status["health"]["reasons"][0], "no space in /var/cache/larder");
    assert_eq!(status["peers"][0]["address"], "10.0.0.7:8096");
    assert_eq!(status["bans"], json!([]));
    let peers = json_of(&bench.get("/api/v1/peers", &[("authorization", &bench.token)]).await);
    assert_eq!(peers[0]["name"], "box2");
    let wrong =
        bench.get("/api/v1/peers", &[("authorization", "Bearer 00000000000000000000000000000000")]).await;
    assert_eq!(wrong.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn the_socket_needs_no_token_and_no_host() {
    let bench = bench();
    let request = http::Request::get("/status").body(Body::empty()).unwrap();
    let status = json_of(&bench.ask(Door::Socket, request).await);
    assert_eq!(status["peers"][0]["name"], "box2");
}

#[tokio::test]
async fn o14_foreign_hosts_are_refused() {
    let bench = bench();
    for host in ["evil.test", "evil.test:8097", "localhost.evil.test"] {
        let refused = bench.get("/healthz", &[("host", host)]).await;
        assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{host}");
        assert_eq!(json_of(&refused)["type"], "urn:larder:problem:host-refused");
    }
    for host in ["localhost:8097", "[::1]:8097", "box1", "10.0.0.1:8097"] {
        assert_eq!(bench.get("/healthz", &[("host", host)]).await.status(), StatusCode::OK, "{host}");
    }
    let none = http::Request::get("/healthz").body(Body::empty()).unwrap();
    assert_eq!(bench.ask(Door::Port, none).await.status(), StatusCode::BAD_REQUEST);
    let absolute = bench.get("http://evil.test/healthz", &[]).await;
    assert_eq!(absolute.status(), StatusCode::FORBIDDEN);
    let two = bench.get("/healthz", &[("host", "localhost"), ("host", "evil.test")]).await;
    assert_eq!(two.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn o14_pages_of_other_sites_change_nothing() {
    let bench = bench();
    let json = ("content-type", "application/json");
    let token = ("authorization", bench.token.as_str());
    let body = r#"{"address":"10.0.0.9","duration":"5m"}"#;
    for forged in [("origin", "http://evil.test"), ("origin", "null"), ("sec-fetch-site", "cross-site")] {
        let refused = bench.send("POST", "/api/v1/bans", &[json, token, forged], body).await;
        assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{forged:?}");
    }
    assert!(bench.done.lock().unwrap().is_empty());
    let own = ("origin", "http://127.0.0.1:8097");
    let made = bench.send("POST", "/api/v1/bans", &[json, token, own], body).await;
    assert_eq!(made.status(), StatusCode::CREATED);
    assert_eq!(*bench.done.lock().unwrap(), ["ban 10.0.0.9 Some(\"5m\")"]);
}

#[tokio::test]
async fn actions_answer_with_problems() {
    let bench = bench();
    let (json, token) = (("content-type", "application/json"), ("authorization", bench.token.as_str()));
    let digest = Digest::of(b"x").to_string();
    for (method, path, body, status) in [
        ("POST", "/api/v1/bans".to_owned(), r#"{"address":"here"}"#, 400),
        ("POST", "/api/v1/bans".to_owned(), r#"{"address":"10.0.0.9","for":"5m"}"#, 400),
        ("DELETE", "/api/v1/bans/10.0.0.9".to_owned(), "", 204),
        ("DELETE", "/api/v1/bans/here".to_owned(), "", 400),
        ("DELETE", format!("/api/v1/blobs/{digest}"), "", 405),
        ("GET", format!("/api/v1/blobs/{digest}"), "", 404),
        ("GET", "/api/v1/nothing".to_owned(), "", 404),
        ("GET", "/api/v1/blobs?size=many".to_owned(), "", 400),
        ("PUT", format!("/api/v1/blobs/{digest}/pin"), "", 204),
        ("POST", format!("/api/v1/blobs/{digest}/verify"), "", 200),
        ("POST", "/api/v1/blobs/sha256:12/verify".to_owned(), "", 400),
        ("POST", "/api/v1/gc".to_owned(), r#"{"to":"1GiB"}"#, 200),
        ("POST", "/api/v1/purges".to_owned(), r#"{"url":"http://e/*"}"#, 200),
        ("POST", "/api/v1/purges".to_owned(), r#"{"urls":"http://e/*"}"#, 400),
        ("GET", "/api/v1/configuration".to_owned(), "", 200),
        ("GET", "/app.js".to_owned(), "", 200),
        ("GET", "/passwd".to_owned(), "", 404),
        ("POST", "/api/v1/reload".to_owned(), "", 200),
        ("PATCH", "/api/v1/bans".to_owned(), "", 405),
        ("GET", "/nothing".to_owned(), "", 404),
    ] {
        let answer = bench.send(method, &path, &[json, token], body).await;
        assert_eq!(answer.status().as_u16(), status, "{method} {path} {body}");
        if status >= 400 {
            assert_eq!(json_of(&answer)["status"], status, "{method} {path}");
        }
    }
    let huge = "{\"address\":\"10.0.0.9\"".to_owned() + &" ".repeat(70_000) + "}";
    let request = bench.send("POST", "/api/v1/bans", &[json, token], Box::leak(huge.into_boxed_str())).await;
    assert_eq!(request.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn records_are_shown_and_deeds_noted() {
    let bench = bench();
    let token = ("authorization", bench.token.as_str());
    let page = bench.get("/api/v1/blobs?limit=2", &[token]).await;
    assert_eq!(json_of(&page).as_array().unwrap().len(), 2);
    assert!(page.headers()["link"].to_str().unwrap().starts_with("</api/v1/blobs?limit=2&cursor="));
    let digest = Digest::of(&[3]).to_string();
    for written in [digest.clone(), digest.replace(':', "%3A")] {
        let one = bench.get(&format!("/api/v1/blobs/{written}"), &[token]).await;
        assert_eq!((json_of(&one)["size"].clone(), one.headers().contains_key("etag")), (json!(1), true));
    }
    assert_eq!(bench.get("/api/v1/blobs?limt=2", &[token]).await.status(), StatusCode::BAD_REQUEST);
    assert!(bench.deeds.lock().unwrap().is_empty(), "who only looks does nothing");
    let gone = bench.send("DELETE", "/api/v1/bans/10.0.0.9?x=1", &[token], "").await;
    assert_eq!(gone.status(), StatusCode::BAD_REQUEST);
    bench.send("DELETE", "/api/v1/bans/10.0.0.9", &[token], "").await;
    bench.send("DELETE", "/api/v1/bans/10.0.0.9", &[], "").await;
    let deeds = bench.deeds.lock().unwrap().clone();
    assert_eq!(deeds.len(), 2, "{deeds:?}");
    assert_eq!(
        deeds[1],
        "Deed { door: Port, who: \"token\", method: DELETE, path: \"/api/v1/bans/10.0.0.9\", status: 204 }",
        "without the query"
    );
}

#[tokio::test]
async fn readiness_follows_the_daemon() {
    let bench = bench();
    assert_eq!(bench.get("/readyz", &[]).await.status(), StatusCode::OK);
    for (state, word) in [(Readiness::Draining, "draining"), (Readiness::NoDisk, "no-disk")] {
        bench.readiness.send(state).unwrap();
        let answer = bench.get("/readyz", &[]).await;
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(json_of(&answer)["reason"], word);
        assert_eq!(bench.get("/healthz", &[]).await.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn numbers_name_nobody() {
    let bench = bench();
    bench.health.raise("disk-full", "no space in /var/cache/larder");
    let text = String::from_utf8(bench.get("/metrics", &[]).await.into_body()).unwrap();
    for line in
        ["larder_requests_total 3", "larder_source_received_bytes_total{source=\"peer\"} 5", "larder_peers 1"]
    {
        assert!(text.lines().any(|found| found == line), "{line} not in\n{text}");
    }
    assert!(!text.contains("10.0.0.7") && !text.contains("/var/cache"));
}

#[tokio::test]
async fn browsers_get_the_page() {
    let bench = bench();
    let accept = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    for path in ["/", "/status"] {
        let page = bench.get(path, &[accept]).await;
        assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
        assert!(page.headers()["content-security-policy"].to_str().unwrap().contains("default-src 'none'"));
        assert_eq!(page.headers()["cache-control"], "no-store");
    }
    assert_eq!(
        bench.get("/status", &[("accept", "*/*")]).await.headers()["content-type"],
        "application/json"
    );
}

#[tokio::test]
async fn serves_ports_and_socket_until_asked_to_stop() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let (bench, folder, stop) = (bench(), tempfile::tempdir().unwrap(), Shutdown::new());
    let tcp = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.local_addr().unwrap();
    let path = folder.path().join("admin.sock");
    let socket = AdminSocket::bind(&path).unwrap();
    let listeners = Listeners { tcp: vec![tcp], tls: None, socket: Some(socket) };
    let running = tokio::spawn(bench.server.clone().run(listeners, stop.clone()));
    let mut port = tokio::net::TcpStream::connect(address).await.unwrap();
    port.write_all(b"GET /status HTTP/1.0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    port.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.0 200") && !answer.contains("\"peers\""), "{answer}");
    let mut unix = tokio::net::UnixStream::connect(&path).await.unwrap();
    unix.write_all(b"GET /status HTTP/1.0\r\n\r\n").await.unwrap();
    answer.clear();
    unix.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("\"peers\""), "{answer}");
    let _idle = tokio::net::TcpStream::connect(address).await.unwrap();
    stop.request();
    running.await.unwrap().unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn events_go_on_where_a_client_was() {
    let bench = bench();
    let feed = bench.server.feed();
    let change = |number: i64| Change {
        table: BanRecord::table(),
        key: vec![Cell::Text(format!("10.0.0.{number}").into())],
        row: None,
    };
    let follow = |id: Option<String>| {
        let mut request = http::Request::get("/api/v1/events?record=bans").header("host", "127.0.0.1:8097");
        request = request.header("authorization", &bench.token);
        if let Some(id) = id {
            request = request.header("last-event-id", id);
        }
        bench.server.router(Door::Port).call(request.body(Body::empty()).unwrap())
    };
    let first = follow(None).await.unwrap();
    assert_eq!(first.headers()["content-type"], "text/event-stream");
    let mut body = first.into_body();
    let mut said = async || {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        String::from_utf8(frame.to_vec()).unwrap()
    };
    assert!(said().await.contains("event: ready"));
    feed.publish(vec![change(1), change(2)]);
    let text = said().await;
    assert!(text.contains(r#"data: {"record":"bans","key":"10.0.0.1","row":null}"#), "{text}");
    let last = text.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().unwrap().to_owned();
    feed.publish(vec![change(3)]);
    let mut again = follow(Some(last.clone())).await.unwrap().into_body();
    let greeting = again.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(String::from_utf8_lossy(&greeting).contains("event: ready"));
    let missed = again.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(String::from_utf8_lossy(&missed).contains("10.0.0.3"), "what came meanwhile, and only that");
    assert!(!String::from_utf8_lossy(&missed).contains("10.0.0.2"));
    let other_life = follow(Some("0000-1".to_owned())).await.unwrap();
    let greeting = other_life.into_body().frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(String::from_utf8_lossy(&greeting).contains("event: missed"));
    let unknown = bench.get("/api/v1/events?record=nothing", &[("authorization", &bench.token)]).await;
    assert_eq!(
        (unknown.status(), json_of(&unknown)["field"].clone()),
        (StatusCode::BAD_REQUEST, json!("record"))
    );
}

#[tokio::test]
async fn all_that_the_page_does_is_described() {
    let bench = bench();
    let described = json_of(&bench.get("/api/openapi.json", &[]).await);
    let script = include_str!("ui/app.js");
    for (method, path, called) in [
        ("post", "/session", "\"/session\""),
        ("get", "/session", "\"/session\""),
        ("delete", "/session", "\"/session\""),
        ("get", "/events", "/events?record="),
        ("get", "/transfers", "/transfers?"),
        ("get", "/blobs", "/blobs?"),
        ("put", "/blobs/{key}/pin", "/pin"),
        ("post", "/blobs/{key}/verify", "/verify"),
        ("post", "/gc", "/gc"),
        ("post", "/purges", "/purges"),
        ("post", "/bans", "/bans"),
        ("delete", "/bans/{key}", "/bans/"),
        ("get", "/configuration", "/configuration"),
        ("post", "/reload", "/reload"),
    ] {
        assert!(script.contains(called), "{called}");
        assert!(described["paths"][format!("/api/v1{path}")][method].is_object(), "{method} {path}");
    }
    let stored = &described["paths"]["/api/v1/blobs/{key}/content"]["put"];
    assert!(stored["requestBody"]["content"]["application/octet-stream"].is_object(), "{stored}");
    let asked = &described["paths"]["/api/v1/explanation"]["get"]["parameters"][0];
    assert_eq!((asked["name"].as_str(), asked["required"].as_bool()), (Some("url"), Some(true)));
    let listed = &described["paths"]["/api/v1/events"]["get"];
    assert!(listed["responses"]["200"]["content"]["text/event-stream"].is_object(), "{listed}");
}
