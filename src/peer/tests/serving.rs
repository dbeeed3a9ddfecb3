//! The server's side: who gets what, who is refused, what a connection may cost.

use super::*;
use crate::clock::Clock as _;

/// A plain node and a token for its blob, for a reader made up here.
async fn plain(making: Making) -> (Node, Identity) {
    let node = Making { config: Config { tls: Tls::Off, ..making.config }, ..making }.start().await;
    (node, Identity::generate().unwrap())
}

fn token(node: &Node, asker: &Identity, secret: &str, thing: Thing, counter: u64) -> String {
    let grant = node.grant(asker, thing);
    let bearer = Bearer { grant, thing, asker: asker.node(), holder: node.holder.node, counter };
    keys(secret).seal_bearer(&bearer).unwrap()
}

fn lines(answer: &str) -> Vec<&str> {
    answer.split("\r\n").collect()
}

#[tokio::test]
async fn ranges_are_those_of_the_rfc_and_no_answer_has_a_date() {
    let blob = bytes(1000);
    let thing = Thing::Blob(Digest::of(&blob));
    let (node, asker) = plain(Making::holding(blob.clone())).await;
    let mut counter = 0;
    for (method, more, status, length, content_range) in [
        ("GET", "", "200 OK", 1000, None),
        ("GET", "Range: bytes=100-199\r\n", "206 Partial Content", 100, Some("bytes 100-199/1000")),
        ("GET", "Range: bytes=-1\r\n", "206 Partial Content", 1, Some("bytes 999-999/1000")),
        ("GET", "Range: bytes=0-0,5-6\r\n", "200 OK", 1000, None),
        ("GET", "Range: bytes=0-9\r\nIf-Range: \"other\"\r\n", "200 OK", 1000, None),
        ("HEAD", "Range: bytes=0-9\r\n", "200 OK", 1000, None),
        ("GET", "Range: bytes=1000-\r\n", "416 Range Not Satisfiable", 0, Some("bytes */1000")),
    ] {
        counter += 1;
        let token = token(&node, &asker, SECRET, thing, counter);
        let answer = raw(node.holder.address, &asking(method, thing, &token, more)).await;
        let got = lines(&answer);
        assert_eq!(got[0], format!("HTTP/1.1 {status}"), "{more}");
        let field = |name: &str| got.iter().find_map(|line| line.strip_prefix(name));
        assert_eq!(field("content-range: "), content_range, "{more}");
        assert_eq!(field("date: "), None);
        if length > 0 {
            assert_eq!(field("content-length: "), Some(length.to_string().as_str()), "{method} {more}");
            assert_eq!(field("repr-digest: "), Some(Digest::of(&blob).repr_digest().as_str()));
        }
    }
    assert_eq!(node.server.uplink().uploads(), 0);
}

#[tokio::test]
async fn p16_strangers_learn_nothing_and_are_refused_after_three() {
    let blob = bytes(100);
    let (held, unheld) = (Thing::Blob(Digest::of(&blob)), Thing::Blob(Digest::of(b"none")));
    let foreign = "another secret, of another site";
    for (first, second, third) in [(held, unheld, held), (unheld, held, unheld)] {
        let (node, asker) = plain(Making::holding(blob.clone())).await;
        let mut answers = Vec::new();
        for thing in [first, second, third] {
            assert!(!node.bans.is_banned(node.holder.address.ip()));
            let token = token(&node, &asker, foreign, thing, 1);
            answers.push(raw(node.holder.address, &asking("GET", thing, &token, "")).await);
        }
        assert!(answers[0].starts_with("HTTP/1.1 403 "), "{}", answers[0]);
        assert!(answers.iter().all(|answer| answer == &answers[0]));
        assert_eq!(node.bans.list()[0].address, node.holder.address.ip());
        let token = token(&node, &asker, SECRET, held, 1);
        assert_eq!(raw(node.holder.address, &asking("GET", held, &token, "")).await, "", "dropped unread");
    }
}

