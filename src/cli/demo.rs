//! `larder demo`: three nodes on this machine share one download.

use super::{DemoArgs, Exit, Failure};

/// Runs the demonstration.
pub(crate) fn run(_args: DemoArgs) -> Result<Exit, Failure> {
    Err(Failure::new(Exit::Failed, "this build has no demonstration"))
}
