//! Slowness as a weapon: heads and bodies that never come, and connections that do nothing.

use std::time::{Duration, Instant};

use super::{OK, assert_refused};
use crate::support::{Connection, Larder, Origin, RawOrigin, Reply, Script, wait_until};

#[test]
fn h43_a_head_and_a_body_that_do_not_come_are_told_408() {
    let origin = RawOrigin::start(|_| Reply::kept(OK));
    let a = Larder::new("a").start();
    let started = Instant::now();
    let mut heads: Vec<_> = (0..3).map(|_| Connection::to(a.proxy()).unwrap()).collect();
    heads.iter_mut().for_each(|head| head.write(b"GET http://x/ HTTP/1.1\r\nHo").unwrap());
    let mut body = Connection::to(a.proxy()).unwrap();
    let upload = format!("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab", origin.url("/upload"));
    body.write(upload.as_bytes()).unwrap();
    // one of them keeps sending, one byte at a time, and gains nothing by it
    let mut dripping = Connection::to(a.proxy()).unwrap();
    dripping.write(b"GET http://x/ HTTP/1.1\r\nX: ").unwrap();
    while started.elapsed() < Duration::from_secs(28) {
        drop(dripping.write(b"a"));
        assert_eq!(a.get(&origin.url("/meanwhile")).text(), "ok");
        std::thread::sleep(Duration::from_secs(1));
    }
    for head in heads.iter_mut().chain([&mut dripping]) {
        assert_refused(&head.drain(), 408, "a head");
    }
    assert_refused(&body.drain(), 408, "a body");
    assert!(started.elapsed() < Duration::from_secs(300), "{:?}", started.elapsed());
    assert!(
        origin.requests().iter().all(|line| line == "GET /meanwhile HTTP/1.1"),
        "{:?}",
        origin.requests()
    );
}

#[test]
fn h43_three_hundred_idle_connections_harm_nobody() {
    let (origin, a) = (Origin::start(), Larder::new("a").start());
    let script = Script::new(20_000);
    let url = origin.serve("/f.bin", script.clone());
    a.get(&url).assert_whole(&script);
    let (files, memory) = (a.open_files(), a.rss());
    let mut idle: Vec<_> = (0..300).map(|_| Connection::to(a.proxy()).unwrap()).collect();
    // a third of them has been used before it falls silent
    for connection in idle.iter_mut().step_by(3) {
        connection.write(&a.ask(&url).bytes()).unwrap();
        connection.answer("GET").assert_whole(&script);
    }
    let slowest =
        (0..100).map(|_| a.get(&url)).map(|answer| answer.assert_whole(&script).took).max().unwrap();
    println!(
        "300 idle connections: slowest of 100 hits {slowest:?}, {} KiB more",
        (a.rss().saturating_sub(memory)) >> 10
    );
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    assert!(a.rss() < memory + (64 << 20), "{} MiB", a.rss() >> 20);
    drop(idle);
    wait_until("open files back to what they were", || a.open_files() <= files + 10);
}
