//! `larder man DIR`: the manual pages, one for the program and one for each command.

use clap::CommandFactory as _;

use super::args::{Cli, ManArgs};
use super::{Exit, Failure};

pub(super) fn run(args: &ManArgs) -> Result<Exit, Failure> {
    let written =
        std::fs::create_dir_all(&args.dir).and_then(|()| clap_mangen::generate_to(Cli::command(), &args.dir));
    written.map_err(|error| {
        Failure::new(Exit::Failed, format!("cannot write manual pages to {}: {error}", args.dir.display()))
    })?;
    Ok(Exit::Done)
}
