//! Reading a bundle: its manifest, then the entries that the manifest lists, as they come.
//!
//! A bundle may come from anybody. Nothing is kept of it here but its manifest and the names of what does not belong;
//! sizes that it states set nothing aside. What an entry holds is for whoever takes it to judge by its digest.

use std::collections::BTreeMap;
use std::io::{self, Read};

use serde_json::Value;

use super::{FORMAT, Listed, MANIFEST, MOST_MANIFEST, Manifest, VERSION};
use crate::digest::Digest;

/// Names of entries that do not belong which are remembered.
const MOST_UNLISTED: usize = 20;

/// What became of a bundle besides the blobs that were taken.
#[derive(Debug, Default)]
pub struct Unpacked {
    /// The answers that name its blobs.
    pub answers: Vec<Value>,
    /// Blobs that the manifest lists and the file has not whole, or not at all.
    pub missing: Vec<Digest>,
    /// Blobs whose entries have another size than the manifest says.
    pub misfits: Vec<Digest>,
    /// The first entries that the manifest does not list.
    pub unlisted: Vec<String>,
    /// Where the bundle breaks off, if it does.
    pub cut: Option<String>,
}

/// Why a bundle was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError<E> {
    /// The file itself.
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    /// A version from the future, and the program that wrote it.
    #[error("it was made by a newer program ({0})")]
    TooNew(String),
    /// Whoever took the blobs would not go on.
    #[error("what it holds could not be taken")]
    Taker(E),
}

/// Takes a blob's bytes; false if they ended early.
pub type Take<'t, E> = dyn FnMut(&Listed, &mut dyn Read) -> Result<bool, E> + 't;

/// Gives `take` each blob of a bundle that its manifest lists, once; none if this is no bundle.
pub fn unpack<E>(from: impl Read, take: &mut Take<'_, E>) -> Result<Option<Unpacked>, UnpackError<E>> {
    let mut archive = tar::Archive::new(from);
    let mut entries = archive.entries()?;
    let Some(Ok(mut first)) = entries.next() else { return Ok(None) };
    let Some(manifest) = manifest_of(&mut first)? else { return Ok(None) };
    if manifest.version > VERSION {
        return Err(UnpackError::TooNew(manifest.made_by));
    }
    let mut promised: BTreeMap<Digest, Listed> =
        manifest.blobs.into_iter().map(|listed| (listed.digest, listed)).collect();
    let mut unpacked = Unpacked { answers: manifest.resources, ..Unpacked::default() };
    for entry in entries {
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                unpacked.cut = Some(format!("it is cut or damaged: {error}"));
                break;
            }
        };
        let name = entry.path().map(|name| name.display().to_string()).unwrap_or_default();
        let Some(listed) = Listed::digest_in(&name).and_then(|digest| promised.remove(&digest)) else {
            if unpacked.unlisted.len() < MOST_UNLISTED {
                unpacked.unlisted.push(name);
            }
            continue;
        };
        if entry.size() != listed.size {
            unpacked.misfits.push(listed.digest);
        } else if !take(&listed, &mut entry).map_err(UnpackError::Taker)? {
            unpacked.cut = Some(format!("it ends inside {name}"));
            unpacked.missing.push(listed.digest);
            break;
        }
    }
    unpacked.missing.extend(promised.into_keys());
    Ok(Some(unpacked))
}

