//! `larder completions SHELL`: what the shell needs to complete our arguments.

use clap::CommandFactory as _;

use super::args::{Cli, CompletionsArgs};
use super::{Exit, Failure, Output};

pub(super) fn run(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "larder", &mut script);
    Output::new().text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
