//! The client's side: right bytes, told-apart refusals, deadlines.

use super::*;

#[tokio::test]
async fn a_blob_comes_whole_or_from_a_byte_on() {
    let blob = bytes(600_000);
    let (digest, node) = (Digest::of(&blob), Making::holding(blob.clone()).start().await);
    let reader = Reader::new();
    let pulled = reader.pull(&node, &digest, 0).await.unwrap();
    assert_eq!(pulled.size, 600_000);
    assert_eq!(pulled.body.collect().await.unwrap().to_bytes(), blob);
    assert_eq!(reader.bytes(&node, &digest, 599_999).await.unwrap(), blob[599_999..]);
    assert_eq!(node.server.uplink().sent(), 600_001);
    until(|| node.server.uplink().uploads() == 0).await;
    let grant = node.grant(&reader.identity, Thing::Blob(digest));
    let wrong_size = reader.client.pull(&node.holder, grant, &digest, Some(7), 0).await;
    assert!(matches!(wrong_size, Err(PullError::Protocol(_))));
    let beyond = reader.pull(&node, &digest, 600_000).await;
    assert!(matches!(beyond, Err(PullError::Protocol(_))));
    let nothing_left = reader.client.pull(&node.holder, grant, &digest, Some(9), 9).await.unwrap();
    assert!(nothing_left.body.collect().await.unwrap().to_bytes().is_empty());
}

#[tokio::test]
async fn an_empty_blob_comes_too() {
    let node = Making::holding(Bytes::new()).start().await;
    assert!(Reader::new().bytes(&node, &Digest::of(b""), 0).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let blob = bytes(100_000);
    let (digest, node) = (Digest::of(&blob), Making::holding(blob.clone()).start().await);
    let reader = Reader::new();
    for _ in 0..20 {
        assert_eq!(reader.bytes(&node, &digest, 0).await.unwrap(), blob);
        assert_eq!(reader.bytes(&node, &Digest::of(b"none"), 0).await, Err(PullError::Gone));
    }
    assert!(node.drain.guests() <= 2, "{} connections", node.drain.guests());
    assert!(reader.client.close(HANG).await);
    until(|| node.drain.guests() == 0).await;
}

/// A neighbour that hangs up on the second request of a connection, unanswered.
#[tokio::test]
async fn a_connection_closed_meanwhile_costs_no_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            head_of_request(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
            head_of_request(&mut stream).await;
        }
    });
    let reader = Reader::with(&in_clear(), SECRET, PATIENT);
    let holder = Holder { node: reader.identity.node(), address, pins: Vec::new(), https: false };
    for _ in 0..2 {
        let pulled =
            reader.client.pull(&holder, GrantId([0; 16]), &Digest::of(b"ok"), Some(2), 0).await.unwrap();
        assert_eq!(pulled.body.collect().await.unwrap().to_bytes(), "ok");
    }
    drop(reader);
    serving.await.unwrap();
}

async fn head_of_request(stream: &mut TcpStream) {
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        seen.push(byte);
    }
}

#[tokio::test]
async fn a_stored_head_comes_without_what_is_private() {
    let (node, reader) = (Making::default().start().await, Reader::new());
    let thing = |key| node.grant(&reader.identity, Thing::Resource(key));
    let head = reader.client.head(&node.holder, thing([1; 32]), [1; 32], 0).await.unwrap();
    assert_eq!((head.age, head.size, head.digest), (3, 4, Some(Digest::of(b"body"))));
    assert_eq!(head.head.fields, [("etag".to_owned(), "\"a\"".to_owned())]);
    let none = reader.client.head(&node.holder, thing([2; 32]), [2; 32], 0).await;
    assert_eq!(none, Err(PullError::Gone));
}

#[tokio::test]
async fn p12_a_busy_neighbour_says_so_until_a_place_is_free() {
    let blob = bytes(30_000_000);
    let config = Config { max_uploads: 1, ..Config::default() };
    let node = Making { config, ..Making::holding(blob.clone()) }.start().await;
    let (reader, digest) = (Reader::new(), Digest::of(&blob));
    let first = reader.pull(&node, &digest, 0).await.unwrap();
    assert!(node.server.uplink().is_busy() && node.server.uplink().uploads() == 1);
    for _ in 0..9 {
        assert_eq!(reader.pull(&node, &digest, 0).await.unwrap_err(), PullError::Busy);
    }
    assert!(node.bans.list().is_empty());
    drop(first);
    until(|| !node.server.uplink().is_busy()).await;
    assert_eq!(reader.bytes(&node, &digest, 29_999_999).await.unwrap(), blob[29_999_999..]);
}

