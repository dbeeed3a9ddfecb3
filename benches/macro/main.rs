//! Larder beside the programs people use today: whole programs, on the same machine, in the same run.
//!
//! `cargo bench --bench macro -- SCENARIO… [--rounds N] [--seconds S] [--only WORD] [--larder PROGRAM]`; without a
//! scenario all of them run. Each starts what it needs (nginx, squid, curl, wrk, aria2c, wget, openssl: from the
//! system), pins servers to core 0 and clients to core 1, and lets the contenders take turns, so that what the
//! machine does meanwhile meets all of them. A figure is the median of the rounds with its least and greatest;
//! what counts is the ratio. The tables go to standard output and into their sections of `benches/RESULTS.md`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, reads the real clock and ends by panicking"
)]

mod admin;
mod drain;
mod fetch;
mod figures;
mod get;
mod growth;
mod hit;
mod load;
mod miss;
mod node;
mod peer;
mod programs;
mod results;
mod start;

use std::time::Duration;

/// What the command line says.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// How often each contender has its turn.
    pub(crate) rounds: usize,
    /// How long one turn takes, where time bounds it.
    pub(crate) turn: Duration,
    /// Only the loads whose name contains this.
    pub(crate) only: String,
    /// The program under test.
    pub(crate) larder: String,
}

type Scenario = fn(&Settings) -> String;

const SCENARIOS: [(&str, Scenario); 6] = [
    ("hit", hit::run),
    ("miss", miss::run),
    ("peer", peer::run),
    ("get", get::run),
    ("start", start::run),
    ("admin", admin::run),
];

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let mut settings = Settings {
        rounds: 5,
        turn: Duration::from_secs(1),
        only: String::new(),
        larder: env!("CARGO_BIN_EXE_larder").to_owned(),
    };
    let mut wanted = Vec::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            // this program again, as the client of a load
            "drain" => return drain::main(words),
            "fetch" => return fetch::main(words),
            "--rounds" => settings.rounds = words.next().unwrap().parse().unwrap(),
            "--seconds" => settings.turn = Duration::from_secs_f64(words.next().unwrap().parse().unwrap()),
            "--only" => settings.only = words.next().unwrap(),
            "--larder" => settings.larder = words.next().unwrap(),
            _ => wanted.push(word),
        }
    }
    let names = SCENARIOS.map(|(name, _)| name).join(", ");
    assert!(
        wanted.iter().all(|word| SCENARIOS.iter().any(|(name, _)| name == word)),
        "the scenarios are: {names}"
    );
    for (name, scenario) in SCENARIOS {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            let table = scenario(&settings);
            println!("\n## {name}\n\n{table}");
            if settings.only.is_empty() {
                results::save(name, &table);
            }
        }
    }
}
