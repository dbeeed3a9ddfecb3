//! The command line: one file per command, which alone print.
//!
//! [`main`] reads the arguments, runs the command and turns its verdict into an exit status and, on standard
//! error, `larder: what failed: why` and `hint: what to do`. Tables and JSON go to standard output. A reader
//! that closes the pipe early is no error.

mod admin_client;
mod answers;
mod args;
mod bans;
mod block;
mod bundle;
mod ca;
mod cache;
mod completions;
mod config;
mod demo;
mod doctor;
mod events;
mod failure;
mod get;
mod init;
mod log;
mod man;
mod output;
mod peers;
mod prefetch;
mod purge;
mod records;
mod report;
mod run;
mod secret;
mod service;
mod setup;
mod status;
mod table;
#[cfg(test)]
mod tests;
mod top;
mod transfers;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

pub(crate) use args::{ConfigFile, DemoArgs, GetArgs, MgetArgs, RunArgs};
pub(crate) use failure::{Exit, Failure};
pub(crate) use output::Output;

pub use bundle::{Listed, Take, UnpackError, Unpacked, unpack};

use args::{Cli, Command};

/// Runs the program with these arguments, the first being its own name.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    if crate::seal::forbid_core_dumps().is_err() {
        tracing::debug!("the limit on core dumps could not be set: the service manager's own counts");
    }
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(usage) => return output::usage(&usage),
    };
    match dispatch(cli) {
        Ok(exit) => exit.into(),
        Err(failure) => output::report(&failure),
    }
}

fn dispatch(cli: Cli) -> Result<Exit, Failure> {
    let node = cli.config;
    match cli.command {
        Command::Run(RunArgs { .. }) => run::run(&RunArgs { node }),
        Command::Get(args) => get::run(GetArgs { node, ..*args }),
        Command::Demo(args) => demo::run(&args),
        Command::Status(args) => status::run(&node, &args),
        Command::Peers(args) => peers::run(&node, &args),
        Command::Transfers(args) => transfers::run(&node, &args),
        Command::Bans(args) => bans::run(&node, &args),
        Command::Block(args) => block::block(&node, &args),
        Command::Unblock(args) => block::unblock(&node, &args),
        Command::Events(args) => events::run(&node, &args),
        Command::Ls(args) => cache::ls(&node, &args),
        Command::Info(args) => cache::info(&node, &args),
        Command::Pin(args) => cache::pin(&node, &args),
        Command::Unpin(args) => cache::unpin(&node, &args),
        Command::Rm(args) => cache::rm(&node, &args),
        Command::Verify(args) => cache::verify(&node, &args),
        Command::Gc(args) => cache::gc(&node, &args),
        Command::Export(args) => bundle::export(&node, &args),
        Command::Import(args) => bundle::import(&node, &args),
        Command::Log(args) => log::run(&node, &args),
        Command::Report(args) => report::run(&node, &args),
        Command::Prefetch(args) => prefetch::run(&node, &args),
        Command::Purge(args) => purge::run(&node, &args),
        Command::Config(args) => config::run(&node, &args),
        Command::Secret(args) => secret::run(&node, &args),
        Command::Init(args) => init::run(&node, &args),
        Command::Service(args) => service::run(&args),
        Command::Top => top::run(&node),
        Command::Setup(args) => setup::run(&node, &args),
        Command::Ca(args) => ca::run(&node, &args),
        Command::Doctor(args) => doctor::run(&node, &args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    }
}
