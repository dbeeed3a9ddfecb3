//! The stage of the suite: a fault origin, nodes, clients, chaos and a LAN.
//!
//! A test reads as a story: `let origin = Origin::start(); let a = Larder::new("a").peers(&site).start();`.
//! Tests wait for events; times stand only as hang guards with a factor of ten.

pub mod address;
pub mod body;
pub mod chaos;
pub mod client;
pub mod daemon;
pub mod fake_peer;
pub mod lan;
pub mod mormot;
pub mod origin;
pub(crate) mod postgres;
pub mod raw_origin;
pub mod sandbox;
pub mod script;
pub mod stunnel;
pub mod tools;

use std::time::{Duration, Instant};

pub use body::{MIB, Rng, sha256};
pub use client::{Answer, Ask, Connection, Ending};
pub use daemon::{Larder, Site};
pub use origin::Origin;
pub use raw_origin::{RawOrigin, Reply};
pub use script::{Framing, Ranges, Script};
pub use stunnel::Stunnel;

/// How long anything may take before a test calls it hung.
pub const GUARD: Duration = Duration::from_secs(30);

/// Waits for `event`, looking often; the guard names what did not happen.
#[track_caller]
pub fn wait_until(what: &str, mut event: impl FnMut() -> bool) {
    let start = Instant::now();
    while !event() {
        assert!(start.elapsed() < GUARD, "waited {GUARD:?} for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Where `needle` begins in `bytes`.
pub fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

/// Runs `work` once for each of `count` threads at the same moment and gives the results in order.
pub fn at_once<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let gate = std::sync::Barrier::new(count);
    let (gate, work) = (&gate, &work);
    std::thread::scope(|scope| {
        let start = |index| {
            scope.spawn(move || {
                gate.wait();
                work(index)
            })
        };
        let running: Vec<_> = (0..count).map(start).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
