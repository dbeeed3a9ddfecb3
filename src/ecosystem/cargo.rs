//! Rust crates. A sparse index has a file for each crate, at a path made from its name, a line a version with the
//! SHA-256 of its file; where the files are stands in the index's `config.json`. A version can be deleted and
//! published again, so its file is as good as the checksum its index line states.

use std::io::BufRead;

use serde::Deserialize;

use super::lines::Lines;
use super::statement::{Speaker, Unread};
use super::{Kind, Lasts, folder_of, parts_of, path_of};
use crate::digest::Digest;
use crate::http::Target;

/// The longest line: the features of a large crate.
const LINE: usize = 1024 * 1024;

pub(super) fn recognise(target: &Target) -> Option<Kind> {
    match parts_of(target).as_slice() {
        [.., _, version, "download"] if is_version(version) => Some(Kind::new("cargo", Lasts::Version)),
        [.., file] if file.ends_with(".crate") => Some(Kind::new("cargo", Lasts::Version)),
        _ => (target.host() == "index.crates.io").then_some(Kind::mutable("cargo")),
    }
}

/// `1.2.3`, and what may stand behind it.
fn is_version(text: &str) -> bool {
    let mut parts = text.splitn(3, '.');
    let is_number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u64>().is_ok());
    is_number(parts.next())
        && is_number(parts.next())
        && parts.next().is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether a path is that of a crate in an index: the folders are made from its name.
pub(super) fn is_index_line(path: &str) -> bool {
    root_of(path).is_some()
}

/// The folder of the index that a crate's path is in.
fn root_of(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next().filter(|name| !name.is_empty())?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !name.bytes().all(is_name) {
        return None;
    }
    let tail = format!("/{}/{name}", prefix_of(name));
    let root = path.strip_suffix(&tail)?;
    path.get(..=root.len())
}

/// The folders that a crate of this name is in.
fn prefix_of(name: &str) -> String {
    let part = |from: usize, to: usize| name.get(from..to).unwrap_or_default();
    match name.len() {
        0..=2 => name.len().to_string(),
        3 => format!("3/{}", part(0, 1)),
        _ => format!("{}/{}", part(0, 2), part(2, 4)),
    }
}

/// Where the index of a crate's path says where its files are.
pub(super) fn config_of(target: &Target) -> Option<Target> {
    let root = root_of(path_of(target))?;
    target.join(&format!("{root}config.json")).ok()
}

#[derive(Deserialize)]
struct Config {
    dl: String,
}

#[derive(Deserialize)]
struct Version {
    name: String,
    vers: String,
    cksum: String,
}

/// `config` is the index's `config.json`; without it nothing is known of where the files are, but for crates.io.
pub(super) fn read_lines(
    config: Option<impl BufRead>,
    body: impl BufRead,
    to: &mut Speaker<'_>,
) -> Result<(), Unread> {
    let own = || (to.by().host() == "index.crates.io").then(|| "https://static.crates.io/crates".to_owned());
    let config = config.map(serde_json::from_reader::<_, Config>).transpose()?;
    let Some(template) = config.map(|config| config.dl).or_else(own) else { return Ok(()) };
    let root = root_of(path_of(to.by())).unwrap_or("/").to_owned();
    // files of a registry stand beside its index
    to.within(folder_of(root.trim_end_matches('/')));
    let mut lines = Lines::new(body, LINE);
    while let Some(line) = lines.next()? {
        let Ok(version) = serde_json::from_str::<Version>(&line) else { continue };
        let Ok(digest) = Digest::from_hex(&version.cksum) else { continue };
        if let Ok(target) = to.by().join(&version.url(&template)) {
            to.say(&target, digest.into(), None)?;
        }
    }
    Ok(())
}

impl Version {
    /// Where its file is.
    fn url(&self, template: &str) -> String {
        let prefix = prefix_of(&self.name);
        let markers = [
            ("{crate}", self.name.clone()),
            ("{version}", self.vers.clone()),
            ("{prefix}", prefix.clone()),
            ("{lowerprefix}", prefix.to_ascii_lowercase()),
            ("{sha256-checksum}", self.cksum.clone()),
        ];
        if !markers.iter().any(|(marker, _)| template.contains(marker)) {
            return format!("{template}/{}/{}/download", self.name, self.vers);
        }
        markers.iter().fold(template.to_owned(), |url, (marker, value)| url.replace(marker, value))
    }
}
