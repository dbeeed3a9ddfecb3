//! `larder get`: download, verify, resume.

use super::{Exit, Failure, GetArgs};

/// Downloads what is named.
pub(crate) fn run(_args: GetArgs) -> Result<Exit, Failure> {
    Err(Failure::new(Exit::Failed, "this build cannot download by itself"))
}
