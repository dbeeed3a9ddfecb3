//! One suite for both transports, and what only UDP can do wrong.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::*;
use crate::clock::{Clock as _, SystemClock};

/// A port that nobody has on any loopback address, as far as a moment ago.
fn free_port() -> u16 {
    std::net::UdpSocket::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port()
}

fn endpoint(last: u8, port: u16) -> Endpoint {
    Endpoint {
        local: SocketAddr::from(([127, 0, 0, last], port)),
        broadcast: Some(SocketAddr::from(([127, 255, 255, 255], port))),
        index: 0,
    }
}

fn now() -> Instant {
    SystemClock.instant()
}

async fn next(transport: &mut impl Transport) -> Datagram {
    let next = tokio::time::timeout(Duration::from_secs(10), transport.receive());
    next.await.expect("it must arrive").expect("no endpoint failed")
}

/// Three nodes: everybody hears a broadcast, the sender too; one hears unicast; answers reach the sender.
async fn suite<T: Transport>(mut nodes: [T; 3], port: u16) {
    for (last, node) in (2..).zip(&mut nodes) {
        node.set_endpoints(&[endpoint(last, port)], now());
        assert_eq!(node.maintain(now()), None, "{:?}", node.view());
    }
    let [a, b, c] = &mut nodes;
    a.broadcast(b"to all", None);
    for node in [&mut *a, &mut *b, &mut *c] {
        let heard = next(node).await;
        assert_eq!((heard.bytes.as_slice(), heard.broadcast), (&b"to all"[..], true));
        assert_eq!(heard.from, endpoint(2, port).local);
    }
    b.send(endpoint(2, port).local, None, b"to one").unwrap();
    let heard = next(a).await;
    assert_eq!((heard.bytes.as_slice(), heard.broadcast), (&b"to one"[..], false));
    a.send(heard.from, Some(heard.link), b"back").unwrap();
    assert_eq!(next(b).await.bytes, b"back");
    // the address changes: the old one is deaf, the new one hears
    b.set_endpoints(&[endpoint(9, port)], now());
    a.send(endpoint(3, port).local, None, b"lost").unwrap();
    a.send(endpoint(9, port).local, None, b"found").unwrap();
    assert_eq!(next(b).await.bytes, b"found");
    c.broadcast(b"again", None);
    let heard = next(b).await;
    assert_eq!((heard.bytes.as_slice(), heard.from), (&b"again"[..], endpoint(4, port).local));
    assert_eq!(b.view().len(), 1);
    b.set_endpoints(&[], now());
    assert!(b.view().is_empty() && b.send(heard.from, None, b"x").is_err());
}

#[tokio::test]
async fn datagrams_in_memory() {
    let network = Network::new();
    suite([network.join(), network.join(), network.join()], 8096).await;
}

#[tokio::test]
async fn datagrams_over_udp() {
    let port = free_port();
    suite([Udp::new(port, "peers.port"), Udp::new(port, "peers.port"), Udp::new(port, "peers.port")], port)
        .await;
}

#[tokio::test]
async fn d19_a_taken_port_is_tried_again() {
    let other = std::net::UdpSocket::bind("127.0.0.7:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let (mut udp, start) = (Udp::new(port, "peers.port"), now());
    udp.set_endpoints(&[endpoint(7, port)], start);
    let retry = udp.maintain(start).unwrap();
    let view = udp.view();
    assert!(view[0].taken && view[0].error.as_ref().unwrap().contains(&port.to_string()));
    assert!(retry > start && udp.send(endpoint(8, port).local, None, b"x").is_err());
    let later = udp.maintain(retry).unwrap();
    assert!(later - retry > retry - start, "the pauses grow");
    drop(other);
    assert_eq!(udp.maintain(later), None);
    assert_eq!(udp.view()[0].error, None);
}

#[tokio::test]
async fn an_address_that_is_not_there_leaves_the_others_alone() {
    let port = free_port();
    let mut udp = Udp::new(port, "peers.port");
    let absent = Endpoint { local: SocketAddr::from(([192, 0, 2, 1], port)), broadcast: None, index: 0 };
    udp.set_endpoints(&[absent, endpoint(2, port)], now());
    let view = udp.view();
    assert!(view[0].error.is_some() && !view[0].taken && view[1].error.is_none());
    udp.broadcast(b"x", None);
    assert_eq!(next(&mut udp).await.bytes, b"x");
}

#[tokio::test]
async fn a_node_without_broadcast_speaks_from_any_port() {
    let port = free_port();
    let (mut node, mut guest) = (Udp::new(port, "peers.port"), Udp::new(port, "peers.port"));
    node.set_endpoints(&[endpoint(2, port)], now());
    let mut any = endpoint(3, 0);
    any.broadcast = Some(SocketAddr::from((Ipv4Addr::new(127, 255, 255, 255), port)));
    guest.set_endpoints(&[any], now());
    guest.broadcast(b"hello", None);
    let heard = next(&mut node).await;
    assert_eq!(heard.from, guest.local_addresses()[0]);
    assert_ne!(heard.from.port(), port);
    node.send(heard.from, None, b"back").unwrap();
    loop {
        // its own broadcast comes back too
        let heard = next(&mut guest).await;
        if !heard.broadcast {
            assert_eq!(heard.bytes, b"back");
            return;
        }
    }
}

#[tokio::test]
async fn d21_ipv6_knows_one_group() {
    let port = free_port();
    let local = SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, port));
    let other = "[ff02::1]:8096".parse().ok();
    let mut udp = Udp::new(port, "peers.port");
    udp.set_endpoints(&[Endpoint { local, broadcast: other, index: 1 }], now());
    let view = udp.view();
    assert!(view[0].error.is_some(), "a wrong group, or a machine without IPv6: a sentence, no failure");
    udp.set_endpoints(&[Endpoint { local, broadcast: None, index: 1 }], now());
    assert_eq!(udp.view()[0].broadcast, None, "no group on loopback");
}
