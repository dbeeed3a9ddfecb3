//! Hostile input: what no honest client and no honest origin sends, at every port.

mod ports;
mod pressure;
mod replies;
mod requests;

use crate::support::{Larder, RawOrigin, Reply};

/// A short answer that is nobody else's.
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: no-store\r\n\r\nok";

/// One node, and an origin that keeps every byte.
fn alone() -> (RawOrigin, Larder) {
    (RawOrigin::start(|_| Reply::kept(OK)), Larder::new("a").start())
}

/// What a port said to these bytes, until it closed.
fn said(address: std::net::SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut connection = crate::support::Connection::to(address).unwrap();
    // whoever refuses early may be gone before all is sent
    drop(connection.write(bytes));
    connection.drain()
}

/// Status codes of the answers in what a port said.
fn statuses(said: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(said);
    let heads = text.split("HTTP/1.1 ").skip(1);
    heads.filter_map(|head| head.get(..3)?.parse().ok()).collect()
}

/// The last answer is a problem document with a sentence, and says that the connection ends.
#[track_caller]
fn assert_refused(said: &[u8], expected: u16, what: &str) {
    let text = String::from_utf8_lossy(said);
    assert_eq!(statuses(said).last(), Some(&expected), "{what}: {text}");
    let last = &text[text.rfind(&format!("HTTP/1.1 {expected}")).unwrap()..];
    let (head, body) = last.split_once("\r\n\r\n").unwrap();
    let head = head.to_ascii_lowercase();
    assert!(head.contains("\r\ncontent-type: application/problem+json"), "{what}: {head}");
    assert!(head.contains("\r\nconnection: close"), "{what}: {head}");
    let document: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(document["status"], expected, "{what}");
    assert!(document["detail"].as_str().is_some_and(|detail| detail.len() > 10), "{what}: {body}");
}
