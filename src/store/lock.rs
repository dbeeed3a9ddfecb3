//! One daemon per folder.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};

use super::StoreError;
use super::layout::Layout;

/// The lock; given back when dropped, or when the process dies however it dies.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    pub(super) fn take(layout: &Layout) -> Result<Self, StoreError> {
        let path = layout.lock();
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(StoreError::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                if file.read_to_string(&mut holder).is_err() || holder.trim().is_empty() {
                    holder = "unknown".to_owned();
                }
                let holder = holder.trim().to_owned();
                return Err(StoreError::Locked { folder: layout.root().to_owned(), holder });
            }
            Err(TryLockError::Error(error)) => return Err(StoreError::io("lock", &path)(error)),
        }
        let note = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        note(&mut file).map_err(StoreError::io("write", &path))?;
        Ok(Self { _file: file })
    }
}
