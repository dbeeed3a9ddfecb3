//! The boot id: which run of a node made a frame.
//!
//! The counter tells the later of two runs, the random part makes the frame key of every run its own even
//! where the counter was lost or the state folder was copied.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// One run of one node; the later run of the same node is the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootId {
    /// How many runs the state folder has seen.
    pub counter: u64,
    /// Random for each run.
    pub random: u64,
}

impl BootId {
    /// The id of a run that begins now: counts on in `state_dir/boot`.
    ///
    /// A counter that cannot be read as a number starts over at 1: neighbours then believe the new run when it
    /// answers them. Blocking.
    pub fn next(state_dir: &Path) -> io::Result<Self> {
        let file = state_dir.join("boot");
        let last: u64 = match fs::read_to_string(&file) {
            Ok(text) => text.trim().parse().unwrap_or(0),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => 0,
            Err(error) => return Err(error),
        };
        let boot = Self::with_counter(last.checked_add(1).unwrap_or(1))?;
        write(state_dir, &file, boot.counter)?;
        Ok(boot)
    }

    /// The id of a run that keeps no state.
    pub fn ephemeral() -> io::Result<Self> {
        Self::with_counter(1)
    }

    /// The 16 bytes in a frame's header.
    pub fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.counter) << 64 | u128::from(self.random)).to_be_bytes()
    }

    /// From the 16 bytes in a frame's header.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
        Self {
            counter: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            random: u64::from_be_bytes([i, j, k, l, m, n, o, p]),
        }
    }

    fn with_counter(counter: u64) -> io::Result<Self> {
        Ok(Self { counter, random: getrandom::u64().map_err(io::Error::from)? })
    }
}

/// Replaces the counter's file so that a crash leaves the old or the new number.
fn write(state_dir: &Path, file: &Path, counter: u64) -> io::Result<()> {
    let fresh = state_dir.join("boot.new");
    let mut to = fs::File::create(&fresh)?;
    writeln!(to, "{counter}")?;
    to.sync_all()?;
    fs::rename(&fresh, file)?;
    fs::File::open(state_dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_on_and_survives_damage() {
        let dir = tempfile::tempdir().unwrap();
        let first = BootId::next(dir.path()).unwrap();
        let second = BootId::next(dir.path()).unwrap();
        assert_eq!((first.counter, second.counter), (1, 2));
        assert!(second > first && second.random != first.random);
        for damage in [&b"many"[..], b"", b"\xff\xfe"] {
            fs::write(dir.path().join("boot"), damage).unwrap();
            assert_eq!(BootId::next(dir.path()).unwrap().counter, 1);
        }
        assert!(BootId::next(&dir.path().join("nowhere")).is_err());
    }

    #[test]
    fn a_counter_that_cannot_be_read_at_all_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        // a link to itself can be replaced, but not read
        std::os::unix::fs::symlink("boot", dir.path().join("boot")).unwrap();
        assert!(BootId::next(dir.path()).is_err());
    }

    #[test]
    fn bytes_round_trip() {
        let boot = BootId { counter: 3, random: u64::MAX - 1 };
        assert_eq!(BootId::from_bytes(boot.to_bytes()), boot);
    }
}
