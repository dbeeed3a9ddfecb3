//! Tests of `net::listener`.

use super::accept::{Trouble, trouble};
use super::*;
use crate::shutdown::Shutdown;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::net::TcpStream;

const ANY: &str = "127.0.0.1:0";

fn any() -> TcpListener {
    bind(ANY.parse().unwrap(), "proxy.listen").unwrap()
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), what).await.expect("it must not hang")
}

#[tokio::test]
async fn o06_a_taken_port_is_named_with_its_key() {
    let first = any();
    let address = first.local_addr().unwrap();
    let error = bind(address, "proxy.listen").unwrap_err();
    assert!(error.is_taken() && !error.is_family_missing());
    let port = address.port();
    assert_eq!(
        error.to_string(),
        format!("cannot listen on 127.0.0.1:{port} (proxy.listen): port {port} is already in use")
    );
}

#[tokio::test]
async fn d21_a_missing_family_is_left_out_but_not_all() {
    let missing = BindError {
        address: "[::1]:80".parse().unwrap(),
        key: "proxy.listen",
        source: io::Error::from_raw_os_error(Errno::AFNOSUPPORT.raw_os_error()),
    };
    assert!(missing.is_family_missing());
    let foreign = bind("192.0.2.1:0".parse().unwrap(), "proxy.listen").unwrap_err();
    assert!(!foreign.is_family_missing(), "an address that is not here is a mistake");
    let both = ["127.0.0.1:0".parse().unwrap(), "[::1]:0".parse().unwrap()];
    let listeners = bind_all(&both, "proxy.listen", "proxy", &mut Inherited::default()).unwrap();
    assert!(!listeners.is_empty());
}

#[tokio::test]
async fn an_inherited_listener_replaces_the_configured_one() {
    let systemds = any().into_std().unwrap();
    let address = systemds.local_addr().unwrap();
    let handed = || Inherited::with("proxy", OwnedFd::from(systemds.try_clone().unwrap())).unwrap();
    let mut inherited = handed();
    let listeners = bind_all(&[address], "proxy.listen", "proxy", &mut inherited).unwrap();
    inherited.finish().unwrap();
    let (client, accepted) =
        soon(async { tokio::join!(TcpStream::connect(address), listeners[0].accept()) }).await;
    assert!(client.is_ok() && accepted.is_ok());

    let mut other = handed();
    assert!(other.claim("admin", address).is_none());
    assert!(other.claim("proxy", "127.0.0.1:1".parse().unwrap()).is_none());
    let error = other.finish().unwrap_err().to_string();
    assert!(error.contains("`proxy`") && error.contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn what_is_no_listener_is_refused() {
    let udp = std::net::UdpSocket::bind(ANY).unwrap();
    assert!(matches!(Inherited::with("proxy", udp.into()), Err(InheritError::NoListener(_))));
    let listener = any();
    let address = listener.local_addr().unwrap();
    let connected = TcpStream::connect(address).await.unwrap().into_std().unwrap();
    assert!(matches!(Inherited::with("proxy", connected.into()), Err(InheritError::NoListener(_))));
}

#[test]
fn nothing_is_inherited_by_default() {
    Inherited::take().unwrap().finish().unwrap();
}

#[test]
fn o02_the_limit_of_open_files_is_raised() {
    let now = raise_file_limit().unwrap();
    assert_eq!(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX), now);
    assert_eq!(getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX), now);
}

#[test]
fn o02_errors_of_accept_concern_somebody() {
    let of = |errno: Errno| trouble(&io::Error::from_raw_os_error(errno.raw_os_error()));
    assert_eq!(of(Errno::MFILE), Trouble::Machine);
    assert_eq!(of(Errno::NFILE), Trouble::Machine);
    assert_eq!(of(Errno::CONNABORTED), Trouble::Connection);
    assert_eq!(of(Errno::HOSTUNREACH), Trouble::Connection);
    assert_eq!(of(Errno::INVAL), Trouble::Listener);
}

#[tokio::test]
async fn one_address_cannot_take_all() {
    let listener = any();
    let address = listener.local_addr().unwrap();
    let limit = ConnectionLimit::new(10, 2);
    let acceptor = Acceptor::new(listener, limit.clone());
    let mut clients = Vec::new();
    let mut permits = Vec::new();
    for _round in 0..2 {
        clients.push(TcpStream::connect(address).await.unwrap());
        let Accepted::Admitted { permit, from, stream } = soon(acceptor.accept()).await.unwrap() else {
            panic!("there is room")
        };
        assert!(stream.nodelay().unwrap());
        assert_eq!(from, clients.last().unwrap().local_addr().unwrap());
        permits.push(permit);
    }
    clients.push(TcpStream::connect(address).await.unwrap());
    assert!(matches!(soon(acceptor.accept()).await.unwrap(), Accepted::Crowded { .. }));
    assert_eq!(limit.free(), 8);
    permits.pop();
    clients.push(TcpStream::connect(address).await.unwrap());
    assert!(matches!(soon(acceptor.accept()).await.unwrap(), Accepted::Admitted { .. }));
    drop(permits);
    assert_eq!(limit.free(), 10);
}

#[tokio::test]
async fn at_the_total_limit_clients_queue() {
    let listener = any();
    let address = listener.local_addr().unwrap();
    let acceptor = Acceptor::new(listener, ConnectionLimit::new(1, 5));
    let (_one, _two) =
        (TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap());
    let first = soon(acceptor.accept()).await.unwrap();
    let mut second = std::pin::pin!(acceptor.accept());
    assert!(futures_util::poll!(second.as_mut()).is_pending());
    drop(first);
    assert!(matches!(soon(second).await.unwrap(), Accepted::Admitted { .. }));
}

#[tokio::test]
async fn a_loop_serves_until_it_is_asked_to_stop() {
    let listener = any();
    let address = listener.local_addr().unwrap();
    let stop = Shutdown::new();
    let (sender, mut served) = tokio::sync::mpsc::unbounded_channel();
    let stopper = stop.clone();
    let task = tokio::spawn(async move {
        let acceptor = Acceptor::new(listener, ConnectionLimit::new(8, 8));
        acceptor.run(&stopper, |accepted| sender.send(accepted).unwrap()).await
    });
    let _client = TcpStream::connect(address).await.unwrap();
    assert!(soon(served.recv()).await.is_some());
    stop.request();
    soon(task).await.unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "the listener is closed");
}
