//! The checksum files that may lie beside a large download, for whoever wants to ask for them: the list of the whole
//! folder (`SHA256SUMS`) and the one of the file itself (`<file>.sha256`).

use super::{classify, folder_of, generic, path_of};
use crate::http::Target;

/// How names of large files end that are published with checksums.
const ENDS: [&str; 36] = [
    ".7z",
    ".apk",
    ".appimage",
    ".bin",
    ".bz2",
    ".cab",
    ".cpio",
    ".dmg",
    ".exe",
    ".flatpak",
    ".gguf",
    ".gz",
    ".img",
    ".iso",
    ".jar",
    ".lz",
    ".lz4",
    ".lzma",
    ".msi",
    ".ova",
    ".pkg",
    ".qcow2",
    ".rar",
    ".raw",
    ".rpm",
    ".run",
    ".snap",
    ".tar",
    ".tgz",
    ".txz",
    ".vdi",
    ".vhd",
    ".vhdx",
    ".vmdk",
    ".xz",
    ".zip",
];
/// One more, whose name is longer.
const PACKED: &str = ".zst";

/// Where the checksum of a file may be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sidecars {
    /// The folder of the file.
    pub folder: Target,
    /// The list of the folder.
    pub list: Target,
    /// The file's own.
    pub own: Target,
}

/// The checksum files that a target may have; none where its name is not that of an archive, where it has a query,
/// and where its digest comes by another way.
pub fn sidecars(target: &Target) -> Option<Sidecars> {
    let path = path_of(target);
    let name = path.rsplit('/').next()?.to_ascii_lowercase();
    let is_archive = ENDS.iter().chain([&PACKED]).any(|end| name.len() > end.len() && name.ends_with(end));
    if !is_archive || target.path().contains('?') || classify(target) != generic::KIND {
        return None;
    }
    let at = |path: String| target.join(&path).ok();
    let folder = folder_of(path);
    Some(Sidecars {
        folder: at(folder.to_owned())?,
        list: at(format!("{folder}SHA256SUMS"))?,
        own: at(format!("{path}.sha256"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_have_two_and_nothing_else_has_any() {
        let target = |url: &str| Target::from_uri(&url.parse().unwrap()).unwrap();
        for (url, expected) in [
            (
                "https://h:444/f/a%20b.ISO",
                Some(("https://h:444/f/", "https://h:444/f/SHA256SUMS", "https://h:444/f/a%20b.ISO.sha256")),
            ),
            ("http://h/x.tar.zst", Some(("http://h/", "http://h/SHA256SUMS", "http://h/x.tar.zst.sha256"))),
            ("http://h/x.iso?a=1", None),
            ("http://h/x.html", None),
            ("http://h/.iso", None),
            ("http://h/iso", None),
            ("http://h/SHA256SUMS", None),
            ("http://h/x.iso.sha256", None),
            // its index states what it is
            ("http://h/dists/s/main/binary-amd64/Packages.xz", None),
            ("https://pypi.org/simple/x-1.0.tar.gz", None),
        ] {
            let found = sidecars(&target(url)).map(|it| (it.folder.url(), it.list.url(), it.own.url()));
            let expected = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
            assert_eq!(found, expected, "{url}");
        }
    }
}
