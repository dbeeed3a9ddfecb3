//! Looking for rot where nobody reads: one blob after the other, in the order of their names, and what becomes of
//! one whose bytes are wrong.
//!
//! The rules are here; the daemon's own task calls them at its pace. A pass is remembered by when it began and how
//! far it came, so that a restart goes on where the last run stopped and a machine that is switched off every night
//! still reads everything once in a period.

use std::fmt;
use std::os::unix::fs::FileExt as _;
use std::str::FromStr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::prove::Judged;
use super::{Cache, Verdict};
use crate::clock::Timestamp;
use crate::digest::{Digest, Hasher};
use crate::store::{Blob, Stamp};

/// Bytes read in one go.
pub const STEP: usize = 1024 * 1024;
/// So many names are looked up at once.
const AT_ONCE: u64 = 1000;
/// The name of the setting that remembers the pass.
const SETTING: &str = "scrub";
/// What was not used for so long is read from the disk itself, not from memory that may still be right.
const COLD: Duration = Duration::from_secs(3600);
/// Damaged blobs are kept for whoever wants to know what became of them: so many bytes together, and no more than a
/// hundredth of what may be kept at all.
const QUARANTINE: u64 = 64 * 1024 * 1024;

/// A walk over all blobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// When it began.
    pub began: Timestamp,
    /// The last blob that was looked at.
    pub at: Option<Digest>,
    /// Whether it has come to its end.
    pub is_over: bool,
}

/// One blob being read.
#[derive(Debug)]
pub struct Reading {
    blob: Blob,
    before: Stamp,
    hasher: Hasher,
    is_cold: bool,
}

impl Pass {
    /// One that begins now.
    pub const fn starting(now: Timestamp) -> Self {
        Self { began: now, at: None, is_over: false }
    }

    /// Whether the next one is due, so long after this one began. A beginning in the future (a clock that was set
    /// back) counts as now.
    pub fn is_due(&self, now: Timestamp, every: Duration) -> bool {
        self.is_over && now.since(self.began) >= every
    }
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at.map(|digest| digest.hex());
        let at = at.as_deref().unwrap_or("start");
        write!(f, "{} {}", self.began.0, if self.is_over { "over" } else { at })
    }
}

impl FromStr for Pass {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (began, at) = text.split_once(' ').ok_or(())?;
        let began = Timestamp(began.parse().map_err(|_not_a_time| ())?);
        Ok(match at {
            "start" => Self::starting(began),
            "over" => Self { began, at: None, is_over: true },
            hex => Self { began, at: Some(Digest::from_hex(hex).map_err(|_no_digest| ())?), is_over: false },
        })
    }
}

impl Cache {
    /// The pass that an earlier run began. A node that never made one has all its blobs fresh, or comes from a
    /// version that made none: it begins after a whole period.
    pub fn last_pass(&self) -> Pass {
        let kept = self.0.index.setting(SETTING).and_then(|text| text.parse().ok());
        let now = self.0.clock.now();
        let fresh = Pass { is_over: true, ..Pass::starting(now) };
        let mut pass = kept.unwrap_or(fresh);
        pass.began = pass.began.min(now);
        pass
    }

    /// Remembers how far a pass has come.
    pub fn note_pass(&self, pass: &Pass) {
        self.0.index.put_setting(SETTING, &pass.to_string());
    }

    /// The first of what a pass has still to look at, in its order; nothing when it has come to its end. Blocks.
    pub fn left_of(&self, pass: &Pass) -> Vec<Digest> {
        self.0.index.blobs_after(pass.at.as_ref(), AT_ONCE)
    }

    /// Opens a blob to be read by a pass; none if there is no such file. Blocks on the disk.
    pub fn scrub_open(&self, digest: &Digest) -> Option<Reading> {
        let record = self.0.index.held(digest)?;
        let (blob, before) = self.0.store.as_ref()?.blob(digest).ok().flatten()?;
        let is_cold = self.0.clock.now().since(record.last_used) > COLD;
        let reading = Reading { blob, before, hasher: Hasher::new(), is_cold };
        reading.drop_pages();
        Some(reading)
    }

