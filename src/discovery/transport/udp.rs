//! Datagrams over UDP: an endpoint is one socket that sends and hears unicast, and one that hears what is sent
//! to everybody.
//!
//! A port that is taken, an address that is not there yet, a network that goes down: the endpoint is closed and
//! opened again with growing pauses, the others go on. Each change of state is one line in the log.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use socket2::SockRef;
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;

use super::{Datagram, InterfaceView, Link, Transport};
use crate::discovery::Endpoint;
use crate::net::listener::BindError;
use crate::net::udp;

/// The pauses between tries to open an endpoint.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Room for a frame and one byte more, so that a longer datagram shows.
const BUFFER: usize = 2048;

/// UDP on the endpoints of this node.
#[derive(Debug)]
pub struct Udp {
    /// The site's port, for groups that an endpoint does not name.
    port: u16,
    /// The configuration key that names it.
    key: &'static str,
    lines: Vec<Line>,
    next_link: u32,
    /// Which line is asked first, so that none starves.
    turn: usize,
}

#[derive(Debug)]
struct Line {
    endpoint: Endpoint,
    link: Link,
    /// Where everybody hears.
    everybody: Option<SocketAddr>,
    sockets: Option<Sockets>,
    error: Option<(String, bool)>,
    send_fails: bool,
    pause: Duration,
    opened: Instant,
    retry: Option<Instant>,
    /// Which socket is asked first: what was sent to everybody, then in turn.
    unicast_first: bool,
}

#[derive(Debug)]
struct Sockets {
    unicast: UdpSocket,
    group: Option<UdpSocket>,
}

impl Udp {
    /// No endpoints yet; `port` is the site's, and `key` the configuration key of it.
    pub const fn new(port: u16, key: &'static str) -> Self {
        Self { port, key, lines: Vec::new(), next_link: 0, turn: 0 }
    }

    /// The addresses that frames are sent from, as bound.
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        let bound = |line: &Line| line.sockets.as_ref()?.unicast.local_addr().ok();
        self.lines.iter().filter_map(bound).collect()
    }

    fn poll(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<Option<Datagram>> {
        let count = self.lines.len();
        for offset in 0..count {
            let place = (self.turn + offset) % count;
            let Some(line) = self.lines.get_mut(place) else { continue };
            if let Poll::Ready(datagram) = line.poll(cx, buffer) {
                self.turn = place + 1;
                return Poll::Ready(datagram);
            }
        }
        Poll::Pending
    }

    fn line_for(&self, to: SocketAddr, link: Option<Link>) -> Option<&Line> {
        let fits = |line: &Line| line.sockets.is_some() && line.endpoint.local.is_ipv4() == to.is_ipv4();
        let place = self.lines.iter().position(|line| Some(line.link) == link && fits(line));
        let place = place.or_else(|| self.lines.iter().position(|line| line.is_near(to) && fits(line)));
        let place = place.or_else(|| self.lines.iter().position(fits))?;
        self.lines.get(place)
    }
}

impl Transport for Udp {
    fn set_endpoints(&mut self, endpoints: &[Endpoint], now: Instant) {
        self.lines.retain(|line| endpoints.contains(&line.endpoint));
        for endpoint in endpoints {
            if self.lines.iter().any(|line| line.endpoint == *endpoint) {
                continue;
            }
            let line = Line::new(*endpoint, Link(self.next_link), self.port, now);
            self.next_link = self.next_link.wrapping_add(1);
            self.lines.push(line);
        }
        self.maintain(now);
    }

    fn maintain(&mut self, now: Instant) -> Option<Instant> {
        for line in self.lines.iter_mut().filter(|line| line.retry.is_some_and(|time| time <= now)) {
            line.open(now, self.key);
        }
        self.lines.iter().filter_map(|line| line.retry).min()
    }

    async fn receive(&mut self) -> Option<Datagram> {
        let mut buffer = [0; BUFFER];
        poll_fn(|cx| self.poll(cx, &mut buffer)).await
    }

    fn send(&mut self, to: SocketAddr, link: Option<Link>, frame: &[u8]) -> io::Result<()> {
        match self.line_for(to, link) {
            Some(line) => line.send(to, frame),
            None => Err(io::ErrorKind::NetworkUnreachable.into()),
        }
    }

    fn broadcast(&mut self, frame: &[u8], but: Option<Link>) {
        let but = self.lines.iter().find(|line| Some(line.link) == but).map(|line| line.endpoint);
        for line in &mut self.lines {
            if but.is_none_or(|but| !but.shares_network(&line.endpoint)) {
                line.broadcast(frame);
            }
        }
    }

    fn view(&self) -> Vec<InterfaceView> {
        let view = |line: &Line| InterfaceView {
            local: line.endpoint.local,
            broadcast: line.everybody,
            error: line.error.as_ref().map(|(why, _)| why.clone()),
            taken: line.error.as_ref().is_some_and(|(_, taken)| *taken),
        };
        self.lines.iter().map(view).collect()
    }
}

impl Line {
    fn new(endpoint: Endpoint, link: Link, port: u16, now: Instant) -> Self {
        Self {
            endpoint,
            link,
            everybody: everybody(&endpoint, port),
            sockets: None,
            error: None,
            send_fails: false,
            pause: RETRY.0,
            opened: now,
            retry: Some(now),
            unicast_first: false,
        }
    }

