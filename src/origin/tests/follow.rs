//! Tests of `origin::follow`.

use http::HeaderMap;
use http::header::HeaderValue;

use super::support::{Client, Server, fast, origin, serve, soon, text};
use crate::http::Target;
use crate::origin::{Config, OriginError, Reach};

fn target(url: &str) -> Target {
    Target::from_uri(&url.parse().unwrap()).unwrap()
}

fn secrets() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_static("Bearer sentinel"));
    headers.insert("cookie", HeaderValue::from_static("sentinel=1"));
    headers.insert("accept", HeaderValue::from_static("*/*"));
    headers
}

/// Redirects `/` to `location`, answers anything else.
fn redirecting(location: String) -> Server {
    serve(move |mut client: Client| {
        let location = location.clone();
        async move {
            while let Some(head) = client.head().await {
                if head.starts_with("GET / ") {
                    client.say(&format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\n")).await;
                    client.say("Content-Length: 4\r\n\r\nmove").await;
                } else {
                    client.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
                }
            }
        }
    })
}

#[tokio::test]
async fn h31_credentials_do_not_go_to_another_host() {
    let second = redirecting("/end".to_owned());
    let first = redirecting(second.url("/file?sig=1"));
    let origin = origin(fast());
    let followed = origin.follow(target(&first.url("/")), secrets(), &Reach::Anywhere);
    let (found, response) = soon(followed).await.unwrap();
    assert_eq!(found.url(), second.url("/file?sig=1"));
    assert_eq!(text(response).await.unwrap(), "ok");
    assert!(first.heads()[0].contains("sentinel"));
    assert!(!second.heads()[0].contains("sentinel"), "another port is another host");
    assert!(second.heads()[0].contains("accept: */*"));
}

#[tokio::test]
async fn on_the_same_host_they_stay_and_the_connection_too() {
    let server = redirecting("end?x".to_owned());
    let origin = origin(fast());
    let followed = origin.follow(target(&server.url("/")), secrets(), &Reach::Anywhere);
    let (found, response) = soon(followed).await.unwrap();
    assert_eq!((found.url(), text(response).await.unwrap()), (server.url("/end?x"), "ok".to_owned()));
    assert!(server.heads()[1].contains("sentinel"));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn redirects_have_an_end() {
    let server = redirecting("/".to_owned());
    let origin = origin(Config { max_redirects: 3, ..fast() });
    let error = soon(origin.follow(target(&server.url("/")), HeaderMap::new(), &Reach::Anywhere)).await;
    assert_eq!(error.unwrap_err(), OriginError::Redirects);
    assert_eq!(server.heads().len(), 4);
}

#[tokio::test]
async fn a_redirect_to_what_is_no_target_is_refused() {
    let server = redirecting("file:///etc/passwd".to_owned());
    let origin = origin(fast());
    let followed = origin.follow(target(&server.url("/")), HeaderMap::new(), &Reach::Anywhere);
    assert!(matches!(soon(followed).await.unwrap_err(), OriginError::BadTarget(_)));
}
