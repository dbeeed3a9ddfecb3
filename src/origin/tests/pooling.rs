//! Tests of `origin::pooling`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::support::{Client, fast, get, origin, serve, soon, text};
use crate::http::full;
use crate::origin::{Config, OriginError, Reach};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[tokio::test]
async fn c14_connections_that_close_after_each_answer_are_never_noticed() {
    let server = serve(|mut client: Client| async move {
        client.head().await;
        client.say(OK).await;
    });
    let origin = origin(fast());
    for n in 0..200 {
        let response = soon(origin.send(get(&server.url(&format!("/{n}"))), &Reach::Anywhere)).await;
        assert_eq!(text(response.unwrap()).await.unwrap(), "ok", "{n}");
    }
    assert_eq!(server.heads().len(), 200);
}

#[tokio::test]
async fn c14_a_get_that_meets_the_closing_is_repeated_and_a_post_is_not() {
    // Every connection answers once, then takes a second request and closes without a word.
    let script = |mut client: Client| async move {
        client.head().await;
        client.say(OK).await;
        client.head().await;
    };
    let (server, origin) = (serve(script), origin(fast()));
    for _round in 0..3 {
        let response = soon(origin.send(get(&server.url("/")), &Reach::Anywhere)).await.unwrap();
        assert_eq!(text(response).await.unwrap(), "ok");
    }
    assert_eq!((server.heads().len(), server.connections()), (5, 3));

    let server = serve(script);
    let response = soon(origin.send(get(&server.url("/")), &Reach::Anywhere)).await.unwrap();
    assert_eq!(text(response).await.unwrap(), "ok");
    let post = http::Request::post(server.url("/order")).body(full("one beer")).unwrap();
    let error = soon(origin.send(post, &Reach::Anywhere)).await.unwrap_err();
    assert!(matches!(error, OriginError::Protocol { .. }), "{error}");
    assert_eq!(server.heads().len(), 2, "ordered once");
}

#[tokio::test]
async fn a_fresh_connection_that_fails_is_not_repeated() {
    let server = serve(|mut client: Client| async move {
        client.head().await;
    });
    let error = soon(origin(fast()).send(get(&server.url("/")), &Reach::Anywhere)).await.unwrap_err();
    assert!(error.to_string().contains("closed the connection"), "{error}");
    assert_eq!(server.heads().len(), 1);
}

#[tokio::test]
async fn c15_a_crowd_stays_within_the_limit() {
    let server = serve(|mut client: Client| async move {
        while client.head().await.is_some() {
            tokio::time::sleep(Duration::from_millis(2)).await;
            client.say(OK).await;
        }
    });
    let origin = origin(Config { connections_per_host: 4, ..fast() });
    let served = Arc::new(AtomicUsize::new(0));
    let mut crowd = tokio::task::JoinSet::new();
    for n in 0..50 {
        let (origin, url, served) = (origin.clone(), server.url(&format!("/{n}")), Arc::clone(&served));
        crowd.spawn(async move {
            for _round in 0..8 {
                let response = origin.send(get(&url), &Reach::Anywhere).await.unwrap();
                assert_eq!(text(response).await.unwrap(), "ok");
                served.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    soon(crowd.join_all()).await;
    assert_eq!(served.load(Ordering::SeqCst), 400);
    assert!(server.most() <= 4, "{} connections at once", server.most());
    assert_eq!(server.connections(), server.most(), "none was made in vain");
}

#[tokio::test]
async fn long_downloads_do_not_shut_others_out() {
    let server = serve(|mut client: Client| async move {
        let head = client.head().await.unwrap();
        if head.starts_with("GET /long") {
            client.say("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n.").await;
            client.wait_for_end().await;
        } else {
            client.say(OK).await;
        }
    });
    let config = Config { connections_per_host: 1, connect_timeout: "300ms".parse().unwrap(), ..fast() };
    let origin = origin(config);
    let long = soon(origin.send(get(&server.url("/long")), &Reach::Anywhere)).await.unwrap();
    let short = soon(origin.send(get(&server.url("/short")), &Reach::Anywhere)).await.unwrap();
    assert_eq!(text(short).await.unwrap(), "ok");
    assert_eq!(server.connections(), 2);
    // The place of the long one is free as soon as nobody reads it any more.
    drop(long);
    let next = soon(origin.send(get(&server.url("/short")), &Reach::Anywhere)).await.unwrap();
    assert_eq!(text(next).await.unwrap(), "ok");
}

#[tokio::test]
async fn an_answer_without_body_gives_its_connection_back() {
    let server = serve(|mut client: Client| async move {
        while let Some(head) = client.head().await {
            let status =
                if head.starts_with("HEAD") { "200 OK\r\nContent-Length: 99" } else { "304 Not Modified" };
            client.say(&format!("HTTP/1.1 {status}\r\n\r\n")).await;
        }
    });
    let origin = origin(fast());
    for method in ["HEAD", "GET", "HEAD", "GET"] {
        let mut request = get(&server.url("/"));
        *request.method_mut() = method.parse().unwrap();
        let response = soon(origin.send(request, &Reach::Anywhere)).await.unwrap();
        assert_eq!(text(response).await.unwrap(), "");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn authorities_without_connections_are_forgotten() {
    let origin = origin(fast());
    for port in 1..9 {
        let gone = soon(origin.send(get(&format!("http://127.0.0.1:{port}/")), &Reach::Anywhere)).await;
        assert!(gone.is_err());
    }
    assert!(origin.0.pool.hosts() <= 1, "{}", origin.0.pool.hosts());
}
