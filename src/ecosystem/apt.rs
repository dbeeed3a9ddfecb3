//! Debian archives. `by-hash` names index files by their digest; the other index files under `dists/` are a set that
//! fits together; a package's file name holds its version. `Release` and `InRelease` state the digests of the index
//! files, `Packages` and `Sources` those of the packages. Signatures are for apt to check: a statement counts because
//! its own origin made it.

use std::collections::HashMap;
use std::io::BufRead;

use super::lines::Lines;
use super::statement::{Speaker, Unread, best, better};
use super::{Document, Kind, Lasts, folder_of, parts_of, path_of, root_before, scope};
use crate::digest::{Algorithm, Stated};
use crate::http::Target;

/// The longest line that is read.
const LINE: usize = 64 * 1024;
/// An index that says nothing of files in so many paragraphs is of another kind.
const SILENT: u32 = 64;

const PACKAGES: [&str; 3] = [".deb", ".udeb", ".ddeb"];

/// The folders below `by-hash` whose digests are strong.
const BY_HASH: [(&str, Algorithm); 2] = [("SHA256", Algorithm::Sha256), ("SHA512", Algorithm::Sha512)];

/// The digests of a paragraph, by field.
const FIELDS: [(&str, Algorithm); 4] = [
    ("SHA256", Algorithm::Sha256),
    ("SHA512", Algorithm::Sha512),
    ("SHA1", Algorithm::Sha1),
    ("MD5sum", Algorithm::Md5),
];
/// The lists of digests in `Release` and `Sources`, by field.
const LISTS: [(&str, Algorithm); 8] = [
    ("SHA256", Algorithm::Sha256),
    ("SHA512", Algorithm::Sha512),
    ("SHA1", Algorithm::Sha1),
    ("MD5Sum", Algorithm::Md5),
    ("Checksums-Sha256", Algorithm::Sha256),
    ("Checksums-Sha512", Algorithm::Sha512),
    ("Checksums-Sha1", Algorithm::Sha1),
    ("Files", Algorithm::Md5),
];

pub(super) fn recognise(target: &Target) -> Option<Kind> {
    let parts = parts_of(target);
    if let [.., "by-hash", algorithm, value] = parts.as_slice() {
        return match BY_HASH.iter().find(|(name, _)| name == algorithm) {
            Some((_, algorithm)) => stated(*algorithm, value).map(|digest| Kind::of_digest("apt", digest)),
            None => Some(Kind::mutable("apt")),
        };
    }
    let name = parts.last().copied().unwrap_or_default();
    if PACKAGES.iter().any(|end| name.ends_with(end)) {
        let versioned = name.split('_').count() == 3;
        return Some(Kind::new("apt", if versioned { Lasts::Version } else { Lasts::Nothing }));
    }
    let set = (parts.contains(&"dists") && is_index(name)) || document(path_of(target)).is_some();
    set.then_some(Kind::new("apt", Lasts::Set))
}

fn is_index(name: &str) -> bool {
    [
        "InRelease",
        "Release",
        "Packages",
        "Sources",
        "Contents-",
        "Translation-",
        "Components-",
        "Index",
        "icons-",
    ]
    .iter()
    .any(|known| name.starts_with(known))
}

/// The document that an archive has at a path.
pub(super) fn document(path: &str) -> Option<Document> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    match stem {
        "Release" | "InRelease" if name == stem => Some(Document::Release),
        "Packages" | "Sources"
            if ["", ".gz", ".xz", ".zst"].iter().any(|end| name == format!("{stem}{end}")) =>
        {
            Some(Document::Packages)
        }
        _ => match path.rsplit('/').collect::<Vec<_>>().as_slice() {
            // any index file: its first lines tell
            [value, _, "by-hash", ..] if value.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                Some(Document::Packages)
            }
            _ => None,
        },
    }
}

pub(super) fn read_release(path: &str, body: impl BufRead, to: &mut Speaker<'_>) -> Result<(), Unread> {
    let folder = folder_of(path).to_owned();
    to.within(&folder);
    let mut lines = Lines::new(body, LINE);
    let mut files = Files::default();
    let (mut list, mut by_hash) = (None, false);
    while let Some(line) = lines.next()? {
        if line.starts_with("-----BEGIN PGP SIGNATURE") {
            break;
        }
        match line.strip_prefix(' ') {
            Some(entry) => files.note(list, entry)?,
            None => {
                list = list_of(&line);
                by_hash |= line.trim_end() == "Acquire-By-Hash: yes";
            }
        }
    }
    files.say(&folder, to)?;
    if by_hash { files.say_by_hash(&folder, to) } else { Ok(()) }
}

pub(super) fn read_packages(path: &str, body: impl BufRead, to: &mut Speaker<'_>) -> Result<(), Unread> {
    let root = Root::of(path);
    to.within(&root.path);
    let mut lines = Lines::new(body, LINE);
    let (mut paragraph, mut silent) = (Paragraph::default(), 0);
    loop {
        let line = lines.next()?;
        match line.as_deref() {
            Some(line) if !line.is_empty() => paragraph.note(line)?,
            ended => {
                let is_last = ended.is_none();
                silent = if paragraph.say(&root, to)? { 0 } else { silent + 1 };
                if is_last || silent > SILENT {
                    return Ok(());
                }
                paragraph = Paragraph::default();
            }
        }
    }
}

