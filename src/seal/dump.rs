//! Keeping keys out of core dumps.

use std::{fs, io};

use rustix::process::{Resource, Rlimit, setrlimit};

/// Which memory of a process a dump holds; one for all its threads, and for the programs it starts.
const FILTER: &str = "/proc/self/coredump_filter";

/// From now on no core dump of this process is written: it would hold the keys. The limit cannot be raised again
/// without privileges. Where the system hands dumps to a program, which no limit stops, nothing of what this process
/// keeps in memory is in one: all of it is left out, as `MADV_DONTDUMP` leaves out single pages. Where the system
/// forbids the one or the other (a service manager's filter) its own setting counts.
pub fn forbid_core_dumps() -> io::Result<()> {
    let limit = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    fs::write(FILTER, "0")?;
    Ok(limit?)
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
        assert_eq!(fs::read_to_string(FILTER).unwrap().trim(), "00000000");
        forbid_core_dumps().unwrap();
    }
}
