//! Thirty readers of one holder that has places for four, on a link of 1 Gbit/s, while a client on the holder's own
//! machine reads what it holds.
//!
//! Printed are the readers that got the file, from whom, and when the last was done; the bytes that left the origin
//! meanwhile; and the speed of the holder's own client beside what it has when nobody reads. All of them share this
//! machine's processors, so the share shows what the processors leave as well as what the holder grants.

use std::io::Read as _;
use std::process::Child;
use std::time::{Duration, Instant};

use super::client::{self, Done};
use super::lan::Lan;
use super::node::Node;
use super::{SPREAD, mbit, origin, size};

/// The link of the holder, in Mbit a second.
const LINK: u64 = 1000;
/// How long its own client reads.
const SECONDS: u64 = 5;

/// The client of the holder's machine: prints its bytes a second.
pub(crate) fn read(proxy: &str, url: &str, seconds: u64) {
    let (start, mut bytes, mut piece) = (Instant::now(), 0_u64, vec![0; 1 << 20]);
    while start.elapsed() < Duration::from_secs(seconds) {
        let (mut from, _) = client::ask(proxy, url, "");
        loop {
            let count = from.read(&mut piece).unwrap();
            bytes += count as u64;
            if count == 0 || start.elapsed() >= Duration::from_secs(seconds) {
                break;
            }
        }
    }
    println!("{}", bytes as f64 / start.elapsed().as_secs_f64());
}

pub(crate) fn measure(numbers: &[usize]) {
    for &readers in if numbers.is_empty() { &[30] } else { numbers } {
        let lan = Lan::new(readers + 1, mbit());
        lan.shape(1, LINK);
        let _origin = lan.start_origin(true);
        let places = |number| if number == 1 { "max_uploads = 4" } else { "" };
        let nodes: Vec<Node> =
            (1..=readers + 1).map(|number| Node::start(&lan, number, places(number))).collect();
        nodes.iter().for_each(|node| node.wait_for_neighbours(readers));
        run(&lan, &nodes);
    }
}

fn run(lan: &Lan, nodes: &[Node]) {
    let right = origin::digest(size());
    let holder = &nodes[0];
    holder.ask(lan, 0, "-").finish(&right).unwrap();
    let alone = speed(holder.read(lan, SECONDS));
    let before = lan.sent_by_origin();
    let start = client::now_ms() + 600;
    let readers = nodes.len() - 1;
    let asking: Vec<_> = nodes[1..]
        .iter()
        .enumerate()
        .map(|(at, node)| {
            node.ask(lan, start + SPREAD.as_millis() as u64 * at as u64 / readers as u64, &right)
        })
        .collect();
    std::thread::sleep(Duration::from_millis(start.saturating_sub(client::now_ms())));
    let beside = speed(holder.read(lan, SECONDS));
    let done: Vec<Done> = asking.into_iter().filter_map(|asking| asking.finish(&right)).collect();
    let from_peers = done.iter().filter(|done| done.from_peer).count();
    let last = done.iter().map(|done| done.ended_ms).max().unwrap_or(start) - start;
    println!(
        "{} of {readers} readers have the file of {} MiB, {from_peers} from neighbours, the last after {:.1} s; \
         {:.3} of it left the origin",
        done.len(),
        size() >> 20,
        last as f64 / 1e3,
        (lan.sent_by_origin() - before) as f64 / size() as f64
    );
    println!(
        "the holder's own client: {:.0} MB/s alone, {:.0} MB/s beside the readers: {:.0} %",
        alone / 1e6,
        beside / 1e6,
        beside / alone * 100.0
    );
    assert_eq!(done.len(), readers, "somebody failed");
}

fn speed(reading: Child) -> f64 {
    String::from_utf8(reading.wait_with_output().unwrap().stdout).unwrap().trim().parse().unwrap()
}
