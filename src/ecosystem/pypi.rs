//! Python packages. PyPI's file hosts name a file by the BLAKE2b digest of its bytes; a wheel's name holds its
//! version; pages of the index are made anew. A page states the digest of each file in the fragment of its link (PEP
//! 503) or in JSON (PEP 691), and that of the metadata beside it (PEP 658, PEP 714).

use std::collections::HashMap;
use std::io::{BufRead, Read};

use html5gum::{HtmlString, IoReader, StartTag, Token, Tokenizer};
use serde::Deserialize;

use super::document::root_or_folder;
use super::statement::{Speaker, Unread, best};
use super::{Kind, Lasts, is_hex, parts_of, root_before};
use crate::digest::{Algorithm, Stated, unhex};
use crate::http::Target;

/// Hosts whose `/packages/` paths are known to be made from the content.
const FILE_HOSTS: [&str; 2] = ["files.pythonhosted.org", "test-files.pythonhosted.org"];

const FILES: [&str; 7] = [".whl", ".tar.gz", ".zip", ".tar.bz2", ".egg", ".exe", ".msi"];

/// Parts of a path behind which pages stand.
const PAGES: [&str; 2] = ["/simple/", "/+simple/"];

pub(super) fn recognise(target: &Target) -> Option<Kind> {
    let parts = parts_of(target);
    match parts.as_slice() {
        ["packages", first, second, rest, file]
            if is_hex(first, 2) && is_hex(second, 2) && is_hex(rest, 60) =>
        {
            let of_content =
                FILE_HOSTS.contains(&target.host()) && FILES.iter().any(|end| file.ends_with(end));
            let lasts = if of_content { Lasts::Content } else { versioned(file) };
            Some(Kind::new("pypi", lasts))
        }
        ["simple", ..] | ["pypi", .., "json"] => Some(Kind::mutable("pypi")),
        [.., file] if versioned(file) == Lasts::Version => Some(Kind::new("pypi", Lasts::Version)),
        _ => None,
    }
}

/// A wheel, or the metadata in it: `name-version-python-abi-platform.whl`, perhaps with a build number.
fn versioned(file: &str) -> Lasts {
    let wheel = file.strip_suffix(".metadata").unwrap_or(file).strip_suffix(".whl");
    let is_named = wheel.is_some_and(|name| (5..=6).contains(&name.split('-').count()));
    if is_named { Lasts::Version } else { Lasts::Nothing }
}

/// Whether a path is that of a project's page.
pub(super) fn is_page(path: &str) -> bool {
    PAGES.iter().any(|part| path.contains(part))
}

/// Whether a path is that of a project in PyPI's own JSON.
pub(super) fn is_project(path: &str) -> bool {
    path.contains("/pypi/") && path.ends_with("/json")
}

/// The folder of an index: files stand beside its pages.
fn root_of(path: &str) -> &str {
    PAGES.iter().find_map(|part| root_before(path, part)).unwrap_or_else(|| root_or_folder(path, "/pypi/"))
}

pub(super) fn read_page(path: &str, body: impl Read, to: &mut Speaker<'_>) -> Result<(), Unread> {
    to.within(root_of(path));
    let mut base = to.by().clone();
    for token in Tokenizer::new(IoReader::new(body)) {
        let Token::StartTag(tag) = token? else { continue };
        let href = attribute(&tag, "href");
        match (tag.name.as_slice(), href) {
            (b"base", Some(href)) => base = to.by().join(&href).unwrap_or(base),
            (b"a", Some(href)) => {
                let metadata = attribute(&tag, "data-core-metadata")
                    .or_else(|| attribute(&tag, "data-dist-info-metadata"));
                say_link(&base, &href, metadata.as_deref(), to)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn attribute(tag: &StartTag<()>, name: &str) -> Option<String> {
    let value: &HtmlString = tag.attributes.get(name.as_bytes())?;
    Some(String::from_utf8_lossy(value).into_owned())
}

fn say_link(base: &Target, href: &str, metadata: Option<&str>, to: &mut Speaker<'_>) -> Result<(), Unread> {
    let (url, fragment) = href.split_once('#').unwrap_or((href, ""));
    let Ok(file) = base.join(url) else { return Ok(()) };
    // the fragment may hold more than the digest (`&egg=…`)
    if let Some(digest) = best(fragment.split('&').filter_map(named_value)) {
        to.say(&file, digest, None)?;
    }
    match metadata.and_then(named_value) {
        Some(digest) => say_metadata(&file, digest, to),
        None => Ok(()),
    }
}

/// `algorithm=hex`.
fn named_value(text: &str) -> Option<Stated> {
    let (name, hex) = text.split_once('=')?;
    value(name, hex)
}

fn value(name: &str, hex: &str) -> Option<Stated> {
    Stated::new(Algorithm::named(name).ok()?, &unhex(hex).ok()?).ok()
}

fn say_metadata(file: &Target, digest: Stated, to: &mut Speaker<'_>) -> Result<(), Unread> {
    let (path, query) = file.path().split_once('?').map_or((file.path(), None), |(p, q)| (p, Some(q)));
    let path = query.map_or_else(|| format!("{path}.metadata"), |query| format!("{path}.metadata?{query}"));
    match file.join(&path) {
        Ok(metadata) => to.say(&metadata, digest, None),
        Err(_) => Ok(()),
    }
}

type Hashes = HashMap<String, String>;

fn best_of(hashes: &Hashes) -> Option<Stated> {
    best(hashes.iter().filter_map(|(name, hex)| value(name, hex)))
}

/// The page of a project (PEP 691).
#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    files: Vec<File>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    url: String,
    #[serde(default)]
    hashes: Hashes,
    size: Option<u64>,
    core_metadata: Option<Metadata>,
    dist_info_metadata: Option<Metadata>,
}

/// Whether there is metadata beside the file, or its digest.
#[derive(Deserialize)]
#[serde(untagged)]
enum Metadata {
    Known(Hashes),
    There(serde::de::IgnoredAny),
}

pub(super) fn read_json(path: &str, body: impl BufRead, to: &mut Speaker<'_>) -> Result<(), Unread> {
    to.within(root_of(path));
    let page: Page = serde_json::from_reader(body)?;
    for file in &page.files {
        let Ok(target) = to.by().join(&file.url) else { continue };
        if let Some(digest) = best_of(&file.hashes) {
            to.say(&target, digest, file.size)?;
        }
        let metadata = file.core_metadata.as_ref().or(file.dist_info_metadata.as_ref());
        if let Some(Metadata::Known(hashes)) = metadata
            && let Some(digest) = best_of(hashes)
        {
            say_metadata(&target, digest, to)?;
        }
    }
    Ok(())
}

/// A project, or one version of it, in PyPI's own JSON.
#[derive(Deserialize)]
struct Project {
    #[serde(default)]
    urls: Vec<Upload>,
    #[serde(default)]
    releases: HashMap<String, Vec<Upload>>,
}

#[derive(Deserialize)]
struct Upload {
    url: String,
    #[serde(default)]
    digests: Hashes,
    size: Option<u64>,
}

pub(super) fn read_project(path: &str, body: impl BufRead, to: &mut Speaker<'_>) -> Result<(), Unread> {
    to.within(root_of(path));
    let project: Project = serde_json::from_reader(body)?;
    for upload in project.releases.values().flatten().chain(&project.urls) {
        if let (Ok(target), Some(digest)) = (to.by().join(&upload.url), best_of(&upload.digests)) {
            to.say(&target, digest, upload.size)?;
        }
    }
    Ok(())
}
