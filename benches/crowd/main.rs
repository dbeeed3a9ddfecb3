//! What a crowd costs: real nodes in network namespaces on one bridge, an origin behind a link of 100 Mbit/s, and
//! everybody asks for one file that nobody has within 50 ms.
//!
//! `cargo bench --bench crowd -- [url|digest|no-ranges|killed|readers] [nodes…]` prints, for each number of nodes, the bytes
//! that left the origin's link by the file's size (headers included), and when the last node was done, beside the time
//! one node alone needs. `killed` ends the node that fetches with SIGKILL when half of the file has left the origin.
//! `readers` has one holder instead, with four places for readers: see [`readers`].
//! `LARDER_BENCH_MIB` and `LARDER_BENCH_MBIT` change the file and the link. It wants root, `ip`, `tc` with `tbf`,
//! `unshare` and `nsenter`, keeps what it writes in memory (`/dev/shm`), and leaves nothing behind.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::exit,
    clippy::cast_possible_truncation,
    reason = "a benchmark prints, reads the real clock and ends by panicking"
)]

mod client;
mod lan;
mod node;
mod origin;
mod readers;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lan::Lan;
use node::Node;

/// Says to the inner process that it is inside.
const INSIDE: &str = "LARDER_BENCH_INSIDE";
/// Within this time everybody asks.
const SPREAD: Duration = Duration::from_millis(50);

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Variant {
    /// Nothing is known of the file but its URL.
    Url,
    /// Everybody states its digest.
    Digest,
    /// The origin knows no ranges.
    NoRanges,
    /// Whoever fetches is killed at half.
    Killed,
}

/// One run.
struct Outcome {
    /// Bytes that left the origin's link.
    sent: u64,
    /// From the first request to the end of the last answer.
    took: Duration,
    /// Answers that came from neighbours.
    from_peers: usize,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["as-origin", address, ranges] => origin::run(address, size(), *ranges == "ranges"),
        ["as-client", proxy, url, at, digest] => client::run(proxy, url, at.parse().unwrap(), digest),
        ["as-reader", proxy, url, seconds] => readers::read(proxy, url, seconds.parse().unwrap()),
        _ if std::env::var_os(INSIDE).is_none() => lan::enter_again(INSIDE),
        words => measure(words),
    }
}

fn measure(words: &[&str]) {
    let numbers: Vec<usize> = words.iter().filter_map(|word| word.parse().ok()).collect();
    if words.contains(&"readers") {
        return readers::measure(&numbers);
    }
    let numbers = if numbers.is_empty() { vec![1, 2, 4, 8, 16] } else { numbers };
    let named = |word: &str, variant| words.contains(&word).then_some(variant);
    let mut variants: Vec<Variant> = [
        named("url", Variant::Url),
        named("digest", Variant::Digest),
        named("no-ranges", Variant::NoRanges),
        named("killed", Variant::Killed),
    ]
    .into_iter()
    .flatten()
    .collect();
    if variants.is_empty() {
        variants = vec![Variant::Url, Variant::Digest, Variant::NoRanges, Variant::Killed];
    }
    let ideal = Duration::from_secs_f64(size() as f64 * 8.0 / 1e6 / mbit() as f64);
    println!("{} MiB over {} Mbit/s, which takes {:.1} s at best", size() >> 20, mbit(), ideal.as_secs_f64());
    println!(
        "{:<10} {:>5} {:>12} {:>8} {:>10} {:>10}",
        "", "nodes", "origin/size", "last s", "by alone", "from peers"
    );
    for variant in variants {
        let mut alone = None;
        for &count in &numbers {
            if variant == Variant::Killed && count < 2 {
                continue;
            }
            let outcome = run(variant, count);
            let took = outcome.took.as_secs_f64();
            // one alone is no faster than its link
            let one = *alone.get_or_insert(if count == 1 { took } else { ideal.as_secs_f64() });
            let share = outcome.sent as f64 / size() as f64;
            let name = format!("{variant:?}").to_lowercase();
            println!(
                "{name:<10} {count:>5} {share:>12.3} {took:>8.2} {:>10.3} {:>10}",
                took / one,
                outcome.from_peers
            );
        }
    }
}

/// A fresh site, one crowd.
fn run(variant: Variant, count: usize) -> Outcome {
    let lan = Lan::new(count, mbit());
    let _origin = lan.start_origin(variant != Variant::NoRanges);
    let mut nodes: Vec<Node> = (1..=count).map(|number| Node::start(&lan, number, "")).collect();
    nodes.iter().for_each(|node| node.wait_for_neighbours(count - 1));
    let right = origin::digest(size());
    let stated = if variant == Variant::Digest { &right } else { "-" };
    let before = lan.sent_by_origin();
    let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_millis(600);
    let clients: Vec<_> = nodes
        .iter()
        .enumerate()
        .map(|(at, node)| {
            let later = SPREAD.as_millis() as u64 * at as u64 / count as u64;
            node.ask(&lan, start.as_millis() as u64 + later, stated)
        })
        .collect();
    let killed = (variant == Variant::Killed).then(|| {
        while lan.sent_by_origin() - before < size() / 2 {
            std::thread::sleep(Duration::from_millis(5));
        }
        kill_the_one_that_fetches(&mut nodes)
    });
    let mut done: Vec<client::Done> = Vec::new();
    for (at, asking) in clients.into_iter().enumerate() {
        let answer = asking.finish(&right);
        match (answer, killed == Some(at)) {
            (Some(answer), _) => done.push(answer),
            (None, true) => {}
            (None, false) => {
                nodes[at].show_log();
                panic!("node {} gave no right answer", at + 1);
            }
        }
    }
    let took = done.iter().map(|done| done.ended_ms).max().unwrap() - start.as_millis() as u64;
    if std::env::var_os("LARDER_BENCH_LOGS").is_some() {
        nodes.iter().for_each(Node::show_log);
    }
    Outcome {
        sent: lan.sent_by_origin() - before,
        took: Duration::from_millis(took),
        from_peers: done.iter().filter(|done| done.from_peer).count(),
    }
}

fn kill_the_one_that_fetches(nodes: &mut [Node]) -> usize {
    let at = nodes.iter().position(Node::fetches).unwrap();
    nodes[at].kill();
    at
}

fn size() -> u64 {
    number("LARDER_BENCH_MIB", 256) << 20
}

fn mbit() -> u64 {
    number("LARDER_BENCH_MBIT", 100)
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}
