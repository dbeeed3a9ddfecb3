//! Datagram sockets for finding neighbours.
//!
//! Per interface one socket sends and hears unicast, and one bound to the broadcast (or group) address
//! hears what is said to all. Only the latter shares its address (`SO_REUSEADDR`), so that several nodes of
//! one machine hear the same broadcast while each answers for itself. Errors name address and key.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

use super::listener::BindError;

/// The IPv6 group of all neighbours on one link.
pub const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x4c44);
/// The IPv4 group, for networks that carry no broadcast.
pub const GROUP_V4: Ipv4Addr = Ipv4Addr::new(239, 255, 80, 99);
/// Room for a burst of small frames; the kernel may give less.
const RECEIVE_BUFFER: usize = 1 << 20;

/// A socket of this node alone: sends unicast, broadcast and multicast (to this link only), hears unicast.
/// `interface` is the index multicast leaves by.
pub fn unicast(address: SocketAddr, interface: u32, key: &'static str) -> Result<UdpSocket, BindError> {
    named(address, key, || {
        let socket = open(address)?;
        match address.ip() {
            IpAddr::V4(v4) => {
                socket.set_broadcast(true)?;
                socket.set_multicast_ttl_v4(1)?;
                if !v4.is_unspecified() {
                    socket.set_multicast_if_v4(&v4)?;
                }
            }
            IpAddr::V6(_) => {
                socket.set_multicast_hops_v6(1)?;
                socket.set_multicast_if_v6(interface)?;
            }
        }
        finish(socket, address)
    })
}

/// Hears what is broadcast to `address`, beside other nodes of this machine.
pub fn broadcast(address: SocketAddrV4, key: &'static str) -> Result<UdpSocket, BindError> {
    named(address.into(), key, || {
        let socket = open(address.into())?;
        socket.set_reuse_address(true)?;
        socket.set_broadcast(true)?;
        finish(socket, address.into())
    })
}

/// Hears what is said to the IPv4 `group` on the network of `local`.
pub fn multicast_v4(
    group: Ipv4Addr,
    local: Ipv4Addr,
    port: u16,
    key: &'static str,
) -> Result<UdpSocket, BindError> {
    let address = SocketAddr::from((group, port));
    named(address, key, || {
        let socket = open(address)?;
        socket.set_reuse_address(true)?;
        socket.join_multicast_v4(&group, &local)?;
        finish(socket, address)
    })
}

/// Hears what is said to [`GROUP_V6`] on the interface with this index.
pub fn multicast_v6(interface: u32, port: u16, key: &'static str) -> Result<UdpSocket, BindError> {
    let address = SocketAddr::from(SocketAddrV6::new(GROUP_V6, port, 0, interface));
    named(address, key, || {
        let socket = open(address)?;
        socket.set_reuse_address(true)?;
        socket.join_multicast_v6(&GROUP_V6, interface)?;
        finish(socket, address)
    })
}

fn open(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

fn finish(socket: Socket, address: SocketAddr) -> io::Result<UdpSocket> {
    if let Err(error) = socket.set_recv_buffer_size(RECEIVE_BUFFER) {
        tracing::debug!(error = %error, "a socket keeps its small buffer");
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    UdpSocket::from_std(socket.into())
}

fn named(
    address: SocketAddr,
    key: &'static str,
    make: impl FnOnce() -> io::Result<UdpSocket>,
) -> Result<UdpSocket, BindError> {
    make().map_err(|source| BindError { address, key, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const KEY: &str = "peers.port";

    async fn hear(socket: &UdpSocket) -> Vec<u8> {
        let mut buffer = [0; 64];
        let heard = tokio::time::timeout(Duration::from_secs(10), socket.recv_from(&mut buffer)).await;
        let (length, _from) = heard.expect("it must be heard").unwrap();
        buffer[..length].to_vec()
    }

    #[tokio::test]
    async fn several_nodes_of_one_machine_hear_one_broadcast() {
        let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let all = SocketAddrV4::new(Ipv4Addr::new(127, 255, 255, 255), free);
        let ears = [broadcast(all, KEY).unwrap(), broadcast(all, KEY).unwrap()];
        let mouth = unicast("127.0.0.5:0".parse().unwrap(), 0, KEY).unwrap();
        mouth.send_to(b"hello", all).await.unwrap();
        for ear in &ears {
            assert_eq!(hear(ear).await, b"hello");
        }
    }

    #[tokio::test]
    async fn the_unicast_address_is_shared_with_nobody() {
        let one = unicast("127.0.0.1:0".parse().unwrap(), 0, KEY).unwrap();
        let error = unicast(one.local_addr().unwrap(), 0, KEY).unwrap_err();
        assert!(error.is_taken() && error.to_string().contains("peers.port"));
    }

    #[tokio::test]
    async fn multicast_stays_on_the_link() {
        let socket = unicast("127.0.0.1:0".parse().unwrap(), 0, KEY).unwrap();
        assert_eq!(socket.multicast_ttl_v4().unwrap(), 1);
        assert!(socket.broadcast().unwrap());
        assert!(GROUP_V6.is_multicast() && GROUP_V6.to_string() == "ff02::4c44");
        multicast_v4(GROUP_V4, Ipv4Addr::LOCALHOST, 0, KEY).unwrap();
    }
}