/// The list of digests that begins with this line.
fn list_of(line: &str) -> Option<Algorithm> {
    let (field, _) = line.split_once(':')?;
    LISTS.iter().find(|(name, _)| field.eq_ignore_ascii_case(name)).map(|(_, algorithm)| *algorithm)
}

/// Files with the best digest that several lists state of each.
#[derive(Default)]
struct Files(HashMap<String, (Stated, Option<u64>)>);

impl Files {
    /// One line of a list: digest, size, name.
    fn note(&mut self, list: Option<Algorithm>, entry: &str) -> Result<(), Unread> {
        /// More files than any archive's index has.
        const MOST: usize = 50_000;
        let Some(algorithm) = list else { return Ok(()) };
        let mut words = entry.split_ascii_whitespace();
        let (Some(hex), Some(size), Some(name)) = (words.next(), words.next(), words.next()) else {
            return Ok(());
        };
        let Some(digest) = stated(algorithm, hex) else { return Ok(()) };
        if self.0.len() >= MOST {
            return Err(Unread::Enough);
        }
        let known = self.0.entry(name.to_owned()).or_insert((digest, size.parse().ok()));
        known.0 = better(known.0, digest);
        Ok(())
    }

    /// The same files by their other names: what is there is this archive's own.
    fn say_by_hash(&self, folder: &str, to: &mut Speaker<'_>) -> Result<(), Unread> {
        for (name, (digest, size)) in &self.0 {
            if let Some((kept, _)) = BY_HASH.iter().find(|(_, algorithm)| *algorithm == digest.algorithm()) {
                let place = name.rfind('/').and_then(|at| name.get(..=at)).unwrap_or_default();
                let name = format!("{place}by-hash/{kept}/{}", crate::digest::hex(digest.value()));
                say_of_name(folder, &name, *digest, *size, to)?;
            }
        }
        Ok(())
    }

    fn say(&self, folder: &str, to: &mut Speaker<'_>) -> Result<(), Unread> {
        for (name, (digest, size)) in &self.0 {
            say_of_name(folder, name, *digest, *size, to)?;
        }
        Ok(())
    }
}

/// One package.
#[derive(Default)]
struct Paragraph {
    filename: Option<String>,
    directory: Option<String>,
    size: Option<u64>,
    digests: Vec<Stated>,
    list: Option<Algorithm>,
    files: Files,
}

impl Paragraph {
    fn note(&mut self, line: &str) -> Result<(), Unread> {
        if let Some(entry) = line.strip_prefix(' ') {
            return self.files.note(self.list, entry);
        }
        self.list = None;
        let Some((field, value)) = line.split_once(':') else { return Ok(()) };
        let value = value.trim();
        match field {
            "Filename" => self.filename = Some(value.to_owned()),
            "Directory" => self.directory = Some(value.to_owned()),
            "Size" => self.size = value.parse().ok(),
            _ if value.is_empty() => self.list = list_of(line),
            _ => {
                let known = FIELDS.iter().find(|(name, _)| field.eq_ignore_ascii_case(name));
                self.digests.extend(known.and_then(|(_, algorithm)| stated(*algorithm, value)));
            }
        }
        Ok(())
    }

    /// Whether it said something.
    fn say(&self, root: &Root, to: &mut Speaker<'_>) -> Result<bool, Unread> {
        if let (Some(name), Some(digest)) = (&self.filename, best(self.digests.iter().copied())) {
            for name in root.names(name) {
                say_of_name(&root.path, name, digest, self.size, to)?;
            }
            return Ok(true);
        }
        let Some(directory) = &self.directory else { return Ok(false) };
        for directory in root.names(directory) {
            let folder = scope::path_of_name(&root.path, directory).map(|path| format!("{path}/"));
            self.files.say(folder.as_ref().unwrap_or(&root.path), to)?;
        }
        Ok(true)
    }
}

/// Where the names of an index begin.
struct Root {
    path: String,
    /// The folder's own name, which names begin with where the archive has no `dists` and begins above it.
    own: Option<String>,
}

impl Root {
    fn of(path: &str) -> Self {
        if let Some(root) = root_before(path, "/dists/") {
            return Self { path: root.to_owned(), own: None };
        }
        let folder = root_before(path, "/by-hash/").unwrap_or_else(|| folder_of(path));
        let folder = folder.strip_suffix("./").unwrap_or(folder);
        let above = folder_of(folder.trim_end_matches('/'));
        Self { path: folder.to_owned(), own: folder.strip_prefix(above).map(str::to_owned) }
    }

    /// What a name may mean below the root.
    fn names<'a>(&self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let own = self.own.as_deref().filter(|own| !own.is_empty());
        let inner = own.and_then(|own| name.strip_prefix("./").unwrap_or(name).strip_prefix(own));
        std::iter::once(name).chain(inner)
    }
}

fn stated(algorithm: Algorithm, hex: &str) -> Option<Stated> {
    Stated::new(algorithm, &crate::digest::unhex(hex).ok()?).ok()
}

fn say_of_name(
    folder: &str,
    name: &str,
    digest: Stated,
    size: Option<u64>,
    to: &mut Speaker<'_>,
) -> Result<(), Unread> {
    let path = scope::path_of_name(folder, name);
    match path.and_then(|path| to.by().join(&path).ok()) {
        Some(target) => to.say(&target, digest, size),
        None => Ok(()),
    }
}
