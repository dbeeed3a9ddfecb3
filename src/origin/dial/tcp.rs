//! Names to addresses to sockets, the quickest address winning (RFC 8305).

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::super::{OriginError, Reach};

/// A resolver that does not answer is no reason to wait longer.
const LOOKUP: Duration = Duration::from_secs(4);
/// Look-ups that run at once, each on a thread: a dead resolver must not eat the threads of file reading.
const LOOKUPS: usize = 32;
/// When the next address is tried beside the one before.
const NEXT_ADDRESS: Duration = Duration::from_millis(250);
/// Addresses of one name that are tried.
const MOST_ADDRESSES: usize = 16;
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Looks names up and connects.
#[derive(Debug)]
pub(super) struct Resolver {
    deadline: Duration,
    running: Arc<Semaphore>,
}

impl Resolver {
    pub(super) fn new(connect_timeout: Duration) -> Self {
        Self { deadline: connect_timeout.min(LOOKUP), running: Arc::new(Semaphore::new(LOOKUPS)) }
    }

    /// Connects the first address that answers, of those that are within reach.
    pub(super) async fn connect(
        &self,
        host: &str,
        port: u16,
        reach: &Reach,
    ) -> Result<TcpStream, OriginError> {
        let permitted = self.permitted(host, port, reach).await?;
        race(in_turn(permitted)).await.map_err(|error| OriginError::connect(host, error))
    }

    /// The addresses of a host that may be reached; at least one.
    pub(super) async fn permitted(
        &self,
        host: &str,
        port: u16,
        reach: &Reach,
    ) -> Result<Vec<SocketAddr>, OriginError> {
        let found = self.addresses(host, port).await?;
        let permitted: Vec<SocketAddr> = found.into_iter().filter(|a| reach.permits(a.ip())).collect();
        if permitted.is_empty() {
            return Err(OriginError::Denied { host: host.to_owned() });
        }
        Ok(permitted)
    }

    /// At least one address.
    async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, OriginError> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let why = match tokio::time::timeout(self.deadline, self.look_up(host, port)).await {
            Ok(Ok(found)) if !found.is_empty() => return Ok(found),
            Ok(Ok(_)) => "the name has no address".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_elapsed) => "no answer in time".to_owned(),
        };
        Err(OriginError::Dns { host: host.to_owned(), why })
    }

    /// By the system's own resolver, with all that the administrator configured for it.
    async fn look_up(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let place = Arc::clone(&self.running).acquire_owned().await.map_err(io::Error::other)?;
        let host = host.to_owned();
        let looking = tokio::task::spawn_blocking(move || {
            let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
            // Held until the thread is free, also when nobody waits for its answer any more.
            drop(place);
            found
        });
        looking.await.map_err(io::Error::other)?
    }
}

/// The families in turn, each in the resolver's order, beginning with its first.
fn in_turn(found: Vec<SocketAddr>) -> VecDeque<SocketAddr> {
    let six_first = found.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = found.into_iter().partition(|a| a.is_ipv6() == six_first);
    let mut second = second.into_iter();
    let mut turns: VecDeque<SocketAddr> = VecDeque::new();
    for address in first {
        turns.push_back(address);
        turns.extend(second.next());
    }
    turns.extend(second);
    turns.truncate(MOST_ADDRESSES);
    turns
}

/// Starts with the first address, goes on to the next when one fails or takes its time; whichever answers
/// first wins and the others are dropped.
async fn race(mut waiting: VecDeque<SocketAddr>) -> io::Result<TcpStream> {
    let mut running = FuturesUnordered::new();
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        running.extend(waiting.pop_front().map(TcpStream::connect));
        if running.is_empty() {
            return Err(last);
        }
        tokio::select! {
            Some(outcome) = running.next() => match outcome {
                Ok(stream) => return settled(stream),
                Err(error) => last = error,
            },
            () = tokio::time::sleep(NEXT_ADDRESS), if !waiting.is_empty() => {}
        }
    }
}

fn settled(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h54_families_take_turns() {
        let all = |texts: &[&str]| texts.iter().map(|t| t.parse().unwrap()).collect::<Vec<SocketAddr>>();
        let found = all(&["[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::3]:1", "192.0.2.1:1"]);
        let turns = all(&["[2001:db8::1]:1", "192.0.2.1:1", "[2001:db8::2]:1", "[2001:db8::3]:1"]);
        assert_eq!(in_turn(found), turns);
        assert_eq!(in_turn(all(&["192.0.2.1:1", "[2001:db8::1]:1"])).len(), 2);
    }

    #[tokio::test]
    async fn h54_a_dead_address_costs_nothing_but_a_moment() {
        let good = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let good = good.local_addr().unwrap();
        // 192.0.2.0/24 goes nowhere: either refused at once or silent.
        let silent = SocketAddr::from(([192, 0, 2, 1], 9));
        let raced = race(VecDeque::from([silent, gone, good]));
        let stream = tokio::time::timeout(Duration::from_secs(10), raced).await.unwrap().unwrap();
        assert_eq!(stream.peer_addr().unwrap(), good);
        assert!(race(VecDeque::from([gone])).await.is_err());
    }

    #[tokio::test]
    async fn h54_a_name_without_address_is_told_in_time() {
        let resolver = Resolver::new(Duration::from_secs(10));
        let asked = resolver.connect("no-such-host.invalid", 80, &Reach::Anywhere);
        let error = tokio::time::timeout(Duration::from_secs(5), asked).await.unwrap().unwrap_err();
        assert!(matches!(&error, OriginError::Dns { host, .. } if host == "no-such-host.invalid"), "{error}");
    }
}