#[tokio::test]
async fn p16_what_strikes_and_what_does_not() {
    let blob = bytes(100);
    let thing = Thing::Blob(Digest::of(&blob));
    let path = wire::path_of(&thing);
    for (request, offence) in [
        (format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"), true),
        (format!("GET {path}?a=1 HTTP/1.1\r\nHost: x\r\n\r\n"), true),
        (format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"), true),
        ("GET /../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), true),
        ("GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), true),
        ("CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), true),
        ("this is no HTTP\r\n\r\n".to_owned(), true),
        (format!("GET {path} HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(20_000)), true),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), true),
        (String::new(), false),
    ] {
        let header = if request.is_empty() { Duration::from_millis(200) } else { HANG };
        let limits = Limits { header, ..Limits::default() };
        let (node, _asker) = plain(Making { limits, ..Making::holding(blob.clone()) }).await;
        for _ in 0..3 {
            let answer = raw(node.holder.address, &request).await;
            assert!(
                answer.is_empty()
                    || ["4", "505"].iter().any(|s| answer.starts_with(&format!("HTTP/1.1 {s}"))),
                "{answer}"
            );
        }
        let banned = node.bans.is_banned(node.holder.address.ip());
        assert_eq!(banned, offence, "{request:.40}");
    }
}

#[tokio::test]
async fn p11_the_never_list_is_answered_after_any_number_of_offences() {
    let blob = bytes(100);
    let thing = Thing::Blob(Digest::of(&blob));
    let never = ban::Config::default().never;
    let (node, asker) = plain(Making { never, ..Making::holding(blob) }).await;
    for _ in 0..50 {
        assert!(raw(node.holder.address, &asking("POST", thing, "x", "")).await.starts_with("HTTP/1.1 403 "));
    }
    let token = token(&node, &asker, SECRET, thing, 1);
    assert!(raw(node.holder.address, &asking("GET", thing, &token, "")).await.starts_with("HTTP/1.1 200 "));
    assert!(node.bans.list().is_empty());
}

#[tokio::test]
async fn d15_a_token_is_good_once_and_for_its_thing_alone() {
    let blob = bytes(100);
    let (thing, other) = (Thing::Blob(Digest::of(&blob)), Thing::Blob(Digest::of(b"other")));
    let (node, asker) = plain(Making::holding(blob)).await;
    let used = token(&node, &asker, SECRET, thing, 5);
    let ask = |thing, token: &str| {
        let (address, request) = (node.holder.address, asking("GET", thing, token, ""));
        async move { lines(&raw(address, &request).await)[0].to_owned() }
    };
    assert_eq!(ask(thing, &used).await, "HTTP/1.1 200 OK");
    for _ in 0..5 {
        assert_eq!(ask(thing, &used).await, "HTTP/1.1 403 Forbidden");
        assert_eq!(ask(other, &token(&node, &asker, SECRET, thing, 6)).await, "HTTP/1.1 403 Forbidden");
        let unknown = Bearer {
            grant: GrantId([0; 16]),
            thing,
            asker: asker.node(),
            holder: node.holder.node,
            counter: 9,
        };
        let unknown = keys(SECRET).seal_bearer(&unknown).unwrap();
        assert_eq!(ask(thing, &unknown).await, "HTTP/1.1 403 Forbidden");
    }
    assert_eq!(ask(thing, &token(&node, &asker, SECRET, thing, 7)).await, "HTTP/1.1 200 OK");
    assert!(node.bans.list().is_empty(), "asking again is no offence");
}

#[tokio::test]
async fn a_ban_ends_a_connection_that_stands() {
    let blob = bytes(100);
    let (digest, node) = (Digest::of(&blob), Making::holding(blob).start().await);
    let reader = Reader::new();
    assert!(reader.bytes(&node, &digest, 0).await.is_ok());
    node.bans.add(node.holder.address.ip(), "by hand", None).unwrap();
    assert!(matches!(reader.pull(&node, &digest, 0).await, Err(PullError::Unreachable(_))));
    assert!(node.bans.remove(node.holder.address.ip()));
    assert!(reader.bytes(&node, &digest, 0).await.is_ok());
}

/// The token of one node in the hands of another that proves its own key.
#[tokio::test]
async fn a_token_is_good_for_the_key_it_names() {
    let blob = bytes(100);
    let (digest, node) = (Digest::of(&blob), Making::holding(blob).start().await);
    let (owner, thief) = (Reader::new(), Reader::new());
    let grant = node.grant(&owner.identity, Thing::Blob(digest));
    let stolen = thief.client.pull(&node.holder, grant, &digest, None, 0).await;
    assert_eq!(stolen.unwrap_err(), PullError::AskAgain);
    assert!(owner.client.pull(&node.holder, grant, &digest, None, 0).await.is_ok());
    assert!(node.bans.list().is_empty());
}

#[tokio::test]
async fn d17_neighbours_with_another_secret_are_refused_like_strangers() {
    let blob = bytes(100);
    let (digest, node) = (Digest::of(&blob), Making::holding(blob).start().await);
    let stranger = Reader::with(&Config::default(), "the secret of the next office", PATIENT);
    for _ in 0..3 {
        assert_eq!(stranger.pull(&node, &digest, 0).await.unwrap_err(), PullError::AskAgain);
    }
    assert!(matches!(stranger.pull(&node, &digest, 0).await, Err(PullError::Unreachable(_))));
}

#[tokio::test]
async fn p09_a_neighbour_behind_the_same_address_keeps_the_door_open() {
    let blob = bytes(100);
    let (digest, node) = (Digest::of(&blob), Making::holding(blob).start().await);
    let (good, bad) = (Reader::new(), Reader::with(&Config::default(), "the secret of a liar", PATIENT));
    assert!(good.bytes(&node, &digest, 0).await.is_ok());
    for _ in 0..9 {
        assert_eq!(bad.pull(&node, &digest, 0).await.unwrap_err(), PullError::AskAgain);
    }
    assert!(good.bytes(&node, &digest, 0).await.is_ok());
}

#[tokio::test]
async fn plain_text_at_the_tls_port_is_an_offence() {
    let node = Making::default().start().await;
    for _ in 0..3 {
        raw(node.holder.address, "GET / HTTP/1.1\r\n\r\n").await;
    }
    until(|| node.bans.is_banned(node.holder.address.ip())).await;
}

#[tokio::test]
async fn slow_heads_and_handshakes_are_hung_up_on() {
    let limits = Limits {
        handshake: Duration::from_millis(100),
        header: Duration::from_millis(100),
        ..Limits::default()
    };
    for config in [Config::default(), in_clear()] {
        let node = Making { config, limits, ..Making::default() }.start().await;
        for sent in ["", "\u{16}\u{3}\u{1}", "GET /blob"] {
            raw(node.holder.address, sent).await;
        }
        until(|| node.drain.guests() == 0).await;
    }
}

#[tokio::test]
async fn a_reader_that_does_not_read_loses_its_place() {
    let blob = bytes(30_000_000);
    let limits = Limits { write: Duration::from_millis(100), ..Limits::default() };
    let node = Making { limits, ..Making::holding(blob.clone()) }.start().await;
    let pulled = Reader::new().pull(&node, &Digest::of(&blob), 0).await.unwrap();
    assert_eq!(node.server.uplink().uploads(), 1);
    until(|| node.server.uplink().uploads() == 0 && node.drain.guests() == 0).await;
    assert!(pulled.body.collect().await.is_err());
}

#[tokio::test]
async fn connections_from_one_address_are_limited() {
    let limits = Limits { per_address: 2, ..Limits::default() };
    let node = Making { limits, ..Making::default() }.start().await;
    let one = TcpStream::connect(node.holder.address).await.unwrap();
    let two = TcpStream::connect(node.holder.address).await.unwrap();
    until(|| node.drain.guests() == 2).await;
    assert_eq!(raw(node.holder.address, "").await, "");
    drop((one, two));
    until(|| node.drain.guests() == 0).await;
    assert!(matches!(Reader::new().pull(&node, &Digest::of(b""), 0).await, Err(PullError::Gone)));
}

#[tokio::test]
async fn a_rate_holds_for_all_and_can_be_lifted() {
    let blob = bytes(320 * 1024);
    let config = Config { upload_rate: Rate(512 * 1024), ..Config::default() };
    let node = Making { config, ..Making::holding(blob.clone()) }.start().await;
    let (reader, digest) = (Reader::new(), Digest::of(&blob));
    let start = SystemClock.instant();
    assert_eq!(reader.bytes(&node, &digest, 0).await.unwrap(), blob);
    // the burst is 64 KiB, the other 256 KiB take half a second
    assert!(SystemClock.instant().duration_since(start) >= Duration::from_millis(450));
    node.server.uplink().set_rate(Rate(0));
    let start = SystemClock.instant();
    for _ in 0..20 {
        assert_eq!(reader.bytes(&node, &digest, 0).await.unwrap(), blob);
    }
    assert!(SystemClock.instant().duration_since(start) < Duration::from_secs(9));
}

#[tokio::test]
async fn a_stop_lets_a_running_body_end() {
    let blob = bytes(20_000_000);
    let (node, reader) = (Making::holding(blob.clone()).start().await, Reader::new());
    let pulled = reader.pull(&node, &Digest::of(&blob), 0).await.unwrap();
    node.stop.request();
    until(|| std::net::TcpListener::bind(node.holder.address).is_ok()).await;
    assert_eq!(pulled.body.collect().await.unwrap().to_bytes(), blob);
    assert!(node.drain.wait(HANG).await);
}
