//! What is not HTTP inside TLS for the very host: led through as it is, and upgrades led through TLS.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::{authority, describe, intercepting, named, start};
use crate::support::origin::Certificate;
use crate::support::stunnel::client;
use crate::support::{Ask, GUARD, Larder, Origin, Script, Stunnel, lan};

/// A server of one connection after the other, over TLS where there is a certificate.
fn serve(certificate: Option<&Certificate>, talk: fn(&mut dyn ReadWrite)) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let tls = certificate.map(Certificate::server);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            stream.set_read_timeout(Some(GUARD)).unwrap();
            let tls = tls.clone();
            std::thread::spawn(move || match tls {
                Some(tls) => {
                    let mut connection = rustls::ServerConnection::new(tls).unwrap();
                    while connection.is_handshaking() {
                        if connection.complete_io(&mut stream).is_err() {
                            return;
                        }
                    }
                    talk(&mut rustls::StreamOwned::new(connection, stream));
                }
                None => talk(&mut stream),
            });
        }
    });
    address
}

trait ReadWrite: std::io::Read + std::io::Write {}
impl<T: std::io::Read + std::io::Write> ReadWrite for T {}

fn greet(stream: &mut dyn ReadWrite) {
    stream.write_all(b"220 welcome\r\n").unwrap();
    stream.flush().unwrap();
    echo(stream);
}

/// Gives back each thing that is sent, with a mark.
fn echo(stream: &mut dyn ReadWrite) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(b">").and_then(|()| stream.write_all(&buffer[..count])).is_err() {
            return;
        }
        drop(stream.flush());
    }
}

