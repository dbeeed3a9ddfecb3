//! Following what changes, by server-sent events and over WebSocket.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::{Answer, GUARD, Larder, sha256};

/// One event as a client hears it.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub id: String,
    pub kind: String,
    pub data: serde_json::Value,
}

/// By which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Events,
    Socket,
}

/// A client that follows.
pub struct Following {
    stream: BufReader<TcpStream>,
    way: Way,
}

impl Following {
    /// Follows the labels from now on, or after this event.
    pub fn open(node: &Larder, way: Way, last: Option<&str>) -> Self {
        let token = std::fs::read_to_string(node.state_dir().join("admin.token")).unwrap();
        let mut fields = format!("Host: {}\r\nAuthorization: Bearer {}\r\n", node.admin(), token.trim());
        let mut query = String::new();
        match (way, last) {
            // each in the way that programs of its kind say it
            (Way::Events, Some(id)) => fields.push_str(&format!("Last-Event-ID: {id}\r\n")),
            (Way::Socket, Some(id)) => query = format!("&last_event_id={id}"),
            (_, None) => {}
        }
        if way == Way::Socket {
            fields.push_str(
                "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n",
            );
            fields.push_str("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
        }
        let mut stream = TcpStream::connect(node.admin()).unwrap();
        stream.set_read_timeout(Some(GUARD)).unwrap();
        write!(stream, "GET /api/v1/events?record=labels{query} HTTP/1.1\r\n{fields}\r\n").unwrap();
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
        }
        let status = if way == Way::Socket { "HTTP/1.1 101" } else { "HTTP/1.1 200" };
        assert!(head.starts_with(status), "{head}");
        assert!(way == Way::Events || head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
        Self { stream, way }
    }

    /// The next event; none where the other side has ended.
    pub fn next(&mut self) -> Option<Event> {
        match self.way {
            Way::Events => self.event(),
            Way::Socket => self.message(),
        }
    }

    fn event(&mut self) -> Option<Event> {
        let (mut id, mut kind) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("id", value)) => id = value.to_owned(),
                Some(("event", value)) => kind = value.to_owned(),
                Some(("data", value)) => {
                    return Some(Event { id, kind, data: serde_json::from_str(value).unwrap() });
                }
                _ => {}
            }
        }
    }

    fn message(&mut self) -> Option<Event> {
        loop {
            let (kind, bytes) = self.frame()?;
            match kind {
                1 => {
                    let said: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
                    let text = |name: &str| said[name].as_str().unwrap().to_owned();
                    return Some(Event { id: text("id"), kind: text("event"), data: said["data"].clone() });
                }
                9 => {}
                _ => return None,
            }
        }
    }

    /// One frame of a server (RFC 6455 section 5.2): its kind and what is in it.
    fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 2];
        self.stream.read_exact(&mut head).ok()?;
        let mut long = [0; 8];
        let length = match head[1] {
            126 => {
                self.stream.read_exact(&mut long[6..]).ok()?;
                u64::from_be_bytes(long)
            }
            127 => {
                self.stream.read_exact(&mut long).ok()?;
                u64::from_be_bytes(long)
            }
            short => u64::from(short),
        };
        let mut bytes = vec![0; usize::try_from(length).unwrap()];
        self.stream.read_exact(&mut bytes).ok()?;
        Some((head[0] & 0x0f, bytes))
    }
}

/// Writes a number on the label of a thing that may not be there.
pub fn label(node: &Larder, thing: &str, number: u64) -> Answer {
    let body = format!("{{\"labels\": {{\"n\": \"{number}\"}}}}");
    let path = format!("/api/v1/labels/sha256:{}", sha256(thing.as_bytes()));
    node.admin_ask("PUT", &path).field("Content-Type", "application/json").body(body.as_bytes()).send()
}

