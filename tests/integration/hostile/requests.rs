//! Requests that somebody behind us could read otherwise: none goes on, and none is smuggled.

use super::{OK, alone, assert_refused, said, statuses};
use crate::support::{Connection, Larder, RawOrigin, Reply, wait_until};

/// Bytes in which `{o}` is the origin's authority and `{s}` a whole request that nobody sends, and the status
/// they are refused with.
const REFUSED: &[(&str, u16)] = &[
    // two framings, or one in doubt
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello{s}",
        400,
    ),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: x chunked\r\n\r\n0\r\n\r\n{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: 'chunked'\r\n\r\n0\r\n\r\n{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\x0c\r\n\r\n0\r\n\r\n{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding:\r\n\r\n0\r\n\r\n{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{s}", 400),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nX: y\r\n\tTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{s}",
        400,
    ),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nX: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nX: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\n\r\n0\r\n\r\n{s}", 400),
    ("POST http://{o}/ HTTP/1.0\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{s}", 400),
    // lengths
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nContent-Length: 5\r\nContent-Length: 0\r\n\r\nhello{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nContent-Length: 5, 5\r\n\r\nhello{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nContent-Length: 5,6\r\n\r\nhello{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nContent-Length: +5\r\n\r\nhello{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nContent-Length: -0\r\n\r\n{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nContent-Length: -5\r\n\r\nhello{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nContent-Length: 0x5\r\n\r\nhello{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nContent-Length: 5.0\r\n\r\nhello{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nContent-Length: 5 0\r\n\r\nhello{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nContent-Length: 5;\r\n\r\nhello{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nContent-Length: 18446744073709551616\r\n\r\n{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nContent-Length: 18446744073709551615\r\n\r\n{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nContent-Length:\r\n\r\nhello{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nContent-Length : 5\r\n\r\nhello{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nContent-Length: 5\0\r\n\r\nhello{s}", 400),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nContent-Length: 5\r\n 5\r\n\r\nhello{s}", 400),
    // lines
    ("GET http://{o}/ HTTP/1.1\nHost: {o}\n\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1\r\nHost: {o}\r\n\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1\r\nHost: {o}\r\nX: a\r\nY\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1\r\nHost: {o}\r\nX: a\0b\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1\r\nHost: {o}\r\nX\0: a\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1\r\nHost: {o}\r\nX: a\x7f\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1\r\nHost: {o}\r\n: a\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1\r\nHost: {o}\r\nX Y: a\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1\r\n Host: {o}\r\n\r\n{s}", 400),
    ("GET  http://{o}/ HTTP/1.1\r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET\thttp://{o}/\tHTTP/1.1\r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1 \r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1 HTTP/1.1\r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET http://{o}/\r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.11\r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.\r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET http://{o}/ http/1.1\r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/0.9\r\nHost: {o}\r\n\r\n{s}", 505),
    ("GET http://{o}/ HTTP/2.0\r\nHost: {o}\r\n\r\n{s}", 505),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{s}", 505),
    ("G@T http://{o}/ HTTP/1.1\r\nHost: {o}\r\n\r\n{s}", 400),
    ("\x16\x03\x01\x02\x00\x01\x00\x01\u{fc}\x03\x03{s}", 400),
    // hosts and targets
    ("GET http://{o}/ HTTP/1.1\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1\r\nHost: {o}\r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1\r\nHost: {o}\r\nhost: i.test\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1\r\nHost: u:p@{o}\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1\r\nHost: {o}, i.test\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1\r\nHost: {o}/x\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1\r\nHost: h i\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1\r\nHost: h:80:80\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1\r\nHost: h:99999\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1\r\nHost: [::1\r\n\r\n{s}", 400),
    ("GET http://{o}/ HTTP/1.1\r\nHost: [fe80::1%25lo]\r\n\r\n{s}", 400),
    ("GET http://u:p@{o}/ HTTP/1.1\r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET http://{o}#@i.test/ HTTP/1.1\r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET http://{o}/a#b HTTP/1.1\r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET http://{o}\\@i.test/ HTTP/1.1\r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET http://[fe80::1%25lo]:80/ HTTP/1.1\r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET http://[::1/ HTTP/1.1\r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET http:///x HTTP/1.1\r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET http:/{o}/ HTTP/1.1\r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET {o} HTTP/1.1\r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET * HTTP/1.1\r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET x HTTP/1.1\r\nHost: {o}\r\n\r\n{s}", 400),
    ("GET ftp://{o}/ HTTP/1.1\r\nHost: {o}\r\n\r\n{s}", 400),
    ("CONNECT http://{o}/ HTTP/1.1\r\nHost: {o}\r\n\r\n{s}", 400),
    ("CONNECT /x HTTP/1.1\r\nHost: {o}\r\n\r\n{s}", 400),
    ("CONNECT {o} HTTP/1.1\r\nHost: {o}\r\nContent-Length: 5\r\n\r\nhello{s}", 400),
    ("CONNECT {o} HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{s}", 400),
    // a refused tunnel: what follows was meant for somebody else
    ("CONNECT {o} HTTP/1.1\r\nHost: {o}\r\n\r\n{s}", 403),
    // chunks
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n 5\r\nhello\r\n0\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n5;x\n\r\nhello\r\n0\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000005\r\nhello\r\n0\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n\r\n5\r\nhello\r\n0\r\n\r\n{s}",
        400,
    ),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n{s}", 400),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 9\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n{s}",
        400,
    ),
    (
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nHost: i.test\r\n\r\n{s}",
        400,
    ),
    ("POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{s}", 400),
];

/// Odd and yet beyond doubt, and what the origin sees of it.
const TAKEN: &[(&str, &str)] = &[
    (
        "POST http://{o}/1 HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding:\tChunked\t\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        "POST /1",
    ),
    (
        "POST http://{o}/2 HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n0002 ;a=\"\r\"\r\nhi\r\n000\r\nX-T: 1\r\n\r\n",
        "",
    ),
    (
        "POST http://{o}/3 HTTP/1.1\r\nHost: {o}\r\nTransfer-Encoding: chunked\r\n\r\n0002 ;a=\"b\"\r\nhi\r\n000\r\nX-T: 1\r\n\r\n",
        "POST /3",
    ),
    ("POST http://{o}/4 HTTP/1.1\r\nHost: {o}\r\nContent-Length: 002\r\n\r\nhi", "POST /4"),
    ("\r\n\r\nGET http://{o}/5 HTTP/1.1\r\nHost: {o}\r\n\r\n", "GET /5"),
    ("GET http://{o}/6 HTTP/1.1\r\nHost: i.test\r\n\r\n", "GET /6"),
    ("GET http://{o}/7 HTTP/1.1\r\nHost:\r\n\r\n", "GET /7"),
    ("GET http://{o}/8 HTTP/1.0\r\n\r\n", "GET /8"),
    (
        "GET http://{o}/9%zz%00%2e%2e/..%2f?a=%0d%0a HTTP/1.1\r\nHost: {o}\r\n\r\n",
        "GET /9%zz%00%2e%2e/..%2f?a=%0d%0a",
    ),
    (
        "GET http://{o}/10 HTTP/1.1\r\nHost: {o}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
        "GET /10",
    ),
    ("GET http://{o}/11 HTTP/1.1\r\nHost: {o}\r\nConnection: Host, Content-Length, close\r\n\r\n", "GET /11"),
    (
        "POST http://{o}/12 HTTP/1.1\r\nHost: {o}\r\nConnection: Content-Length, Transfer-Encoding\r\nContent-Length: 2\r\n\r\nhi",
        "POST /12",
    ),
    ("GET http://{o}/13 HTTP/1.1\r\nHost: {o}\r\nContent-Length: 2\r\n\r\nhi", "GET /13"),
    ("GET http://{o}/14 HTTP/1.1\r\nHost: {o}\r\nX: \u{80}\u{ff}\r\nY:\t \t\r\n\r\n", "GET /14"),
    ("OPTIONS http://{o}/15 HTTP/1.1\r\nHost: {o}\r\nMax-Forwards: 1\r\n\r\n", "OPTIONS /15"),
    ("BREW http://{o}/16 HTTP/1.1\r\nHost: {o}\r\n\r\n", "BREW /16"),
];

fn written(text: &str, origin: &RawOrigin) -> Vec<u8> {
    let authority = origin.address().to_string();
    let smuggled = format!("GET http://{authority}/smuggled HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    // a char below U+0100 stands for one byte
    let text = text.replace("{o}", &authority).replace("{s}", &smuggled);
    text.chars().map(|c| c as u8).collect()
}

#[test]
fn h42_h36_nothing_malformed_goes_on_and_nothing_is_smuggled() {
    let (origin, a) = alone();
    for (text, status) in REFUSED {
        let said = said(a.proxy(), &written(text, &origin));
        assert_eq!(statuses(&said).len(), 1, "{text:?}: {}", String::from_utf8_lossy(&said));
        assert_refused(&said, *status, text);
        assert!(origin.requests().is_empty(), "{text:?}: {:?}", origin.whole_requests());
        assert!(origin.malformed().is_empty(), "{text:?}: {:?}", origin.malformed());
    }
    // somebody else's requests are as good as ever, and so is what the same sort of bytes leaves alone
    assert_eq!(a.get(&origin.url("/other")).text(), "ok");
    assert_eq!(origin.requests(), ["GET /other HTTP/1.1"]);
    println!("{} malformed requests: 0 forwarded, 0 smuggled", REFUSED.len());
}

#[test]
fn h42_the_same_behind_a_good_request_and_in_two_parts() {
    let (origin, a) = alone();
    for (number, (text, status)) in REFUSED.iter().enumerate() {
        let good = format!("GET http://{}/good/{number} HTTP/1.1\r\nHost: x\r\n\r\n", origin.address());
        let bad = written(text, &origin);
        let mut connection = Connection::to(a.proxy()).unwrap();
        let (one, two) = bad.split_at(bad.len().min(40));
        connection.write(&[good.as_bytes(), one].concat()).unwrap();
        let first = connection.answer("GET");
        assert_eq!((first.status, first.text().as_str()), (200, "ok"), "{text:?}");
        drop(connection.write(two));
        assert_refused(&connection.drain(), *status, text);
        assert_eq!(origin.requests().len(), number + 1, "{text:?}: {:?}", origin.whole_requests().last());
    }
    assert!(origin.malformed().is_empty(), "{:?}", origin.malformed());
    assert!(origin.requests().iter().all(|line| line.starts_with("GET /good/")));
}

#[test]
fn h27_h42_what_is_odd_but_beyond_doubt_goes_on_in_order() {
    let (origin, a) = alone();
    let mut expected = Vec::new();
    for (text, seen) in TAKEN {
        let mut connection = Connection::to(a.proxy()).unwrap();
        connection.write(&written(text, &origin)).unwrap();
        if seen.is_empty() {
            assert_refused(&connection.drain(), 400, text);
            continue;
        }
        let answer = connection.answer("GET");
        assert_eq!((answer.status, answer.text().as_str()), (200, "ok"), "{text:?}");
        expected.push(format!("{seen} HTTP/1.1"));
        assert_eq!(origin.requests(), expected, "{text:?}");
    }
    assert!(origin.malformed().is_empty(), "{:?}", origin.malformed());
    let all = origin.whole_requests().join("\n").to_ascii_lowercase();
    for stays_here in ["upgrade", "http2-settings", "x-t:", "i.test", "chunked, ", "max-forwards: 1"] {
        assert!(!all.contains(stays_here), "{stays_here} went on");
    }
    assert!(all.contains("max-forwards: 0"));
}

#[test]
fn a_chunk_that_breaks_later_ends_the_request_and_leaves_no_whole_one() {
    let (origin, a) = alone();
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        origin.url("/upload")
    );
    for bad in ["5 \r\nhello\r\n0\r\n\r\n", "zz\r\n", "0\r\nContent-Length: 5\r\n\r\n", "1\r\nXY0\r\n\r\n"] {
        let before = origin.connections();
        let mut connection = Connection::to(a.proxy()).unwrap();
        connection.write(head.as_bytes()).unwrap();
        wait_until("the upload to begin", || origin.connections() > before);
        connection.write(bad.as_bytes()).unwrap();
        assert_refused(&connection.drain(), 400, bad);
    }
    assert!(origin.requests().is_empty(), "{:?}", origin.whole_requests());
    assert_eq!(a.get(&origin.url("/after")).text(), "ok");
}

#[test]
fn h40_large_heads_pass_and_larger_ones_are_told() {
    let (origin, a) = alone();
    let ask = |target: usize, value: usize, fields: usize| {
        let target = origin.url(&format!("/{}", "x".repeat(target)));
        let filler = "f: v\r\n".repeat(fields);
        let value = "y".repeat(value);
        said(
            a.proxy(),
            format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{filler}X: {value}\r\n\r\n")
                .as_bytes(),
        )
    };
    for (target, value, fields) in [(32 << 10, 10, 10), (10, 64 << 10, 10), (10, 100 << 10, 200)] {
        assert_eq!(statuses(&ask(target, value, fields)), [200], "{target} {value} {fields}");
    }
    assert_refused(&ask(66 << 10, 10, 1), 414, "a long target");
    assert_refused(&ask(300 << 10, 10, 1), 414, "a target longer than a head");
    assert_refused(&ask(10, 300 << 10, 1), 431, "a large head");
    assert_refused(&ask(10, 10, 600), 431, "many fields");
    assert_eq!(origin.requests().len(), 3);
}

#[test]
fn requests_for_ourselves_are_answered_here() {
    let (origin, a) = alone();
    let ask = |text: &str| said(a.proxy(), &written(text, &origin));
    for text in [
        "OPTIONS * HTTP/1.1\r\nHost: {o}\r\nConnection: close\r\n\r\n",
        "OPTIONS http://{o}/ HTTP/1.1\r\nHost: {o}\r\nMax-Forwards: 0\r\nConnection: close\r\n\r\n",
    ] {
        let said = String::from_utf8(ask(text)).unwrap().to_ascii_lowercase();
        assert!(said.starts_with("http/1.1 200") && said.contains("\r\nallow: get, head"), "{said}");
    }
    let trace = ask(
        "TRACE http://{o}/ HTTP/1.1\r\nHost: {o}\r\nMax-Forwards: 0\r\nCookie: c\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(statuses(&trace), [405]);
    let expecting = ask(
        "POST http://{o}/ HTTP/1.1\r\nHost: {o}\r\nExpect: the-best\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(statuses(&expecting), [417]);
    assert!(origin.requests().is_empty());
}

#[test]
fn h38_an_expectation_is_kept_however_the_origin_takes_it() {
    let origin = RawOrigin::start(|target| match target {
        "/continues" => Reply::kept(["HTTP/1.1 100 Continue\r\n\r\n", OK].concat()),
        "/refuses" => Reply::kept("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n"),
        _ => Reply::kept(OK),
    });
    let a = Larder::new("a").start();
    let body = crate::support::body::slice(1, 0..2 << 20);
    for (path, status) in [("/continues", 200), ("/refuses", 417), ("/silent", 200)] {
        let asked =
            a.ask(&origin.url(path)).method("POST").field("Expect", "100-continue").body(&body).send();
        assert_eq!(asked.status, status, "{path}");
        assert!(asked.took < std::time::Duration::from_secs(10));
    }
    assert!(
        origin.whole_requests().iter().all(|request| !request.to_ascii_lowercase().contains("\r\nexpect:"))
    );
    // a client that waits for the word gets it before it has sent anything
    let mut waiting = Connection::to(a.proxy()).unwrap();
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
        origin.url("/w")
    );
    waiting.write(head.as_bytes()).unwrap();
    waiting.write(b"hi").unwrap();
    assert_eq!(waiting.answer("POST").status, 200);
}
