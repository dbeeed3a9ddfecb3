//! Where a database is, and what opens it.

use std::path::{Path, PathBuf};

use super::FileKey;

/// The path of a file, and its key where it is sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    path: PathBuf,
    key: Option<FileKey>,
}

impl Location {
    /// The same file, sealed with this key.
    #[must_use]
    pub fn sealed_with(mut self, key: Option<FileKey>) -> Self {
        self.key = key;
        self
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What opens it.
    pub const fn key(&self) -> Option<&FileKey> {
        self.key.as_ref()
    }
}

impl From<&Self> for Location {
    fn from(at: &Self) -> Self {
        at.clone()
    }
}

impl<P: AsRef<Path> + ?Sized> From<&P> for Location {
    fn from(path: &P) -> Self {
        Self { path: path.as_ref().to_owned(), key: None }
    }
}
