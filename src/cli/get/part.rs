//! `FILE.part`: what has come so far, and what is needed to go on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::fetched;
use crate::digest::{Digest, Hasher, Stated, StatedHasher};

/// How much is copied and hashed at a time.
const PIECE: usize = 4 << 20;

/// A file that is taken over, piece by piece.
pub(super) struct Placing {
    from: File,
    to: File,
    is_cloned: bool,
    piece: Vec<u8>,
}

impl Placing {
    /// Copies a piece where nothing was cloned, and hashes what is there now; none at the end.
    pub(super) fn step(&mut self, part: &mut Part) -> io::Result<Option<u64>> {
        let at = part.length();
        if !self.is_cloned {
            let mut copied = 0;
            while copied < PIECE {
                match fetched::copy(&self.from, &self.to, at + copied as u64, PIECE - copied)? {
                    0 => break,
                    more => copied += more,
                }
            }
        }
        let mut read = 0;
        while let Some(rest) = self.piece.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match self.to.read_at(rest, at + read as u64)? {
                0 => break,
                more => read += more,
            }
        }
        part.hash(self.piece.get(..read).unwrap_or_default());
        Ok((read > 0).then_some(read as u64))
    }
}

/// What `FILE.part` belongs to; kept beside it in `FILE.part.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Origin {
    /// SHA-256 of the URL: the URL itself may hold secrets.
    pub(super) url: String,
    /// The strong entity tag of what is there.
    pub(super) tag: Option<String>,
}

/// A partial file that is open, with the hashes of what it holds.
pub(super) struct Part {
    path: PathBuf,
    file: File,
    length: u64,
    sha256: Hasher,
    stated: Option<(Stated, StatedHasher)>,
    origin: Origin,
}

impl Part {
    /// Opens what is there, or begins anew. Blocks on the disk.
    pub(super) fn open(file: &Path, url: &str, stated: Option<Stated>, anew: bool) -> io::Result<Self> {
        let path = with_suffix(file, ".part");
        let url = Digest::of(url.as_bytes()).hex();
        let known = read_origin(&path).filter(|origin| origin.url == url);
        let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path)?;
        if file.try_lock().is_err() {
            let busy = "another download writes it";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, busy));
        }
        if anew || (known.is_none() && stated.is_none()) {
            file.set_len(0)?;
        }
        let hasher = stated.map(|stated| (stated, stated.hasher()));
        let origin = known.unwrap_or(Origin { url, tag: None });
        let mut part =
            Self { path, file: file.try_clone()?, length: 0, sha256: Hasher::new(), stated: hasher, origin };
        let mut piece = vec![0; 256 * 1024];
        loop {
            let read = file.read(&mut piece)?;
            match piece.get(..read) {
                Some(bytes) if read > 0 => part.hash(bytes),
                _ => return Ok(part),
            }
        }
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// The tag under which the rest may be asked for.
    pub(super) fn tag(&self) -> Option<&str> {
        self.origin.tag.as_deref()
    }

    /// Whether the rest may be asked for: by a tag, or because the digest of the whole will tell.
    pub(super) fn is_resumable(&self) -> bool {
        self.length > 0 && (self.origin.tag.is_some() || self.stated.is_some())
    }

    /// Nothing of what is there counts.
    pub(super) fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        io::Seek::rewind(&mut self.file)?;
        (self.length, self.sha256) = (0, Hasher::new());
        self.stated = self.stated.take().map(|(stated, _)| (stated, stated.hasher()));
        Ok(())
    }

    /// Notes what the bytes belong to, before the first of them.
    pub(super) fn note(&mut self, tag: Option<&str>) -> io::Result<()> {
        self.origin.tag = tag.map(str::to_owned);
        fs::write(with_suffix(&self.path, ".json"), serde_json::to_vec(&self.origin)?)
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.hash(bytes);
        Ok(())
    }

    /// Begins to take over a whole file; nothing may be here yet.
    pub(super) fn place(&self, from: File) -> io::Result<Placing> {
        let is_cloned = fetched::clone(&from, &self.file);
        Ok(Placing { from, to: self.file.try_clone()?, is_cloned, piece: vec![0; PIECE] })
    }

    fn hash(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        self.sha256.update(bytes);
        if let Some((_, hasher)) = &mut self.stated {
            hasher.update(bytes);
        }
    }

    /// The SHA-256 of what is there.
    pub(super) fn sha256(&self) -> Digest {
        self.sha256.so_far()
    }

    /// Whether what is there has the stated digest; true if none was stated.
    pub(super) fn is_right(&self) -> bool {
        self.stated.as_ref().is_none_or(|(stated, hasher)| stated.matches(hasher.clone()))
    }

    /// Gives the whole its name.
    pub(super) fn finish(self, file: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.path, file)?;
        forget(&with_suffix(&self.path, ".json"))
    }

    /// Hands the whole on and removes it.
    pub(super) fn pour(self, mut to: impl io::Write) -> io::Result<()> {
        let mut file = File::open(&self.path)?;
        let poured = io::copy(&mut file, &mut to).and_then(|_| to.flush());
        self.discard()?;
        poured
    }

    /// Removes what is there.
    pub(super) fn discard(self) -> io::Result<()> {
        forget(&self.path)?;
        forget(&with_suffix(&self.path, ".json"))
    }
}

/// A partial file that no later run can find: it goes with this run, however that ends.
pub(super) struct Passing(pub(super) PathBuf);

impl Drop for Passing {
    fn drop(&mut self) {
        let path = with_suffix(&self.0, ".part");
        for path in [with_suffix(&path, ".json"), path] {
            if let Err(error) = forget(&path) {
                tracing::debug!(%error, "a partial file stays");
            }
        }
    }
}

/// Whether a file is there that has the digest already.
pub(super) fn is_there(file: &Path, stated: &Stated) -> Option<(u64, Digest)> {
    let mut source = File::open(file).ok()?;
    let (mut sha256, mut hasher, mut piece) = (Hasher::new(), stated.hasher(), vec![0; 256 * 1024]);
    loop {
        let read = source.read(&mut piece).ok()?;
        let bytes = piece.get(..read)?;
        if read == 0 {
            return stated.matches(hasher).then(|| (sha256.length(), sha256.finish()));
        }
        sha256.update(bytes);
        hasher.update(bytes);
    }
}

fn read_origin(part: &Path) -> Option<Origin> {
    serde_json::from_slice(&fs::read(with_suffix(part, ".json")).ok()?).ok()
}

fn forget(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_later_run_can_find_goes_with_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("random");
        let passing = Passing(place.clone());
        let mut part = Part::open(&place, "http://origin.test/f", None, true).unwrap();
        part.restart().unwrap();
        fs::write(folder.path().join("random.part.json"), "{}").unwrap();
        drop((part, passing));
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}