/// The manifest in the first entry of an archive, if that is one of ours.
pub(super) fn manifest_of<R: Read>(first: &mut tar::Entry<'_, R>) -> io::Result<Option<Manifest>> {
    if !first.path().is_ok_and(|path| path.as_os_str() == MANIFEST) {
        return Ok(None);
    }
    let mut text = Vec::new();
    first.take(MOST_MANIFEST).read_to_end(&mut text)?;
    Ok(serde_json::from_slice::<Manifest>(&text).ok().filter(|manifest| manifest.format == FORMAT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, bytes: &[u8]) -> Vec<u8> {
        let mut head = tar::Header::new_gnu();
        // as anybody may write it, also what the library would not
        head.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        head.set_size(bytes.len() as u64);
        head.set_mode(0o644);
        head.set_cksum();
        let filling = vec![0; bytes.len().next_multiple_of(512) - bytes.len()];
        [head.as_bytes(), bytes, &filling].concat()
    }

    fn listed(bytes: &[u8]) -> Listed {
        Listed { size: bytes.len() as u64, digest: Digest::of(bytes) }
    }

    fn manifest(version: u32, blobs: &[Listed]) -> Vec<u8> {
        let manifest = Manifest {
            format: FORMAT.to_owned(),
            version,
            made_by: "larder 9".to_owned(),
            made_at: "2026-01-01T00:00:00Z".to_owned(),
            blobs: blobs.to_vec(),
            resources: Vec::new(),
        };
        entry(MANIFEST, &serde_json::to_vec(&manifest).unwrap())
    }

    /// The bytes that were taken, and the rest of the story.
    type Story = (Vec<Vec<u8>>, Unpacked);

    fn unpacked(bytes: &[u8]) -> Result<Option<Story>, UnpackError<io::Error>> {
        let mut taken = Vec::new();
        let told = unpack(bytes, &mut |listed, from| {
            let mut blob = Vec::new();
            from.read_to_end(&mut blob)?;
            let whole = blob.len() as u64 == listed.size;
            taken.push(blob);
            Ok(whole)
        })?;
        Ok(told.map(|told| (taken, told)))
    }

    #[test]
    fn each_listed_blob_is_given_once_and_the_rest_is_told() {
        let (a, b, c) = (listed(b"aa"), listed(b"bbb"), listed(b"c"));
        let bundle = [
            manifest(1, &[a, Listed { size: 7, ..b }, c]),
            entry("../../etc/passwd", b"x"),
            entry(&b.name(), b"bbb"),
            entry(&a.name(), b"aa"),
            entry(&a.name(), b"aa"),
        ]
        .concat();
        let (taken, told) = unpacked(&bundle).unwrap().unwrap();
        assert_eq!(taken, [b"aa"]);
        assert_eq!(told.misfits, [b.digest]);
        assert_eq!(told.missing, [c.digest]);
        assert_eq!(told.unlisted, ["../../etc/passwd".to_owned(), a.name()]);
        assert_eq!(told.cut, None);
    }

    #[test]
    fn a_bundle_that_breaks_off_says_where() {
        let a = listed(&[7; 1000]);
        let bundle = [manifest(1, &[a]), entry(&a.name(), &[7; 1000])].concat();
        let whole = unpacked(&bundle).unwrap().unwrap().1;
        assert!(whole.cut.is_none() && whole.missing.is_empty());
        for short in [bundle.len() - 1024, bundle.len() - 100] {
            let (_, told) = unpacked(&bundle[..short]).unwrap().unwrap();
            assert_eq!(told.cut.is_some(), short < bundle.len() - 24, "{told:?}");
        }
        let damaged = [&bundle[..bundle.len() - 1536], &[1; 512][..]].concat();
        let (_, told) = unpacked(&damaged).unwrap().unwrap();
        assert!(told.cut.unwrap().contains("damaged"));
        assert_eq!(told.missing, [a.digest]);
    }

    #[test]
    fn what_is_no_bundle_or_from_the_future_is_told_apart() {
        assert!(unpacked(b"").unwrap().is_none());
        assert!(unpacked(b"a plain file").unwrap().is_none());
        assert!(unpacked(&entry("other.json", b"{}")).unwrap().is_none());
        assert!(unpacked(&entry(MANIFEST, b"{}")).unwrap().is_none());
        let error = unpacked(&manifest(VERSION + 1, &[])).unwrap_err();
        assert!(error.to_string().contains("larder 9"));
    }
}
