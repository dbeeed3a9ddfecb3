//! What goes through, what does not, and that neither depends on how the bytes come in.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf};

use super::{Fault, Inspected, Inspection, Limits};

const LIMITS: Limits = Limits {
    head: 4096,
    fields: 20,
    head_time: Duration::from_secs(30),
    body_silence: Duration::from_secs(60),
};

/// A connection that brings these parts, then its end.
struct Parts(VecDeque<Vec<u8>>);

impl AsyncRead for Parts {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(mut part) = self.0.pop_front() {
            let rest = part.split_off(part.len().min(buf.remaining()));
            buf.put_slice(&part);
            if !rest.is_empty() {
                self.0.push_front(rest);
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// What a server sees of a connection.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    bytes: Vec<u8>,
    fault: Option<(usize, Fault)>,
    broken: bool,
}

fn through(parts: impl IntoIterator<Item = Vec<u8>>) -> Seen {
    let parts = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let (mut stream, inspection) = Inspected::new(Parts(parts), LIMITS);
    let (mut bytes, mut broken) = (Vec::new(), false);
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        let mut room = [0; 64];
        let mut buf = ReadBuf::new(&mut room);
        match Pin::new(&mut stream).poll_read(&mut cx, &mut buf) {
            Poll::Ready(Ok(())) if buf.filled().is_empty() => break,
            Poll::Ready(Ok(())) => bytes.extend_from_slice(buf.filled()),
            Poll::Ready(Err(_)) => {
                broken = true;
                break;
            }
            Poll::Pending => break,
        }
    }
    Seen { bytes, fault: inspection.0.fault.get().copied(), broken }
}

fn whole(text: &str) -> Seen {
    through([text.as_bytes().to_vec()])
}

const GOOD: &[&str] = &[
    "GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET /x?y=%zz HTTP/1.0\r\n\r\n",
    "\r\n\r\nGET / HTTP/1.1\r\nHost:\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nhost: [::1]:80\r\nX:\r\nY: \t a\tb \r\n\r\n",
    "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\nContent-Length: 0\r\n\r\n\x16\x03\x01 anything\n\n",
    "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhe\r\nlGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\tChunked \r\n\r\n\
     5\r\nhello\r\n0A;a=\"b\" ;c\r\n0123456789\r\n00\r\nX-Sum: 1\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "PUT /\u{e9} HTTP/1.1\r\nHost: h\r\nX: \u{e9}\r\nContent-Length: 00\r\n\r\n",
];

#[test]
fn what_is_beyond_doubt_goes_through_byte_for_byte() {
    for text in GOOD {
        let expected = Seen { bytes: text.as_bytes().to_vec(), fault: None, broken: false };
        assert_eq!(whole(text), expected, "{text:?}");
    }
}

/// Heads with a field that is not as it must be.
fn bad_fields() -> Vec<(String, Fault)> {
    let head = |fields: &str| format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n");
    vec![
        (head("X: a\rb"), Fault::FieldValue),
        (head("X: a\0b"), Fault::FieldValue),
        (head("X: a\u{b}b"), Fault::FieldValue),
        (head("X: a\r\n b"), Fault::Folded),
        (head("X: a\r\n\tb"), Fault::Folded),
        (head("X : a"), Fault::SpaceBeforeColon),
        (head("Transfer-Encoding\t: chunked"), Fault::SpaceBeforeColon),
        (head(": a"), Fault::FieldName),
        (head("X"), Fault::FieldName),
        (head("X\u{e9}: a"), Fault::FieldName),
        (head("Content-Length: +5"), Fault::Length),
        (head("Content-Length: -0"), Fault::Length),
        (head("Content-Length: 0x5"), Fault::Length),
        (head("Content-Length: 5, 5"), Fault::Length),
        (head("Content-Length: 5 5"), Fault::Length),
        (head("Content-Length:"), Fault::Length),
        (head("Content-Length: 9223372036854775808"), Fault::Length),
        (head("Content-Length: 99999999999999999999999"), Fault::Length),
        (head("Content-Length: 5\r\ncontent-length: 5"), Fault::Length),
        (head("Content-Length: 5\r\nContent-Length: 6"), Fault::Length),
        (head("Content-Length: 5\r\nTransfer-Encoding: chunked"), Fault::TwoFramings),
        (head("Transfer-Encoding: chunked\r\nContent-Length: 5"), Fault::TwoFramings),
        (head("Transfer-Encoding: chunked, chunked"), Fault::Encoding),
        (head("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), Fault::Encoding),
        (head("Transfer-Encoding: chunked, identity"), Fault::Encoding),
        (head("Transfer-Encoding: gzip, chunked"), Fault::Encoding),
        (head("Transfer-Encoding: identity"), Fault::Encoding),
        (head("Transfer-Encoding: xchunked"), Fault::Encoding),
        (head("Transfer-Encoding: \"chunked\""), Fault::Encoding),
        (head("Transfer-Encoding: chunked;a=b"), Fault::Encoding),
        (head("Transfer-Encoding:"), Fault::Encoding),
        (head("Transfer-Encoding: \u{b}chunked"), Fault::FieldValue),
        (head("Host: h"), Fault::Host),
        (head(&format!("X: {}", "x".repeat(5000))), Fault::HeadTooLarge),
        (head(&"X: y\r\n".repeat(21)), Fault::HeadTooLarge),
    ]
}

/// Heads whose first line is not as it must be, or does not go with a field.
fn bad_first_lines() -> Vec<(String, Fault)> {
    let first = |line: &str| format!("{line}\r\nHost: h\r\n\r\n");
    vec![
        (first("POST / HTTP/1.0\r\nTransfer-Encoding: chunked"), Fault::Encoding),
        (first("CONNECT h:1 HTTP/1.1\r\nContent-Length: 5"), Fault::Body),
        (first("CONNECT h:1 HTTP/1.1\r\nTransfer-Encoding: chunked"), Fault::Body),
        (first("GET  / HTTP/1.1"), Fault::RequestLine),
        (first("GET / HTTP/1.1 "), Fault::RequestLine),
        (first("GET /"), Fault::RequestLine),
        (first(" GET / HTTP/1.1"), Fault::RequestLine),
        (first("GET\t/\tHTTP/1.1"), Fault::RequestLine),
        (first("G(T / HTTP/1.1"), Fault::RequestLine),
        (first("GET / http/1.1"), Fault::RequestLine),
        (first("GET / HTTP/1.10"), Fault::RequestLine),
        (first("GET / HTTP/1.1\0"), Fault::RequestLine),
        (first("GET / HTTP/1.2"), Fault::Version),
        (first("PRI * HTTP/2.0"), Fault::Version),
        (first("GET * HTTP/1.1"), Fault::Target),
        (first("GET h:80 HTTP/1.1"), Fault::Target),
        (first("GET x HTTP/1.1"), Fault::Target),
        (first("GET http:///x HTTP/1.1"), Fault::Target),
        (first("GET /a\rb HTTP/1.1"), Fault::Target),
        (first("CONNECT / HTTP/1.1"), Fault::Target),
        (first("CONNECT h HTTP/1.1"), Fault::Target),
        (first("CONNECT http://h:443/ HTTP/1.1"), Fault::Target),
        (first("CONNECT h:443:443 HTTP/1.1"), Fault::Target),
        (first("GET /a#b HTTP/1.1"), Fault::Fragment),
        (first("GET http://u:p@h/ HTTP/1.1"), Fault::UserInfo),
        (first("GET http://[fe80::1%25eth0]/ HTTP/1.1"), Fault::Authority),
        (first("GET http://h:99999/ HTTP/1.1"), Fault::Authority),
        (first(&format!("GET /{} HTTP/1.1", "x".repeat(5000))), Fault::TargetTooLong),
    ]
}

/// Heads whose lines do not end as they must, or which lack what they need.
fn bad_wholes() -> Vec<(String, Fault)> {
    vec![
        ("GET / HTTP/1.1\nHost: h\r\n\r\n".to_owned(), Fault::LineEnd),
        ("GET / HTTP/1.1\r\nHost: h\n\r\n".to_owned(), Fault::LineEnd),
        ("GET / HTTP/1.1\r\nHost: h\r\n\n".to_owned(), Fault::LineEnd),
        ("\nGET / HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), Fault::LineEnd),
        ("\r\n".repeat(9), Fault::LineEnd),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), Fault::Host),
        ("GET / HTTP/1.1\r\nHost: u@h\r\n\r\n".to_owned(), Fault::Host),
        ("GET / HTTP/1.1\r\nHost: h/x\r\n\r\n".to_owned(), Fault::Host),
        ("GET / HTTP/1.1\r\nHost: h, i\r\n\r\n".to_owned(), Fault::Host),
        ("GET / HTTP/1.1\r\nHost: [fe80::1%25eth0]\r\n\r\n".to_owned(), Fault::Host),
        (format!("GET /{}", "x".repeat(5000)), Fault::TargetTooLong),
        ("\x16\x03\x01\x02".to_owned(), Fault::RequestLine),
    ]
}

#[test]
fn h42_what_could_be_read_in_two_ways_is_refused() {
    let cases = [bad_fields(), bad_first_lines(), bad_wholes()].concat();
    for (text, fault) in &cases {
        let Seen { bytes, fault: found, .. } = whole(text);
        assert_eq!(found, Some((1, *fault)), "{text:?}");
        assert!(bytes.starts_with(b"GET / HTTP/1.1\r\nHost: refused\r\n"), "{text:?}");
        // The same behind a good request, in one part and byte by byte.
        let both = format!("{}{text}", GOOD[0]);
        let seen = whole(&both);
        assert_eq!(seen.fault, Some((2, *fault)), "{text:?}");
        assert!(seen.bytes.starts_with(GOOD[0].as_bytes()));
        let dripped = through(both.bytes().map(|byte| vec![byte]));
        assert_eq!(dripped.bytes, seen.bytes, "{text:?}");
    }
    println!("{} malformed heads, each alone, behind a good one, and byte by byte", cases.len());
}

#[test]
fn h42_a_chunked_body_is_exact_or_broken() {
    let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (body, fault) in [
        ("5 \r\nhello\r\n0\r\n\r\n", Fault::Chunk),
        (" 5\r\nhello\r\n0\r\n\r\n", Fault::Chunk),
        ("0x5\r\nhello\r\n0\r\n\r\n", Fault::Chunk),
        ("+5\r\nhello\r\n0\r\n\r\n", Fault::Chunk),
        ("-1\r\nhello\r\n0\r\n\r\n", Fault::Chunk),
        ("5\nhello\r\n0\r\n\r\n", Fault::Chunk),
        ("5\rhello\r\n0\r\n\r\n", Fault::Chunk),
        ("5;a\nb\r\nhello\r\n0\r\n\r\n", Fault::Chunk),
        ("5;a\0b\r\nhello\r\n0\r\n\r\n", Fault::Chunk),
        ("\r\nhello\r\n0\r\n\r\n", Fault::Chunk),
        ("g\r\nhello\r\n0\r\n\r\n", Fault::Chunk),
        ("5\r\nhelloX\r\n0\r\n\r\n", Fault::Chunk),
        ("5\r\nhello\n0\r\n\r\n", Fault::Chunk),
        ("5\r\nhello\r0\r\n\r\n", Fault::Chunk),
        ("5\r\nhello0\r\n\r\n", Fault::Chunk),
        ("10000000000000000\r\n", Fault::Chunk),
        ("ffffffffffffffff5\r\n", Fault::Chunk),
        ("0\r\n\n", Fault::Trailer),
        ("0\r\nX: a\n\r\n", Fault::Trailer),
        ("0\r\nX : a\r\n\r\n", Fault::Trailer),
        ("0\r\n X: a\r\n\r\n", Fault::Trailer),
        ("0\r\nContent-Length: 5\r\n\r\n", Fault::Trailer),
        ("0\r\ntransfer-encoding: chunked\r\n\r\n", Fault::Trailer),
        ("0\r\nHost: i\r\n\r\n", Fault::Trailer),
        ("0\r\nGET / HTTP/1.1\r\n\r\n", Fault::Trailer),
    ] {
        let seen = whole(&format!("{head}{body}"));
        assert_eq!((seen.fault, seen.broken), (Some((1, fault)), true), "{body:?}");
        assert!(seen.bytes.starts_with(head.as_bytes()));
    }
    let stretched = format!("{head}1;{}\r\n", "x".repeat(20_000));
    assert_eq!(whole(&stretched).fault, Some((1, Fault::Chunk)));
    let trailing = format!("{head}0\r\nX: {}", "x".repeat(20_000));
    assert_eq!(whole(&trailing).fault, Some((1, Fault::Trailer)));
}

#[test]
fn the_server_learns_which_request_it_was() {
    let inspection = Inspection::default();
    inspection.note(2, Fault::Host);
    assert_eq!(inspection.enter(), None);
    assert_eq!(inspection.enter(), Some(Fault::Host));
    assert_eq!(inspection.fault(), Some(Fault::Host));
}

#[tokio::test(start_paused = true)]
async fn h43_a_slow_head_and_a_silent_body_are_faults_and_an_idle_connection_is_none() {
    let (mut client, server) = tokio::io::duplex(64);
    let (mut stream, inspection) = Inspected::new(server, LIMITS);
    let mut room = [0; 256];
    let idle = tokio::time::timeout(LIMITS.body_silence * 10, stream.read(&mut room)).await;
    assert!(idle.is_err() && inspection.0.fault.get().is_none(), "idle is not slow");
    client.write_all(b"HEAD").await.unwrap();
    let drip = async {
        for byte in b" / HTTP/1.1\r\nHost: h\r\nX: aaaaaaaaaaaaaaaaaaaaaaaaaaaa" {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if client.write_all(&[*byte]).await.is_err() {
                break;
            }
        }
    };
    let (read, ()) = tokio::join!(stream.read(&mut room), drip);
    assert!(room[..read.unwrap()].starts_with(b"HEAD / HTTP/1.1\r\nHost: refused"));
    assert_eq!(inspection.enter(), Some(Fault::SlowHead));

    let (mut client, server) = tokio::io::duplex(256);
    let (mut stream, inspection) = Inspected::new(server, LIMITS);
    client.write_all(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab").await.unwrap();
    assert!(stream.read(&mut room).await.unwrap() > 0);
    assert_eq!(inspection.enter(), None);
    let broken = stream.read(&mut room).await.unwrap_err();
    assert_eq!(broken.kind(), io::ErrorKind::InvalidData);
    assert_eq!(inspection.fault(), Some(Fault::SlowBody));
}

#[tokio::test]
async fn what_follows_an_accepted_upgrade_is_not_looked_at() {
    let (mut client, server) = tokio::io::duplex(256);
    let (mut stream, inspection) = Inspected::new(server, LIMITS);
    let mut room = [0; 256];
    client.write_all(b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: x\r\n\r\n").await.unwrap();
    assert!(stream.read(&mut room).await.unwrap() > 0);
    inspection.release();
    client.write_all(b"\n\0\n").await.unwrap();
    let read = stream.read(&mut room).await.unwrap();
    assert_eq!(&room[..read], b"\n\0\n");
}

/// Whether hyper, asked alone, would have answered by itself.
async fn hyper_refuses(bytes: &[u8]) -> bool {
    let (mut client, server) = tokio::io::duplex(1 << 20);
    client.write_all(bytes).await.unwrap();
    client.shutdown().await.unwrap();
    let service = hyper::service::service_fn(|_| async {
        Ok::<_, std::convert::Infallible>(http::Response::new(crate::http::empty()))
    });
    let served = hyper::server::conn::http1::Builder::new()
        .serve_connection(hyper_util::rt::TokioIo::new(server), service)
        .await;
    served.is_err_and(|error| error.is_parse())
}

/// Requests with a fault here and there.
fn nearly_good() -> impl Strategy<Value = Vec<u8>> {
    let text = prop::sample::select(GOOD).prop_map(|text| text.as_bytes().to_vec());
    let bad: &[&[u8]] = &[
        b"\r", b"\n", b"\r\n", b" ", b"\t", b"\0", b":", b"0", b"5", b";", b"#", b"/", b"@", b"[", b"%",
        b"\x80", b"\xff", b"h",
    ];
    let change = (any::<prop::sample::Index>(), prop::sample::select(bad), any::<bool>());
    (text, prop::collection::vec(change, 0..4)).prop_map(|(mut text, changes)| {
        for (at, bad, replaces) in changes {
            let at = at.index(text.len());
            text.splice(at..at + usize::from(replaces), bad.iter().copied());
        }
        text
    })
}

proptest! {
    #[test]
    fn how_the_bytes_come_in_changes_nothing(bytes in nearly_good(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let parts: Vec<_> = cuts.windows(2).map(|cut| bytes[cut[0]..cut[1]].to_vec()).collect();
        let (in_parts, at_once) = (through(parts), through([bytes]));
        prop_assert_eq!((in_parts.fault, in_parts.broken), (at_once.fault, at_once.broken));
        // of a body that breaks, more or less may have gone on
        prop_assert!(in_parts.broken || in_parts.bytes == at_once.bytes);
    }

    #[test]
    fn any_bytes_at_all_harm_nobody(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let seen = through([bytes.clone()]);
        prop_assert!(seen.fault.is_some() || bytes.starts_with(&seen.bytes));
    }

    #[test]
    fn hyper_refuses_nothing_that_went_through(bytes in nearly_good()) {
        let seen = through([bytes.clone()]);
        if seen.fault.is_none() {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            prop_assert!(!runtime.block_on(hyper_refuses(&seen.bytes)), "{:?}", String::from_utf8_lossy(&bytes));
        }
    }
}
