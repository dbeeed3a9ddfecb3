//! Addresses nobody else uses: every node gets an own 127.x.y.z, every site an own peer port.
//!
//! A claim is a bound socket that is held for the life of the test, so it also holds between the processes
//! that nextest starts side by side.

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};

/// The port that is bound on an address to claim it; nothing of ours listens there.
const CLAIM_PORT: u16 = 18_099;

/// A loopback address that belongs to the holder of this value.
pub struct OwnAddress {
    ip: Ipv4Addr,
    _claim: TcpListener,
}

impl OwnAddress {
    /// Takes the next free address.
    pub fn claim() -> Self {
        loop {
            let [_, b, c, d] = candidate().to_be_bytes();
            let ip = Ipv4Addr::new(127, b.clamp(1, 250), c, d.clamp(1, 254));
            if let Ok(claim) = TcpListener::bind((ip, CLAIM_PORT)) {
                return Self { ip, _claim: claim };
            }
        }
    }

    /// The address.
    pub fn ip(&self) -> IpAddr {
        self.ip.into()
    }
}

/// A port that belongs to one site of one test, on all loopback addresses.
pub struct OwnPort {
    number: u16,
    _claim: TcpListener,
}

impl OwnPort {
    /// Takes the next free port below the range that the kernel gives out by itself.
    pub fn claim() -> Self {
        loop {
            let number = 20_000 + (candidate() % 10_000) as u16;
            if let Ok(claim) = TcpListener::bind((Ipv4Addr::new(127, 254, 0, 1), number)) {
                return Self { number, _claim: claim };
            }
        }
    }

    /// The port.
    pub fn number(&self) -> u16 {
        self.number
    }
}

/// Spreads the candidates of all test processes over the whole space.
fn candidate() -> u32 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let step = NEXT.fetch_add(1, Ordering::Relaxed);
    let mixed = (u64::from(std::process::id()) << 20).wrapping_add(step).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32
}

#[test]
fn no_address_and_no_port_is_given_twice() {
    let addresses: Vec<_> = (0..50).map(|_| OwnAddress::claim()).collect();
    let ips: std::collections::HashSet<_> = addresses.iter().map(OwnAddress::ip).collect();
    assert_eq!(ips.len(), 50);
    assert!(ips.iter().all(IpAddr::is_loopback));
    assert_ne!(OwnPort::claim().number(), 0);
    let (a, b) = (OwnPort::claim(), OwnPort::claim());
    assert_ne!(a.number(), b.number());
}
