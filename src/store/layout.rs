//! Names of files and folders, and the format line.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::{Stamp, StoreError};
use crate::digest::Digest;

const FORMAT: &str = "larder store 1";

/// Where everything lies under one root.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The names below a folder; nothing is made.
    pub(super) fn of(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Makes the folders that are missing.
    pub(super) fn create(root: &Path) -> Result<Self, StoreError> {
        let layout = Self::of(root);
        layout.make_folders()?;
        Ok(layout)
    }

    /// Makes what is missing, also when somebody removed it under a running daemon.
    pub(super) fn make_folders(&self) -> Result<(), StoreError> {
        for folder in [self.root.clone(), self.blobs(), self.staging(), self.root.join("pins")] {
            make_folder(&folder)?;
        }
        Ok(())
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    pub(super) fn staging(&self) -> PathBuf {
        self.root.join("staging")
    }

    pub(super) fn part(&self, id: &str) -> PathBuf {
        self.staging().join(format!("{id}.part"))
    }

    pub(super) fn record(&self, id: &str) -> PathBuf {
        self.staging().join(format!("{id}.json"))
    }

    pub(super) fn quarantine(&self) -> PathBuf {
        self.root.join("quarantine")
    }

    pub(super) fn pin(&self, digest: &Digest) -> PathBuf {
        self.root.join("pins").join(digest.hex())
    }

    pub(super) fn blob(&self, digest: &Digest) -> PathBuf {
        let hex = digest.hex();
        let shelf: String = hex.chars().take(2).collect();
        self.blobs().join(shelf).join(hex)
    }

    fn blobs(&self) -> PathBuf {
        self.root.join("blobs").join("sha256")
    }

    /// Writes the format line of a new folder; refuses another one.
    pub(super) fn check_format(&self) -> Result<(), StoreError> {
        let file = self.root.join("format");
        match fs::read_to_string(&file) {
            Ok(found) if found.trim() == FORMAT => Ok(()),
            Ok(found) => {
                let found = found.trim().chars().take(80).collect();
                Err(StoreError::Format { file, found, expected: FORMAT })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.write_format(&file),
            Err(error) => Err(StoreError::io("read", &file)(error)),
        }
    }

    /// Written whole under another name, then renamed: a power cut leaves no half line that nobody could read.
    fn write_format(&self, file: &Path) -> Result<(), StoreError> {
        let new = self.root.join("format.new");
        let write = || -> io::Result<()> {
            let mut out = File::create(&new)?;
            writeln!(out, "{FORMAT}")?;
            out.sync_all()?;
            fs::rename(&new, file)
        };
        write().map_err(StoreError::io("write", file))?;
        sync_folder(&self.root)
    }

    /// Every well-named blob; what is not one is passed over.
    pub(super) fn scan(&self, mut each: impl FnMut(Digest, Stamp) -> bool) -> Result<(), StoreError> {
        let root = self.blobs();
        for shelf in fs::read_dir(&root).map_err(StoreError::io("read", &root))? {
            let shelf = shelf.map_err(StoreError::io("read", &root))?.path();
            let Ok(entries) = fs::read_dir(&shelf) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let Some(digest) = name.to_str().and_then(|name| Digest::from_hex(name).ok()) else {
                    continue;
                };
                let Ok(meta) = entry.metadata() else { continue };
                if meta.is_file() && !each(digest, Stamp::from_metadata(&meta)) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    pub(super) fn pins(&self) -> Result<Vec<Digest>, StoreError> {
        let folder = self.root.join("pins");
        let entries = fs::read_dir(&folder).map_err(StoreError::io("read", &folder))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        Ok(names.filter_map(|name| Digest::from_hex(&name).ok()).collect())
    }
}

/// Makes a folder for this user alone, parents included; an existing one is left as it is. The names of new ones are
/// on the disk when this returns: what is put into them would be lost with them.
pub(super) fn make_folder(folder: &Path) -> Result<(), StoreError> {
    let make = || DirBuilder::new().mode(0o700).create(folder);
    let made = match (make(), folder.parent()) {
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
            make_folder(parent)?;
            make()
        }
        (made, _) => made,
    };
    match (made, folder.parent()) {
        (Ok(()), Some(parent)) if !parent.as_os_str().is_empty() => sync_folder(parent),
        (Ok(()), _) => Ok(()),
        (Err(error), _) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        (Err(error), _) => Err(StoreError::io("create", folder)(error)),
    }
}

/// Brings the names in a folder to the disk.
pub(super) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    let synced = File::open(folder).and_then(|open| open.sync_all());
    synced.map_err(StoreError::io("sync", folder))
}
