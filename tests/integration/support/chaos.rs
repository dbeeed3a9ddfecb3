//! Damage on purpose: flipped bits, short files, full disks.

use std::fs::{File, FileTimes, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every file below a folder; what vanishes meanwhile is left out.
pub fn files_under(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.flat_map(|path| if path.is_dir() { files_under(&path) } else { vec![path] }).collect()
}

/// Bytes on disk below a folder.
pub fn disk_usage(folder: &Path) -> u64 {
    files_under(folder).iter().filter_map(|path| path.metadata().ok()).map(|data| data.len()).sum()
}

/// The files below `folder` that contain `needle`.
pub fn files_with(folder: &Path, needle: &[u8]) -> Vec<PathBuf> {
    let has = |path: &PathBuf| {
        std::fs::read(path).is_ok_and(|bytes| crate::support::find(&bytes, needle).is_some())
    };
    files_under(folder).into_iter().filter(has).collect()
}

/// Flips one bit; size and modification time stay.
pub fn flip_bit(path: &Path, offset: u64) {
    let file = writable(path);
    let times = FileTimes::new().set_modified(file.metadata().unwrap().modified().unwrap());
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 1], offset).unwrap();
    file.set_times(times).unwrap();
}

/// Cuts a file short.
pub fn truncate(path: &Path, length: u64) {
    writable(path).set_len(length).unwrap();
}

/// Opens a read-only file for writing, as its owner can.
fn writable(path: &Path) -> File {
    std::fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    std::fs::set_permissions(path, Permissions::from_mode(0o444)).unwrap();
    file
}

/// A small filesystem in memory; unmounted when dropped.
pub struct Tmpfs {
    folder: tempfile::TempDir,
}

impl Tmpfs {
    /// Mounts one with these options (`size=8m`); says why when the kernel does not let us.
    pub fn mount(options: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(folder.path());
        match mount.output() {
            Ok(output) if output.status.success() => Some(Self { folder }),
            Ok(output) => {
                println!("skipped: cannot mount tmpfs: {}", String::from_utf8_lossy(&output.stderr).trim());
                None
            }
            Err(error) => {
                println!("skipped: cannot run mount: {error}");
                None
            }
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.folder.path()).status());
    }
}

#[test]
fn a_flipped_bit_changes_one_byte_and_no_date() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), b"abc").unwrap();
    let before = file.path().metadata().unwrap().modified().unwrap();
    flip_bit(file.path(), 1);
    assert_eq!(std::fs::read(file.path()).unwrap(), b"acc");
    assert_eq!(file.path().metadata().unwrap().modified().unwrap(), before);
    truncate(file.path(), 1);
    assert_eq!(std::fs::read(file.path()).unwrap(), b"a");
}
