//! The other two ports are guarded alike.

use super::{assert_refused, said, statuses};
use crate::support::{Larder, Site, wait_until};

/// Heads that no honest client sends, for `{h}` as host.
const MALFORMED: &[(&str, u16)] = &[
    ("GET /status HTTP/1.1\nHost: {h}\n\n", 400),
    ("GET /status HTTP/1.1\r\nHost: {h}\r\nX: a\r\n b\r\n\r\n", 400),
    ("GET /status HTTP/1.1\r\nHost : {h}\r\n\r\n", 400),
    ("GET /status HTTP/1.1\r\nHost: {h}\r\nHost: {h}\r\n\r\n", 400),
    ("GET /status HTTP/1.1\r\n\r\n", 400),
    ("GET /status HTTP/1.1\r\nHost: u@{h}\r\n\r\n", 400),
    ("GET /status HTTP/3.0\r\nHost: {h}\r\n\r\n", 505),
    (
        "POST /status HTTP/1.1\r\nHost: {h}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    ("POST /status HTTP/1.1\r\nHost: {h}\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 400),
    ("POST /status HTTP/1.1\r\nHost: {h}\r\nContent-Length: +4\r\n\r\nabcd", 400),
    ("POST /status HTTP/1.1\r\nHost: {h}\r\nTransfer-Encoding: chunked\r\n\r\n0x4\r\nabcd\r\n0\r\n\r\n", 400),
    ("GET /status\0 HTTP/1.1\r\nHost: {h}\r\n\r\n", 400),
    ("\x16\x03\x01\x02\x00", 400),
];

#[test]
fn h42_the_admin_port_takes_no_request_in_doubt() {
    let a = Larder::new("a").start();
    let host = a.admin().to_string();
    for (text, status) in MALFORMED {
        let behind = format!("{}GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n", text.replace("{h}", &host));
        let answers = said(a.admin(), behind.as_bytes());
        assert_eq!(statuses(&answers).len(), 1, "{text:?}: {}", String::from_utf8_lossy(&answers));
        assert_refused(&answers, *status, text);
    }
    let large = format!("GET /status HTTP/1.1\r\nHost: {host}\r\nCookie: {}\r\n\r\n", "x".repeat(100_000));
    assert_refused(&said(a.admin(), large.as_bytes()), 431, "a large head");
    assert_eq!(a.admin_ask_without_token("GET", "/healthz").send().status, 200);
}

#[test]
fn h42_the_peer_port_counts_a_request_in_doubt_as_an_offence() {
    let site = Site::new();
    let guarded =
        Larder::new("a").peers(&site).set("peers.tls", "off").set("bans.never", Vec::<String>::new());
    let a = guarded.start();
    let from = crate::support::address::OwnAddress::claim();
    for (text, status) in MALFORMED.iter().take(3) {
        let mut connection = crate::support::Connection::from(a.peer(), Some(from.ip())).unwrap();
        connection.write(text.replace("{h}", "x").as_bytes()).unwrap();
        assert_refused(&connection.drain(), *status, text);
    }
    wait_until("the address to be banned", || a.bans().contains(&from.ip().to_string()));
}
