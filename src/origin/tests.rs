//! Against small origins that follow a script on a raw socket.

mod body;
mod follow;
mod pooling;
mod reach;
mod secure;
mod support;

use std::time::Duration;

use http::header::HeaderValue;

use super::{Config, OriginError, Remote};
use support::{Client, fast, get, origin, serve, soon, text};

#[tokio::test]
async fn the_request_goes_out_as_it_came() {
    let server = serve(|mut client: Client| async move {
        while client.head().await.is_some() {
            client.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        }
    });
    let origin = origin(fast());
    for path in ["/a%2Fb", "//a//b", "/?", "/a?b=%2B&c", "/./a/../b", "/%e2%82%ac", "/x?u=http://h/"] {
        let mut request = get(&server.url(path));
        for (name, value) in [
            ("host", "evil.test"),
            ("expect", "100-continue"),
            ("connection", "x-mine"),
            ("x-mine", "1"),
            ("te", "trailers"),
            ("accept-encoding", "br"),
        ] {
            request.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        let response = soon(origin.send(request, &Default::default())).await.unwrap();
        assert_eq!(response.extensions().get::<Remote>(), Some(&Remote(server.address)));
        assert_eq!(text(response).await.unwrap(), "ok");
        let head = server.heads().pop().unwrap();
        let expected =
            format!("GET {path} HTTP/1.1\r\nhost: {}\r\naccept-encoding: br\r\n\r\n", server.address);
        assert_eq!(head, expected);
    }
    assert_eq!(server.connections(), 1, "one connection served all");
}

#[tokio::test]
async fn a_silent_origin_is_given_up() {
    let server = serve(|mut client: Client| async move {
        client.head().await;
        client.wait_for_end().await;
    });
    let origin = origin(Config { stall_timeout: "100ms".parse().unwrap(), ..Config::default() });
    let error = soon(origin.send(get(&server.url("/?secret=1")), &Default::default())).await.unwrap_err();
    assert_eq!(error, OriginError::Stalled { host: "127.0.0.1".into() });
    assert!(error.is_unreachable() && !error.to_string().contains("secret"));
}

#[tokio::test]
async fn nobody_there_is_an_unreachable_host() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error =
        soon(origin(fast()).send(get(&format!("http://{gone}/")), &Default::default())).await.unwrap_err();
    assert!(matches!(&error, OriginError::Connect { host, .. } if host == "127.0.0.1"), "{error}");
    assert!(error.is_unreachable());
    for url in ["/no-scheme", "ftp://h/", "http://user:password@h/"] {
        let error = soon(origin(fast()).send(get(url), &Default::default())).await.unwrap_err();
        assert!(matches!(error, OriginError::BadTarget(_)) && !error.is_unreachable(), "{url}");
    }
}

#[tokio::test]
async fn h40_large_heads_pass_and_larger_ones_are_refused() {
    let server = serve(|mut client: Client| async move {
        while let Some(head) = client.head().await {
            let size: usize = head.split(['/', ' ']).nth(2).unwrap().parse().unwrap();
            let fields: String = (0..200).map(|n| format!("x-{n}: {}\r\n", "v".repeat(size / 200))).collect();
            client.say(&format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{fields}\r\n")).await;
        }
    });
    let origin = origin(fast());
    for size in [16_000, 64_000, 300_000] {
        let mut request = get(&server.url(&format!("/{size}")));
        request.headers_mut().insert("x-large", HeaderValue::try_from("t".repeat(size)).unwrap());
        let response = soon(origin.send(request, &Default::default())).await.unwrap();
        assert_eq!(response.headers().len(), 201, "{size}");
    }
    let answer = soon(origin.send(get(&server.url("/2000000")), &Default::default())).await;
    let Err(error) = answer else { panic!("2 MB are too much") };
    assert!(error.to_string().contains("too large"), "{error}");
}

#[tokio::test]
async fn what_is_no_http_is_said_so() {
    for answer in ["SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 99x\r\n\r\n", "HTTP/1.1 200 OK\r\nbroken\r\n\r\n"] {
        let server = serve(move |mut client: Client| async move {
            client.head().await;
            client.say(answer).await;
        });
        let error = soon(origin(fast()).send(get(&server.url("/")), &Default::default())).await.unwrap_err();
        assert!(matches!(error, OriginError::Protocol { .. }), "{answer}: {error}");
    }
}

#[test]
fn the_configuration_has_its_defaults_and_hides_the_password() {
    let config: Config = toml::from_str("").unwrap();
    assert_eq!(config, Config::default());
    assert_eq!(config.stall_timeout.0, Duration::from_secs(30));
    assert!(toml::from_str::<Config>("conect_timeout = \"1s\"").is_err());
    for wrong in ["https://p:1", "p:3128", "http://", "http://p:99999", "http://p:1/path"] {
        assert!(toml::from_str::<Config>(&format!("proxy = \"{wrong}\"")).is_err(), "{wrong}");
    }
    let config: Config = toml::from_str("proxy = \"http://me:s%3Acret@proxy.lan:3128/\"").unwrap();
    let shown = format!("{config:?} {}", toml::to_string(&config).unwrap());
    assert!(shown.contains("http://…@proxy.lan:3128") && !shown.contains("cret"), "{shown}");
    let none = Config { connections_per_host: 0, ..Config::default() };
    let error = super::Origin::new(none, crate::clock::SystemClock::shared()).unwrap_err();
    assert!(error.to_string().contains("origin.connections_per_host"));
}
