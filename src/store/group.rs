//! Files on their way to their names, one or many: the disk begins to write all of them before the first is waited
//! for, and a folder is synced once for all that came into it.
//!
//! For each file the order is: its bytes are on the disk, then it has its name, then the folder is on the disk.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise};

use super::layout::make_folder;
use super::{Committed, Ingest, Stamp, Store, StoreError};
use crate::digest::Digest;

type Done<T> = Result<T, StoreError>;

/// The folders that got a file, and what went wrong in syncing them.
type Shelves = BTreeMap<PathBuf, Option<io::Error>>;

/// A file that has its name, as it was then.
struct Named {
    shelf: PathBuf,
    committed: Committed,
}

/// Makes them blobs; what came of each, in their order. Blocks on the disk.
pub(super) fn commit(
    store: &Store,
    ingests: Vec<Ingest>,
    mut named: impl FnMut(Digest, Stamp),
) -> Vec<Done<Committed>> {
    let is_one = ingests.len() == 1;
    let staged: Vec<Done<Ingest>> = ingests.into_iter().map(|ingest| stage(store, ingest)).collect();
    if !is_one {
        staged.iter().flatten().for_each(begin_writing);
    }
    let mut shelves = Shelves::new();
    let mut name = |staged: Done<Ingest>| -> Done<Named> {
        let done = name(store, staged?, &mut shelves)?;
        named(done.committed.digest, done.committed.stamp);
        Ok(done)
    };
    let done: Vec<Done<Named>> = staged.into_iter().map(&mut name).collect();
    for (shelf, trouble) in &mut shelves {
        *trouble = sync_shelf(store, shelf).err();
    }
    done.into_iter().map(|named| finish(named?, &shelves)).collect()
}

/// All of it is in the folder, if not on the disk.
fn stage(store: &Store, mut ingest: Ingest) -> Done<Ingest> {
    store.owned()?;
    ingest.put_on_disk()?;
    let mode = Permissions::from_mode(0o444);
    ingest.file().set_permissions(mode).map_err(StoreError::io("chmod", &ingest.path()))?;
    Ok(ingest)
}

/// Has the kernel begin to write, and does not wait for it. It is synced in any case.
fn begin_writing(ingest: &Ingest) {
    if let Err(error) = fadvise(ingest.file(), 0, None, Advice::DontNeed) {
        tracing::trace!(%error, "a filesystem takes no advice");
    }
}

fn name(store: &Store, mut ingest: Ingest, shelves: &mut Shelves) -> Done<Named> {
    store.owned()?;
    let (from, path) = (ingest.path(), store.0.layout.blob(&ingest.digest()));
    ingest.file().sync_all().map_err(|error| trouble(store, error)).map_err(StoreError::io("sync", &from))?;
    let shelf = path.parent().unwrap_or(store.0.layout.root());
    if !shelves.contains_key(shelf) {
        make_folder(shelf)?;
    }
    // from the rename on others can reach the file: what they do to it before it is stamped must not be stamped
    let proved = ingest.file().metadata().map_err(StoreError::io("stat", &from))?;
    fs::rename(&from, &path).map_err(StoreError::io("rename", &from))?;
    // at once, not after the folder's sync, which may take a while
    let stamp = Stamp::of_same(ingest.file(), &proved);
    ingest.became_blob();
    let shelf = shelf.to_owned();
    shelves.insert(shelf.clone(), None);
    let stamp = stamp.map_err(StoreError::io("stat", &path))?;
    Ok(Named { shelf, committed: Committed { digest: ingest.digest(), stamp } })
}

fn sync_shelf(store: &Store, shelf: &Path) -> io::Result<()> {
    let folder = File::open(shelf)?;
    folder.sync_all().map_err(|error| trouble(store, error))
}

fn finish(named: Named, shelves: &Shelves) -> Done<Committed> {
    match shelves.get(&named.shelf) {
        Some(Some(error)) => Err(StoreError::io("sync", &named.shelf)(again(error))),
        Some(None) | None => Ok(named.committed),
    }
}

/// No space is told as such and harms nothing but this file, which is given up; after any other failure nobody
/// knows what is on the disk.
fn trouble(store: &Store, error: io::Error) -> io::Error {
    if !matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
        store.poison();
    }
    error
}

/// The same error for another file.
fn again(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}
