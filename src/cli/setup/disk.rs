//! Changing files so that nobody sees half of one: written beside, renamed over, modes and owners kept. A link
//! stays a link; what it leads to is changed.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::edit::{Change, Piece};
use crate::cli::{Exit, Failure};

/// The text of a file; none if it is not there.
pub(super) fn read(path: &Path) -> Result<Option<String>, Failure> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::new(Exit::Failed, format!("cannot read {}: {error}", path.display()))),
    }
}

/// Carries a change out.
pub(super) fn carry_out(piece: &Piece, change: &Change) -> Result<(), Failure> {
    let done = match change {
        Change::None => Ok(()),
        Change::Text(text) => write(&piece.path, text, piece.mode),
        Change::Remove => fs::remove_file(&piece.path),
    };
    done.map_err(|error| {
        let failure = Failure::new(Exit::Failed, format!("cannot change {}: {error}", piece.path.display()));
        if error.kind() == io::ErrorKind::PermissionDenied {
            return failure.hint("settings of the whole machine want root: use sudo");
        }
        failure
    })
}

fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let path = fs::canonicalize(path).unwrap_or_else(|_new| path.to_owned());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let old = fs::metadata(&path).ok();
    let beside = beside(&path);
    let written = fs::File::create(&beside).and_then(|mut file| {
        let mode = old.as_ref().map_or(mode, |old| old.mode() & 0o7777);
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        if let Some(old) = &old {
            std::os::unix::fs::fchown(&file, Some(old.uid()), Some(old.gid()))?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| fs::rename(&beside, &path));
    if renamed.is_err() {
        // what is half written helps nobody; the first error is the one to tell
        drop(fs::remove_file(&beside));
    }
    renamed
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".larder-{}", std::process::id()));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_stays_a_link_and_a_mode_a_mode() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write(&link, "new", 0o644).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(fs::metadata(&real).unwrap().mode() & 0o777, 0o600);
        write(&folder.path().join("a/b/c"), "x", 0o755).unwrap();
        assert_eq!(fs::metadata(folder.path().join("a/b/c")).unwrap().mode() & 0o777, 0o755);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left beside");
    }
}
