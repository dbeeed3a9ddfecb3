//! Starting and stopping: all or nothing, at once, with words that help.

use std::net::{TcpListener, UdpSocket};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::daemon::accepts;
use crate::support::{Connection, Larder, MIB, Origin, Script, Site, wait_until};

#[test]
fn o04_a_stop_lets_running_bodies_end() {
    let origin = Origin::start();
    let mut a = Larder::new("a").set("drain_timeout", "20s").start();
    let script = Script::new(2 * MIB).hold_at(MIB);
    let url = origin.serve("/f.bin", script.clone());
    let mut reading = a.ask(&url).open();
    reading.read_to(MIB / 2);
    a.signal(Signal::TERM);
    wait_until("the port to close", || !accepts(a.proxy()));
    origin.release("/f.bin");
    reading.rest().assert_whole(&script);
    assert!(a.wait_exit().success());
}

#[test]
fn a_second_signal_ends_now() {
    let origin = Origin::start();
    let mut a = Larder::new("a").set("drain_timeout", "5m").start();
    let url = origin.serve("/f.bin", Script::new(2 * MIB).hold_at(MIB));
    let mut reading = a.ask(&url).open();
    reading.read_to(1000);
    a.signal(Signal::TERM);
    wait_until("the port to close", || !accepts(a.proxy()));
    a.signal(Signal::TERM);
    let start = Instant::now();
    a.wait_exit();
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn idle_connections_do_not_delay_a_stop() {
    let mut a = Larder::new("a").set("drain_timeout", "5m").start();
    let origin = Origin::start();
    let mut idle = Connection::to(a.proxy()).unwrap();
    idle.write(&a.ask(&origin.url("/f?size=1")).bytes()).unwrap();
    assert_eq!(idle.answer("GET").status, 200);
    let silent = Connection::to(a.proxy()).unwrap();
    let start = Instant::now();
    a.stop();
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    drop((idle, silent));
}

#[test]
fn o06_a_port_in_use_stops_the_start_and_is_named() {
    for key in ["proxy.listen", "admin.listen", "peers.listen"] {
        let site = Site::new();
        let mut a = Larder::new("a").peers(&site).ready_to_start();
        let address = match key {
            "proxy.listen" => a.proxy(),
            "admin.listen" => a.admin(),
            _ => a.peer(),
        };
        let taken = TcpListener::bind(address).unwrap();
        a.spawn();
        let status = a.wait_exit();
        assert_eq!(status.code(), Some(69), "{key}: {}", a.log());
        let said = a.log();
        assert!(said.contains(&address.port().to_string()), "{said}");
        assert!(said.contains(key) || said.contains("peers.port"), "{key}: {said}");
        assert!(!accepts(a.proxy()) || key == "proxy.listen", "nothing else was left open");
        drop(taken);
        a.start_again();
    }
}

#[test]
fn o06_a_taken_udp_port_degrades_and_is_retried() {
    let site = Site::new();
    let mut a = Larder::new("a").peers(&site).ready_to_start();
    let taken = UdpSocket::bind(a.peer()).unwrap();
    a.start_again();
    wait_until("a word about the port in health", || a.status()["health"]["status"] != "ok");
    let origin = Origin::start();
    let script = Script::new(1000);
    a.get(&origin.serve("/f", script.clone())).assert_whole(&script);
    drop(taken);
    let b = Larder::new("b").peers(&site).start();
    a.meets(&b);
}

#[test]
fn o12_a_dead_daemon_refuses_at_once_and_is_back_quickly() {
    let mut a = Larder::new("a").start();
    a.kill();
    let start = Instant::now();
    assert!(Connection::to(a.proxy()).is_err());
    assert!(start.elapsed() < Duration::from_secs(1));
    let start = Instant::now();
    a.start_again();
    println!("ready {:?} after the start", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn readiness_ends_before_the_daemon_does() {
    let origin = Origin::start();
    let mut a = Larder::new("a").set("drain_timeout", "20s").start();
    let url = origin.serve("/f.bin", Script::new(MIB).hold_at(1000));
    let mut reading = a.ask(&url).open();
    reading.read_to(500);
    let mut admin = Connection::to(a.admin()).unwrap();
    a.signal(Signal::TERM);
    wait_until("the port to close", || !accepts(a.proxy()));
    // Who is connected already may hear why; who is not meets a closed port.
    if admin.write(&a.admin_ask_without_token("GET", "/readyz").bytes()).is_ok() {
        let said = String::from_utf8_lossy(&admin.drain()).into_owned();
        assert!(said.is_empty() || said.contains(" 503 "), "{said}");
    }
    origin.release("/f.bin");
    reading.rest();
    assert!(a.wait_exit().success());
}

#[test]
fn start_and_memory_figures() {
    let start = Instant::now();
    let site = Site::new();
    let a = Larder::new("a").peers(&site).start();
    println!("ready after {:?}, {} KiB resident", start.elapsed(), a.rss() >> 10);
    assert!(start.elapsed() < Duration::from_secs(10));
    assert!(a.rss() < 200 << 20, "{} KiB", a.rss() >> 10);
}
