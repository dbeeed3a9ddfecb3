//! Interim answers (RFC 9110 section 15.2): passed to the client that caused them, and to nobody else.

use super::alone;
use crate::support::{Connection, Script};

const HINT: &str = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\nX-Only: hint\r\n\r\n";

fn hinting() -> Script {
    let answer = format!(
        "{HINT}HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 5\r\n\r\nhello"
    );
    Script::raw(answer.as_bytes())
}

fn ask(proxy: std::net::SocketAddr, url: &str, version: &str) -> String {
    let host = url.split('/').nth(2).unwrap();
    let mut connection = Connection::to(proxy).unwrap();
    let request = format!("GET {url} HTTP/{version}\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    connection.write(request.as_bytes()).unwrap();
    String::from_utf8_lossy(&connection.drain()).to_ascii_lowercase()
}

#[test]
fn interim_answers_reach_the_client_that_caused_them_and_are_not_kept() {
    let (origin, a) = alone();
    let url = origin.serve("/f", hinting());
    let cold = ask(a.proxy(), &url, "1.1");
    assert!(cold.starts_with(&HINT.to_ascii_lowercase()), "{cold}");
    let after_hint = &cold[HINT.len()..];
    assert!(after_hint.starts_with("http/1.1 102 processing\r\n\r\nhttp/1.1 200 ok\r\n"), "{cold}");
    assert!(!after_hint.contains("x-only"), "{cold}");
    assert!(cold.ends_with("hello"), "{cold}");
    let hit = ask(a.proxy(), &url, "1.1");
    assert!(hit.starts_with("http/1.1 200 ok\r\n") && !hit.contains("x-only"), "{hit}");
}

#[test]
fn a_client_of_http_1_0_gets_none() {
    let (origin, a) = alone();
    let url = origin.serve("/f", hinting());
    let cold = ask(a.proxy(), &url, "1.0");
    assert!(cold.contains(" 200 ok\r\n") && !cold.contains("x-only"), "{cold}");
}

#[test]
fn interim_answers_to_other_methods_pass_too() {
    let (origin, a) = alone();
    let url = origin.serve("/f", hinting());
    let host = url.split('/').nth(2).unwrap();
    let mut connection = Connection::to(a.proxy()).unwrap();
    let request =
        format!("POST {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 2\r\n\r\nab");
    connection.write(request.as_bytes()).unwrap();
    let answer = String::from_utf8_lossy(&connection.drain()).to_ascii_lowercase();
    assert!(answer.starts_with(&HINT.to_ascii_lowercase()), "{answer}");
}
