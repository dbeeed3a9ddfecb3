//! Who may do what, and how he proves who he is.

use super::*;

/// Ann may operate and has a password, Bob looks and comes through the front proxy.
fn people() -> Config {
    let user = |name: &str, role, password| User { name: name.to_owned(), role, password };
    let ann = user("ann", Role::Operator, hash_password(b"correct horse").unwrap());
    Config {
        users: vec![ann, user("bob", Role::Viewer, String::new())],
        trusted_header: "X-Remote-User".to_owned(),
        trusted_from: vec!["10.0.0.0/24".parse().unwrap()],
        ..Config::default()
    }
}

/// The cookie of a new session.
async fn logged_in(bench: &Bench, body: &'static str) -> String {
    let json = ("content-type", "application/json");
    let answer =
        bench.send("POST", "/api/v1/session", &[json, ("origin", "http://127.0.0.1:8097")], body).await;
    assert_eq!(answer.status(), StatusCode::OK, "{}", String::from_utf8_lossy(answer.body()));
    let set = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(set.contains(part), "{set}");
    }
    set.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn o14_a_session_is_of_use_to_its_own_page_alone() {
    let bench = bench_of(&people());
    let json = ("content-type", "application/json");
    for wrong in
        [r#"{"token":"0"}"#, r#"{"name":"ann","password":"wrong"}"#, r#"{"name":"bob","password":""}"#]
    {
        assert_eq!(
            bench.send("POST", "/api/v1/session", &[json], wrong).await.status(),
            StatusCode::UNAUTHORIZED
        );
    }
    assert_eq!(bench.send("POST", "/api/v1/session", &[json], "{}").await.status(), StatusCode::BAD_REQUEST);
    let cookie = logged_in(&bench, r#"{"name":"ann","password":"correct horse"}"#).await;
    let cookie = ("cookie", cookie.as_str());
    let me = json_of(&bench.get("/api/v1/session", &[cookie]).await);
    assert_eq!(me, json!({"name": "ann", "role": "operator"}));
    assert_eq!(bench.get("/api/v1/peers", &[cookie]).await.status(), StatusCode::OK);
    assert!(json_of(&bench.get("/status", &[cookie]).await).get("peers").is_some());
    let foreign = ("sec-fetch-site", "same-site");
    assert_eq!(bench.get("/api/v1/peers", &[cookie, foreign]).await.status(), StatusCode::UNAUTHORIZED);
    let body = r#"{"address":"10.0.0.9"}"#;
    for (origin, status) in [
        (None, StatusCode::FORBIDDEN),
        (Some("http://127.0.0.1:9000"), StatusCode::FORBIDDEN),
        (Some("null"), StatusCode::FORBIDDEN),
        (Some("http://127.0.0.1:8097"), StatusCode::CREATED),
    ] {
        let fields: Vec<_> =
            [json, cookie].into_iter().chain(origin.map(|origin| ("origin", origin))).collect();
        assert_eq!(bench.send("POST", "/api/v1/bans", &fields, body).await.status(), status, "{origin:?}");
    }
    assert_eq!(bench.done.lock().unwrap().len(), 1);
    assert!(bench.deeds.lock().unwrap().last().unwrap().contains("who: \"ann\""));
    let own = ("origin", "http://127.0.0.1:8097");
    let gone = bench.send("DELETE", "/api/v1/session", &[cookie, own], "").await;
    assert!(gone.headers()["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
    assert_eq!(bench.get("/api/v1/session", &[cookie]).await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn each_role_may_what_it_may() {
    let bench = bench_of(&people());
    let json = ("content-type", "application/json");
    let basic = |text: &str| {
        use base64::Engine as _;
        format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(text))
    };
    let (ann, wrong) = (basic("ann:correct horse"), basic("ann:wrong"));
    let (ann, wrong) = (("authorization", ann.as_str()), ("authorization", wrong.as_str()));
    assert_eq!(bench.get("/api/v1/peers", &[ann]).await.status(), StatusCode::OK);
    assert_eq!(bench.get("/api/v1/peers", &[wrong]).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(bench.send("POST", "/api/v1/gc", &[json, ann], "{}").await.status(), StatusCode::OK);
    let refused = bench.send("POST", "/api/v1/reload", &[json, ann], "").await;
    assert_eq!(
        (refused.status(), json_of(&refused)["type"].clone()),
        (StatusCode::FORBIDDEN, json!("urn:larder:problem:role-needed"))
    );
    let level = r#"{"level":"debug"}"#;
    assert_eq!(bench.get("/api/v1/log", &[ann]).await.status(), StatusCode::OK);
    let refused = bench.send("PUT", "/api/v1/log", &[json, ann], level).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let token = ("authorization", bench.token.as_str());
    assert_eq!(bench.send("POST", "/api/v1/reload", &[token], "").await.status(), StatusCode::OK);
    assert_eq!(bench.send("PUT", "/api/v1/log", &[json, token], level).await.status(), StatusCode::OK);
    assert!(bench.deeds.lock().unwrap().last().unwrap().contains("/api/v1/log"));
    let unclear = bench.send("PUT", "/api/v1/log", &[json, token], "{}").await;
    assert_eq!(unclear.status(), StatusCode::BAD_REQUEST, "what is not said changes nothing");
}

#[tokio::test]
async fn the_front_proxy_is_believed_and_nobody_else() {
    let bench = bench_of(&people());
    let ask = async |from: &str, names: &[&str], method: &str, path: &str| {
        let mut request = http::Request::builder().method(method).uri(path).header("host", "127.0.0.1:8097");
        for name in names {
            request = request.header("x-remote-user", *name);
        }
        let mut request = request.body(Body::empty()).unwrap();
        let from: std::net::SocketAddr = from.parse().unwrap();
        request.extensions_mut().insert(identify::From(from));
        bench.ask(Door::Port, request).await.status()
    };
    let peers = "/api/v1/peers";
    assert_eq!(ask("10.0.0.7:9", &["bob"], "GET", peers).await, StatusCode::OK);
    assert_eq!(ask("10.0.0.7:9", &["bob"], "POST", "/api/v1/reload").await, StatusCode::FORBIDDEN);
    assert_eq!(ask("10.0.1.7:9", &["bob"], "GET", peers).await, StatusCode::UNAUTHORIZED, "another machine");
    assert_eq!(ask("10.0.0.7:9", &["bob", "ann"], "GET", peers).await, StatusCode::UNAUTHORIZED, "two names");
    assert_eq!(
        ask("10.0.0.7:9", &["eve"], "GET", peers).await,
        StatusCode::UNAUTHORIZED,
        "trusted_role is none"
    );
}

#[tokio::test]
async fn the_status_is_followed() {
    let bench = bench();
    let follow = async |token: Option<&str>| {
        let mut request = http::Request::get("/status")
            .header("host", "127.0.0.1:8097")
            .header("accept", "text/event-stream");
        if let Some(token) = token {
            request = request.header("authorization", token);
        }
        let answer =
            bench.server.router(Door::Port).call(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        let mut body = answer.into_body();
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        String::from_utf8(frame.to_vec()).unwrap()
    };
    let open = follow(None).await;
    assert!(
        open.contains("event: status")
            && open.contains("\"saved\":{\"today\":1")
            && !open.contains("\"peers\"")
    );
    assert!(follow(Some(bench.token.as_str())).await.contains("10.0.0.7"));
}