#[tokio::test]
async fn another_key_is_told_apart_and_no_offence() {
    let blob = bytes(10);
    let (digest, mut node) = (Digest::of(&blob), Making::holding(blob).start().await);
    let right = std::mem::replace(&mut node.holder.pins, vec![Identity::generate().unwrap().pin()]);
    let reader = Reader::new();
    for _ in 0..5 {
        assert_eq!(reader.pull(&node, &digest, 0).await.unwrap_err(), PullError::PinMismatch);
    }
    node.holder.pins.extend(right);
    assert!(reader.bytes(&node, &digest, 0).await.is_ok(), "a node may announce two keys");
}

#[tokio::test]
async fn in_clear_only_where_both_want_it() {
    let blob = bytes(100_000);
    let digest = Digest::of(&blob);
    let open = Making { config: in_clear(), ..Making::holding(blob.clone()) }.start().await;
    let pinned = Making::holding(blob.clone()).start().await;
    let reader = Reader::with(&in_clear(), SECRET, PATIENT);
    assert_eq!(reader.bytes(&open, &digest, 5).await.unwrap(), blob[5..]);
    assert_eq!(reader.bytes(&pinned, &digest, 5).await.unwrap(), blob[5..]);
    assert_eq!(Reader::new().pull(&open, &digest, 0).await.unwrap_err(), PullError::InClear);
}

#[tokio::test]
async fn p06_nobody_there_is_unreachable() {
    let (reader, node) = (Reader::new(), Making::default().start().await);
    node.stop.request();
    until(|| std::net::TcpListener::bind(node.holder.address).is_ok()).await;
    assert!(matches!(reader.pull(&node, &Digest::of(b""), 0).await, Err(PullError::Unreachable(_))));
}

#[tokio::test]
async fn a_silent_neighbour_costs_one_deadline() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let short = Duration::from_millis(60);
    let deadlines = Deadlines { connect: HANG, first_byte: short, stall: HANG };
    let reader = Reader::with(&in_clear(), SECRET, deadlines);
    for https in [true, false] {
        let address = silent.local_addr().unwrap();
        let holder = Holder { node: reader.identity.node(), address, pins: Vec::new(), https };
        let pulled = reader.client.pull(&holder, GrantId([0; 16]), &Digest::of(b""), None, 0).await;
        assert!(matches!(pulled, Err(PullError::Timeout(_))));
    }
}

#[tokio::test]
async fn a_body_that_stalls_ends_in_an_error() {
    let blob = bytes(300_000);
    let node = Making { hang_after: Some(100_000), ..Making::holding(blob.clone()) }.start().await;
    let deadlines = Deadlines { connect: HANG, first_byte: HANG, stall: Duration::from_secs(1) };
    let reader = Reader::with(&Config::default(), SECRET, deadlines);
    let mut body = reader.pull(&node, &Digest::of(&blob), 0).await.unwrap().body;
    let (mut seen, mut end) = (0, None);
    while end.is_none() {
        match body.frame().await.unwrap() {
            Ok(frame) => seen += frame.into_data().unwrap().len(),
            Err(error) => end = error.downcast::<PullError>().ok(),
        }
    }
    assert_eq!((seen, *end.unwrap()), (100_000, PullError::Timeout("more bytes")));
    drop(body);
    until(|| node.server.uplink().uploads() == 0).await;
}

#[tokio::test]
async fn p04_a_neighbour_that_dies_ends_the_body_in_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        head_of_request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").await.unwrap();
    });
    let reader = Reader::with(&in_clear(), SECRET, PATIENT);
    let holder = Holder { node: reader.identity.node(), address, pins: Vec::new(), https: false };
    let pulled = reader.client.pull(&holder, GrantId([0; 16]), &Digest::of(b""), None, 0).await.unwrap();
    let error = pulled.body.collect().await.unwrap_err();
    assert!(matches!(*error.downcast::<PullError>().unwrap(), PullError::Protocol(_)));
    serving.await.unwrap();
}

/// The clock of a machine without a battery: tokens are admitted all the same.
#[tokio::test]
async fn d14_a_clock_that_is_wrong_does_not_matter() {
    let blob = bytes(10);
    let (digest, node) = (Digest::of(&blob), Making::holding(blob).start().await);
    let identity = Identity::generate().unwrap();
    let clock: SharedClock = ManualClock::new(Timestamp(0));
    let client = Client::with_deadlines(&Config::default(), identity.clone(), keys(SECRET), &clock, PATIENT);
    let grant = node.grant(&identity, Thing::Blob(digest));
    for _ in 0..3 {
        assert!(client.pull(&node.holder, grant, &digest, Some(10), 0).await.is_ok());
    }
}
