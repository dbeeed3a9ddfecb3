//! `larder run`: the daemon in the foreground.

use super::{Exit, Failure, RunArgs};

/// Runs the daemon until it is asked to stop.
pub(crate) fn run(_args: RunArgs) -> Result<Exit, Failure> {
    Err(Failure::new(Exit::Failed, "this build has no daemon"))
}