    /// Judges a blob that was read to its end. One that changed meanwhile is somebody else's. Blocks on the disk.
    pub fn scrub_judge(&self, reading: Reading, read: std::io::Result<()>) -> Verdict {
        let digest = reading.blob.digest();
        let after = Stamp::of(reading.blob.file()).ok();
        reading.drop_pages();
        if self.0.index.held(&digest).is_none() {
            return Verdict::Missing;
        }
        let found = read.map(|()| reading.hasher.so_far());
        match Judged::of(&digest, found, Some(reading.before), after) {
            Judged::Whole(stamp) => self.renew(&digest, stamp),
            Judged::Touched => {}
            Judged::Wrong => {
                self.quarantine(&digest);
                return Verdict::Rotten;
            }
        }
        Verdict::Right
    }

    /// A whole pass found nothing wrong: what was found before is dealt with.
    pub fn pass_was_clean(&self) {
        self.0.health.clear("rot");
    }

    /// How many damaged blobs were found since the start.
    pub fn damaged(&self) -> u64 {
        self.0.damaged.load(Ordering::Relaxed)
    }

    /// Blobs that could not be read when somebody wanted them, each once.
    pub fn doubted(&self) -> Vec<Digest> {
        self.0.store.as_ref().map(|store| store.doubted()).unwrap_or_default()
    }

    /// A blob's bytes are not what its name says: it is taken away, looked after, and told of.
    pub(super) fn quarantine(&self, digest: &Digest) {
        let Some(store) = &self.0.store else { return };
        let held = self.0.index.held(digest).map_or(0, |record| record.size);
        let open = self.0.handles.forget(digest);
        let most = QUARANTINE.min(self.0.config.load().max_size.bytes() / 100);
        match store.quarantine(digest, most) {
            Ok(false) => {}
            Ok(true) => {
                self.0.space.unlinked(open, held);
                let count = self.0.damaged.fetch_add(1, Ordering::Relaxed) + 1;
                tracing::error!(blob.digest = %digest, blob.size = held, "a blob's bytes are wrong: removed");
                let what = if count == 1 { "a stored file was" } else { "stored files were" };
                self.0.health.raise(
                    "rot",
                    format!("{count} {what} damaged and removed, the last {digest}: look at the disk"),
                );
            }
            Err(error) => self.note_trouble(&error),
        }
        self.0.index.remove_blob(digest);
    }
}

impl Reading {
    /// Which blob.
    pub fn digest(&self) -> Digest {
        self.blob.digest()
    }

    /// Reads on; 0 at the end. Blocks on the disk.
    pub fn step(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.blob.file().read_at(buffer, self.hasher.length())?;
        self.hasher.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }

    /// What lies in memory of a file that nobody uses says nothing of the disk, and would push out what is used.
    fn drop_pages(&self) {
        if self.is_cold {
            let advised = rustix::fs::fadvise(self.blob.file(), 0, None, rustix::fs::Advice::DontNeed);
            // where the filesystem takes no advice the file is read all the same
            advised.unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_written_and_read_again() {
        let digest = Digest::of(b"x");
        for pass in [
            Pass::starting(Timestamp(7)),
            Pass { at: Some(digest), ..Pass::starting(Timestamp(8)) },
            Pass { is_over: true, ..Pass::starting(Timestamp(9)) },
        ] {
            assert_eq!(pass.to_string().parse(), Ok(pass));
        }
        for wrong in ["", "7", "x start", "7 nowhere"] {
            assert_eq!(wrong.parse::<Pass>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn a_pass_is_due_a_period_after_the_last_one_began() {
        let over = Pass { is_over: true, ..Pass::starting(Timestamp(1000)) };
        let every = Duration::from_secs(10);
        assert!(!over.is_due(Timestamp(10_999), every) && over.is_due(Timestamp(11_000), every));
        assert!(!over.is_due(Timestamp(0), every), "a clock that was set back");
        assert!(!Pass::starting(Timestamp(0)).is_due(Timestamp(99_999), every), "one that is not over");
    }
}
