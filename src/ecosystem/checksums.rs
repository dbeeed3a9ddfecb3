//! Lists of checksums as `sha256sum` and its kin write them: `HEX  name`, `HEX *name`, a backslash before the line
//! where the name is escaped, `SHA256 (name) = HEX`, or the bare value of the file whose name the list's own begins
//! with (`file.iso.sha256`, and the sidecars of Maven). A list speaks for its folder and those below it.

use std::borrow::Cow;
use std::io::BufRead;

use super::lines::Lines;
use super::statement::{Speaker, Unread};
use super::{folder_of, scope};
use crate::digest::{Algorithm, Stated, unhex};

/// The longest line: a path may have 4096 bytes, each of them escaped.
const LINE: usize = 16 * 1024;

/// What the name of one file's checksum ends with, and the algorithm of a bare value.
const ENDS: [(&str, Algorithm); 14] = [
    (".sha256", Algorithm::Sha256),
    (".sha256sum", Algorithm::Sha256),
    (".sha256.txt", Algorithm::Sha256),
    (".sha512", Algorithm::Sha512),
    (".sha512sum", Algorithm::Sha512),
    (".sha512.txt", Algorithm::Sha512),
    (".sha384", Algorithm::Sha384),
    (".sha384sum", Algorithm::Sha384),
    (".b2sum", Algorithm::Blake2b),
    (".b3sum", Algorithm::Blake3),
    (".sha1", Algorithm::Sha1),
    (".sha1sum", Algorithm::Sha1),
    (".md5", Algorithm::Md5),
    (".md5sum", Algorithm::Md5),
];

/// The names of lists, in lower case; they may end with `.txt`, and with `.asc` where they are signed in clear.
const LISTS: [&str; 17] = [
    "sha256sums",
    "sha512sums",
    "sha384sums",
    "sha1sums",
    "md5sums",
    "b2sums",
    "b3sums",
    "sha256sum",
    "sha512sum",
    "sha1sum",
    "md5sum",
    "checksums",
    "checksum",
    "sha256",
    "sha512",
    "shasums256",
    "shasums512",
];

/// One line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// The file; none for a bare value.
    pub name: Option<Cow<'a, str>>,
    /// Its digest.
    pub digest: Stated,
}

/// Whether a path is that of a list of checksums.
pub(super) fn is_name(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let lower = name.to_ascii_lowercase();
    let stem = lower.strip_suffix(".asc").unwrap_or(&lower);
    let stem = stem.strip_suffix(".txt").unwrap_or(stem);
    let ends = lower.ends_with("-checksum") || lower.ends_with("_checksums.txt");
    LISTS.contains(&stem) || ends || sidecar(name).is_some()
}

/// The file whose checksum this is by its name, and the algorithm.
fn sidecar(name: &str) -> Option<(&str, Algorithm)> {
    let of_end = |(end, algorithm): &(&str, Algorithm)| {
        name.strip_suffix(end).filter(|stem| !stem.is_empty()).map(|stem| (stem, *algorithm))
    };
    ENDS.iter().find_map(of_end)
}

pub(super) fn read_list(path: &str, body: impl BufRead, to: &mut Speaker<'_>) -> Result<(), Unread> {
    let folder = folder_of(path).to_owned();
    to.within(&folder);
    let name = path.rsplit('/').next().unwrap_or_default();
    let (own, algorithm) = sidecar(name).unzip();
    let algorithm = algorithm.or_else(|| algorithm_of(name));
    let mut lines = Lines::new(body, LINE);
    while let Some(text) = lines.next()? {
        if text.starts_with("-----BEGIN PGP SIGNATURE") {
            break;
        }
        let Some(line) = Line::read(&text, algorithm) else { continue };
        let path = match &line.name {
            Some(name) => scope::path_of_name(&folder, name),
            None => own.map(|own| format!("{folder}{own}")),
        };
        if let Some(target) = path.and_then(|path| to.by().join(&path).ok()) {
            to.say(&target, line.digest, None)?;
        }
    }
    Ok(())
}

/// The algorithm that the name of a list promises, where the length of a value leaves a choice.
fn algorithm_of(name: &str) -> Option<Algorithm> {
    let lower = name.to_ascii_lowercase();
    let known = [("b2sum", Algorithm::Blake2b), ("b3sum", Algorithm::Blake3)];
    known.iter().find(|(start, _)| lower.starts_with(start)).map(|(_, algorithm)| *algorithm)
}

impl<'a> Line<'a> {
    /// Reads a line; a bare value, or one whose form does not say it, is of `algorithm` where the length is right.
    pub fn read(line: &'a str, algorithm: Option<Algorithm>) -> Option<Self> {
        let line = line.trim_end();
        let line = line.strip_prefix("- ").unwrap_or(line);
        if let Some((head, hex)) = line.rsplit_once(") = ") {
            let (algorithm, name) = head.split_once(" (")?;
            let escaped = algorithm.strip_prefix('\\');
            let algorithm = Algorithm::named(escaped.unwrap_or(algorithm).trim()).ok()?;
            let digest = Stated::new(algorithm, &unhex(hex).ok()?).ok()?;
            return Some(Self { name: Some(named(name, escaped.is_some())?), digest });
        }
        let escaped = line.strip_prefix('\\');
        let line = escaped.unwrap_or(line).trim_start();
        let (hex, name) = line.split_once([' ', '\t']).map_or((line, None), |(hex, name)| (hex, Some(name)));
        let digest = of_length(hex, algorithm)?;
        let name = match name.map(|name| name.strip_prefix([' ', '*']).unwrap_or(name).trim_start()) {
            None | Some("" | "-") => None,
            Some(name) => Some(named(name, escaped.is_some())?),
        };
        Some(Self { name, digest })
    }
}

fn of_length(hex: &str, algorithm: Option<Algorithm>) -> Option<Stated> {
    let value = unhex(hex).ok()?;
    let promised = algorithm.and_then(|algorithm| Stated::new(algorithm, &value).ok());
    promised.or_else(|| Stated::parse(hex).ok())
}

/// A name as it is written down: `\n`, `\r` and `\\` stand for what cannot stand in a line.
fn named(name: &str, escaped: bool) -> Option<Cow<'_, str>> {
    if !escaped || !name.contains('\\') {
        return Some(Cow::Borrowed(name));
    }
    let (mut plain, mut letters) = (String::with_capacity(name.len()), name.chars());
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => match letters.next()? {
                'n' => '\n',
                'r' => '\r',
                '\\' => '\\',
                _ => return None,
            },
            other => other,
        });
    }
    Some(Cow::Owned(plain))
}
