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

mod invariants;
mod node;
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

/// Plays a crowd and gives how many copies the origin sent.
fn crowd(seed: u64, nodes: usize, faults: Faults) -> f64 {
    let told = std::panic::catch_unwind(|| {
        let mut world = World::new(seed, nodes, faults);
        world.run(Duration::from_secs(3));
        world.everybody_wants(Duration::from_millis(50));
        world.run(Duration::from_secs(60));
        world.mend();
        world.run(Duration::from_secs(120));
        invariants::all_are_served(&world);
        invariants::silence(&mut world);
        world.copies()
    });
    told.unwrap_or_else(|why| {
        println!("LARDER_SIM_SEED={seed} plays this again ({nodes} nodes, {faults:?})");
        std::panic::resume_unwind(why)
    })
}

/// Median and most.
fn sums(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values.last().copied().unwrap())
}

#[test]
fn a_crowd_on_a_good_network_costs_one_copy() {
    let nodes = number("LARDER_SIM_NODES", 40) as usize;
    let copies: Vec<f64> = seeds(4).map(|seed| crowd(seed, nodes, Faults::none())).collect();
    let (median, most) = sums(copies);
    println!("{nodes} nodes, good network: copies from the origin: median {median:.2}, most {most:.2}");
    assert!(most <= 1.001, "{most}");
}

#[test]
fn a_crowd_in_bad_weather_is_served_all_the_same() {
    let nodes = number("LARDER_SIM_NODES", 30) as usize;
    let copies: Vec<f64> = seeds(6).map(|seed| crowd(seed, nodes, Faults::of(seed))).collect();
    let (median, most) = sums(copies);
    println!("{nodes} nodes, loss, delay, parts, crashes: copies: median {median:.2}, most {most:.2}");
    // whoever is cut off from the others goes to the origin himself: that is right, and must stay rare
    assert!(median <= 4.0, "{median}");
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
