//! Hundreds of nodes in one thread: the real engines of discovery and the real rules of the swarm, over a network
//! that loses, delays, doubles and parts, among nodes that crash and whose clocks are set.
//!
//! Everything follows from one seed, which a failure prints; `LARDER_SIM_SEED=7 cargo test --test simulation` plays
//! it again, `LARDER_SIM_NODES` and `LARDER_SIM_SEEDS` make it larger. The invariants stand in `invariants.rs`.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    unreachable_pub,
    reason = "a test fails by panicking, and its support reads like a library"
)]

mod crowd;
mod invariants;
mod node;
mod trace;
mod world;

use std::time::Duration;

use world::{Faults, World};

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// The seeds to play: the one that is named, or so many.
fn seeds(otherwise: u64) -> std::ops::Range<u64> {
    match std::env::var("LARDER_SIM_SEED").ok().and_then(|text| text.parse::<u64>().ok()) {
        Some(one) => one..one + 1,
        None => 0..number("LARDER_SIM_SEEDS", otherwise),
    }
}

/// A crowd, all of whom want the thing, until the weather is good again and everybody has had time.
fn play(seed: u64, nodes: usize, faults: Faults) -> World {
    let mut world = World::new(seed, nodes, faults);
    world.run(Duration::from_secs(3));
    world.everybody_wants(Duration::from_millis(50));
    world.run(Duration::from_secs(60));
    world.mend();
    world.run(Duration::from_secs(120));
    world
}

/// What a crowd cost: copies that the origin sent, frames that a node sent and answers that it received, and the
/// seconds until everybody had the thing.
type Cost = [f64; 3];

/// Plays a crowd.
fn crowd(seed: u64, nodes: usize, faults: Faults) -> Cost {
    let told = std::panic::catch_unwind(|| {
        let mut world = play(seed, nodes, faults);
        invariants::all_are_served(&world);
        invariants::silence(&mut world);
        let frames = (world.questions + world.answers) as f64 / nodes as f64;
        [world.copies(), frames, world.took().as_secs_f64()]
    });
    told.unwrap_or_else(|why| {
        println!("LARDER_SIM_SEED={seed} plays this again ({nodes} nodes, {faults:?})");
        std::panic::resume_unwind(why)
    })
}

/// Plays many crowds, says what they cost, and gives the median and the most copies.
fn crowds(weather: &str, seeds: std::ops::Range<u64>, nodes: usize, faults: fn(u64) -> Faults) -> [f64; 2] {
    let costs: Vec<Cost> = seeds.clone().map(|seed| crowd(seed, nodes, faults(seed))).collect();
    let [copies, frames, seconds] = [0, 1, 2].map(|which| {
        let mut values: Vec<f64> = costs.iter().map(|cost| cost[which]).collect();
        values.sort_by(f64::total_cmp);
        [values[values.len() / 2], values.last().copied().unwrap()]
    });
    println!(
        "{nodes} nodes, {weather}, seeds {seeds:?}; median, most: copies from the origin {:.2}, {:.2}; frames sent \
         and answers received by a node {:.1}, {:.1}; seconds {:.0}, {:.0}",
        copies[0], copies[1], frames[0], frames[1], seconds[0], seconds[1]
    );
    copies
}

#[test]
fn a_crowd_on_a_good_network_costs_one_copy() {
    let nodes = number("LARDER_SIM_NODES", 40) as usize;
    let [_, most] = crowds("good weather", seeds(4), nodes, |_| Faults::none());
    assert!(most <= 1.001, "{most}");
}

#[test]
fn a_crowd_in_bad_weather_is_served_all_the_same() {
    let nodes = number("LARDER_SIM_NODES", 30) as usize;
    let [median, most] = crowds("bad weather", seeds(6), nodes, Faults::of);
    // a network in up to four parts may fetch four copies; each part leaves the origin to another when they meet
    let is_one = std::env::var_os("LARDER_SIM_SEED").is_some();
    assert!((median <= 2.0 || is_one) && most <= 4.0, "{median}, {most}");
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let trace = |seed| play(seed, 20, Faults::of(seed)).trace;
    let traces: Vec<_> = (0..4).map(trace).collect();
    assert_eq!(traces, (0..4).map(trace).collect::<Vec<_>>());
    assert_ne!(traces[0], traces[1]);
}

#[test]
fn a_question_costs_the_same_on_a_site_of_any_size() {
    let most = number("LARDER_SIM_NODES", 128) as usize;
    let mut costs = Vec::new();
    for nodes in [8, 32, 128, 500].into_iter().filter(|nodes| *nodes <= most.max(32)) {
        let mut world = World::new(1, nodes, Faults::none());
        world.run(Duration::from_secs(40));
        let cost = world.cost_of_finds(20, 6);
        println!("{nodes} nodes, 6 holders: {cost:.2} frames sent and answers received a find");
        costs.push(cost);
    }
    let (first, last) = (costs[1], costs.last().copied().unwrap());
    assert!(last <= first * 1.5 + 1.0, "{costs:?}");
}
