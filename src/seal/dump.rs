//! Keeping keys out of core dumps.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};

/// From now on no core dump of this process is written: it would hold the keys. The limit cannot be raised again
/// without privileges. Where the system forbids even this (a service manager's filter) its own setting counts.
pub fn forbid_core_dumps() -> io::Result<()> {
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getrlimit;

    #[test]
    fn no_core_is_dumped_any_more() {
        forbid_core_dumps().unwrap();
        assert_eq!(
            (getrlimit(Resource::Core).current, getrlimit(Resource::Core).maximum),
            (Some(0), Some(0))
        );
        forbid_core_dumps().unwrap();
    }
}