/// Agrees to `Upgrade: echo/1` and to nothing else.
fn upgrade(stream: &mut dyn ReadWrite) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_exact(&mut byte).is_err() {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    if head.contains("upgrade: echo/1") && head.contains("connection: upgrade") && head.contains("x-key: 7") {
        let agreed = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo/1\r\nX-Accept: 8\r\n\r\n220 ";
        stream.write_all(agreed.as_bytes()).unwrap();
        return echo(stream);
    }
    stream.write_all(b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 4\r\n\r\nno!\n").unwrap();
}

fn node(port: u16) -> Larder {
    start(describe("a", port))
}

/// A connection through the node to this authority.
fn connect(node: &Larder, authority: &str) -> TcpStream {
    let mut stream = TcpStream::connect(node.proxy()).unwrap();
    stream.set_read_timeout(Some(GUARD)).unwrap();
    stream
        .write_all(format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n").as_bytes())
        .unwrap();
    let head = head(&mut stream);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    stream
}

fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

fn read(stream: &mut impl std::io::Read, count: usize) -> String {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_server_that_speaks_first_is_heard() {
    let server = serve(None, greet);
    let a = node(server.port());
    let start = Instant::now();
    let mut stream = connect(&a, &named(server));
    assert_eq!(read(&mut stream, 13), "220 welcome\r\n");
    println!("the greeting came after {:?}", start.elapsed());
    stream.write_all(b"EHLO x\r\n").unwrap();
    assert_eq!(read(&mut stream, 9), ">EHLO x\r\n");
    drop(stream);
    crate::support::wait_until("the bytes to be counted", || a.count("/traffic/bytes_tunnelled") == 30);
}

#[test]
fn what_is_no_tls_goes_through_as_it_is() {
    let server = serve(None, echo);
    let a = node(server.port());
    for said in ["SSH-2.0-x\r\n", "\u{16}\u{3}", "GET / HTTP/1.1\r\n\r\n"] {
        let mut stream = connect(&a, &named(server));
        stream.write_all(said.as_bytes()).unwrap();
        assert_eq!(read(&mut stream, said.len() + 1), format!(">{said}"));
    }
}

#[test]
fn tls_without_the_name_of_the_host_ends_at_the_origin() {
    let certificate = Certificate::make();
    let server = serve(Some(&certificate), echo);
    let a = node(server.port());
    // The name in TLS is none, or another than the connection's.
    for (authority, name) in [
        (named(server), "127.0.0.1"),
        (format!("127.0.0.1:{}", server.port()), "127.0.0.1"),
        (format!("127.0.0.1:{}", server.port()), "localhost"),
    ] {
        let name = rustls::pki_types::ServerName::try_from(name).unwrap();
        let connection = rustls::ClientConnection::new(client(&certificate.pem, &["h2"]), name).unwrap();
        let mut stream = rustls::StreamOwned::new(connection, connect(&a, &authority));
        stream.write_all(b"hello").unwrap();
        assert_eq!(read(&mut stream, 6), ">hello", "{authority}");
    }
    assert!(!a.log().contains("does not trust"));
}

#[test]
fn a_protocol_in_tls_that_is_not_http_is_led_through() {
    let certificate = Certificate::make();
    for (talk, first, answer) in [
        (greet as fn(&mut dyn ReadWrite), "", "220 welcome\r\n"),
        (echo, "\u{10}\u{e}\u{0}\u{4}MQTT", ">\u{10}\u{e}\u{0}\u{4}MQTT"),
    ] {
        let server = serve(Some(&certificate), talk);
        let a = start(describe("a", server.port()).trusts_pem(&certificate.pem));
        let way = Stunnel::open(a.proxy(), &named(server), "localhost", &authority(&a), &[]);
        let mut stream = TcpStream::connect(way.address()).unwrap();
        stream.set_read_timeout(Some(GUARD)).unwrap();
        stream.write_all(first.as_bytes()).unwrap();
        assert_eq!(read(&mut stream, answer.len()), answer);
        stream.write_all(b"more").unwrap();
        assert_eq!(read(&mut stream, 5), ">more");
    }
}

#[test]
fn upgrades_inside_are_led_through() {
    let certificate = Certificate::make();
    let server = serve(Some(&certificate), upgrade);
    let a = start(describe("a", server.port()).trusts_pem(&certificate.pem));
    let way = Stunnel::open(a.proxy(), &named(server), "localhost", &authority(&a), &["http/1.1"]);
    let ask = |protocol: &str| {
        let ask = Ask::new(way.address(), "GET", "/socket").field("Host", &named(server));
        ask.field("Connection", "Upgrade").field("Upgrade", protocol).field("X-Key", "7")
    };
    let mut stream = TcpStream::connect(way.address()).unwrap();
    stream.set_read_timeout(Some(GUARD)).unwrap();
    stream.write_all(&ask("echo/1").bytes()).unwrap();
    let agreed = head(&mut stream).to_ascii_lowercase();
    for part in ["http/1.1 101", "connection: upgrade", "upgrade: echo/1", "x-accept: 8"] {
        assert!(agreed.contains(part), "{part}: {agreed}");
    }
    assert_eq!(read(&mut stream, 4), "220 ");
    stream.write_all(b"hello").unwrap();
    assert_eq!(read(&mut stream, 6), ">hello");
    let refused = ask("other/1").send();
    assert_eq!((refused.status, refused.text().as_str()), (426, "no!\n"));
    assert_eq!(a.count("/traffic/bytes_tunnelled"), 15);
}

#[test]
fn hosts_that_nobody_named_and_ports_that_nobody_allowed() {
    let origin = Origin::start_tls();
    let a = intercepting("a", &origin);
    let script = Script::new(1000);
    origin.serve("/f.bin", script.clone());
    let address = origin.address().to_string();
    let way = Stunnel::open(a.proxy(), &address, "127.0.0.1", origin.certificate(), &["http/1.1"]);
    let answer = Ask::new(way.address(), "GET", "/f.bin").field("Host", &address).send();
    answer.assert_whole(&script);
    assert_eq!(answer.field("Via"), None, "it is a blind tunnel");
    let refused = Ask::new(a.proxy(), "CONNECT", "localhost:25").field("Host", "localhost:25").send();
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("connect_ports"));
}

#[test]
fn an_origin_that_cannot_be_verified_or_reached_is_an_answer() {
    let origin = Origin::start_tls();
    let a = start(describe("a", origin.address().port()));
    let ca = authority(&a);
    let way = Stunnel::open(a.proxy(), &named(origin.address()), "localhost", &ca, &["http/1.1"]);
    let host = named(origin.address());
    let answer = Ask::new(way.address(), "GET", "/f.bin").field("Host", &host).send();
    assert_eq!(answer.status, 502);
    assert!(answer.text().contains("origin.ca_file"), "{}", answer.text());
    assert!(origin.all_requests().is_empty());
    let refused = Ask::new(a.proxy(), "CONNECT", "nowhere.example.test:443").field("Host", "x").send();
    assert_eq!(refused.status, 403, "{}", refused.text());
}

#[test]
fn another_machine_reaches_nothing_private_inside() {
    let test = "intercept::other::another_machine_reaches_nothing_private_inside";
    let Some(lan) = lan::Lan::enter(test, 1) else { return };
    let mut a = lan
        .node(1, "a", &crate::support::Site::new())
        .set("proxy.connect_ports", vec![443, 8443])
        .list("intercept.hosts", &["localhost"])
        .ready_to_start();
    a.cli(&["ca", "new"]).assert_code(0);
    a.start_again();
    for port in [443, 8443] {
        let authority = format!("localhost:{port}");
        let refused = Ask::new(a.proxy(), "CONNECT", &authority).field("Host", &authority).send();
        assert_eq!(refused.status, 403, "{}", refused.text());
        assert!(refused.text().contains("deny_private"), "{}", refused.text());
    }
}

#[test]
fn silence_holds_nothing_up() {
    let server = serve(None, echo);
    let mut a = node(server.port());
    let silent: Vec<_> = (0..20).map(|_| connect(&a, &named(server))).collect();
    let begun: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = connect(&a, &named(server));
            stream.write_all(b"\x16\x03\x01").unwrap();
            stream
        })
        .collect();
    std::thread::sleep(Duration::from_millis(100));
    let start = Instant::now();
    a.stop();
    println!("stopped after {:?}", start.elapsed());
    drop((silent, begun));
}