/// The number that a change tells.
pub fn number_of(event: &Event) -> u64 {
    event.data["row"]["labels"]["n"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[test]
fn who_was_cut_off_goes_on_where_he_was() {
    let mut a = Larder::new("a").start();
    for way in [Way::Events, Way::Socket] {
        let mut following = Following::open(&a, way, None);
        assert_eq!(following.next().unwrap().kind, "ready");
        (1..=3).for_each(|number| drop(label(&a, "x", number)));
        let heard: Vec<_> = (0..3).map(|_| following.next().unwrap()).collect();
        assert_eq!(heard.iter().map(number_of).collect::<Vec<_>>(), [1, 2, 3], "{heard:?}");
        assert_eq!((heard[0].kind.as_str(), &heard[0].data["record"]), ("change", &"labels".into()));
        drop(following);
        (4..=300).for_each(|number| drop(label(&a, "x", number)));
        let mut again = Following::open(&a, way, Some(&heard[1].id));
        assert_eq!(again.next().unwrap().kind, "ready");
        assert!(
            (3..=300).all(|number| number_of(&again.next().unwrap()) == number),
            "no gap, and none twice"
        );
        let mut other_life = Following::open(&a, way, Some("0123456789abcdef-1"));
        assert_eq!(other_life.next().unwrap().kind, "missed");
    }
    let mut last = [Way::Events, Way::Socket].map(|way| Following::open(&a, way, None));
    last.iter_mut().for_each(|following| drop(following.next()));
    a.stop();
    assert!(last.iter_mut().all(|following| following.next().is_none()), "a stop ends them");
}

#[test]
fn a_socket_that_is_none_or_of_another_site_is_refused() {
    let a = Larder::new("a").start();
    let ask = || {
        let ask =
            a.admin_ask("GET", "/api/v1/events").field("Upgrade", "websocket").field("Connection", "Upgrade");
        ask.field("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
    };
    let version = |ask: crate::support::Ask| ask.field("Sec-WebSocket-Version", "13");
    let foreign = version(ask()).field("Origin", "http://evil.example").send();
    assert_eq!((foreign.status, foreign.text().contains("cross-site")), (403, true), "{}", foreign.text());
    let old = ask().field("Sec-WebSocket-Version", "8").send();
    assert_eq!((old.status, old.field("sec-websocket-version")), (426, Some("13")));
    let unknown = a.admin_ask("GET", "/api/v1/events?record=nothing").field("Upgrade", "websocket");
    let unknown = version(unknown.field("Connection", "Upgrade"));
    assert_eq!(unknown.field("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==").send().status, 400);
    let stranger = a.admin_ask_without_token("GET", "/api/v1/events").field("Upgrade", "websocket");
    assert_eq!(version(stranger.field("Connection", "Upgrade")).send().status, 401);
    // what a client says is not listened to, and a client that says too much is left
    let mut following = Following::open(&a, Way::Socket, None);
    following.next().unwrap();
    let masked = |kind: u8, length: u8| {
        [vec![0x80 | kind, 0x80 | length, 0, 0, 0, 0], vec![b'x'; length.into()]].concat()
    };
    following.stream.get_mut().write_all(&masked(1, 100)).unwrap();
    following.stream.get_mut().write_all(&masked(9, 3)).unwrap();
    drop(label(&a, "y", 1));
    let pong = |(kind, bytes): &(u8, Vec<u8>)| (*kind, bytes.as_slice()) == (10, b"xxx");
    let frames: Vec<_> = (0..2).map(|_| following.frame().unwrap()).collect();
    assert!(frames.iter().any(pong) && frames.iter().any(|(kind, _)| *kind == 1), "{frames:?}");
    let huge = [[0x82, 0x80 | 127].as_slice(), &u64::MAX.to_be_bytes(), &[0; 4]].concat();
    following.stream.get_mut().write_all(&huge).unwrap();
    following.stream.get_mut().set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert!(std::iter::from_fn(|| following.frame()).all(|(kind, _)| kind == 8));
}
