//! The stage judges itself: origin and client against each other, without any daemon.

use std::net::SocketAddr;
use std::time::Duration;

use super::Origin;
use crate::support::{Answer, Ask, Connection, Ending, Framing, Ranges, Script, body, wait_until};

fn direct(origin: &Origin, path: &str) -> Ask {
    Ask::new(origin.address(), "GET", path).field("Host", &origin.address().to_string())
}

fn get(origin: &Origin, path: &str) -> Answer {
    direct(origin, path).send()
}

#[test]
fn a_file_is_served_whole_in_slices_and_by_validator() {
    let origin = Origin::start();
    let script = Script::new(100_000).seed(3);
    origin.serve("/f", script.clone());
    get(&origin, "/f").assert_whole(&script);
    direct(&origin, "/f").range("5-9").send().assert_slice(&script, 5, 10);
    direct(&origin, "/f").range("-7").send().assert_slice(&script, 99_993, 100_000);
    let beyond = direct(&origin, "/f").range("100000-").send();
    assert_eq!((beyond.status, beyond.field("Content-Range")), (416, Some("bytes */100000")));
    let etag = script.etag_value().unwrap();
    assert_eq!(direct(&origin, "/f").field("If-None-Match", &etag).send().status, 304);
    assert_eq!(direct(&origin, "/f").range("5-9").field("If-Range", "\"old\"").send().status, 200);
    assert_eq!(direct(&origin, "/f").method("HEAD").send().body, b"");
    assert_eq!(origin.gets("/f").len(), 6);
    assert_eq!(origin.bytes_sent("/f"), 200_012);
    assert_eq!(get(&origin, "/missing").status, 404);
}

#[test]
fn every_way_to_break_a_body_is_seen_as_broken() {
    let origin = Origin::start();
    for (path, script) in [
        ("/fin", Script::new(50_000).cut_always(20_000)),
        ("/rst", Script::new(50_000).cut_always(20_000).by_reset()),
        ("/lie", Script::new(50_000).framing(Framing::Length(10))),
        ("/nolast", Script::new(50_000).framing(Framing::Chunked { finished: false })),
        ("/cutchunk", Script::new(50_000).chunked().cut_always(20_000)),
    ] {
        origin.serve(path, script);
        assert_eq!(get(&origin, path).ending, Ending::Truncated, "{path}");
    }
    let script = Script::new(50_000).cut_once(20_000);
    origin.serve("/once", script.clone());
    assert_eq!(get(&origin, "/once").body.len(), 20_000);
    get(&origin, "/once").assert_whole(&script);
}

#[test]
fn framings_other_than_a_length_arrive_whole() {
    let origin = Origin::start();
    for framing in [Framing::Chunked { finished: true }, Framing::Close] {
        let script = Script::new(300_000).framing(framing).ranges(Ranges::Ignored);
        origin.serve("/f", script.clone());
        get(&origin, "/f").assert_whole(&script);
    }
    let bursts = Script::new(30_000).bursts(10_000, Duration::from_millis(1));
    origin.serve("/b", bursts.clone());
    assert_eq!(direct(&origin, "/b").open().rest_slowly(7000, Duration::from_millis(1)).body, bursts.body());
}

#[test]
fn a_held_body_waits_for_its_release_and_notices_who_left() {
    let origin = Origin::start();
    let script = Script::new(200_000).hold_at(70_000);
    origin.serve("/held", script.clone());
    let mut waiting = direct(&origin, "/held").open();
    assert_eq!(waiting.read_to(70_000), 70_000);
    let gone = direct(&origin, "/held").open();
    assert_eq!(gone.status(), 200);
    gone.abort();
    wait_until("the origin to see the abort", || origin.open_connections() == 1);
    origin.release("/held");
    waiting.rest().assert_whole(&script);
}

#[test]
fn small_behaviours_do_what_their_names_say() {
    let origin = Origin::start();
    origin.serve("/rel", Script::redirect_signed("/blob"));
    origin.serve("/blob", Script::new(10).signed());
    let link = get(&origin, "/rel").field("Location").unwrap().to_owned();
    assert_eq!(get(&origin, &link).status, 200);
    origin.expire_links();
    assert_eq!(get(&origin, &link).status, 403);
    origin.serve("/auth", Script::new(10).authorization("Bearer x"));
    assert_eq!(get(&origin, "/auth").status, 401);
    origin.serve("/vary", Script::new(10).negotiates());
    let gzip = direct(&origin, "/vary").field("Accept-Encoding", "gzip").send();
    assert_eq!((gzip.body, gzip.fields.len()), (body::slice(2, 0..10), 8));
    origin.serve("/echo", Script::echo());
    assert!(get(&origin, "/echo?%2f").text().starts_with("GET /echo?%2f HTTP/1.1\n"));
    assert_eq!(get(&origin, "/by-query?size=12&seed=4").body, body::slice(4, 0..12));
    let posted =
        direct(&origin, "/post").method("POST").field("Expect", "100-continue").body(b"hello").send();
    assert_eq!(posted.text(), "hello");
    origin.serve("/raw", Script::raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    assert_eq!(get(&origin, "/raw").text(), "ok");
    origin.serve("/to", Script::redirect("/x").cookie());
    assert_eq!(get(&origin, "/to").field("Location"), Some("/x"));
}

#[test]
fn answers_on_one_connection_are_told_apart() {
    let origin = Origin::start();
    let (a, b) = (Script::new(70_000).seed(5), Script::new(3).seed(6).chunked());
    origin.serve("/a", a.clone());
    origin.serve("/b", b.clone());
    let mut connection = Connection::to(origin.address()).unwrap();
    connection.write(&[direct(&origin, "/a").bytes(), direct(&origin, "/b").bytes()].concat()).unwrap();
    connection.answer("GET").assert_whole(&a);
    connection.answer("GET").assert_whole(&b);
    connection.half_close();
    assert_eq!(connection.drain(), b"");
}

#[test]
fn an_origin_that_stops_is_gone_at_once() {
    let mut origin = Origin::start();
    origin.serve("/held", Script::new(20).hold_at(10));
    let reading = direct(&origin, "/held").open();
    origin.stop();
    assert_eq!(reading.rest().ending, Ending::Truncated);
    let address: SocketAddr = origin.address();
    assert!(Connection::to(address).is_err());
}
