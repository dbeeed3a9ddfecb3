//! CONNECT: a blind tunnel that works out of the box, and refusals that name their setting.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::support::{Ask, Connection, Larder, MIB, Origin, Script, body, tools, wait_until};

fn connect(node: &Larder, authority: &str) -> Ask {
    Ask::new(node.proxy(), "CONNECT", authority).field("Host", authority)
}

#[test]
fn h34_tls_goes_end_to_end_through_the_tunnel() {
    let origin = Origin::start_tls();
    let port = i64::from(origin.address().port());
    let a = Larder::new("a").set("proxy.connect_ports", vec![port]).start();
    let script = Script::new(5 * MIB);
    let url = origin.serve("/f.bin", script.clone());
    if !tools::installed("curl") {
        return;
    }
    let ca = a.home().join("origin.pem");
    std::fs::write(&ca, origin.certificate()).unwrap();
    let ran = tools::curl(a.proxy(), a.home(), &["-f", "--cacert", ca.to_str().unwrap(), "-o", "out", &url]);
    ran.assert_code(0);
    assert!(std::fs::read(a.home().join("out")).unwrap() == script.body());
    assert!(a.blobs().is_empty(), "what is inside a tunnel is nobody's business");
}

#[test]
fn h34_each_half_of_a_tunnel_closes_by_itself() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    let a = Larder::new("a").set("proxy.connect_ports", vec![i64::from(target.port())]).start();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).unwrap();
        // Only after the client has closed its half does the answer begin.
        stream.write_all(&heard).unwrap();
    });
    let mut tunnel = Connection::to(a.proxy()).unwrap();
    tunnel.write(&connect(&a, &target.to_string()).bytes()).unwrap();
    assert_eq!(tunnel.answer("CONNECT").status, 200);
    let sent = body::slice(3, 0..2 * MIB);
    tunnel.write(&sent).unwrap();
    tunnel.half_close();
    assert!(tunnel.drain() == sent);
    server.join().unwrap();
    assert_eq!(a.count("/traffic/bytes_to_clients"), 0, "tunnels are counted apart");
}

#[test]
fn h34_refused_ports_say_which_setting() {
    let a = Larder::new("a").start();
    for authority in ["127.0.0.1:25", "example.test:22", "[::1]:8097"] {
        let refused = connect(&a, authority).send();
        assert_eq!(refused.status, 403, "{authority}");
        assert!(refused.text().contains("connect_ports"), "{}", refused.text());
    }
    for nonsense in ["example.test", "example.test:0", ":443", "example.test:99999"] {
        let refused = connect(&a, nonsense).send();
        assert!([400, 403].contains(&refused.status), "{nonsense}: {}", refused.status);
    }
}

#[test]
fn h34_a_tunnel_to_nowhere_is_an_answer() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let a = Larder::new("a").set("proxy.connect_ports", vec![i64::from(free.port())]).start();
    let answer = connect(&a, &free.to_string()).send();
    assert_eq!(answer.status, 502);
    let before = a.open_files();
    let own = Larder::new("b").set("proxy.connect_ports", vec![8098]).start();
    assert!([400, 403, 508].contains(&connect(&own, &own.proxy().to_string()).send().status), "a loop");
    wait_until("no file left open", || a.open_files() <= before);
}
