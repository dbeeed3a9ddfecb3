//! The integration suite: ONE binary, real daemons, a scripted origin, clients on raw sockets.
//!
//! Each test is named for the case it settles (`h01_…`: HTTP, `c…` concurrency, `s…` storage, `d…`
//! discovery, `p…` peers, `k…` clients, `o…` operations). The modules follow the rooms; `support` is the
//! stage they play on, `tidy` holds the house in order.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    unreachable_pub,
    reason = "a test fails by panicking, reads the real clock, and its support reads like a library"
)]

mod support;

mod admin;
mod bans;
mod beyond;
mod blocks;
mod bundles;
mod catalogue;
mod cli;
mod clients;
mod concurrency;
mod conditional;
mod config_files;
mod connect;
mod crash;
mod crowd;
mod digests;
mod discovery;
mod endurance;
mod faults;
mod following;
mod git;
mod guarded;
mod hostile;
mod intercept;
mod keys;
mod lan;
mod learning;
mod limits;
mod liars;
mod mirrors;
mod mormot;
mod orders;
mod peers;
mod prefetch;
mod proxy;
mod records;
mod restart;
mod setup;
mod rules;
mod shutdown;
mod storage;
mod systemd_units;
mod tidy;
mod truncation;
mod witnesses;