    fn open(&mut self, now: Instant, key: &'static str) {
        self.opened = now;
        match open(&self.endpoint, self.everybody, key) {
            Ok(sockets) => {
                self.sockets = Some(sockets);
                self.retry = None;
                self.pause = RETRY.0;
                if self.error.take().is_some() {
                    tracing::info!("discovery works on an endpoint again");
                }
            }
            Err(error) => {
                self.retry = Some(now + self.pause);
                self.pause = (self.pause * 2).min(RETRY.1);
                let why = (error.to_string(), error.is_taken());
                if self.error.as_ref() != Some(&why) {
                    tracing::warn!(%error, "discovery cannot use an endpoint; it is tried again");
                    self.error = Some(why);
                }
            }
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<Option<Datagram>> {
        let Some(sockets) = &self.sockets else { return Poll::Pending };
        // a socket bound to all addresses hears broadcasts too, and does not tell them apart
        let mixed = self.endpoint.local.ip().is_unspecified();
        // a claim was sent before the answer of the one who claims; and neither socket starves the other
        let mut heard = Poll::Pending;
        for unicast in [self.unicast_first, !self.unicast_first] {
            heard = match (unicast, &sockets.group) {
                (true, _) => poll_one(&sockets.unicast, cx, buffer).map_ok(|heard| (heard, mixed)),
                (false, Some(group)) => poll_one(group, cx, buffer).map_ok(|heard| (heard, true)),
                (false, None) => Poll::Pending,
            };
            if heard.is_ready() {
                self.unicast_first = !unicast;
                break;
            }
        }
        if heard.is_pending() {
            self.unicast_first = false;
        }
        heard.map(|heard| match heard {
            Ok(((bytes, from), broadcast)) => Some(Datagram { bytes, from, link: self.link, broadcast }),
            Err(error) => {
                tracing::debug!(%error, "a discovery socket failed; it is opened again");
                self.close(&error);
                None
            }
        })
    }

    /// Closes an endpoint that failed; [`Transport::maintain`] opens it again.
    fn close(&mut self, error: &io::Error) {
        self.sockets = None;
        self.error = Some((error.to_string(), false));
        self.retry = Some(self.opened + self.pause);
    }

    fn send(&self, to: SocketAddr, frame: &[u8]) -> io::Result<()> {
        let Some(sockets) = &self.sockets else { return Err(io::ErrorKind::NotConnected.into()) };
        SockRef::from(&sockets.unicast).send_to(frame, &to.into()).map(|_length| ())
    }

    /// Sends to everybody; says so in the log when that begins or ceases to work.
    fn broadcast(&mut self, frame: &[u8]) {
        let Some(everybody) = self.everybody.filter(|_| self.sockets.is_some()) else { return };
        match self.send(everybody, frame) {
            Ok(()) if self.send_fails => {
                self.send_fails = false;
                tracing::info!("discovery frames leave again");
            }
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                tracing::trace!(%error, "a broadcast did not leave");
            }
            Err(error) if !self.send_fails => {
                self.send_fails = true;
                tracing::warn!(%error, "discovery frames do not leave");
            }
            Err(_still) => {}
        }
    }

    /// Whether the address is likely to be on this line's network.
    fn is_near(&self, to: SocketAddr) -> bool {
        match (self.endpoint.local.ip(), to.ip()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => a.octets().first_chunk::<3>() == b.octets().first_chunk::<3>(),
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                a.segments().first_chunk::<4>() == b.segments().first_chunk::<4>()
            }
            _ => false,
        }
    }
}

fn poll_one(
    socket: &UdpSocket,
    cx: &mut Context<'_>,
    buffer: &mut [u8],
) -> Poll<io::Result<(Vec<u8>, SocketAddr)>> {
    let mut into = ReadBuf::new(buffer);
    socket.poll_recv_from(cx, &mut into).map_ok(|from| (into.filled().to_vec(), from))
}

/// Where everybody on the endpoint's network hears.
fn everybody(endpoint: &Endpoint, port: u16) -> Option<SocketAddr> {
    let group = || match endpoint.local {
        SocketAddr::V6(local) if endpoint.index != 0 && !local.ip().is_loopback() => {
            Some(SocketAddrV6::new(udp::GROUP_V6, port, 0, endpoint.index).into())
        }
        SocketAddr::V4(_) | SocketAddr::V6(_) => None,
    };
    endpoint.broadcast.or_else(group)
}

fn open(endpoint: &Endpoint, everybody: Option<SocketAddr>, key: &'static str) -> Result<Sockets, BindError> {
    let unicast = udp::unicast(endpoint.local, endpoint.index, key)?;
    let group = match (everybody, endpoint.local.ip()) {
        // it would need the address that the other socket already has, and hears everything there
        (_, local) if local.is_unspecified() && !everybody.is_some_and(|a| a.ip().is_multicast()) => None,
        (Some(SocketAddr::V4(group)), IpAddr::V4(local)) if group.ip().is_multicast() => {
            Some(udp::multicast_v4(*group.ip(), local, group.port(), key)?)
        }
        (Some(SocketAddr::V4(all)), IpAddr::V4(_)) if !all.ip().is_unspecified() => {
            Some(udp::broadcast(all, key)?)
        }
        (Some(SocketAddr::V6(group)), IpAddr::V6(_)) if *group.ip() == udp::GROUP_V6 => {
            let interface = if group.scope_id() == 0 { endpoint.index } else { group.scope_id() };
            Some(udp::multicast_v6(interface, group.port(), key)?)
        }
        (Some(address), _) => {
            let why = "no broadcast address, nor the group ff02::4c44";
            let source = io::Error::new(io::ErrorKind::InvalidInput, why);
            return Err(BindError { address, key: "peers.broadcast", source });
        }
        (None, _) => None,
    };
    Ok(Sockets { unicast, group })
}
